"""Runs skill scripts warm: the asyncio side of `server`.

One server process per runner, started by exec and restarted when it dies; up to `workers` children of it at once, the
other calls wait here in order. A misbehaving script is a `ScriptResult` that says so, never an exception, and leaves
the next call untouched.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import orjson

from finskillbench.errors import SkillError
from finskillbench.redaction import logger
from finskillbench.sandbox import child, frames, scratch
from finskillbench.sandbox.channel import Channel
from finskillbench.sandbox.limits import JsonObject, Limits, ScriptResult, size
from finskillbench.sandbox.process import THIS_PYTHON, ServerProcess, printable

_LOG = logger(__name__)

_START_SECONDS = 60.0
# Past its wall time plus this the server itself hangs (a script may have stopped it) and is replaced.
_HANG_SECONDS = 5.0
_START_ATTEMPTS = 3
# How long closing waits for what scripts have left; a process of its own goes on removing the rest.
_CLEAN_SECONDS = 2.0
_CHUNK = 1024 * 1024
_FAILURE_BYTES = 64 * 1024


@dataclass(eq=False)
class _Call:
    number: int
    script: Path
    payload: bytes
    folders: Sequence[Path]
    answer: asyncio.Future[ScriptResult]
    # In flight when the server died: runs once more, alone, to learn whether that was its doing.
    suspect: bool = False
    watchdog: asyncio.TimerHandle | None = None
    channel: Channel | None = None

    def release(self) -> None:
        """Give back what it holds while it is in flight."""
        if self.watchdog is not None:
            self.watchdog.cancel()
        if self.channel is not None:
            loop = self.answer.get_loop()
            if not loop.is_closed():
                loop.remove_reader(self.channel.printed_fd)
            self.channel.close()
        self.watchdog = self.channel = None


class ScriptRunner:
    """Context manager that runs scripts in forked children of one warm process.

    Parameters
    ----------
    limits : what one call may use.
    workers : how many scripts run at once.
    preload : modules the warm process imports; none of them may start a thread.
    warm_up : "module:function" of each function that it calls once, and each child again while it waits for its
        call, to touch the memory that a call needs; not where calls wait for a child. They return what the `main` of a
        script returns.
    trusted : folders whose scripts run even where a guard is missing; any other is refused there.
    python : the interpreter; another than this one needs no package of ours.
    threads : whether a script may start threads, as some libraries must; then a preloaded module may as well, one
        that sleeps while this process does not use it.
    libraries : distributions that a script has, with what these need, besides the standard library: of all others,
        this one included, it can neither import nor read anything. None: all that the interpreter has.

    Raises SkillError on entering if the warm process cannot start. One runner serves one event loop at a time.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        workers: int = 2,
        *,
        preload: Sequence[str] = (),
        warm_up: Sequence[str] = (),
        trusted: Sequence[Path] = (),
        python: Path = THIS_PYTHON,
        threads: bool = False,
        libraries: Sequence[str] | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: give at least 1")
        self.limits = limits or Limits()
        self.workers = workers
        self._preload, self._warm_up = tuple(preload), tuple(warm_up)
        self._trusted = tuple(trusted)
        self._python, self._threads, self._libraries = python, threads, libraries
        self._guards: Mapping[str, bool] = {}
        self._server: ServerProcess | None = None
        self._bin = scratch.Bin()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: deque[_Call] = deque()
        self._running: dict[int, _Call] = {}
        self._failed_starts = 0
        self._numbers = 0

    @property
    def guards(self) -> Mapping[str, bool]:
        """Which guards hold on this machine: files, calls (those of the kernel), network, processes."""
        return self._guards

    @property
    def server_pid(self) -> int | None:
        """Process id of the warm server once it takes calls; None while there is none or it starts."""
        return self._server.process.pid if self._server is not None and self._server.ready else None

    def __enter__(self) -> Self:
        self._start()
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def run(self, script: Path, payload: bytes, folders: Sequence[Path] = ()) -> ScriptResult:
        """Run `main` of `script` on `payload`, the UTF-8 JSON of an object; it may read `folders` besides.

        Never raises for what the script or the payload does. Cancelling stops the script.
        """
        if len(payload) > self.limits.payload_bytes:
            limit = size(self.limits.payload_bytes)
            return _failure(f"the payload has {size(len(payload))}, more than the {limit} allowed")
        loop = asyncio.get_running_loop()
        self._attach(loop)
        missing = [name for name, held in self._guards.items() if not held]
        if missing and not all(self._trusts(path) for path in (script, *folders)):
            return _failure(f"refused: its package is not trusted, and guards are missing here: {', '.join(missing)}")
        self._numbers += 1
        call = _Call(self._numbers, script.absolute(), payload, folders, loop.create_future())
        self._pending.append(call)
        self._pump()
        try:
            return await call.answer
        except asyncio.CancelledError:
            self._abandon(call)
            raise

    def _trusts(self, path: Path) -> bool:
        return any(path.resolve().is_relative_to(folder) for folder in self._trusted)

    def close(self) -> None:
        """Stop the server and every script, remove all scratch folders, answer what still waits with an error."""
        calls = [*self._running.values(), *self._pending]
        self._running.clear()
        self._pending.clear()
        self._stop()
        self._bin.close(_CLEAN_SECONDS)
        for call in calls:
            _settle(call, _failure("the script runner was closed"))
        self._loop = None

    # Server process

    def _start(self) -> ServerProcess:
        self._server = ServerProcess(
            self.limits,
            self.workers,
            self._preload,
            self._warm_up,
            python=self._python,
            threads=self._threads,
            libraries=self._libraries,
        )
        return self._server

    def _await_ready(self) -> None:
        server = self._started()
        server.connection.settimeout(_START_SECONDS)
        with contextlib.suppress(OSError):
            while not server.ready and (data := server.connection.recv(_CHUNK)):
                self._receive(data)
        if not server.ready:
            raise SkillError(f"the script runner cannot start: {server.why_it_ended()}")
        server.connection.setblocking(False)

    def _started(self) -> ServerProcess:
        if self._server is None:
            raise SkillError("the script runner is closed: use it inside its with block")
        return self._server

    def _stop(self) -> None:
        """Take the server down and clean up after it."""
        if self._server is None:
            return
        server, self._server = self._server, None
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(server.connection)
        server.stop()
        self._bin.throw(server.scratch)

    def _replace(self, why: str) -> None:
        """The server is gone or must go: start another, and sort out the calls it was running."""
        server = self._started()
        if not server.ready:
            self._failed_starts += 1
            why = f"the script runner cannot start: {server.why_it_ended()}"
        server.kill()
        self._stop()
        calls, self._running = list(self._running.values()), {}
        for call in reversed(calls):
            if call.suspect:
                _settle(call, _failure(why))
                continue
            call.release()
            call.suspect = True
            self._pending.appendleft(call)
        if self._failed_starts >= _START_ATTEMPTS:
            while self._pending:
                _settle(self._pending.popleft(), _failure(why))
            return
        self._restart(self._loop)

    def _restart(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start a server without waiting until it is ready; `loop` hears when it is."""
        connection = self._start().connection
        connection.setblocking(False)
        if loop is not None and not loop.is_closed():
            loop.add_reader(connection, self._readable)

    # Event loop

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._server is None and self._failed_starts:
            self._failed_starts = 0
            self._restart(loop)
            self._loop = loop
        connection = self._started().connection
        if self._loop is loop:
            return
        if self._loop is not None:
            if not self._loop.is_closed() and (self._running or self._pending):
                raise SkillError("one script runner serves one event loop at a time: use a runner per loop")
            # Calls of a loop that has closed have nobody waiting for them.
            for call in [*self._running.values(), *self._pending]:
                self._abandon(call)
            if not self._loop.is_closed():
                self._loop.remove_reader(connection)
        loop.add_reader(connection, self._readable)
        self._loop = loop

    def _pump(self) -> None:
        """Send waiting calls as long as there are workers free; a suspect runs alone."""
        while self.server_pid is not None and self._pending and len(self._running) < self.workers:
            alone = self._pending[0].suspect or any(call.suspect for call in self._running.values())
            if alone and self._running:
                return
            self._send(self._pending.popleft())

    def _send(self, call: _Call) -> None:
        loop = call.answer.get_loop()
        try:
            call.channel = channel = Channel(call.payload)
        except OSError as error:
            _settle(call, _failure(f"the script cannot be started: {error}"))
            return
        self._running[call.number] = call
        call.watchdog = loop.call_later(self.limits.wall_seconds + _HANG_SECONDS, self._hung, call)
        loop.add_reader(channel.printed_fd, self._printed, loop, channel)
        folders = [str(folder.absolute()) for folder in call.folders]
        header = {"call": call.number, "script": str(call.script), "folders": folders, "more": bool(self._pending)}
        self._write(header, channel.descriptors)
        channel.handed_over()

    def _write(self, header: frames.Header, descriptors: Sequence[int] = ()) -> None:
        """Send a frame. Frames are small: a socket that does not take one whole belongs to a server that hangs."""
        connection, data = self._started().connection, frames.encode(header)
        with contextlib.suppress(OSError):
            if socket.send_fds(connection, [data], descriptors) == len(data):
                return
        with contextlib.suppress(OSError):
            # The reader sees the end of the stream and replaces the server.
            connection.shutdown(socket.SHUT_RDWR)

    def _readable(self) -> None:
        try:
            data = self._started().connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._receive(data)
        else:
            self._replace("the script took the script runner's own process down with it; the runner was restarted")
        self._pump()

    def _receive(self, data: bytes) -> None:
        server = self._started()
        for header, _ in server.frames.feed(data):
            if "ready" in header:
                self._guards, server.ready, self._failed_starts = header["ready"], True, 0
                continue
            call = self._running.pop(header["call"], None)
            if call is not None:
                _settle(call, self._result(call, header))

    def _printed(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        if not channel.read_printed(self.limits.printed_bytes):
            # At its end a pipe is readable for ever.
            loop.remove_reader(channel.printed_fd)

    def _hung(self, call: _Call) -> None:
        if call.number in self._running:
            self._replace("the script stopped the script runner's own process; the runner was restarted")
            self._pump()

    def _abandon(self, call: _Call) -> None:
        call.release()
        with contextlib.suppress(ValueError):
            self._pending.remove(call)
        if self._running.pop(call.number, None) is not None and self._server is not None:
            self._write({"cancel": call.number})
            self._pump()

    def _result(self, call: _Call, header: frames.Header) -> ScriptResult:
        """What the server's answer says; what the script's own process has left is checked again."""
        kind, seconds, channel = header["kind"].encode("latin-1"), header["seconds"], call.channel
        if channel is None:
            raise SkillError(f"{call.script}: answered without having been sent")
        while len(channel.printed) < self.limits.printed_bytes and channel.read_printed(self.limits.printed_bytes):
            pass
        printed = channel.printed.decode("utf-8", "replace")
        if header["error"]:
            return _failure(header["error"], seconds, printed)
        if kind == child.RESULT:
            try:
                return ScriptResult(True, _parse_object(channel.body(self.limits.result_bytes)), None, seconds, printed)
            except ValueError as error:
                return _failure(f"returned something that is not a JSON object: {error}", seconds, printed)
        if kind == child.NOTHING:
            how = "printed instead of returning" if printed else "returned nothing"
            return _failure(f"{how}: main must return an object", seconds, printed)
        error, _, trace = channel.body(_FAILURE_BYTES).decode("utf-8", "replace").partition("\n")
        _LOG.debug("%s failed:\n%s", call.script, printable(trace))
        return _failure(error, seconds, printed)


def _settle(call: _Call, result: ScriptResult) -> None:
    call.release()
    if not call.answer.done() and not call.answer.get_loop().is_closed():
        call.answer.set_result(result)


def _failure(error: str, seconds: float = 0.0, printed: str = "") -> ScriptResult:
    return ScriptResult(False, None, " ".join(error.split()), seconds, printed)


def _parse_object(body: bytes) -> JsonObject:
    """The JSON object in `body`; ValueError if it is anything else (NaN and infinities are not JSON)."""
    value: object = orjson.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"it is a {type(value).__name__}")
    return cast("JsonObject", value)
