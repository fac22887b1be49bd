"""The precedence by which the cause of a failure that a reply states is named."""

from __future__ import annotations

import json

import pytest

from finskillbench.errors import Cause
from finskillbench.harness.providers.errors import is_overflow, provider_error
from finskillbench.harness.providers.replies import ReplyError, read_reply

STATED = {
    "an empty account before its status": ({"code": 429, "message": "insufficient_quota"}, Cause.QUOTA),
    "a status before its type": ({"code": 503, "type": "authentication_error", "message": "busy"}, Cause.SERVER),
    "a status as text": ({"code": "429", "message": "later"}, Cause.RATE_LIMIT),
    "a status in its own field": ({"status": 404, "message": "no such model"}, Cause.UNKNOWN_MODEL),
    "a type before words": ({"type": "invalid_request_error", "message": "timed out"}, Cause.BAD_REQUEST),
    "a code of the cloud": ({"status": "UNAVAILABLE", "message": "try later"}, Cause.SERVER),
    "words": ({"message": "Too many requests, slow down"}, Cause.RATE_LIMIT),
    "a number that is no status": ({"code": 1302, "message": "concurrency too high"}, Cause.SERVER),
    "nothing but words": ("something broke", Cause.SERVER),
    "no words": ({"code": "rate_limit_exceeded"}, Cause.RATE_LIMIT),
}


def raised(body: object) -> ReplyError:
    with pytest.raises(ReplyError) as caught:
        read_reply("/v1/chat/completions", {}, json.dumps(body).encode())
    return caught.value


@pytest.mark.parametrize("name", STATED)
def test_a_stated_failure_is_named_by_the_first_that_it_has(name: str) -> None:
    stated, cause = STATED[name]
    found = provider_error(raised({"error": stated}), "m")
    assert found.cause is cause
    assert str(found).startswith("m: ")


@pytest.mark.parametrize("empty", [None, "", {}, [], False, {"message": "", "code": 0}, {"code": None}])
def test_an_error_that_states_nothing_is_none(empty: object) -> None:
    message = {"role": "assistant", "content": "hello"}
    body = {"error": empty, "id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    read = json.loads(read_reply("/v1/chat/completions", {}, json.dumps(body).encode()))
    assert read["choices"][0]["message"]["content"] == "hello"


@pytest.mark.parametrize("code", [[], ["x"], {"a": 1}, [[1]], True])
def test_a_code_of_another_type_hides_no_words(code: object) -> None:
    error = raised({"error": {"code": code, "message": "too many requests"}})
    assert str(error) == "too many requests"
    assert provider_error(error, "m").cause == Cause.RATE_LIMIT


def test_calls_of_one_turn_have_ids_of_their_own() -> None:
    calls = [{"id": each, "function": {"name": "f", "arguments": "{}"}} for each in ("call_2", None, "", "call_2", 7)]
    body = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    read = json.loads(read_reply("/v1/chat/completions", {}, json.dumps(body).encode()))
    ids = [call["id"] for call in read["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_2", "call_1", "call_2_", "call_2__", "7"]


def test_a_body_that_is_nothing_but_an_error_states_one() -> None:
    for body in (
        {"error": True, "message": "no such thing"},
        {"detail": "no such thing"},
        {"message": "no such thing"},
    ):
        assert str(raised(body)) == "no such thing"
    assert raised({"object": "error", "message": "no such thing", "code": 404}).status == 404


def test_only_a_conversation_that_was_refused_is_too_long() -> None:
    words = "This model's maximum context length is 200 tokens."
    assert is_overflow(raised({"error": {"message": words}}))
    assert is_overflow(raised({"error": {"message": words, "code": 400}}))
    assert not is_overflow(raised({"error": {"message": words, "code": 500}}))


def test_other_paths_are_left_alone() -> None:
    for path in ("/v1/messages", "/v1/files/f/content", "/v1/batches"):
        assert read_reply(path, {}, b"not JSON") == b"not JSON"
