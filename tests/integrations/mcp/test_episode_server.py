"""An episode's server against clients that do what they like: a fake toolbox counts what reaches it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.mcp.agent import VERSION

from finskillbench.harness.agents import Task
from finskillbench.harness.conditions import mount
from finskillbench.harness.model import ToolSpec, Usage
from finskillbench.integrations.mcp.episode_server import MAX_MESSAGE, PROMPT, EpisodeServer, on_socket

SLOW = ToolSpec("slow", "Waits.", {"type": "object"})
TASK = Task("t", "rebalancing", "no_skill", "The system.", "The prompt.", (SLOW,), mount("no_skill", {}, {}))
HELLO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}


class Slow:
    """Tools that wait until they are let go; `served` are the arguments of the calls in the order of their ends."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = 0
        self.served: list[str] = []

    async def call_text(self, name: str, arguments: str, /) -> str:
        self.begun += 1
        await self.go.wait()
        self.served.append(arguments)
        return "{}"

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        raise NotImplementedError

    def spent(self, usage: Usage, *, served_model: str | None = None) -> None: ...

    def used(self, skills: Iterable[str], scripts: Iterable[str]) -> None: ...

    def log(self, text: str) -> None: ...


class Raw:
    """A connection that says whatever it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, **message: Any) -> None:
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def answer(self) -> dict[str, Any]:
        return json.loads(await self.reader.readline())

    def call(self, number: int, **arguments: Any) -> None:
        self.send(id=number, method="tools/call", params={"name": "slow", "arguments": arguments})


@pytest.fixture(autouse=True)
def _nothing_is_left_unhandled(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a client does, no exception is left for asyncio to report."""
    yield
    assert [record for record in caplog.get_records("call") if record.name == "asyncio"] == []


@pytest.fixture
def connected(tmp_path: Path) -> Callable[..., None]:
    """Plays a scene with a server, its tools and a way to connect."""

    def go(scene: Callable[[EpisodeServer, Slow, Callable[[], Awaitable[Raw]]], Awaitable[None]]) -> None:
        async def play() -> None:
            tools = Slow()
            server = EpisodeServer(TASK, tools)
            path = tmp_path / "s"

            async def connect() -> Raw:
                raw = Raw(*await asyncio.open_unix_connection(path))
                raw.send(id=0, method="initialize", params=HELLO)
                assert (await raw.answer())["result"]["serverInfo"]["name"] == "finskillbench"
                raw.send(method="notifications/initialized")
                return raw

            async with on_socket(server, path), asyncio.timeout(600):
                await scene(server, tools, connect)
                await server.close()

        asyncio.run(play())

    return go


async def _until(what: Callable[[], bool]) -> None:
    while not what():
        await asyncio.sleep(0.005)


def test_a_call_that_is_given_up_is_served_all_the_same(connected) -> None:
    async def scene(server: EpisodeServer, tools: Slow, connect) -> None:
        client, other = await connect(), await connect()
        client.call(1, first=True)
        await _until(lambda: tools.begun == 1)
        client.send(method="notifications/cancelled", params={"requestId": 1})
        other.call(2, first=False)
        await _until(lambda: server.pending == 2)
        other.writer.close()
        assert tools.begun == 1, "calls are served one at a time"
        tools.go.set()
        await _until(lambda: len(tools.served) == 2)
        assert tools.served == ['{"first": true}', '{"first": false}']

    connected(scene)


def test_what_is_no_message_harms_nobody(connected) -> None:
    async def scene(server: EpisodeServer, tools: Slow, connect) -> None:
        tools.go.set()
        client = await connect()
        for line in (b"{", b"\xff\xfe", b"", b"[]", b'{"jsonrpc": "2.0", "id": 5}', b"[" * 5_000) * 20:
            client.writer.write(line + b"\n")
        client.send(id=7, method="tools/call", params={"name": "slow", "arguments": [1]})
        client.send(id=8, method="no/such", params={})
        client.send(id=9, method="resources/read", params={"uri": PROMPT})
        refused: Counter[tuple[int, int | None]] = Counter()
        while (answer := await client.answer()).get("id") != 9:
            refused[answer["error"]["code"], answer["id"]] += 1
        assert refused == {(-32700, None): 60, (-32600, None): 20, (-32600, 5): 20, (-32602, 7): 1, (-32601, 8): 1}
        assert answer["result"]["contents"][0]["text"] == "The system.\n\nThe prompt."
        assert tools.served == []

    connected(scene)


def test_a_flood_of_calls_waits_outside_and_ends_with_the_episode(connected) -> None:
    async def scene(server: EpisodeServer, tools: Slow, connect) -> None:
        client = await connect()
        for number in range(1_000):
            client.call(number + 1, text="x" * 1_000)
        await _until(lambda: server.pending >= 64)
        await asyncio.sleep(0.1)
        assert server.pending < 80
        await server.close()
        assert (tools.served, tools.begun) == ([], 1)

    connected(scene)


def test_a_message_beyond_the_limit_ends_its_connection_and_no_other(connected) -> None:
    async def scene(server: EpisodeServer, tools: Slow, connect) -> None:
        tools.go.set()
        client, other = await connect(), await connect()
        client.call(1, text="x" * (MAX_MESSAGE // 2))
        assert (await client.answer())["id"] == 1
        client.call(2, text="x" * 2 * MAX_MESSAGE)
        with suppress(ConnectionError):
            assert (await client.answer())["error"]["code"] == -32700
            assert await client.reader.read() == b""
        other.call(3)
        assert (await other.answer())["id"] == 3

    connected(scene)
