"""Bounds on traffic with a provider's server: no redirect, no compression, a limit on bytes, one reader of replies.

Every successful reply is checked and repaired by `finskillbench.harness.providers.replies` before the client parses it.

The clients of most providers follow redirects to any host, with the conversation and the key, and unpack whatever is
packed. They stand on httpx or its successor, whose transport is the place where every byte passes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from finskillbench.harness.providers.answer_seconds import answer_seconds
from finskillbench.harness.providers.replies import read_reply

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""A hundred times the longest answer of a model, its encrypted reasoning included."""
MAX_BATCH_BYTES = 1024 * 1024 * 1024
"""Of the answers to a batch, which come in one file: some 20 KB each of 50,000, the most that a batch holds."""
_PACKAGES = ("httpx", "httpx2")


class OversizedAnswerError(Exception):
    """An answer beyond the bound, or packed although plain text was asked for."""


def bound_answers(client: object, took: Callable[[float], None], most: int = MAX_ANSWER_BYTES) -> bool:
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
            transport.handle_async_request = _bounded(transport.handle_async_request, stream_type, took, most)
            transport.is_bounded = True
    return True


def _is_client(kind: type) -> bool:
    return kind.__name__ == "AsyncClient" and kind.__module__.partition(".")[0] in _PACKAGES


def _bounded(
    send: Callable[[Any], Awaitable[Any]], stream_type: Any, took: Callable[[float], None], most: int
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
                if seen > most:
                    raise OversizedAnswerError(f"an answer of more than {most >> 20} MiB")
                if whole:
                    kept.append(chunk)
                else:
                    yield chunk
            known = answer_seconds(self._response)
            took(time.perf_counter() - self._started if known is None else known)
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
