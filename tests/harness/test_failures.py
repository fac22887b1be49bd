"""The loop does what the table of failures says, entry by entry."""

import re
from dataclasses import replace
from typing import get_args

import pytest

from finskillbench.episode import Status, Truth
from finskillbench.errors import Cause, ProviderError, RunStoppedError
from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.conditions import Condition
from finskillbench.harness.failures import OTHER_POLICIES, PROVIDER_POLICIES, Incident, Policy
from finskillbench.harness.loop import LONGEST_WAIT_SECONDS, MAX_RETRIES
from finskillbench.harness.model import MAX_CALLS_PER_TURN, Stop, ToolCall, Turn, Usage
from finskillbench.harness.prompts.compose import REMINDER
from finskillbench.harness.providers.prices import Price
from finskillbench.harness.trace import CallOutcome, Trace
from finskillbench.runs.verdicts import judge

SUBMIT = Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": "not JSON"}'),))
READ = ToolCall("r", "get_task_data", '{"field": "objective"}')
READ_UNCOUNTED = Turn(tool_calls=(READ,), usage=Usage(output_tokens=-5))
TEXT = Turn("I think it is AAA.")


def turn(name: str, arguments: str) -> Turn:
    return Turn(tool_calls=(ToolCall("x", name, arguments),))


OTHER_TURNS: dict[str, list[Turn | Exception]] = {
    "context_overflow": [Turn("half a", stop="context_overflow"), SUBMIT],
    "max_tokens": [Turn("half a", (READ,), stop="max_tokens"), SUBMIT],
    "refused": [Turn("I cannot help with that.", stop="refused"), SUBMIT],
    "text_only": [TEXT, SUBMIT],
    "invalid_arguments": [turn("get_task_data", '{"field": '), turn("get_task_data", '{"field": 1}'), SUBMIT],
    "unknown_tool": [turn("optimize", "{}"), SUBMIT],
    "tool_failed": [turn("get_task_data", '{"field": "none"}'), SUBMIT],
    "too_many_calls": [Turn(tool_calls=(READ,) * (MAX_CALLS_PER_TURN + 2)), SUBMIT],
    "usage_unknown": [READ_UNCOUNTED, SUBMIT],
    "call_repaired": [turn("functions.get_task_data", '"{\\"field\\": \\"objective\\"}"'), SUBMIT],
    "wait_capped": [ProviderError("later", Cause.RATE_LIMIT, retry_after=9e9), SUBMIT],
    "out_of_turns": [Turn(tool_calls=(READ,)), Turn(tool_calls=(READ,))],
}
"""Turns under which each entry is met; the last one is repeated."""
MET = {"invalid_arguments": 2, "usage_unknown": 2}
"""How often, where it is not once."""
OUTSIDE = {"disk", "out_of_tokens"}
"""Entries that no episode meets, or none without a budget, see test_allowance.py."""
RAISED = {"adapter_failed"}
"""Entries that an adapter raises."""
AGENTS = {"no_answer", "out_of_time", "out_of_calls"}
"""Entries of agents with a loop of their own, see tests/harness/agents."""
STOPPED = {"budget", "interrupt"}
"""Entries under which a model wrapper stops the run."""


def judged(trace: Trace) -> Status:
    truth = Truth(trace.task_id, "unconstrained_optimization", {}, {"method": "x"})
    return judge(trace.submission, truth, {}).status


def agrees(policy: Policy, trace: Trace) -> None:
    """The verdict is one exactly where the table grades, and the status is the one that the table shows."""
    status = judged(trace)
    assert (status is not Status.ERROR) is policy.graded
    shown = re.search(r"status (\w+)", policy.shown)
    assert status.value == (shown[1] if shown else Status.INVALID_SUBMISSION.value)
    assert ("incidents" in policy.shown) is bool(trace.incidents)


@pytest.mark.parametrize("cause", list(Cause))
def test_a_provider_that_keeps_failing(scripted, play, cause: Cause) -> None:
    policy = PROVIDER_POLICIES[cause]
    model, sleeps = scripted([ProviderError(f"it was {cause.value}", cause)]), []
    trace = play(model, sleeps=sleeps)
    calls = 1 + MAX_RETRIES if policy.retried else 1
    assert (len(model.seen), trace.turns, trace.retries) == (calls, 0, calls - 1)
    assert sleeps == [1.0, 2.0, 4.0][: calls - 1]
    assert (trace.ended, trace.answer, trace.error_cause) == ("error", None, cause.value)
    assert trace.error == f"it was {cause.value}"
    assert trace.incidents == (cause.value,) * calls
    assert policy.stops in ("episode", "model")
    agrees(policy, trace)


@pytest.mark.parametrize("cause", list(Cause))
def test_a_provider_that_fails_once(scripted, play, cause: Cause) -> None:
    model = scripted([ProviderError("once", cause), SUBMIT])
    trace = play(model)
    retried = PROVIDER_POLICIES[cause].retried
    assert (trace.ended, trace.retries, len(model.seen)) == (("submitted", 1, 2) if retried else ("error", 0, 1))
    assert trace.incidents == (cause.value,)
    assert (trace.error_cause, trace.error) == ((None, None) if retried else (cause.value, "once"))


@pytest.mark.parametrize("cause", [cause for cause, policy in PROVIDER_POLICIES.items() if policy.retried])
@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (7.5, 7.5), (-3.0, 0.0), (9e9, LONGEST_WAIT_SECONDS)])
def test_a_wait_that_the_provider_asked_for(scripted, play, cause: Cause, asked: float, waited: float) -> None:
    sleeps: list[float] = []
    play(scripted([ProviderError("later", cause, retry_after=asked), SUBMIT]), sleeps=sleeps)
    assert sleeps == [waited]


@pytest.mark.parametrize("bug", [KeyError("choices"), None, Turn(text=None), Turn(tool_calls=None)])  # type: ignore[arg-type]
def test_an_adapters_own_bug_costs_one_episode_and_is_in_the_log(scripted, play, bug: object, caplog) -> None:
    trace = play(scripted([bug]))
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "finskillbench.harness.loop")
    assert record.exc_info is not None
    assert (trace.ended, trace.error_cause, trace.incidents) == ("error", "adapter", ("adapter",))
    assert trace.error.startswith("test/scripted: ")
    agrees(PROVIDER_POLICIES[Cause.ADAPTER], trace)


@pytest.mark.parametrize(
    "entry", [entry for entry in OTHER_POLICIES if entry not in OUTSIDE | STOPPED | RAISED | AGENTS]
)
def test_what_models_and_tools_may_do(scripted, play, entry: str) -> None:
    policy, turns = OTHER_POLICIES[entry], OTHER_TURNS[entry]
    model = scripted(turns)
    if entry == "usage_unknown":
        model.price = Price(1.0, 1.0, 1.0, 1.0)  # of a model without a price nobody expects counts
    trace = play(model)
    assert (trace.retries, trace.error, trace.error_cause) == (int(entry == "wait_capped"), None, None)
    if entry == "out_of_turns":
        # Its last turn offers the submission alone, so that reading on meets a tool that is not there.
        assert (trace.ended, trace.turns, trace.incidents) == ("max_turns", MAX_TURNS, ("unknown_tool",))
        assert judged(trace).value in policy.shown
        return
    if entry == "wait_capped":
        assert trace.incidents[0] == "rate_limit"
        trace = replace(trace, incidents=trace.incidents[1:])
    assert trace.incidents == (entry,) * MET.get(entry, 1)
    goes_on = policy.stops == "nothing"
    assert (trace.ended, len(model.seen)) == (("submitted", len(turns)) if goes_on else (entry, 1))
    assert any(message.content.startswith(REMINDER) for message in trace.messages) is (
        "a reminder is sent" in policy.shown
    )
    agrees(policy, trace)


def test_an_adapter_that_fails_where_it_does_not_know_is_graded(scripted, play) -> None:
    trace = play(scripted([Turn(tool_calls=(READ,)), KeyError("too hard")]))
    assert (trace.ended, trace.error_cause, trace.incidents) == ("adapter_failed", "adapter", ("adapter_failed",))
    agrees(OTHER_POLICIES["adapter_failed"], trace)


@pytest.mark.parametrize("condition", list(Condition))
def test_a_run_that_is_stopped_drops_its_episodes(scripted, play, tmp_path, condition: Condition) -> None:
    save = turn("save_skill", '{"skill_name": "mine", "content": "x"}')
    for turns in ([RunStoppedError("budget spent")], [save, TEXT, RunStoppedError("budget spent")]):
        model = scripted(turns)
        with pytest.raises(RunStoppedError, match="budget spent"):
            play(model, condition)
        assert len(model.seen) == len(turns)
    assert not list(tmp_path.glob("skills-*"))
    assert {
        (OTHER_POLICIES[entry].retried, OTHER_POLICIES[entry].graded, OTHER_POLICIES[entry].stops) for entry in STOPPED
    } == {(False, False, "run")}


def test_the_table_holds_every_cause_and_every_incident_once() -> None:
    assert set(PROVIDER_POLICIES) == set(Cause)
    assert set(get_args(Incident)) == set(OTHER_POLICIES) - OUTSIDE - STOPPED - {"out_of_turns"}
    assert {*get_args(CallOutcome)} - {"ok", "not_run"} < set(get_args(Incident))
    assert {*get_args(Stop)} - {"done"} < set(get_args(Incident))
    assert not {cause.value for cause in Cause} & set(OTHER_POLICIES)


@pytest.mark.parametrize(
    "policy", [*PROVIDER_POLICIES.values(), *OTHER_POLICIES.values()], ids=lambda policy: policy.meaning
)
def test_an_entry_does_not_contradict_itself(policy: Policy) -> None:
    assert not (policy.retried and policy.graded)
    assert policy.graded or policy.stops != "nothing"
    assert "\n" not in policy.meaning + policy.shown
    assert policy.meaning
    assert policy.shown


def test_what_may_pass_is_retried_and_what_ends_a_model_is_not() -> None:
    transient = {Cause.RATE_LIMIT, Cause.SERVER, Cause.CONNECTION, Cause.TIMEOUT}
    broken = {Cause.DROPPED, Cause.MALFORMED, Cause.EMPTY, Cause.NOT_STARTED}
    assert {cause for cause, policy in PROVIDER_POLICIES.items() if policy.retried} == transient | broken
    ending = {cause for cause, policy in PROVIDER_POLICIES.items() if policy.stops == "model"}
    assert ending == {Cause.AUTH, Cause.QUOTA, Cause.UNKNOWN_MODEL, Cause.NOT_STARTED}
