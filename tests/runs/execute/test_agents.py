"""Agents in runs: their rows, their names from the command line, and runs where an event loop is running."""

import asyncio
import sys

import polars as pl
import pytest

from finskillbench import arun
from finskillbench.errors import Cause, InputError, ProviderError, RunStoppedError
from finskillbench.harness.agents import HARNESS, Agent
from finskillbench.harness.model import Usage
from finskillbench.harness.models import check_model, get_participant
from finskillbench.runs.execute.run import RunResult, run
from finskillbench.runs.store.journal import read_history, read_trajectory
from finskillbench.runs.store.rows import TIMINGS

ANSWER = '{"weights": {"T00": 1.0}, "feasible": false, "conflicting_limits": [], "least_attainable": 0.4}'


async def right(task, tools):
    await tools.call("get_task_data", field="number")
    return ANSWER


def test_an_agent_has_rows_like_a_model(edition, oracle, tmp_path) -> None:
    result = run(edition, [oracle()], ["no_skill"], agents=[right], out=tmp_path / "run")
    by_harness = result.rows.sort("task_id").partition_by("harness", as_dict=True, include_key=False)
    ours, theirs = by_harness["finskillbench",], by_harness[HARNESS,]
    same = ["task_id", "sub_task", "score", "scores", "status", "valid_json", "answer_digest", "edition", "mount"]
    assert theirs.select(same).equals(ours.select(same))
    assert theirs["model"].unique().to_list() == ["agent/right"]
    assert theirs["cost_usd"].null_count() == theirs.height
    trace = read_trajectory(next((tmp_path / "run" / "trajectories").rglob("*right*/**/*.json.gz"))).trace
    assert trace.harness == HARNESS


def test_only_the_agents_run_where_no_model_is_named_and_a_run_resumes(edition, tmp_path) -> None:
    out, seen = tmp_path / "run", []

    async def counting(task, tools):
        seen.append(task.task_id)
        return ANSWER

    first = run(edition, conditions=["no_skill"], agents=[counting], limit=2, out=out)
    again = run(edition, conditions=["no_skill"], agents=[counting], limit=2, out=out)
    assert (first.ran, again.ran, again.kept, len(seen)) == (4, 0, 4, 4)


def test_a_limit_on_cost_refuses_an_agent_whose_price_nobody_knows(edition, tmp_path) -> None:
    with pytest.raises(InputError, match="needs the price of agent/right"):
        run(edition, conditions=["no_skill"], agents=[right], max_cost=1.0, out=tmp_path / "run")
    with pytest.raises(InputError, match="given twice"):
        run(edition, conditions=["no_skill"], agents=[right, right], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def telling(*costs: float | None) -> Agent:
    """An agent that tells these prices one after the other, and the last one from then on."""
    left = list(costs)

    async def solve(task, tools):
        await tools.call("get_task_data", field="number")
        if (cost := left.pop(0) if len(left) > 1 else left[0]) is not None:
            tools.spent(Usage(cost_usd=cost))
        return ANSWER

    return Agent("agent/telling", solve, tells_cost=True)


def test_a_limit_on_cost_begins_nothing_that_the_dearest_so_far_would_not_fit(edition, tmp_path) -> None:
    def go(agent: Agent, most: float, name: str = "run") -> RunResult:
        return run(
            edition, conditions=["no_skill"], agents=[agent], max_cost=most, max_concurrency=1, out=tmp_path / name
        )

    first = go(telling(1.0), 3.5)
    assert (first.ran, first.not_run, first.dropped) == (3, 9, 0)
    assert "--max-cost 3.5 is reached: 3.00 USD are spent" in first.stopped["run"]
    assert go(telling(1.0), 3.9).ran == 0
    assert go(telling(1.0), 12.0).not_run == 0
    # What an episode does not tell counts as the dearest; where none has told anything, there is no limit to keep.
    assert go(telling(0.5, 2.0, None), 6.9, "partly").ran == 4
    again = go(telling(0.0), 6.9, "partly")
    assert (again.ran, again.kept) == (0, 4)
    silent = go(telling(None), 100.0, "silent")
    assert silent.ran == 1
    assert "did not report the cost of pc_uncon_000" in silent.stopped["run"]


def test_what_a_dropped_episode_may_have_cost_is_spent(edition, tmp_path) -> None:
    played = []

    async def solve(task, tools):
        await tools.call("get_task_data", field="number")
        played.append(task.task_id)
        if len(played) > 1:
            raise RunStoppedError("enough")
        tools.spent(Usage(cost_usd=2.0))
        return ANSWER

    agent = Agent("agent/stopped", solve, tells_cost=True)
    out = tmp_path / "run"
    result = run(edition, conditions=["no_skill"], agents=[agent], max_cost=9.0, max_concurrency=1, out=out)
    assert (result.ran, result.dropped) == (1, 1)
    assert read_history(out).spent({}) == 4.0


def test_a_failure_that_an_agent_names_is_its_cause(edition, tmp_path) -> None:
    async def refused(task, tools):
        tools.log("I have no key.")
        raise ProviderError("no key", Cause.AUTH)

    result = run(edition, conditions=["no_skill"], agents=[refused], max_concurrency=1, out=tmp_path / "run")
    assert (result.ran, result.errors, result.not_run) == (1, 1, 11)
    assert result.rows["error_cause"].to_list() == ["auth"]
    (path,) = (tmp_path / "run" / "trajectories").rglob("*.json.gz")
    assert read_trajectory(path).trace.messages[-1].content == "I have no key."


def test_single_tasks_of_a_plan_are_run_now_and_the_others_later(edition, oracle, tmp_path) -> None:
    out = tmp_path / "run"
    first = run(edition, [oracle()], ["no_skill"], tasks=["pc_infeas_002"], out=out)
    assert first.rows["task_id"].to_list() == ["pc_infeas_002"]
    second = run(edition, [oracle()], ["no_skill"], tasks=["pc_uncon_001", "pc_infeas_002"], out=out)
    assert (second.ran, second.kept, second.rows["task_id"].to_list()) == (1, 1, ["pc_uncon_001", "pc_infeas_002"])
    assert run(edition, [oracle()], ["no_skill"], out=out).ran == 10


def test_a_run_where_a_loop_is_running_is_the_same_run(edition, oracle, tmp_path) -> None:
    """As in a notebook: awaited in its loop, or called in it without being awaited."""

    async def cell() -> list[pl.DataFrame]:
        awaited = await arun(edition, [oracle()], ["no_skill"], out=tmp_path / "awaited")
        called = run(edition, [oracle()], ["no_skill"], out=tmp_path / "called")
        return [awaited.rows, called.rows]

    plain = run(edition, [oracle()], ["no_skill"], out=tmp_path / "plain").rows
    for rows in asyncio.run(cell()):
        assert rows.drop(TIMINGS).equals(plain.drop(TIMINGS))


def test_a_bug_of_an_agent_is_shown_once_and_without_the_context_of_the_run(edition, tmp_path, caplog) -> None:
    async def broken(task, tools):
        await tools.call("get_task_data", field="number")
        raise KeyError("covariance")

    result = run(edition, conditions=["no_skill"], agents=[broken], limit=2, out=tmp_path / "run")
    assert result.ran == 4
    (record,) = (each for each in caplog.records if each.levelname == "WARNING")
    assert record.exc_info[1].__context__ is None


def test_an_error_in_a_running_loop_is_the_callers(edition, tmp_path) -> None:
    async def cell() -> None:
        run(edition, ["baseline/none"], out=tmp_path / "run")

    with pytest.raises(InputError, match="'baseline/none' is unknown"):
        asyncio.run(cell())


MODULE = """
from finskillbench.harness.model import Turn

class Mine:
    name = "mine/model"
    async def generate(self, messages, tools, tool_choice):
        return Turn()

async def agent(task, tools):
    return "{}"

def factory():
    return Mine()

def not_async(task, tools):
    return "{}"

model = Mine()
number = 7
"""


def test_models_and_agents_come_from_where_they_are_defined(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_entrants.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = [get_participant(f"my_entrants:{name}").name for name in ("model", "factory", "Mine", "agent")]
    assert names == ["mine/model", "mine/model", "mine/model", "agent/agent"]
    assert isinstance(get_participant("my_entrants:agent"), Agent)
    for name, words in (
        ("my_entrants:number", "TypeError"),
        ("my_entrants:not_async", "pass an async function"),
        ("my_entrants:none", "has no attribute"),
        ("no_such_module:x", "ModuleNotFoundError"),
    ):
        with pytest.raises(InputError, match=words):
            check_model(name)
    with pytest.raises(InputError, match=r"package\.module:name"):
        check_model("mine")
