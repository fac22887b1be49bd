"""An episode, a package and models that follow a script, for the harness's tests."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from finskillbench import domains
from finskillbench.episode import Episode, Prompt
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance
from finskillbench.harness.conditions import Condition, Mount, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn
from finskillbench.harness.skills.loader import SkillPackage
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.trace import Trace

NOTES = "Optimises a portfolio; give it returns and a covariance."
TICKERS = ("AAA", "BBB", "CCC")
MATRIX = [[0.040000001, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.16]]


@dataclass(frozen=True)
class Outcome:
    ok: bool
    output: dict[str, Any] | None = None
    error: str | None = None


class FakeRunner:
    """Records its calls and answers with a fixed outcome."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.calls: list[tuple[Path, bytes]] = []
        self.outcome = outcome or Outcome(True, {"weights": {"AAA": 1.0}})

    async def run(self, script: Path, payload: bytes) -> Outcome:
        self.calls.append((script, payload))
        return self.outcome


class Scripted:
    """A model that plays given turns and remembers what it was shown; past the end it repeats the last."""

    name = "test/scripted"

    def __init__(self, turns: Sequence[Turn | Exception]) -> None:
        self.turns = list(turns)
        self.seen: list[tuple[tuple[Message, ...], tuple[str, ...], str]] = []
        self.specs: list[tuple[ToolSpec, ...]] = []

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        step = self.turns[min(len(self.seen), len(self.turns) - 1)]
        self.seen.append((tuple(messages), tuple(tool.name for tool in tools), tool_choice))
        self.specs.append(tuple(tools))
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def tabled(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a registered domain whose episodes offer `read_table`."""
    one = replace(domains.domain("portfolio_construction"), name="tabled", tools=("read_table",), subtasks=())
    every = (*domains.domains(), one)
    monkeypatch.setattr(domains, "domains", lambda: every)
    return one.name


@pytest.fixture(scope="session")
def episode() -> Episode:
    return Episode(
        task_id="pc_uncon_test",
        skill="portfolio_construction",
        sub_task="unconstrained_optimization",
        as_of_date=date(2025, 1, 31),
        difficulty="easy",
        input={
            "expected_returns": {"AAA": 0.1234567, "BBB": 0.05, "CCC": 0.0712345},
            "covariance_matrix": {"tickers": list(TICKERS), "ref": "panels/covariance/2025-01-31.npz"},
            "objective": "max_sharpe",
            "constraints": {"long_only": True},
        },
        prompt=Prompt("Find the weights.", "Respond with a JSON object."),
        metadata={"secret_regime": "crash"},
    )


@pytest.fixture(scope="session")
def full_input(episode: Episode) -> dict[str, Any]:
    return {**episode.input, "covariance_matrix": {"tickers": list(TICKERS), "matrix": MATRIX}}


@pytest.fixture
def package(tmp_path: Path) -> SkillPackage:
    root = tmp_path / "packages" / "portfolio-construction"
    (root / "scripts").mkdir(parents=True)
    (root / "scripts" / "optimize.py").write_text(f'"""{NOTES}"""\ndef main(payload):\n    return payload\n')
    return SkillPackage(
        name="portfolio-construction",
        description="Builds portfolios.",
        root=root,
        body="Call scripts/optimize.py on the fields that the table of this document names.",
        references={"references/methods.md": "Mean and variance, and nothing that anybody would call a method."},
        scripts=("scripts/optimize.py",),
        digest="d" * 64,
    )


@pytest.fixture
def mounts(package: SkillPackage) -> dict[Condition, Mount]:
    placebo = replace(
        package,
        name="bee-keeping",
        description="Keeps bees.",
        body="Feed the bees in the evening, so that robbers do not get in.",
        references={"references/methods.md": "Heavy syrup in September, fondant in January, and no draught."},
        scripts=(),
        digest="b" * 64,
    )
    return {condition: mount(condition, {package.name: package}, {placebo.name: placebo}) for condition in Condition}


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def failing_runner() -> FakeRunner:
    return FakeRunner(Outcome(False, error="stopped after 10 s"))


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def call() -> Callable[..., ToolCall]:
    def make(name: str, arguments: str) -> ToolCall:
        return ToolCall("id", name, arguments)

    return make


@pytest.fixture
def play(
    episode: Episode, full_input: dict[str, Any], mounts: dict[Condition, Mount], runner: FakeRunner, tmp_path: Path
) -> Callable[..., Trace]:
    """Run one episode; the clock ticks one second a reading, sleeps are recorded and take no time."""

    def go(
        model: Any,
        condition: Condition = Condition.NO_SKILL,
        *,
        sleeps: list[float] | None = None,
        base_prompt: str = "Subtask: unconstrained_optimization\nSolve it.",
        episode: Episode = episode,
        memory: Memory = EMPTY,
        allowance: Allowance = DEFAULT_ALLOWANCE,
        repeat: int = 0,
        **around: Any,
    ) -> Trace:
        ticks = iter(range(1_000_000))

        async def sleep(seconds: float) -> None:
            if sleeps is not None:
                sleeps.append(seconds)

        surroundings = Resources(
            runner=runner, scratch_root=tmp_path, clock=lambda: float(next(ticks)), sleep=sleep, **around
        )
        data = {**episode.input, **full_input}
        given = EpisodeSpec(episode, base_prompt, lambda: data, mounts[condition], memory, allowance, repeat)
        return asyncio.run(run_episode(model, given, surroundings))

    return go
