"""Replies of providers as changes of one good answer, and what an anomaly is."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from tests.faults.server import SUBMIT, USAGE, Reply

Deed = Literal["accept", "record", "retry", "refuse"]
RESPONSES, CLAUDE = "openai/gpt-5-mini", "anthropic/claude-sonnet-4-6"


class Anomaly(NamedTuple):
    """A reply, the thread that reports it, and what becomes of an episode that meets it first.

    `follows` are the incidents; `words` are the provider's own, which an error must show; `model` is who is asked.
    """

    thread: str
    what: str
    deed: Deed
    follows: tuple[str, ...]
    reply: Reply
    words: str = ""
    model: str = "openai-api/local/tiny"


GOOD: dict[str, Any] = json.loads(SUBMIT.body)
CALL: dict[str, Any] = GOOD["choices"][0]["message"]["tool_calls"][0]


def body_of(value: Any) -> Reply:
    return Reply(body=json.dumps(value).encode())


def with_fields(**fields: Any) -> Reply:
    """Return the good answer with other fields at its top; `...` leaves one out."""
    merged = {**copy.deepcopy(GOOD), **fields}
    return body_of({name: value for name, value in merged.items() if value is not ...})


def choice_of(**fields: Any) -> Reply:
    merged = {**copy.deepcopy(GOOD["choices"][0]), **fields}
    return with_fields(choices=[{name: value for name, value in merged.items() if value is not ...}])


def message_of(finish: str = "stop", **fields: Any) -> Reply:
    return choice_of(message={**copy.deepcopy(GOOD["choices"][0]["message"]), **fields}, finish_reason=finish)


def text_of(content: Any, finish: str = "stop", **fields: Any) -> Reply:
    return message_of(finish, content=content, tool_calls=None, **fields)


def call_of(**fields: Any) -> Reply:
    merged = {**copy.deepcopy(CALL), **fields}
    return message_of(tool_calls=[{name: value for name, value in merged.items() if value is not ...}])


def function_of(**fields: Any) -> Reply:
    return call_of(function={**CALL["function"], **fields})


def stated(**fields: Any) -> Reply:
    """An answer of HTTP 200 that is nothing but an error."""
    return body_of({"id": None, "choices": None, "model": None, "usage": None, "error": fields})


def upstream(message: str, code: int, raw: str) -> Reply:
    return stated(message=message, code=code, metadata={"raw": raw, "provider_name": "Somebody"})


def usage_of(**counts: Any) -> Reply:
    merged = {**USAGE, **counts}
    return with_fields(usage={name: value for name, value in merged.items() if value is not ...})


def responses(**fields: Any) -> Reply:
    call = {"type": "function_call", "id": "f1", "call_id": "c1", "status": "completed", **CALL["function"]}
    usage = {"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050}
    body = {"id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [call]}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "usage": usage}
    return body_of({name: value for name, value in {**body, **more, **fields}.items() if value is not ...})


def events(*events: Mapping[str, Any]) -> Reply:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(body=text.encode(), headers={"content-type": "text/event-stream"})
