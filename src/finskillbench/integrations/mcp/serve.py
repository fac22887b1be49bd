"""Serve one episode to an external client over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.agents import CALLS, SECONDS, Agent, Task, Tools
from finskillbench.harness.conditions import arm_of, parse_condition
from finskillbench.integrations.mcp.episode_server import (
    HARNESS,
    MAX_MESSAGE,
    EpisodeServer,
    listening,
    on_loopback,
    serve_lines,
)
from finskillbench.runs.execute.run import RunResult, run

NAME = "mcp/client"
"""Default name of a client in rows."""
_LINGER = 2.0
"""Seconds in which late calls are still answered that the episode is over."""


@dataclass(frozen=True, slots=True)
class _ClientAgent:
    """Agent that represents the clients of a port, or of standard input and output without one."""

    listener: socket.socket | None
    announce: Callable[[str], None]

    async def __call__(self, task: Task, tools: Tools) -> None:
        """Serve a task; the answer is what was submitted."""
        server = EpisodeServer(task, tools)
        try:
            if self.listener is None:
                async with _standard_streams() as streams:
                    await _until_answered(server, asyncio.ensure_future(serve_lines(server, *streams)))
            else:
                async with on_loopback(server, self.listener) as url:
                    self.announce(url)
                    await server.submitted.wait()
                    await asyncio.sleep(_LINGER)
        finally:
            await server.close()
        if not server.call_count:
            raise ProviderError("the client disconnected before its first tool call", Cause.NOT_STARTED)


async def _until_answered(server: EpisodeServer, serving: asyncio.Future[None]) -> None:
    """Serve until the client disconnects, or until the answer is in and a grace period has passed."""
    submitted = asyncio.ensure_future(server.submitted.wait())
    try:
        await asyncio.wait({serving, submitted}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({serving}, timeout=_LINGER)
    finally:
        submitted.cancel()
        serving.cancel()
        await asyncio.wait({serving})
    if not serving.cancelled():
        serving.result()  # raise any other failure than a disconnect


@asynccontextmanager
async def _standard_streams() -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Provide standard input and output as streams; prints of other code go to standard error meanwhile."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_MESSAGE)
    with ExitStack() as stack:
        source = stack.enter_context(os.fdopen(os.dup(0), "rb", buffering=0))
        sink = stack.enter_context(os.fdopen(os.dup(1), "wb", buffering=0))
        os.dup2(2, 1)
        stack.callback(os.dup2, sink.fileno(), 1)
        read_transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        write_transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
        try:
            yield reader, asyncio.StreamWriter(write_transport, protocol, reader, loop)
        finally:
            read_transport.close()
            write_transport.close()


def serve_episode(
    edition: Edition,
    task_id: str,
    condition: str,
    *,
    name: str = NAME,
    port: int | None = None,
    seconds: float = SECONDS,
    calls: int = CALLS,
    announce: Callable[[str], None] = print,
    **options: Any,
) -> RunResult:
    """Serve one episode until its answer is in, its client disconnects or its limits are reached; add its row to the
    run.

    Parameters
    ----------
    edition : with its truth, which stays in this process.
    name : name of the client in rows.
    port : loopback port for streamable HTTP, 0 for a free one; None: standard input and output.
    seconds, calls : limits of the episode; beyond them it ends without an answer.
    announce : called with the address, under HTTP.
    options : of `finskillbench.runs.execute.run.run`; `out` is required.

    Raises
    ------
    InputError, EditionError : as for `finskillbench.runs.execute.run.run`, or the task is unknown or finished, or the
        port cannot be used.
    """
    if port is None and os.isatty(0):
        raise InputError("standard input is a terminal; let an MCP client start this command, or pass --http PORT")
    if arm_of(parse_condition(condition)).kept:
        raise InputError(f"condition {condition} runs its tasks in sequence; a single task cannot be served")
    with ExitStack() as stack:
        listener = None if port is None else stack.enter_context(listening(port))
        result = run(
            edition,
            conditions=[condition],
            agents=[Agent(name, _ClientAgent(listener, announce), seconds, calls, HARNESS)],
            tasks=[task_id],
            **options,
        )
    if not result.ran and not result.stopped:
        raise InputError(f"{task_id} is already finished in {result.folder}; choose another --out")
    return result
