"""The address of this machine behind which Hermes finds its model and its tools: HTTP on loopback.

Whoever asks must know a token that is drawn anew each time. Hermes looks at a local address for the servers that it
knows (`GET /models` and the like) and is told that none of them is there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import NamedTuple, Protocol

LOOPBACK = "127.0.0.1"
MOST_BYTES = 256 * 1024 * 1024
"""Of one request; a conversation of twelve turns with the longest results is shorter."""
_LONGEST_HEAD = 64 * 1024
_OVER = b'{"error": {"message": "the episode is over", "type": "invalid_request_error", "code": "over"}}'


class Answer(NamedTuple):
    """What a request is answered with; by a body of JSON unless it says otherwise."""

    body: bytes
    status: str = "200 OK"
    kind: str = "application/json"


OVER = Answer(_OVER, "400 Bad Request")
"""Hermes asks once more after most failures, but never after this one."""
_STRANGER = Answer(b"{}", "401 Unauthorized")
_NOT_THERE = Answer(b"{}", "404 Not Found")


class Served(Protocol):
    """An episode, as requests reach it."""

    async def answer(self, what: str, body: bytes) -> Answer:
        """Answer a request; never raises."""
        ...


class Endpoint:
    """The episodes under way, by the name that their requests give."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self._served: dict[str, Served] = {}
        self._count = 0
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Serve on a free port for as long as the context is open."""
        server = await asyncio.start_server(self._connected, LOOPBACK, 0, limit=_LONGEST_HEAD)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    @contextmanager
    def serving(self, episode: Served) -> Generator[str]:
        """Answer requests about an episode, under the name that is yielded."""
        self._count += 1
        name = f"episode-{self._count}"
        self._served[name] = episode
        try:
            yield name
        finally:
            del self._served[name]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
                while True:
                    answer = await self._answer(*await _read(reader))
                    head = f"HTTP/1.1 {answer.status}\r\nContent-Type: {answer.kind}\r\n"
                    writer.write(f"{head}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body)
                    await writer.drain()
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _answer(self, asked: str, headers: dict[str, str], body: bytes) -> Answer:
        if not secrets.compare_digest(headers.get("authorization", "").encode(), f"Bearer {self.token}".encode()):
            return _STRANGER
        method, path, _ = asked.split(" ", 2)
        _, name, what = path.split("/", 2)
        if method != "POST":
            return _NOT_THERE
        episode = self._served.get(name)
        return OVER if episode is None else await episode.answer(what, body)


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """The first line of a request, its headers by lower-case name, and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    asked, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= MOST_BYTES:
        raise ValueError(f"a request of {length} bytes")
    return asked, headers, await reader.readexactly(length)
