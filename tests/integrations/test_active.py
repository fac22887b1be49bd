"""The model of Inspect as one of ours: what it answers, and how it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolFunction
from inspect_ai.util import LimitExceededError

from finskillbench.errors import Cause, ProviderError, RunStoppedError
from finskillbench.harness.model import AUTO, Message, Turn, clean_turn
from finskillbench.harness.tools.contracts import GET_TASK_DATA, SUBMIT_ANSWER
from finskillbench.integrations.models import ActiveModel

ASKED = (Message("system", "Rules"), Message("user", "Task"))


class HttpError(Exception):
    def __init__(self, status: int, message: str = "no") -> None:
        super().__init__(message)
        self.status_code = status


def _ask(answer: ModelOutput | Exception, choice: str = AUTO, seen: list[Any] | None = None) -> Turn:
    def give(messages: list[ChatMessage], tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        if seen is not None:
            seen.append((messages, [tool.name for tool in tools], tool_choice))
        if isinstance(answer, Exception):
            raise answer
        return answer

    model = get_model("mockllm/model", custom_outputs=give)
    return asyncio.run(ActiveModel(model).generate(ASKED, (GET_TASK_DATA, SUBMIT_ANSWER), choice))


@pytest.fixture
def output() -> Callable[..., ModelOutput]:
    def make(stop: Any = "stop", calls: list[InspectCall] | None = None) -> ModelOutput:
        made = ModelOutput.from_content("served-2026", "Hm", stop_reason=stop)
        made.message.tool_calls = calls
        made.usage = ModelUsage(input_tokens=30, input_tokens_cache_read=60, output_tokens=7, total_tokens=97)
        return made

    return make


def test_a_turn_is_translated(output: Callable[..., ModelOutput]) -> None:
    calls = [
        InspectCall("a", "get_task_data", {"field": "cash"}),
        InspectCall("b", "submit_answer", {}, parse_error="Error parsing: weights"),
    ]
    seen: list[Any] = []
    answer = output("tool_calls", calls)
    turn = _ask(answer, seen=seen)
    assert [(call.id, call.arguments) for call in turn.tool_calls] == [
        ("a", '{"field": "cash"}'),
        ("b", "Error parsing: weights"),
    ]
    assert (turn.text, turn.stop, turn.served_model, turn.replay) == ("Hm", "done", "served-2026", answer.message)
    assert (turn.usage.input_tokens, turn.usage.cached_tokens, turn.usage.cost_usd) == (90, 60, None)
    messages, tools, choice = seen[0]
    assert [(message.role, message.text) for message in messages] == [("system", "Rules"), ("user", "Task")]
    assert (tools, choice) == (["get_task_data", "submit_answer"], "auto")


def test_a_required_tool_is_named(output: Callable[..., ModelOutput]) -> None:
    seen: list[Any] = []
    _ask(output(), "submit_answer", seen)
    assert seen[0][2] == ToolFunction("submit_answer")


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "done"),
        ("unknown", "done"),
        ("max_tokens", "max_tokens"),
        ("model_length", "context_overflow"),
        ("content_filter", "refused"),
    ],
)
def test_why_it_stopped(reason: str, stop: str, output: Callable[..., ModelOutput]) -> None:
    assert _ask(output(reason)).stop == stop


def test_a_text_that_no_request_can_carry_is_not_sent_back(output: Callable[..., ModelOutput]) -> None:
    answer = output()
    answer.choices[0].message = ChatMessageAssistant(content="bad \ud800 text")
    turn = clean_turn(_ask(answer))
    assert (turn.text, turn.replay) == ("bad ? text", None)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (HttpError(429), Cause.RATE_LIMIT),
        (HttpError(503), Cause.SERVER),
        (HttpError(401), Cause.AUTH),
        (HttpError(404), Cause.UNKNOWN_MODEL),
        (HttpError(400), Cause.BAD_REQUEST),
        (TimeoutError("late"), Cause.TIMEOUT),
    ],
)
def test_how_it_fails(error: Exception, cause: Cause) -> None:
    with pytest.raises(ProviderError) as failure:
        _ask(error)
    assert failure.value.cause is cause


def test_a_conversation_that_is_too_long_ends() -> None:
    assert _ask(HttpError(400, "this model's maximum context length is 8 tokens")).stop == "context_overflow"


def test_an_answer_without_choices() -> None:
    with pytest.raises(ProviderError) as failure:
        _ask(ModelOutput(model="m", choices=[], usage=ModelUsage()))
    assert failure.value.cause is Cause.EMPTY


def test_a_limit_of_inspect_stops_the_episode() -> None:
    limit = LimitExceededError("token", value=11, limit=10)
    with pytest.raises(RunStoppedError) as stopped:
        _ask(limit)
    assert stopped.value.__cause__ is limit
