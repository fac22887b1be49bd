"""An episode's turns and tokens: what a model is told, how each call is limited, and where it ends."""

import re
from collections.abc import Sequence

import orjson
import pytest

from finskillbench.episode import Status, Truth
from finskillbench.harness.allowance import MIN_TOKENS, Allowance
from finskillbench.harness.conditions import ARMS, Condition
from finskillbench.harness.failures import OTHER_POLICIES
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.prompts.compose import LAST_TURN, system_prompt
from finskillbench.harness.prompts.tokens import output_tokens
from finskillbench.harness.trace import Trace
from finskillbench.runs.verdicts import judge

SUBMIT = ToolCall("s", "submit_answer", '{"answer": "{}"}')
READ = ToolCall("r", "get_task_data", '{"field": "objective"}')
LEFT = re.compile(r"You have (\d+) turns? left, this one included(?:, and ([\d,]+) tokens)?")
LEFT_ENDS = {None: "left, this one included.", 10**6: "output beyond that does not count."}
SYSTEM_PROMPT = system_prompt(ARMS["no_skill"])


def reading(tokens: int) -> Turn:
    return Turn(tool_calls=(READ,), usage=Usage(input_tokens=100, output_tokens=tokens, reasoning_tokens=tokens // 2))


def submitting(tokens: int) -> Turn:
    return Turn(tool_calls=(SUBMIT,), usage=Usage(input_tokens=100, output_tokens=tokens))


class Limited:
    """Plays given turns, notes the limit and the repeat of each call, and answers with as much as it may."""

    name = "test/limited"

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns, self.limits, self.repeats = list(turns), [], []
        self.seen: list[tuple[Message, ...]] = []

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        *,
        max_tokens: int | None = None,
        repeat: int = 0,
    ) -> Turn:
        self.limits.append(max_tokens)
        self.repeats.append(repeat)
        self.seen.append(tuple(messages))
        return self.turns[min(len(self.limits), len(self.turns)) - 1]


def status(trace: Trace) -> Status:
    return judge(trace.submission, Truth(trace.task_id, "unconstrained_optimization", {}, {"method": "x"}), {}).status


def test_each_call_is_limited_to_what_is_left_and_the_newest_message_says_so(play) -> None:
    model = Limited([reading(400), Turn("Hm.", usage=Usage(input_tokens=1, output_tokens=500)), submitting(100)])
    trace = play(model, allowance=Allowance(tokens=1_000), repeat=2)
    assert (model.limits, model.repeats) == ([1_000, 600, 100], [2, 2, 2])
    assert (trace.ended, status(trace)) == ("submitted", Status.SCORED)
    told = [LEFT.search(messages[-1].content) for messages in model.seen]
    assert [(int(each[1]), each[2]) for each in told] == [(12, "1,000"), (11, "600"), (10, "100")]
    # Providers keep what came before in their caches: no message changes once it was sent.
    for earlier, later in zip(model.seen, model.seen[1:], strict=False):
        assert later[: len(earlier)] == earlier
    assert orjson.loads(model.seen[1][-1].content.partition("\n")[0])["value"] == "max_sharpe"


def test_without_a_budget_no_tokens_are_spoken_of_and_none_limited(play) -> None:
    model = Limited([reading(10**6), submitting(10**6)])
    trace = play(model)
    assert model.limits == [None, None]
    assert trace.messages[0].content == SYSTEM_PROMPT
    assert not any("token" in message.content for message in trace.messages)
    assert trace.ended == "submitted"


@pytest.mark.parametrize("turns", [1, 2, 12])
@pytest.mark.parametrize("tokens", [None, 10**6])
def test_turns_left_fall_by_one_with_each_turn_to_none(play, turns: int, tokens: int | None) -> None:
    model = Limited([reading(5), Turn("Hm."), Turn(tool_calls=(READ, READ)), Turn()] * 3)
    trace = play(model, allowance=Allowance(turns, tokens))
    told = [[match[1] for message in messages for match in LEFT.finditer(message.content)] for messages in model.seen]
    assert told == [[str(left) for left in range(turns, last, -1)] for last in range(turns - 1, -1, -1)]
    assert all(messages[-1].content.endswith(LEFT_ENDS[tokens]) for messages in model.seen)
    assert (trace.ended, trace.turns) == ("max_turns", turns)


@pytest.mark.parametrize("left", [0, MIN_TOKENS - 1])
def test_no_call_is_made_with_too_little_left(play, left: int) -> None:
    model = Limited([reading(1_000 - left), submitting(1)])
    trace = play(model, allowance=Allowance(tokens=1_000))
    assert (trace.ended, trace.turns, trace.answer) == ("budget_exhausted", 1, None)
    assert (status(trace), trace.incidents) == (Status.BUDGET_EXHAUSTED, ())
    assert OTHER_POLICIES["out_of_tokens"].shown == f"status {Status.BUDGET_EXHAUSTED.value}"


@pytest.mark.parametrize(("tokens", "ended"), [(600, "submitted"), (601, "budget_exhausted")])
def test_an_answer_beyond_the_budget_is_not_looked_at(play, tokens: int, ended: str) -> None:
    trace = play(Limited([reading(400), submitting(tokens)]), allowance=Allowance(tokens=1_000))
    assert trace.ended == ended
    assert (trace.answer is None, trace.tool_calls[-1].fate) == (
        (False, "ok") if ended == "submitted" else (True, "not_run")
    )


def test_what_no_provider_counted_is_estimated_and_noted(play) -> None:
    silent = Turn("a thought " * 30, (READ,), usage=Usage())
    model = Limited([silent, submitting(10)])
    trace = play(model, allowance=Allowance(tokens=1_000))
    assert model.limits == [1_000, 1_000 - output_tokens(silent)]
    assert trace.incidents == ("usage_unknown",)
    assert trace.usage.cost_usd is None  # an estimate limits an episode, and is no bill


def test_a_model_that_takes_no_limit_is_held_to_its_budget_all_the_same(scripted, play) -> None:
    trace = play(scripted([reading(700), submitting(700)]), allowance=Allowance(tokens=1_000))
    assert trace.ended == "budget_exhausted"


@pytest.mark.parametrize("turns", [1, 3, 20])
def test_another_number_of_turns_is_told_and_kept(scripted, play, turns: int) -> None:
    model = scripted([Turn(tool_calls=(READ,))])
    trace = play(model, allowance=Allowance(turns=turns))
    assert (trace.ended, trace.turns) == ("max_turns", turns)
    assert f"You have {turns} turns" in trace.messages[0].content
    assert trace.messages[0].content == SYSTEM_PROMPT.replace("12 turns", f"{turns} turns")
    assert sum(message.content.startswith(LAST_TURN) for message in trace.messages) == 1
    assert [names for _, names, _ in model.seen][-1] == ("submit_answer",)


@pytest.mark.parametrize("condition", [Condition.NO_SKILL, Condition.CURATED, Condition.SELF_GENERATED])
def test_programs_read_their_results_below_what_is_left(play, condition: Condition) -> None:
    free, limited = play(Reference(), condition), play(Reference(), condition, allowance=Allowance(tokens=10**6))
    assert (limited.ended, limited.answer, limited.turns) == (free.ended, free.answer, free.turns)
