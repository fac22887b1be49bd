"""Bound and time the traffic with a provider's server, and adapt Inspect's batch interface.

Most providers' clients follow redirects to any host, with conversation and key, and decompress any body. Their httpx
transport is replaced here: no redirect, no compression, a limit on bytes.

OpenAI-style batches are files with one line per request. On lines of failed requests Inspect gives up the whole batch;
here each line fails or succeeds separately.
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
"""Offsets in Linux' `struct tcp_info` of the milliseconds since data were last sent and received."""
_BYTES = 104


def answer_seconds(response: Any) -> float | None:
    """Return the seconds from the last byte of a request to the last byte of its complete answer, by the kernel's
    clock.

    Known only on Linux for HTTP/1.1 without a proxy; a busy process would notice the answer late.
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
    # Equal times mean an answer within one tick, or a kernel that leaves the fields empty.
    return (sent - received) / 1e3 if sent > received else None


MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""About a hundred times the longest answer of a model, including encrypted reasoning."""
MAX_BATCH_BYTES = 1024 * 1024 * 1024
"""Limit of a batch's answers in one file: some 20 KB for each of at most 50,000."""
_PACKAGES = ("httpx", "httpx2")


class OversizedAnswerError(Exception):
    """An answer beyond the byte limit, or one compressed against the request."""


def bound_answers(client: object, on_answer: Callable[[float], None], max_bytes: int = MAX_ANSWER_BYTES) -> bool:
    """Bound answers to a provider's client to `max_bytes`, once; return False for another HTTP library.

    `on_answer` receives the seconds of each answer, in the context of its request.
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
        """Body that raises an error beyond the byte limit or for a stated failure."""

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
        # Refuse compression: a small body may expand to a thousand times its size.
        request.headers["accept-encoding"] = "identity"
        started = time.perf_counter()
        response = await send(request)
        packing = response.headers.get("content-encoding", "identity")
        if packing.lower() != "identity":
            await response.aclose()
            raise OversizedAnswerError(f"an answer packed as {packing[:40]!r}, which was not requested")
        response.stream = Bounded(response, request.url.path, started)
        return response

    return handle_async_request


_LOG = logger(__name__)
BATCH_PROVIDERS = ("anthropic", "google", "grok", "openai", "together")
"""Providers whose batch interface the pinned Inspect supports."""
BATCH_SECONDS = 26 * 3600.0
"""A batch is answered within a day or expires; two hours cover the waits before and after it."""
BATCH_RETRIES = 8
"""Retries of requests for a batch's status and results, whose failure would fail the whole batch."""


def prepare_batches() -> None:
    """Make Inspect read each batch line separately and report batch status to the log, not the terminal."""
    from inspect_ai.model._providers._openai_batch import OpenAIBatcher
    from inspect_ai.model._providers.util.batch_log import set_batch_log_callback

    set_batch_log_callback(_LOG.info)
    batcher: Any = OpenAIBatcher
    if batcher._parse_jsonl_line is not _line:
        _parsers.append(batcher._parse_jsonl_line)
        batcher._parse_jsonl_line = _line


_parsers: list[Any] = []


def _line(self: Any, line: dict[str, Any]) -> tuple[str, Any]:
    name = str(line.get("custom_id"))
    try:
        refusal = _refusal(self, line)
        if refusal is not None:
            return name, refusal
        response = line["response"]
        body = repaired(response["body"], chat="output" not in response["body"])
        return _parsers[0](self, {**line, "response": {**response, "body": body}})
    except Exception as failure:  # noqa: BLE001 - an incomplete answer fails its own call only
        return name, failure


def _refusal(batcher: Any, line: dict[str, Any]) -> Exception | None:
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
    """Convert failures that Inspect reports as text only, such as a refused batch; None for others."""
    if isinstance(error, ProviderError):
        return ProviderError(f"{name}: {error}", error.cause)
    if type(error) is RuntimeError:
        return ProviderError(f"{name}: {error}", Cause.SERVER)
    return None
