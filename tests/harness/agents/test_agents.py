"""Agents with a loop of their own: the same tools and verdicts as in ours, and whatever they do is accounted for."""

import asyncio
import json
import re

import pytest

from finskillbench.episode import Status, Truth
from finskillbench.errors import InputError
from finskillbench.harness.agents import CALLS, HARNESS, Agent, as_agent, play_episode
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance, Remaining
from finskillbench.harness.conditions import ARMS, Condition
from finskillbench.harness.episode_state import EpisodeSpec
from finskillbench.harness.failures import OTHER_POLICIES
from finskillbench.harness.model import Usage
from finskillbench.harness.prompts.compose import remaining_text, system_prompt
from finskillbench.harness.trace import Trace
from finskillbench.runs.verdicts import judge

ANSWER = '{"weights": {"AAA": 1.0}}'


@pytest.fixture
def seated(episode, mounts):
    """The trace of an agent on the episode."""

    def go(solve, condition=Condition.NO_SKILL, allowance=DEFAULT_ALLOWANCE, **limits) -> Trace:
        agent = solve if isinstance(solve, Agent) else Agent("agent/test", solve, **limits)
        given = EpisodeSpec(episode, "The prompt.", lambda: episode.input, mounts[condition], allowance=allowance)
        return asyncio.run(play_episode(agent, given))

    return go


def status(trace: Trace) -> Status:
    return judge(trace.submission, Truth(trace.task_id, "unconstrained_optimization", {}, {"method": "x"}), {}).status


def test_what_it_returns_is_its_submission(seated, episode) -> None:
    async def solve(task, tools):
        assert (task.task_id, task.sub_task, task.condition) == (episode.task_id, episode.sub_task, "no_skill")
        assert task.system == system_prompt(ARMS["no_skill"])
        assert task.prompt == f"The prompt.\n\n{remaining_text(Remaining(DEFAULT_ALLOWANCE), tool_calls=CALLS)}"
        assert [tool.name for tool in task.tools] == ["submit_answer", "get_task_data"]
        read = await tools.call("get_task_data", field="objective")
        assert read["value"] == episode.input["objective"]
        tools.spent(Usage(input_tokens=10, output_tokens=2, cost_usd=0.5), served_model="theirs")
        return ANSWER

    trace = seated(solve)
    assert (trace.harness, trace.ended, trace.answer) == (HARNESS, "submitted", ANSWER)
    assert [(call.name, call.fate) for call in trace.tool_calls] == [("get_task_data", "ok"), ("submit_answer", "ok")]
    assert [message.role for message in trace.messages] == ["system", "user", *["assistant", "tool"] * 2]
    assert [trace.messages[call.message].content for call in trace.tool_calls][1] == '{"status":"submitted"}'
    assert (trace.turns, trace.usage.cost_usd, trace.model_calls[0].served_model) == (1, 0.5, "theirs")
    assert trace.incidents == ()


def test_each_result_in_text_says_below_its_json_what_is_left(seated) -> None:
    told: list[str] = []

    async def solve(task, tools):
        for counted in (False, True, True):
            if counted:
                tools.spent(Usage(output_tokens=5))
            text = await tools.call_text("get_task_data", '{"field": "objective"}')
            result, _, left = text.partition("\n\n")
            assert json.loads(result)["value"] == "max_sharpe"
            told.append(left)
        return ANSWER

    trace = seated(solve, calls=9)
    turns = "You have {} turns left, this one included. "
    assert told == [
        f"{words}Tool calls left: {left}."
        for words, left in zip(("", turns.format(11), turns.format(10)), (8, 7, 6), strict=True)
    ]
    assert [trace.messages[call.message].content.partition("\n\n")[2] for call in trace.tool_calls] == [*told, ""]


def test_an_object_is_an_answer_and_text_reaches_the_judge_as_it_is(seated) -> None:
    async def an_object(task, tools):
        return {"weights": {"AAA": 1.0}}

    async def prose(task, tools):
        return "I think it is AAA"

    assert status(seated(an_object)) is Status.SCORED
    assert seated(prose).answer == "I think it is AAA"
    assert status(seated(prose)) is Status.INVALID_SUBMISSION
    assert seated(prose).usage.cost_usd is None  # what it has not told is not known to be nothing


def test_what_comes_after_the_submission_changes_nothing(seated) -> None:
    async def solve(task, tools):
        await tools.call("submit_answer", answer=ANSWER)
        assert "submitted" in (await tools.call("get_task_data", field="objective"))["error"]
        await tools.call("submit_answer", answer="{}")
        return "{}"

    trace = seated(solve)
    assert trace.answer == ANSWER
    assert [call.fate for call in trace.tool_calls] == ["ok", "not_run", "not_run"]


async def nothing(task, tools):
    await tools.call("get_task_data", field="objective")


async def hanging(task, tools):
    await asyncio.sleep(3600)


async def flooding(task, tools):
    while True:
        await tools.call("get_task_data", field="objective")


async def stubborn(task, tools):
    while True:
        try:
            await tools.call("get_task_data", field="objective")
        except asyncio.CancelledError:
            return ANSWER


@pytest.mark.parametrize(
    ("solve", "entry", "limits"),
    [
        (nothing, "no_answer", {}),
        (hanging, "out_of_time", {"seconds": 0.05}),
        (flooding, "out_of_time", {"seconds": 0.05, "calls": 10**9}),
        (flooding, "out_of_calls", {"calls": 7}),
        (stubborn, "out_of_calls", {"calls": 7}),
    ],
)
def test_an_agent_that_gives_no_answer_is_in_the_table(seated, solve, entry: str, limits) -> None:
    trace = seated(solve, **limits)
    assert (trace.ended, trace.answer, trace.error) == (entry, None, None)
    assert trace.incidents == (entry,)
    assert OTHER_POLICIES[entry].graded
    assert re.search(r"status (\w+)", OTHER_POLICIES[entry].shown)[1] == status(trace).value
    if "calls" in limits and limits["calls"] == 7:
        assert len(trace.tool_calls) == 7


@pytest.mark.parametrize("late", [False, True])
def test_an_agent_is_told_its_budget_and_ends_where_it_says_that_it_is_used_up(seated, late: bool) -> None:
    async def solve(task, tools):
        assert "You have 5 turns" in task.system
        assert "1,000 tokens for all your output" in task.prompt
        if late:
            await tools.call("submit_answer", answer=ANSWER)
        tools.spent(Usage(input_tokens=10**6, output_tokens=1_001))
        await tools.call("get_task_data", field="objective")
        return ANSWER

    trace = seated(solve, allowance=Allowance(5, 1_000))
    assert (trace.ended, status(trace), trace.incidents) == ("budget_exhausted", Status.BUDGET_EXHAUSTED, ())


def test_an_answer_that_was_submitted_in_time_stands(seated) -> None:
    async def solve(task, tools):
        await tools.call("submit_answer", answer=ANSWER)
        await asyncio.sleep(3600)

    trace = seated(solve, seconds=0.05)
    assert (trace.ended, trace.answer, trace.incidents) == ("submitted", ANSWER, ("out_of_time",))


def test_one_that_fails_is_run_again_only_where_it_has_seen_nothing(seated) -> None:
    async def at_once(task, tools):
        raise KeyError("no key")

    async def later(task, tools):
        await tools.call("get_task_data", field="objective")
        raise KeyError("too hard")

    async def wrong(task, tools):
        return 7

    assert (seated(at_once).ended, seated(at_once).error_cause) == ("error", "adapter")
    assert status(seated(at_once)) is Status.ERROR
    trace = seated(later)
    assert (trace.ended, trace.incidents, status(trace)) == (
        "adapter_failed",
        ("adapter_failed",),
        Status.INCOMPLETE_SUBMISSION,
    )
    assert "an answer is text or an object" in seated(wrong).error


def test_a_cancelled_run_ends_its_agents(episode, mounts) -> None:
    ended = []

    async def solve(task, tools):
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    async def cancelled() -> None:
        playing = asyncio.ensure_future(
            play_episode(Agent("agent/x", solve), EpisodeSpec(episode, "The prompt.", dict, mounts[Condition.NO_SKILL]))
        )
        await asyncio.sleep(0.05)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        await asyncio.sleep(0)

    asyncio.run(cancelled())
    assert ended == [True]


def test_what_is_no_agent_is_refused() -> None:
    assert as_agent(nothing).name == "agent/nothing"
    for given, words in ((lambda task, tools: None, "pass an async function"), (7, "int is not an agent")):
        with pytest.raises(InputError, match=words):
            as_agent(given)
    with pytest.raises(InputError, match="use a-z, A-Z, 0-9"):
        Agent("two words", nothing)
    with pytest.raises(InputError, match="above 0"):
        Agent("agent/x", nothing, calls=0)
