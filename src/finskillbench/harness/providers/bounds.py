"""Bounds on traffic with a provider's server: no redirect, no compression, a limit on bytes, one reader of replies.

Every successful reply is checked and repaired by `finskillbench.harness.providers.replies` before the client parses it.

The clients of most providers follow redirects to any host, with the conversation and the key, and unpack whatever is
packed. They stand on httpx or its successor, whose transport is the place where every byte passes.

How long a server took to answer, by the kernel's own clock.

A busy process hears of an answer late, by as long as the others in its event loop, or on its machine, take. The kernel
notes when the last byte of a request went out and when the last byte of an answer came in, whoever is busy.

What Inspect's adapters of batch interfaces lack: one failed line must not fail a batch, and nothing is printed.

A batch of OpenAI's, and of those who copy it, is a file with a line for each request. A line of a refused request has
the refusal in place of an answer, one of a request that was not reached in time has a word in place of a status.
Inspect reads both as an answer, stumbles, and gives up the whole batch: a thousand paid calls for one that was too
long. Here each line fails or succeeds by itself.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.providers.replies import read_reply, repaired
from finskillbench.redaction import logger

_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)
_LAST_SENT, _LAST_RECEIVED = 44, 52
"""Where Linux' `struct tcp_info` holds how many milliseconds ago data were last sent and received."""
_BYTES = 104
"""Of the structure as all kernels in use have it; later fields follow."""


def answer_seconds(response: Any) -> float | None:
    """Seconds from the last byte of a request to the last byte of its answer, which has just been read whole.

    Known on Linux, of HTTP/1.1 without a proxy in this process: requests that share a connection share its times.

    Parameters
    ----------
    response : of httpx or its successor, whose connection is still its own.
    """
    stream: Any = response.extensions.get("network_stream")
    connection: Any = None if stream is None else stream.get_extra_info("socket")
    if connection is None or _TCP_INFO is None or response.extensions.get("http_version") != b"HTTP/1.1":
        return None
    try:
        tcp_info = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _BYTES)
        (sent,), (received,) = (struct.unpack_from("=I", tcp_info, place) for place in (_LAST_SENT, _LAST_RECEIVED))
    except (OSError, struct.error):
        return None
    # Equal times are those of an answer within a tick, or of a kernel that fills in nothing.
    return (sent - received) / 1e3 if sent > received else None


MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""A hundred times the longest answer of a model, its encrypted reasoning included."""
MAX_BATCH_BYTES = 1024 * 1024 * 1024
"""Of the answers to a batch, which come in one file: some 20 KB each of 50,000, the most that a batch holds."""
_PACKAGES = ("httpx", "httpx2")


class OversizedAnswerError(Exception):
    """An answer beyond the bound, or packed although plain text was asked for."""


def bound_answers(client: object, on_answer: Callable[[float], None], max_bytes: int = MAX_ANSWER_BYTES) -> bool:
    """Bound every answer to a provider's client to `most` bytes, once; False where it stands on another HTTP library.

    `took` is called, in the context of the request, with the seconds that its answer took.
    """
    http: Any = getattr(client, "_client", None)
    package = next((kind.__module__.partition(".")[0] for kind in type(http).__mro__ if _is_client(kind)), None)
    if package is None:
        return False
    http.follow_redirects = False
    stream_type: Any = sys.modules[package].AsyncByteStream
    for transport in (http._transport, *http._mounts.values()):
        if transport is not None and not hasattr(transport, "is_bounded"):
            transport.handle_async_request = _bounded(transport.handle_async_request, stream_type, on_answer, max_bytes)
            transport.is_bounded = True
    return True


def _is_client(kind: type) -> bool:
    return kind.__name__ == "AsyncClient" and kind.__module__.partition(".")[0] in _PACKAGES


def _bounded(
    send: Callable[[Any], Awaitable[Any]], stream_type: Any, on_answer: Callable[[float], None], max_bytes: int
) -> Callable[[Any], Awaitable[Any]]:
    class Bounded(stream_type):
        """A body that ends with an error where it passes the bound, or states a failure."""

        def __init__(self, response: Any, path: str, started: float) -> None:
            self._response, self._body, self._path, self._started = response, response.stream, path, started

        async def __aiter__(self) -> AsyncIterator[bytes]:
            headers = self._response.headers
            streams = headers.get("content-type", "").startswith("text/event-stream")
            whole, seen = self._response.status_code == 200 and not streams, 0
            kept: list[bytes] = []
            async for chunk in self._body:
                seen += len(chunk)
                if seen > max_bytes:
                    raise OversizedAnswerError(f"an answer of more than {max_bytes >> 20} MiB")
                if whole:
                    kept.append(chunk)
                else:
                    yield chunk
            known = answer_seconds(self._response)
            on_answer(time.perf_counter() - self._started if known is None else known)
            if whole:
                yield read_reply(self._path, headers, b"".join(kept))

        async def aclose(self) -> None:
            await self._body.aclose()

    async def handle_async_request(request: Any) -> Any:
        # A packed body may unpack to a thousand times its size: none is asked for, and none is taken.
        request.headers["accept-encoding"] = "identity"
        started = time.perf_counter()
        response = await send(request)
        packing = response.headers.get("content-encoding", "identity")
        if packing.lower() != "identity":
            await response.aclose()
            raise OversizedAnswerError(f"an answer packed as {packing[:40]!r}, which was not asked for")
        response.stream = Bounded(response, request.url.path, started)
        return response

    return handle_async_request


_LOG = logger(__name__)
BATCH_PROVIDERS = ("anthropic", "google", "grok", "openai", "together")
"""Those for whose batch interface the pinned Inspect has an adapter."""
BATCH_SECONDS = 26 * 3600.0
"""A batch is answered within a day, or expires; two hours more for what waits before and after it."""
BATCH_RETRIES = 8
"""Of asking how a batch stands, and of its results: a failure there would fail all that is in it."""


def prepare_batches() -> None:
    """Have Inspect read each line by itself, and tell our log, not the terminal, how batches stand."""
    from inspect_ai.model._providers._openai_batch import OpenAIBatcher
    from inspect_ai.model._providers.util.batch_log import set_batch_log_callback

    set_batch_log_callback(_LOG.info)
    batcher: Any = OpenAIBatcher
    if batcher._parse_jsonl_line is not _line:
        _parsers.append(batcher._parse_jsonl_line)
        batcher._parse_jsonl_line = _line


_parsers: list[Any] = []
"""Inspect's own reader of a line."""


def _line(self: Any, line: dict[str, Any]) -> tuple[str, Any]:
    """The id of a request, and its answer or why there is none."""
    name = str(line.get("custom_id"))
    try:
        refusal = _refusal(self, line)
        if refusal is not None:
            return name, refusal
        response = line["response"]
        body = repaired(response["body"], chat="output" not in response["body"])
        return _parsers[0](self, {**line, "response": {**response, "body": body}})
    except Exception as failure:  # noqa: BLE001 - whatever an answer lacks is its own call's failure
        return name, failure


def _refusal(batcher: Any, line: dict[str, Any]) -> Exception | None:
    """Why a request has no answer, None where it has one."""
    error: dict[str, Any] | None = line.get("error")
    if error is not None and not isinstance(error.get("code"), int):
        return ProviderError(f"{error.get('code')}: {error.get('message')}", Cause.TIMEOUT)
    response: dict[str, Any] = line.get("response") or {}
    status = response.get("status_code", 200) if error is None else error["code"]
    if status == 200:
        return None
    import httpx2

    body = response.get("body", {}) if error is None else {"error": error}
    reply = httpx2.Response(status, json=body, request=httpx2.Request("POST", str(batcher.endpoint)))
    return batcher._openai_client._make_status_error_from_response(reply)


def batch_failure(error: Exception, name: str) -> ProviderError | None:
    """What Inspect tells in words alone, a batch that was refused whole or a line of Google's; else None."""
    if isinstance(error, ProviderError):
        return ProviderError(f"{name}: {error}", error.cause)
    if type(error) is RuntimeError:
        return ProviderError(f"{name}: {error}", Cause.SERVER)
    return None
