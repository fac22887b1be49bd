"""Hundreds of episodes against a server that fails one time in five: nothing is lost, nothing is counted twice.

What the server answers depends only on the seed, the episode, its turn and the attempt, so the fate of every episode is
known beforehand, whatever the order in which requests arrive.
"""

import asyncio
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.faults.hosted import CAUSES, INCIDENTS, warm
from tests.faults.server import (
    FINAL_FAULTS,
    MODEL_FAULTS,
    OVERFLOW,
    PROVIDER_FAULTS,
    READ,
    SUBMIT,
    FaultServer,
    Reply,
    Request,
)
from tests.sampling import THOROUGH, thorough

from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.loop import MAX_RETRIES
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.runs.execute.run import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
EPISODES = 400 if THOROUGH else 200
CONCURRENCY = 64
SHARE = 0.2
SEED = 2
DEADLINE = 300.0
"""Seconds for one request, never reached however busy the machine: silence has a test of its own below."""
ENDS_THE_MODEL = ("401", "403", "402", "quota", "404")
PASSING = {name: reply for name, reply in PROVIDER_FAULTS.items() if name != "no answer"}
STAYING = {name: reply for name, reply in FINAL_FAULTS.items() if name not in ENDS_THE_MODEL}
KINDS = (PASSING, PASSING, PASSING, MODEL_FAULTS, MODEL_FAULTS, MODEL_FAULTS, STAYING, {"overflow": OVERFLOW})
NAMED_AS = {**CAUSES, **INCIDENTS, "overflow": "context_overflow"}
"""Each fault, and the incident that a row tells of it."""


def fault(number: int, turn: int, attempt: int) -> str | None:
    """The fault that this request meets, None where it is answered well."""
    draw = random.Random(f"{SEED}/{number}/{turn}/{attempt}")
    if draw.random() >= SHARE:
        return None
    return draw.choice(sorted(draw.choice(KINDS)))


def reply_to(number: int, turn: int, attempt: int) -> Reply:
    name = fault(number, turn, attempt)
    if name is not None:
        return {**PROVIDER_FAULTS, **FINAL_FAULTS, **MODEL_FAULTS, "overflow": OVERFLOW}[name]
    return READ if turn == 0 else SUBMIT


@dataclass(frozen=True)
class Fate:
    status: str
    requests: int
    answered: int
    met: tuple[str, ...]


def fate(number: int) -> Fate:
    """What must become of an episode, worked out from the table of failures."""
    requests = answered = 0
    met: list[str] = []
    for turn in range(MAX_TURNS):
        for attempt in range(MAX_RETRIES + 1):
            requests += 1
            name = fault(number, turn, attempt)
            if name is not None:
                met.append(name)
            if name not in PROVIDER_FAULTS:
                break
        else:
            return Fate("error", requests, answered, tuple(met))
        if name in FINAL_FAULTS:
            return Fate("error", requests, answered, tuple(met))
        if name == "overflow":
            return Fate("incomplete_submission", requests, answered, tuple(met))
        answered += 1
        if name is None and turn > 0:
            return Fate("scored", requests, answered, tuple(met))
    return Fate("max_turns_exhausted", requests, answered, tuple(met))


def number_of(request: Request) -> int:
    found = re.search(r"Task (\d+)\.", request.messages[1]["content"])
    assert found is not None
    return int(found[1])


class Adversary:
    """Answers by plan; knows how often each turn of each episode was asked for."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[int, int]] = Counter()

    def __call__(self, request: Request) -> Reply:
        place = (number_of(request), request.turn)
        attempt = self.attempts[place]
        self.attempts[place] += 1
        return reply_to(*place, attempt)


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


@thorough
def test_many_episodes_with_a_fifth_of_the_answers_faulty(memory_edition, episodes_of, tmp_path: Path):
    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", EPISODES))
    fates = {number: fate(number) for number in range(EPISODES)}
    warm("openai/gpt-4.1")
    with FaultServer(Adversary()) as server:
        model = get_model("openai/gpt-4.1", ModelOptions(base_url=server.url, attempt_timeout=DEADLINE))
        result = run(
            edition,
            [model],
            ["no_skill"],
            limit=EPISODES,
            max_concurrency=CONCURRENCY,
            out=tmp_path / "run",
            sleep=no_wait,
        )
    rows = {int(row["task_id"].rsplit("_", 1)[1]): row for row in result.rows.iter_rows(named=True)}

    # every episode once, with the status it had to have
    assert result.rows.height == EPISODES == len(rows) == result.ran
    assert {number: row["status"] for number, row in rows.items()} == {
        number: each.status for number, each in fates.items()
    }
    assert {number: row["incidents"] for number, row in rows.items()} == {
        number: [NAMED_AS[name] for name in each.met] for number, each in fates.items()
    }
    assert result.errors == sum(each.status == "error" for each in fates.values())

    # every request that the table calls for, and not one more
    asked: Mapping[int, list[Request]] = defaultdict(list)
    for request in server.requests:
        asked[number_of(request)].append(request)
    assert {number: len(asked[number]) for number in fates} == {n: each.requests for n, each in fates.items()}

    # tokens as billed, no more and no less
    for number, row in rows.items():
        billed = [request.billed for request in asked[number] if request.billed is not None]
        assert len(billed) == fates[number].answered
        assert row["total_input_tokens"] == sum(usage["prompt_tokens"] for usage in billed)
        assert row["total_output_tokens"] == sum(usage["completion_tokens"] for usage in billed)
        assert row["total_cached_tokens"] == sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in billed)
        # 600 fresh at $2.00, 400 cached at $0.50, 50 out at $8.00, per million
        assert row["cost_usd"] == pytest.approx(0.0018 * len(billed), abs=1e-9)

    # the plan was as bad as it says: a fifth of the answers, every kind of fault met
    met = [name for each in fates.values() for name in each.met]
    assert set(met) == {*PASSING, *STAYING, *MODEL_FAULTS, "overflow"}
    assert len(met) / len(server.requests) == pytest.approx(SHARE, abs=0.02)
    assert {each.status for each in fates.values()} >= {"scored", "error", "incomplete_submission"}

    # the tool list of the arm on every wire
    every = {request.tools for request in server.requests if request.turn < MAX_TURNS - 1}
    assert every == {("submit_answer", "get_task_data")}


def test_silence_in_every_episode_is_waited_out(memory_edition, episodes_of, tmp_path: Path):
    seen: Counter[int] = Counter()

    def script(request: Request) -> Reply:
        seen[number_of(request)] += 1
        return PROVIDER_FAULTS["no answer"] if seen[number_of(request)] == 1 else SUBMIT

    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", 16))
    warm("openai/gpt-4.1")
    with FaultServer(script) as server:
        model = get_model("openai/gpt-4.1", ModelOptions(base_url=server.url, attempt_timeout=4.0))
        rows = run(edition, [model], ["no_skill"], out=tmp_path / "run", max_concurrency=16, sleep=no_wait).rows
    assert rows["status"].to_list() == ["scored"] * 16
    assert rows["incidents"].to_list() == [["timeout"]] * 16
    assert rows["total_input_tokens"].to_list() == [1000] * 16
    assert len(server.requests) == 32
