"""The rules of the loop, one test each."""

from datetime import timedelta

import orjson
import pytest

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.prompts.compose import LAST_TURN, REMINDER

SUBMIT = ToolCall("s", "submit_answer", '{"answer": "{}"}')
READ = ToolCall("r", "get_task_data", '{"field": "objective"}')
TEXT = Turn("I think it is AAA.")


def test_an_answer_ends_the_episode_and_is_kept_verbatim(scripted, play) -> None:
    text = ' {"weights": {"AAA": NaN, "AAA": 1e999}}\n'
    arguments = orjson.dumps({"answer": text}).decode()
    trace = play(scripted([Turn(tool_calls=(ToolCall("s", "submit_answer", arguments),))]))
    assert (trace.ended, trace.answer, trace.turns) == ("submitted", text, 1)
    assert (trace.submission.answer, trace.submission.ended) == (text, "submitted")


def test_calls_of_a_turn_run_in_order_and_none_after_the_submission(scripted, play) -> None:
    late = ToolCall("late", "submit_answer", '{"answer": "second"}')
    trace = play(scripted([Turn(tool_calls=(READ, SUBMIT, READ, late))]))
    assert [record.fate for record in trace.tool_calls] == ["ok", "ok", "not_run", "not_run"]
    assert trace.answer == "{}"
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert trace.messages[trace.tool_calls[0].message].content == '{"field":"objective","value":"max_sharpe"}'
    assert trace.tool_calls[2].message is None


def test_a_failed_submission_lets_the_turn_go_on(scripted, play) -> None:
    broken = ToolCall("b", "submit_answer", '{"answer": 1}')
    trace = play(scripted([Turn(tool_calls=(broken, READ, SUBMIT))]))
    assert [record.fate for record in trace.tool_calls] == ["invalid_arguments", "ok", "ok"]


def test_plain_text_is_answered_by_a_reminder_until_the_last_turn(scripted, play) -> None:
    model = scripted([TEXT])
    trace = play(model)
    assert (trace.ended, trace.answer, trace.turns) == ("max_turns", None, MAX_TURNS)
    assert sum(message.content.startswith(REMINDER) for message in trace.messages) == MAX_TURNS - 1
    assert trace.messages[-2].content.startswith(LAST_TURN)
    assert trace.messages[-1].content == TEXT.text


def test_a_submission_on_the_last_turn_counts(scripted, play) -> None:
    trace = play(scripted([*[TEXT] * (MAX_TURNS - 1), Turn(tool_calls=(SUBMIT,))]))
    assert (trace.ended, trace.turns) == ("submitted", MAX_TURNS)


def test_transient_failures_are_retried_three_times_with_growing_waits(scripted, play) -> None:
    slow_down = ProviderError("429", Cause.RATE_LIMIT)
    sleeps: list[float] = []
    trace = play(scripted([slow_down, slow_down, slow_down, Turn(tool_calls=(SUBMIT,))]), sleeps=sleeps)
    assert (trace.ended, trace.turns, trace.retries) == ("submitted", 1, 3)
    assert sleeps == [1.0, 2.0, 4.0]


def test_retries_start_afresh_on_each_model_call(scripted, play) -> None:
    fail = ProviderError("429", Cause.RATE_LIMIT)
    trace = play(scripted([fail, fail, TEXT, fail, fail, fail, Turn(tool_calls=(SUBMIT,))]))
    assert (trace.ended, trace.turns, trace.retries) == ("submitted", 2, 5)


def test_tokens_turns_and_time_are_counted(scripted, play) -> None:
    usage = Usage(input_tokens=100, output_tokens=10, cost_usd=0.25)
    trace = play(scripted([Turn("hm", usage=usage), Turn(tool_calls=(READ, SUBMIT), usage=usage)]))
    assert trace.usage == Usage(input_tokens=200, output_tokens=20, cost_usd=0.5)
    # One tick of the clock at the start, two a model call and two a tool call, one at the end.
    assert [record.seconds for record in trace.model_calls] == [1.0, 1.0]
    assert [record.seconds for record in trace.tool_calls] == [1.0, 1.0]
    assert (trace.latency_seconds, trace.queue_seconds, trace.retry_seconds) == (4.0, 5.0, 0.0)
    assert trace.finished - trace.started == timedelta(seconds=9)


def test_what_a_call_waited_and_what_failed_are_no_latency(scripted, play) -> None:
    """A call takes a tick where nobody says what it took itself, a wait after a failure another one."""
    slow_down, known = ProviderError("429", Cause.RATE_LIMIT), ProviderError("503", Cause.SERVER)
    known.seconds = 0.25
    turns = [slow_down, known, Turn("hm", seconds=0.5), Turn("hm", seconds=7.0), Turn(tool_calls=(SUBMIT,))]
    trace = play(scripted(turns))
    assert [record.seconds for record in trace.model_calls] == [0.5, 1.0, 1.0]
    assert [record.queue_seconds for record in trace.model_calls] == [0.75 + 0.5, 0.0, 0.0]
    assert [record.retry_seconds for record in trace.model_calls] == [1.0 + 1.0 + 0.25 + 1.0, 0.0, 0.0]
    # And one for the submission; the rest of the ticks are nobody's but the loop's.
    assert (trace.latency_seconds, trace.retry_seconds) == (0.5 + 1.0 + 1.0 + 1.0, 3.25)
    assert trace.queue_seconds > 1.25
    whole = trace.latency_seconds + trace.queue_seconds + trace.retry_seconds
    assert trace.finished == trace.started + timedelta(seconds=whole)


def test_the_time_of_a_call_that_failed_for_good_is_none_of_the_latency(scripted, play) -> None:
    trace = play(scripted([ProviderError("401", Cause.AUTH)]))
    assert (trace.ended, trace.latency_seconds, trace.retry_seconds) == ("error", 0.0, 1.0)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_an_impossible_time_is_measured_instead(scripted, play, seconds: float) -> None:
    trace = play(scripted([Turn(tool_calls=(SUBMIT,), seconds=seconds)]))
    assert [record.seconds for record in trace.model_calls] == [1.0]


def test_an_unknown_price_stays_unknown(scripted, play) -> None:
    known, unknown = Usage(input_tokens=1, cost_usd=0.25), Usage(input_tokens=1)
    trace = play(scripted([Turn(usage=known), Turn(tool_calls=(SUBMIT,), usage=unknown)]))
    assert trace.usage.cost_usd is None


def test_lone_surrogates_cannot_break_the_record(scripted, play) -> None:
    bad = Turn("\ud800", (ToolCall("\ud800", "get_task_data\ud800", '{"field": "\ud800"}'),))
    trace = play(scripted([bad, Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": "\ud800"}'),))]))
    assert trace.answer == "?"
    assert orjson.dumps(trace)
