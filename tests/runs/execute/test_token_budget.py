"""Models at equal cost: a run with a budget of tokens against a server, and what tells its entries from others."""

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.faults.hosted import SERVED
from tests.faults.server import FaultServer, Reply, Request, answer

from finskillbench.errors import InputError
from finskillbench.harness.models import ModelOptions
from finskillbench.runs.execute.run import run

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
BUDGET, LIMIT = 2_000, 900
SUBMISSION = ("submit_answer", json.dumps({"answer": '{"weights": {"T00": 1.0}}'}))
READING = ("get_task_data", '{"field": "expected_returns"}')


class Spender:
    """Generates up to the limit of each call, or beyond it, and counts by task."""

    def __init__(self, manner: str) -> None:
        self.manner, self.draw = manner, Random(3)
        self.generated: Counter[str] = Counter()
        self.limits: dict[str, int] = {}
        self.seeds: dict[str, set[int]] = {}

    def __call__(self, request: Request) -> Reply:
        task = request.messages[1]["content"].rpartition("\n\n")[0]  # what is left is told below it
        limit = self.limits[task] = request.body["max_tokens"]
        self.seeds.setdefault(task, set()).add(request.body["seed"])
        most = 2 * limit if self.manner == "beyond" else limit
        tokens = most if self.draw.random() < 0.3 else self.draw.randint(1, most)
        self.generated[task] += tokens
        call = SUBMISSION if self.draw.random() < 0.1 else READING
        thought = tokens // 2 if self.manner == "reasoning" else 0
        usage: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        if self.manner == "silent":
            return answer(call, text="word " * tokens, usage=None)
        return answer(call, usage=usage)


@pytest.mark.slow
@pytest.mark.parametrize("manner", ["told", "reasoning", "silent", "beyond"])
def test_no_episode_goes_beyond_its_budget_by_more_than_a_call_may(edition, tmp_path: Path, manner: str) -> None:
    spender = Spender(manner)
    with FaultServer(spender) as server:
        options = ModelOptions(base_url=server.url, max_tokens=LIMIT, seed=5)
        rows = run(
            edition, [SERVED], ["no_skill"], token_budget=BUDGET, turns=20, options=options, out=tmp_path / "run"
        ).rows
    beyond = {task: tokens - BUDGET for task, tokens in spender.generated.items()}
    assert max(beyond.values()) <= (0 if manner != "beyond" else LIMIT)
    assert all(over <= spender.limits[task] for task, over in beyond.items())
    assert set(rows["status"]) == {"scored", "budget_exhausted"}
    assert set(rows.filter(status="budget_exhausted")["score"]) == {0.0}
    said = json.loads(rows["arguments"][0])
    assert (said["token_budget"], said["turns"], said["max_tokens"]) == (BUDGET, 20, LIMIT)
    assert any("usage_unknown" in incidents for incidents in rows["incidents"]) is (manner == "silent")


def test_each_repeat_sends_a_seed_of_its_own(edition, tmp_path: Path) -> None:
    with FaultServer(lambda _: answer(SUBMISSION)) as server:
        options = ModelOptions(base_url=server.url, seed=5)
        run(edition, [SERVED], ["no_skill"], limit=1, epochs=3, options=options, out=tmp_path / "run")
    assert sorted(request.body["seed"] for request in server.requests) == [5, 5, 6, 6, 7, 7]


def test_entries_of_another_allowance_are_others_in_the_same_folder(edition, oracle, tmp_path: Path) -> None:
    for allowed in ({}, {"token_budget": 4_000}, {"turns": 3}, {"turns": 12}):
        result = run(edition, [oracle()], ["no_skill"], limit=1, out=tmp_path / "run", **allowed)
    assert Counter(result.rows["arguments"]) == {"{}": 2, '{"token_budget":4000}': 2, '{"turns":3}': 2}
    assert (result.ran, result.kept) == (0, 2)


@pytest.mark.parametrize("wrong", [{"turns": 0}, {"token_budget": 15}, {"turns": 10**20}])
def test_a_number_that_allows_nothing_is_refused(edition, oracle, tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        run(edition, [oracle()], ["no_skill"], out=tmp_path / "run", **wrong)
