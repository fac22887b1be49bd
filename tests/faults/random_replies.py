"""Replies that are damaged at random, with a sense for their structure: bodies, headers, statuses, usage, streams."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

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
_BASES = (SUBMIT, READ, *MODEL_FAULTS.values(), OVERFLOW, error(500, "oops"), error(429, "slow", retry_after="1"))
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
