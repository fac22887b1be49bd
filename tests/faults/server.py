"""A chat-completions server on a loopback socket that fails as it is told, and writes down what it was asked.

`FaultServer(script)` runs in a thread of its own, so that the code under test may own the event loop. The script maps a
`Request` to a `Reply`; three tables hold a reply for every failure of `finskillbench.harness.failures`. Tokens count as
billed when a whole answer was sent: what a provider bills for an answer it could not deliver nobody can know.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Self

MODEL = "served-model-1"
USAGE: Mapping[str, Any] = MappingProxyType(
    {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
)
Manner = Literal["whole", "never", "cut", "reset", "hang_up"]
"""How a reply is sent: whole; not at all, with the line kept open; half of the body, then closed or reset; closed
before a byte."""


@dataclass(frozen=True)
class Reply:
    """What the server sends; `usage` is billed when the manner is whole."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    manner: Manner = "whole"
    usage: Mapping[str, Any] | None = None


@dataclass
class Request:
    """What the server was asked, and what it billed for it."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    billed: Mapping[str, Any] | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(tool["function"]["name"] for tool in self.body.get("tools") or ())

    @property
    def turn(self) -> int:
        """Number of answers in the conversation so far."""
        return sum(message["role"] == "assistant" for message in self.messages)


Script = Callable[[Request], Reply]


def answer(
    *calls: tuple[str, str],
    text: str | None = None,
    finish: str | None = None,
    usage: Mapping[str, Any] | None = USAGE,
    **message: Any,
) -> Reply:
    """A completion with the given calls, each a name and its arguments as text."""
    made = [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(calls)
    ]
    content = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {}), **message}
    reason = finish or ("tool_calls" if made else "stop")
    return completion([{"index": 0, "message": content, "finish_reason": reason}], usage)


def completion(choices: list[dict[str, Any]], usage: Mapping[str, Any] | None = USAGE) -> Reply:
    """A completion with the given choices."""
    body: dict[str, Any] = {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": choices}
    if usage is not None:
        body["usage"] = dict(usage)
    return Reply(body=json.dumps(body).encode(), usage=usage)


def error(status: int, message: str, code: str | None = None, kind: str = "error", **headers: str) -> Reply:
    """An error in OpenAI's form; keyword arguments are headers with `_` for `-`."""
    content = {"error": {"message": message, "type": kind, "code": code, "param": None}}
    return Reply(status, json.dumps(content).encode(), {key.replace("_", "-"): value for key, value in headers.items()})


SUBMIT = answer(("submit_answer", '{"answer": "{\\"weights\\": {\\"T00\\": 1.0}}"}'))
READ = answer(("get_task_data", '{"field": "expected_returns"}'))

PROVIDER_FAULTS: Mapping[str, Reply] = MappingProxyType(
    {
        "429": error(429, "slow down", "rate_limit_exceeded"),
        "429 with seconds": error(429, "slow down", "rate_limit_exceeded", retry_after="7"),
        "500": error(500, "oops"),
        "502": Reply(502, b"<html>bad gateway</html>", {"content-type": "text/html"}),
        "503": error(503, "busy", retry_after="3"),
        "529": error(529, "overloaded", kind="overloaded_error"),
        "408": error(408, "too slow"),
        "no answer": Reply(manner="never"),
        "hung up": Reply(manner="hang_up"),
        "cut": Reply(body=SUBMIT.body, manner="cut"),
        "reset": Reply(body=SUBMIT.body, manner="reset"),
        "not json": Reply(body=b'{"id": "c1", "choices": [{"ind'),
        "html": Reply(body=b"<html>hello</html>", headers={"content-type": "text/html"}),
        "json text": Reply(body=b'"hello"'),
        "no choices": Reply(body=b'{"id": "c1", "object": "chat.completion", "model": "m"}'),
        "choice without message": completion([{"index": 0, "finish_reason": "stop"}], None),
        "empty choices": completion([], None),
    }
)
"""Failures that pass: the same call may succeed a moment later."""
FINAL_FAULTS: Mapping[str, Reply] = MappingProxyType(
    {
        "400": error(400, "this parameter is wrong", "invalid_value", "invalid_request_error"),
        "422": error(422, "cannot be processed"),
        "413": error(413, "request too large"),
        "401": error(401, "Incorrect API key provided", "invalid_api_key", "invalid_request_error"),
        "403": error(403, "not allowed", "unsupported_country"),
        "402": error(402, "payment required"),
        "quota": error(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
        "404": error(404, "The model does not exist", "model_not_found", "invalid_request_error"),
    }
)
"""Failures that stay."""
MODEL_FAULTS: Mapping[str, Reply] = MappingProxyType(
    {
        "invalid tool json": answer(("submit_answer", '{"answer": "{}')),
        "bare word": answer(("get_task_data", "expected_returns")),
        "unknown tool": answer(("buy_stocks", '{"ticker": "T00"}')),
        "wrong type": answer(("get_task_data", '{"field": 7}')),
        "refusal": answer(refusal="I cannot help with that."),
        "content filter": answer(text="", finish="content_filter"),
        "text": answer(text="The answer is 42."),
        "cut off": answer(text="Let me think about", finish="length"),
    }
)
"""What a model does wrong: the answer is complete and billed."""
OVERFLOW = error(
    400,
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
    "context_length_exceeded",
    "invalid_request_error",
)


def closed_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class FaultServer:
    """The server; a context manager. `requests` lists what it was asked, in the order of arrival."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.url = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False when the line is to be closed."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(first.split()[1], headers, json.loads(body))
        self.requests.append(request)
        reply = self.script(request)
        if reply.manner == "never":
            await reader.read(1)  # returns when the client gives up
            return False
        if reply.manner == "hang_up":
            return False
        fields = {"content-type": "application/json", **reply.headers, "content-length": str(len(reply.body))}
        head = f"HTTP/1.1 {reply.status} X\r\n" + "".join(f"{key}: {value}\r\n" for key, value in fields.items())
        whole = reply.manner == "whole"
        writer.write(head.encode() + b"\r\n" + (reply.body if whole else reply.body[: len(reply.body) // 2]))
        await writer.drain()
        if reply.manner == "reset":
            await asyncio.sleep(0.02)  # let the half arrive first
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        if whole:
            request.billed = reply.usage
        return whole
