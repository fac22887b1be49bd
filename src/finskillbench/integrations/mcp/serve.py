"""One episode for a client from outside, which starts us and talks over our input and output, or comes over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

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
from finskillbench.runs.execute.progress import Progress
from finskillbench.runs.execute.run import RunResult, run

NAME = "mcp/client"
"""Under which rows file a client that was given no name."""
_LINGER = 2.0
"""Seconds in which late calls are still told that the episode is over."""


@dataclass(frozen=True, slots=True)
class _Served:
    """The agent: whoever connects, to a port or (None) over the input and output of this process."""

    listener: socket.socket | None
    announce: Callable[[str], None]

    async def __call__(self, task: Task, tools: Tools) -> None:
        """Serve a task; the answer is what was submitted."""
        desk = EpisodeServer(task, tools)
        try:
            if self.listener is None:
                async with _standard_streams() as streams:
                    await _until_answered(desk, asyncio.ensure_future(serve_lines(desk, *streams)))
            else:
                async with on_loopback(desk, self.listener) as url:
                    self.announce(url)
                    await desk.submitted.wait()
                    await asyncio.sleep(_LINGER)
        finally:
            await desk.close()
        if not desk.asked:
            raise ProviderError("the client went before its first tool call", Cause.NOT_STARTED)


async def _until_answered(desk: EpisodeServer, serving: asyncio.Future[None]) -> None:
    """Serve until the client has gone, or the answer is in and it has had its time to go."""
    submitted = asyncio.ensure_future(desk.submitted.wait())
    try:
        await asyncio.wait({serving, submitted}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({serving}, timeout=_LINGER)
    finally:
        submitted.cancel()
        serving.cancel()
        await asyncio.wait({serving})
    if not serving.cancelled():
        serving.result()  # whatever else than the client's leaving ended it is no secret


@asynccontextmanager
async def _standard_streams() -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Input and output of this process as streams; what others print goes to standard error meanwhile."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_MESSAGE)
    with ExitStack() as stack:
        source = stack.enter_context(os.fdopen(os.dup(0), "rb", buffering=0))
        sink = stack.enter_context(os.fdopen(os.dup(1), "wb", buffering=0))
        os.dup2(2, 1)
        stack.callback(os.dup2, sink.fileno(), 1)
        taken, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        given, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
        try:
            yield reader, asyncio.StreamWriter(given, protocol, reader, loop)
        finally:
            taken.close()
            given.close()


def serve(
    edition: Edition,
    task_id: str,
    condition: str,
    *,
    name: str = NAME,
    port: int | None = None,
    seconds: float = SECONDS,
    calls: int = CALLS,
    out: Path,
    announce: Callable[[str], None] = print,
    progress: Progress | None = None,
) -> RunResult:
    """Serve one episode until its answer is in, its client has gone or its limits are reached; it is a row of the run.

    Parameters
    ----------
    edition : with its truth, which stays in this process.
    task_id, condition : the episode and its arm.
    name : under which rows file whoever connects.
    port : of this machine, for streamable HTTP, 0 for a free one; None: standard input and output.
    seconds, calls : an episode that takes longer, or calls more tools, ends without an answer.
    out : the run folder; each call adds an episode.
    announce : called with the address, under HTTP.
    progress : as of `finskillbench.runs.execute.run.run`.

    Raises
    ------
    InputError : there is no such task, it is finished, the port cannot be used, or as of
        `finskillbench.runs.execute.run.run`.
    EditionError : as of `run`.
    """
    if port is None and os.isatty(0):
        raise InputError("an MCP client starts this command and talks over its input and output; or name a port")
    if arm_of(parse_condition(condition)).kept:
        raise InputError(f"under {condition} tasks follow each other: one alone cannot be served")
    with ExitStack() as stack:
        listener = None if port is None else stack.enter_context(listening(port))
        result = run(
            edition,
            conditions=[condition],
            agents=[Agent(name, _Served(listener, announce), seconds, calls, HARNESS)],
            tasks=[task_id],
            out=out,
            progress=progress,
        )
    if not result.ran and not result.stopped:
        raise InputError(f"{task_id} is finished in {out}; choose another --out")
    return result
