"""What a hostile or broken server may send beyond the failures of `tests.faults.server`.

Each entry is a reply, or makes one from the request, and says what must become of the episode that meets it once and is
then answered well: its incidents, and whether it ends in an error.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tests.faults.server import READ, SUBMIT, USAGE, Reply, Request, answer, completion, error

KEY = "sk-planted-5fb2/c9+A=="
"""The key that the client sends; servers below send it back."""
Made = Callable[[Request], Reply]


@dataclass(frozen=True)
class Hostile:
    """A reply and what follows: the incidents of the episode, and whether it ends there, ungraded."""

    reply: Reply | Made
    incidents: tuple[str, ...] = ()
    ends: bool = False

    def to(self, request: Request) -> Reply:
        return self.reply if isinstance(self.reply, Reply) else self.reply(request)


def _echo(status: int, form: str = "{}") -> Made:
    return lambda request: error(status, form.format(request.headers["authorization"]), "invalid_api_key")


def _usage(**counts: Any) -> Reply:
    return answer(("get_task_data", '{"field": "expected_returns"}'), usage={**USAGE, **counts})


def _said(text: str) -> Made:
    return lambda request: answer(text=text.format(request.headers["authorization"]))


def _served_by(name: str) -> Reply:
    body = json.loads(READ.body)
    return Reply(body=json.dumps({**body, "model": name}).encode(), usage=USAGE)


def _whole(status: int, body: bytes, **headers: str) -> Reply:
    return Reply(status, body, {key.replace("_", "-"): value for key, value in headers.items()})


def _packed(body: bytes) -> Reply:
    return _whole(200, gzip.compress(body), content_encoding="gzip")


def _redirect(status: int) -> Reply:
    return _whole(status, b"", location="http://localhost:1/v1/chat/completions")


_MANY = answer(*[("get_task_data", '{"field": "x"}')] * 1_000)
_UNKNOWN, _SPOILT, _AGAIN = ("usage_unknown",), ("malformed_body",), ("rate_limit",)
_CALL = {"id": "c", "type": "function", "function": {"name": "get_task_data", "arguments": '{"field": "x"}'}}

HOSTILE: Mapping[str, Hostile] = MappingProxyType(
    {
        "key in a 400": Hostile(_echo(400), ("bad_request",), ends=True),
        "key in a 401": Hostile(_echo(401), ("auth",), ends=True),
        "key in a 500": Hostile(_echo(500), ("server_error",)),
        "key in a page": Hostile(
            lambda request: _whole(502, f"<html>{request.headers['authorization']}</html>".encode()), ("server_error",)
        ),
        "key in a text": Hostile(_said("you sent {}"), ("text_only",)),
        "key backwards in a text": Hostile(lambda _: answer(text=KEY[::-1]), ("text_only",)),
        "key spaced in a text": Hostile(lambda _: answer(text=" ".join(KEY.upper())), ("text_only",)),
        "key in a tool's name": Hostile(lambda request: answer((KEY, "{}")), ("unknown_tool",)),
        "key in arguments": Hostile(
            lambda request: answer(("get_task_data", json.dumps({"field": KEY}))), ("tool_failed",)
        ),
        "key in broken arguments": Hostile(
            lambda request: answer(("get_task_data", f'{{"field": {KEY}')), ("invalid_arguments",)
        ),
        "key as the model": Hostile(_served_by(KEY)),
        "key in a code": Hostile(lambda request: error(400, "no", KEY, KEY), ("bad_request",), ends=True),
        "usage of 10^30": Hostile(_usage(prompt_tokens=10**30), _UNKNOWN),
        "usage of 2^63": Hostile(_usage(completion_tokens=2**63, total_tokens=2**63), _UNKNOWN),
        "negative usage": Hostile(_usage(prompt_tokens=-1_000_000), _UNKNOWN),
        "cached beyond input": Hostile(_usage(prompt_tokens_details={"cached_tokens": 10**8}), _UNKNOWN),
        "usage of zeros": Hostile(_usage(prompt_tokens=0, completion_tokens=0, total_tokens=0), _UNKNOWN),
        "no output counted": Hostile(_usage(completion_tokens=0), _UNKNOWN),
        "no usage": Hostile(answer(("get_task_data", '{"field": "expected_returns"}'), usage=None), _UNKNOWN),
        "usage of text": Hostile(_usage(prompt_tokens="many", total_tokens=None), _UNKNOWN),
        "usage of null": Hostile(_usage(prompt_tokens=None)),
        "surrogate in the model": Hostile(_served_by("m\ud800")),
        "surrogate in the text": Hostile(answer(text="half \udfff a pair"), ("text_only",)),
        "surrogate in arguments": Hostile(answer(("get_task_data", '{"field": "\udc00"}')), ("tool_failed",)),
        "surrogate in a name": Hostile(answer(("get\ud800", "{}")), ("unknown_tool",)),
        "retry after nan": Hostile(error(429, "later", retry_after="nan"), _AGAIN),
        "retry after inf": Hostile(error(429, "later", retry_after="inf"), _AGAIN),
        "retry after 1e999": Hostile(error(429, "later", retry_after="1e999"), _AGAIN),
        "retry before": Hostile(error(429, "later", retry_after="-1e9"), _AGAIN),
        "retry in the year 10^9": Hostile(
            error(429, "later", retry_after="Mon, 01 Jan 1000000000 00:00:00 GMT"), _AGAIN
        ),
        "retry after nan ms": Hostile(error(429, "later", retry_after_ms="nan"), _AGAIN),
        "a thousand calls": Hostile(_MANY, ("too_many_calls", *("tool_failed",) * 64)),
        "a body of 9 MiB": Hostile(_whole(200, b" " * (9 << 20) + READ.body), _SPOILT),
        "an error of 9 MiB": Hostile(_whole(500, b"x" * (9 << 20)), _SPOILT),
        "a gzip bomb": Hostile(_packed(b" " * (64 << 20)), _SPOILT),
        "an honest gzip": Hostile(_packed(READ.body), _SPOILT),
        "an unknown packing": Hostile(_whole(200, READ.body, content_encoding="x-mine"), _SPOILT),
        "redirect 301": Hostile(_redirect(301), ("bad_request",), ends=True),
        "redirect 307": Hostile(_redirect(307), ("bad_request",), ends=True),
        "redirect 308": Hostile(_redirect(308), ("bad_request",), ends=True),
        "deep arguments": Hostile(
            answer(("get_task_data", '{"field": ' + "[" * 2_000 + "]" * 2_000 + "}")), ("invalid_arguments",)
        ),
        "a long name": Hostile(answer(("x" * 100_000, "{}")), ("unknown_tool",)),
        "null arguments": Hostile(
            completion(
                [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {
                            "role": "assistant",
                            "tool_calls": [{**_CALL, "function": {"name": "get_task_data", "arguments": None}}],
                        },
                    }
                ]
            ),
            ("invalid_arguments",),
        ),
        "a call without a function": Hostile(
            completion(
                [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]},
                    }
                ]
            ),
            _SPOILT,
        ),
        "content of numbers": Hostile(
            completion([{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": 7}}]),
            ("text_only",),
        ),
    }
)


def once(name: str) -> Made:
    """A server that sends one hostile reply, and answers well from then on."""
    replies: list[Reply] = []

    def script(request: Request) -> Reply:
        if not replies:
            replies.append(HOSTILE[name].to(request))
            return replies[0]
        return SUBMIT

    return script
