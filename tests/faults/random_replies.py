"""Replies that are damaged at random, with a sense for their structure: bodies, headers, statuses, usage, streams."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from tests.faults.anomalies import ANOMALIES
from tests.faults.hostile import KEY
from tests.faults.server import MODEL_FAULTS, OVERFLOW, READ, SUBMIT, Reply, error

_STATUSES = (
    200,
    200,
    200,
    201,
    204,
    206,
    299,
    300,
    302,
    307,
    400,
    408,
    409,
    418,
    422,
    429,
    451,
    500,
    502,
    503,
    529,
    599,
)
"""None that ends the model's whole run by design."""
_ENDS_THE_MODEL = {("auth",), ("quota",), ("unknown_model",)}
_DAMAGED = (SUBMIT, READ, *MODEL_FAULTS.values(), OVERFLOW, error(500, "oops"), error(429, "slow", retry_after="1"))
_BASES = (
    *_DAMAGED * 4,
    *(
        each.reply
        for each in ANOMALIES
        if each.model == "openai-api/local/tiny" and each.follows not in _ENDS_THE_MODEL and len(each.reply.body) < 1e5
    ),
)
_JUNK: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1.5, 10**30, 2**63, -(2**63), 1e308, "", "x", "\ud800", "\x00", KEY),
    *([], {}, [[]], {"a": None}, "y" * 50_000, [0] * 5_000),
)
_HEADERS = {
    "content-type": ("text/html", "text/event-stream", "application/json; charset=utf-16", "", "x" * 5_000),
    "content-encoding": ("gzip", "br", "identity", "deflate, gzip", "zstd"),
    "retry-after": ("nan", "-1", "1e400", "soon", "Mon, 99 Foo", "9" * 400),
    "retry-after-ms": ("nan", "inf", "-5"),
    "location": ("http://localhost:1/", "//", "http://[", "\x7f"),
    "transfer-encoding": ("identity",),
    "x-request-id": ("z" * 9_000, KEY),
}


def random_reply(draw: random.Random) -> Reply:
    """A reply of a server that is broken in up to three ways at once."""
    reply = draw.choice(_BASES)
    for _ in range(draw.randint(1, 3)):
        reply = draw.choice((_value, _value, _value, _bytes, _header, _status, _manner, _stream))(draw, reply)
    return replace(reply, usage=None)


def odd_side_fields(draw: random.Random) -> Reply:
    """Return a good answer whose side fields hold anything, but for those that state a failure."""
    body = json.loads(SUBMIT.body)
    choice = body["choices"][0]
    message = choice["message"]
    call = message["tool_calls"][0]
    usage = body["usage"]
    places = [
        *((body, name) for name in ("id", "object", "created", "model", "usage", "system_fingerprint", "provider")),
        *((usage, name) for name in usage),
        *((usage["prompt_tokens_details"], name) for name in ("cached_tokens", "cache_write_tokens")),
        *((usage["completion_tokens_details"], name) for name in ("reasoning_tokens", "audio_tokens")),
        *((choice, name) for name in ("index", "finish_reason", "native_finish_reason", "logprobs", "stop_reason")),
        *((message, name) for name in ("role", "content", "reasoning", "reasoning_content", "reasoning_details")),
        *((message, name) for name in ("annotations", "audio", "function_call", "tool_call_id", "refusal")),
        *((call, name) for name in ("id", "type", "index", "extra_content")),
    ]
    for holder, name in draw.sample(places, draw.randint(1, 6)):
        if draw.random() < 0.2:
            holder.pop(name, None)
        else:
            holder[name] = draw.choice(_JUNK)
    return replace(SUBMIT, body=json.dumps(body).encode(), usage=None)


def _value(draw: random.Random, reply: Reply) -> Reply:
    """One value of the body replaced, left out, repeated or renamed."""
    try:
        body = json.loads(reply.body)
    except ValueError:
        return reply
    holder, key = draw.choice(list(_places(body)) or [([body], 0)])
    match draw.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.extend([holder[key]] * draw.choice((1, 100, 2_000)))
        case 2 if isinstance(holder, dict):
            holder[draw.choice(("x", "content", "id", "model"))] = holder.pop(key)
        case _:
            holder[key] = draw.choice(_JUNK)
    return replace(reply, body=json.dumps(body).encode())


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from _places(item)


def _bytes(draw: random.Random, reply: Reply) -> Reply:
    body = bytearray(reply.body or b" ")
    for _ in range(draw.randint(1, 20)):
        body[draw.randrange(len(body))] = draw.randrange(256)
    return replace(reply, body=bytes(body)[: draw.randint(0, len(body))] if draw.random() < 0.3 else bytes(body))


def _header(draw: random.Random, reply: Reply) -> Reply:
    name = draw.choice(list(_HEADERS))
    return replace(reply, headers={**reply.headers, name: draw.choice(_HEADERS[name])})


def _status(draw: random.Random, reply: Reply) -> Reply:
    return replace(reply, status=draw.choice(_STATUSES))


def _manner(draw: random.Random, reply: Reply) -> Reply:
    return replace(reply, manner=draw.choice(("whole", "cut", "reset", "hang_up")))


def _stream(draw: random.Random, reply: Reply) -> Reply:
    """The body as events of a stream that nobody asked for."""
    events = b"".join(b"data: " + reply.body + b"\n\n" for _ in range(draw.randint(1, 3)))
    return replace(reply, body=events + b"data: [DONE]\n\n", headers={"content-type": "text/event-stream"})
