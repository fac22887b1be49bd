"""Hosted models: what goes over the wire, what comes back unchanged, and what it costs."""

import json
from dataclasses import replace
from importlib.util import find_spec

import orjson
import pytest
from tests.faults.hosted import CAUSES, SERVED, TALK, TOOLS, WAITS, served
from tests.faults.server import FINAL_FAULTS, MODEL, PROVIDER_FAULTS, SUBMIT, Reply, answer

from finskillbench.errors import ProviderError
from finskillbench.harness.model import Message, Usage, clean_turn
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
FAULTS = {**PROVIDER_FAULTS, **FINAL_FAULTS}


def test_the_request_is_what_was_asked_for():
    with served(SUBMIT, seed=7, max_tokens=321) as server:
        server.ask()
        server.ask(choice="submit_answer")
        server.ask(choice="submit_answer", tools=(SUBMIT_ANSWER,))
    first, forced, only = (request.body for request in server.requests)
    assert (first["temperature"], first["seed"], first["max_tokens"], first["model"]) == (0, 7, 321, "tiny")
    assert first["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Solve it."}]
    assert [tool["function"]["name"] for tool in first["tools"]] == [spec.name for spec in TOOLS]
    assert [tool["function"]["description"] for tool in first["tools"]] == [spec.description for spec in TOOLS]
    assert [tool["function"]["parameters"] for tool in first["tools"]] == [dict(spec.parameters) for spec in TOOLS]
    assert {tool["function"]["strict"] for tool in first["tools"]} == {False}
    assert first["tool_choice"] == "auto"
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "submit_answer"}}
    assert only["tool_choice"] == "required"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"answer": {"weights": {"A": 0.10000000000000000001, "A": 1e0}}}',
        '{"answer": "{\\"a\\": 1.50, \\"a\\": 2}"}',
        '{"answer": "{}',
        '{"answer": "{}"}"',
        "expected_returns",
        "[1, 2]",
        "  {}",
        "",
    ],
)
@pytest.mark.parametrize("name", [SERVED, "openai/gpt-4.1"])
def test_arguments_arrive_as_they_were_written(arguments: str, name: str):
    with served(answer(("submit_answer", arguments), ("get_task_data", '{"field":  "x"}')), name) as server:
        turn = server.ask()
    assert [call.arguments for call in turn.tool_calls] == [arguments, '{"field":  "x"}']
    assert [call.id for call in turn.tool_calls] == ["call_0", "call_1"]


def test_a_turn_is_sent_back_with_its_reasoning():
    with served(answer(("get_task_data", '{"field": "x"}'), reasoning_content="Hm, the field.")) as server:
        turn = server.ask()
        said = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
        server.ask((*TALK, said, Message("tool", "[1]", tool_call_id="call_0")))
    sent = server.requests[1].messages
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert "Hm, the field." in json.dumps(sent[2])
    assert sent[2]["tool_calls"][0]["function"] == {"name": "get_task_data", "arguments": '{"field": "x"}'}
    assert (sent[3]["tool_call_id"], sent[3]["content"]) == ("call_0", "[1]")


def test_what_is_sent_back_is_no_part_of_a_trajectory():
    made = Message("assistant", "Hm.", (), None, object())
    assert made.replay is not None
    assert set(orjson.loads(orjson.dumps(made))) == {"role", "content", "tool_calls", "tool_call_id"}


def test_a_turn_that_only_its_words_are_left_of_is_built_anew():
    with served(answer(("get_task_data", "no json"), text=b"\\ud800 lone".decode("unicode_escape"))) as server:
        turn = clean_turn(server.ask())
        assert turn.replay is None
        assert turn.text == "? lone"
        server.ask((*TALK, Message("assistant", turn.text, turn.tool_calls), Message("tool", "no", (), "call_0")))
    assert server.requests[1].messages[2]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_anthropic_gets_its_signed_thinking_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    usage = {"input_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20, "output_tokens": 9}
    call = {"type": "tool_use", "id": "t1", "name": "get_task_data", "input": {}}
    written = {"type": "input_json_delta", "partial_json": '{"field": "x"}'}
    made = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-x", "content": [], "usage": usage}
    events = [
        {"type": "message_start", "message": {**made, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": written},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    reply = Reply(body=body, headers={"content-type": "text/event-stream"})
    with served(reply, "anthropic/claude-sonnet-4-6") as server:
        turn = server.ask()
        said = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
        server.ask((*TALK, said, Message("tool", "[1]", tool_call_id="t1")))
    assert [json.loads(call.arguments) for call in turn.tool_calls] == [{"field": "x"}]
    assert replace(turn.usage, cost_usd=None, reasoning_tokens=None) == Usage(
        input_tokens=150, cached_tokens=30, cache_write_tokens=20, output_tokens=9
    )
    assert turn.usage.reasoning_tokens > 0  # Inspect's count of the words that were thought
    # 100 fresh at $3, 30 read at $0.30, 20 written at $3.75, 9 out at $15, per million
    assert turn.usage.cost_usd == pytest.approx(0.000519, abs=1e-12)
    # Inspect also asks how many tokens were thought, which is free and no answer
    answered = [request for request in server.requests if "count_tokens" not in request.path]
    assert len(answered) == 2
    assert thinking in answered[1].body["messages"][1]["content"]


@pytest.mark.parametrize("fault", ["429 with seconds", "500", "529", "no answer", "cut", "401"])
def test_anthropic_too_is_asked_once(fault: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    name, deadline = "anthropic/claude-sonnet-4-6", 3 if fault == "no answer" else None
    with served(FAULTS[fault], name, attempt_timeout=deadline) as server, pytest.raises(ProviderError) as caught:
        server.ask()
    assert (caught.value.cause, caught.value.retry_after) == (CAUSES[fault], WAITS.get(fault))
    assert len(server.requests) == 1


def test_usage_counts_the_whole_input_and_its_price():
    with served(SUBMIT, "openai/gpt-4.1") as server:
        turn = server.ask()
    assert turn.served_model == MODEL
    assert replace(turn.usage, cost_usd=None) == Usage(
        input_tokens=1000, cached_tokens=400, output_tokens=50, reasoning_tokens=20
    )
    # 600 at $2.00, 400 at $0.50, 50 at $8.00, per million
    assert turn.usage.cost_usd == pytest.approx(0.0012 + 0.0002 + 0.0004, abs=1e-12)


def test_an_answer_without_usage_has_an_unknown_price():
    with served(answer(text="hello", usage=None), "openai/gpt-4.1") as server:
        assert server.ask().usage == Usage()
