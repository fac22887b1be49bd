"""Messages and tool calls in Inspect's words and back."""

from __future__ import annotations

import json

import pytest
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool

from finskillbench.harness.model import AUTO, Message, ToolCall, ToolSpec, Usage
from finskillbench.harness.providers.inspect_words import (
    from_call,
    from_chat,
    from_choice,
    from_tool,
    from_usage,
    to_call,
    to_chat,
    to_choice,
    to_tool,
    to_usage,
)
from finskillbench.harness.tools.contracts import GET_TASK_DATA, QUERY_XBRL, SUBMIT_ANSWER

DEEP = '{"answer": ' + "[" * 200 + "]" * 200 + "}"


@pytest.mark.parametrize("text", ['{"field": "cash"}', '{"a": {"b": [1, 2.5, null, "é"]}}', "{}", ""])
def test_an_object_travels_as_one(text: str) -> None:
    there = to_call(ToolCall("a", "get_task_data", text))
    assert there.parse_error is None
    back = from_call(there)
    assert (back.id, back.name, json.loads(back.arguments)) == ("a", "get_task_data", json.loads(text or "{}"))


@pytest.mark.parametrize("text", ["weights = equal", "[]", "1", '"x"', '{"a": NaN}', "[" * 5_000, '{"a": 1', DEEP])
def test_anything_else_travels_whole(text: str) -> None:
    there = to_call(ToolCall("a", "submit_answer", text))
    assert (there.arguments, there.parse_error) == ({}, text)
    assert from_call(there).arguments == text


@pytest.mark.parametrize("tools", [(SUBMIT_ANSWER,), (GET_TASK_DATA, SUBMIT_ANSWER)])
@pytest.mark.parametrize("choice", [AUTO, "submit_answer"])
def test_a_tool_choice_goes_there_and_back(choice: str, tools: tuple[ToolSpec, ...]) -> None:
    assert from_choice(to_choice(choice, tools), [to_tool(tool) for tool in tools]) == choice


def test_a_conversation_goes_there_and_back() -> None:
    messages = [
        Message("system", "Rules"),
        Message("user", "Task"),
        Message("assistant", "Hm", (ToolCall("a", "load_skill", '{"skill_name": "x"}'), ToolCall("b", "no_tool", "{"))),
        Message("tool", "{}", tool_call_id="a"),
        Message("tool", "[]", tool_call_id="b"),
        Message("assistant", "Again", (ToolCall("a", "submit_answer", "{}"),)),
        Message("tool", "done", tool_call_id="a"),
    ]
    chat = to_chat(messages)
    assert [from_chat(message) for message in chat] == messages
    assert [message.id for message in chat] == [f"message-{number}" for number in range(7)]
    assert [m.function for m in chat if isinstance(m, ChatMessageTool)] == ["load_skill", "no_tool", "submit_answer"]


def test_what_a_model_of_inspect_said_goes_back_as_it_came() -> None:
    signed = ChatMessageAssistant(content="signed")
    assert to_chat([Message("user", "Task"), Message("assistant", "signed", (), None, signed)])[1] is signed


def test_usage_counts_the_cache_once() -> None:
    usage = Usage(
        input_tokens=100, cached_tokens=60, cache_write_tokens=10, output_tokens=7, reasoning_tokens=3, cost_usd=0.25
    )
    there = to_usage(usage)
    assert (there.input_tokens, there.total_tokens) == (30, 107)
    assert from_usage(there) == usage


@pytest.mark.parametrize("spec", [GET_TASK_DATA, QUERY_XBRL])
def test_a_tool_keeps_its_schema(spec) -> None:
    back = from_tool(to_tool(spec))
    assert (back.name, back.description) == (spec.name, spec.description)
    assert back.parameters == spec.parameters
