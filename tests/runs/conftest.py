"""A small edition in memory and models that answer it, for the tests of runs."""

import asyncio
import heapq
import json
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.providers.prices import Price

TICKERS = [f"T{i:02}" for i in range(5)]


def make_episode(sub_task: str, prefix: str, number: int, skill: str = "portfolio_construction") -> Episode:
    return Episode(
        task_id=f"{prefix}_{number:03}",
        skill=skill,
        sub_task=sub_task,
        as_of_date=date(2025, 1, 31),
        difficulty="easy",
        input={"expected_returns": {t: 0.01 * (i + number) for i, t in enumerate(TICKERS)}, "number": number},
        prompt=Prompt(f"Task {number}.", "Respond with a JSON object."),
    )


class MemoryEdition:
    """What a run needs of an edition, without files."""

    def __init__(self, episodes: Sequence[Episode], digest: str = "e" * 64) -> None:
        self.path = Path("memory")
        self.manifest: dict[str, Any] = {}
        self.digest = digest
        self.filings = None
        self.has_truth = True
        self._episodes = tuple(episodes)

    def episodes(self, sub_tasks: Sequence[str] | None = None) -> tuple[Episode, ...]:
        return tuple(e for e in self._episodes if sub_tasks is None or e.sub_task in sub_tasks)

    def truth(self, task_id: str) -> Truth:
        episode = next(e for e in self._episodes if e.task_id == task_id)
        expected = {
            "unconstrained_optimization": {"weights": {TICKERS[0]: 1.0}},
            "infeasibility_detection": {"feasible": False, "conflicting_limits": [], "least_attainable": 0.4},
            "normalization": {"metrics": {"revenue": 1.0}},
        }[episode.sub_task]
        return Truth(task_id, episode.sub_task, expected, {"method": "x"})

    def open_interactive_state(self, episode: Episode) -> None:
        """No episode of these is played move by move."""

    def full_input(self, episode: Episode) -> dict[str, Any]:
        return dict(episode.input)


def standard_edition(count: int = 6) -> MemoryEdition:
    episodes = [make_episode("unconstrained_optimization", "pc_uncon", i) for i in range(count)]
    episodes += [make_episode("infeasibility_detection", "pc_infeas", i) for i in range(count)]
    return MemoryEdition(episodes)


class Oracle:
    """Answers every task rightly; `fail` holds task numbers on which it raises, `calls` counts its episodes."""

    def __init__(self, name: str = "test/oracle", fail: Sequence[int] = ()) -> None:
        self.name = name
        self.fail = set(fail)
        self.calls = 0

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        self.calls += 1
        prompt = messages[1].content
        if any(f"Task {number}." in prompt for number in self.fail):
            raise RuntimeError("provider is down")
        text = '{"weights": {"T00": 1.0}, "feasible": false, "conflicting_limits": [], "least_attainable": 0.4}'
        call = ToolCall("s", "submit_answer", json.dumps({"answer": text}))
        return Turn(tool_calls=(call,), usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.01))


class Learner(Oracle):
    """Saves a skill that counts its episodes, then answers; so its stream shows in what it saves."""

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        turn = await super().generate(messages, tools, tool_choice)
        if messages[-1].role == "tool" or not any(tool.name == "save_skill" for tool in tools):
            return turn
        notes = f"# Notes\n\nprompt of {len(messages[1].content)} characters"
        call = ToolCall("k", "save_skill", json.dumps({"skill_name": "notes", "content": notes}))
        return Turn(tool_calls=(call,), usage=turn.usage)


class Paid(Oracle):
    """A model of a provider with a price; `answer` makes usages, `seconds` is its latency."""

    def __init__(self, name: str = "fake/paid", *, price: Price | None = None, seconds: float = 1.0) -> None:
        super().__init__(name)
        self.provider = name.partition("/")[0]
        self.price = price
        self.seconds = seconds

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        await asyncio.sleep(self.seconds)
        turn = await super().generate(messages, tools, tool_choice)
        return replace(turn, usage=Usage(input_tokens=1_000, output_tokens=50))


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as nothing else is left to do, in threads as well."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads: set[asyncio.Future[Any]] = set()

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:
            heapq.heappop(self._scheduled)._scheduled = False
        if not self._ready and self._scheduled and not self.threads:
            self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()

    def run_in_executor(self, *call: Any) -> asyncio.Future[Any]:
        done = super().run_in_executor(*call)
        self.threads.add(done)
        done.add_done_callback(self.threads.discard)
        return done


def run_virtual(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """As `asyncio.run`, in time that costs nothing."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


@pytest.fixture(scope="session")
def virtual():
    return run_virtual


@pytest.fixture
def virtual_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this test wait in virtual time."""
    monkeypatch.setattr("finskillbench.runs.execute.run.asyncio.run", run_virtual)


@pytest.fixture
def learner() -> type[Learner]:
    return Learner


@pytest.fixture
def paid() -> type[Paid]:
    return Paid


@pytest.fixture
def edition() -> MemoryEdition:
    return standard_edition()


@pytest.fixture
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture
def memory_edition() -> type[MemoryEdition]:
    return MemoryEdition


@pytest.fixture
def episodes_of():
    return lambda sub_task, prefix, count, skill="portfolio_construction": [
        make_episode(sub_task, prefix, i, skill) for i in range(count)
    ]
