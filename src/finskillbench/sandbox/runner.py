"""Asyncio interface to the warm script server.

One server process per runner, restarted when it dies. Up to `workers` calls run at once; others wait in order. A failed
script gives a `ScriptResult` with an error, never an exception, and does not affect later calls.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import orjson

from finskillbench.errors import SkillError
from finskillbench.redaction import logger
from finskillbench.sandbox import child, frames, scratch
from finskillbench.sandbox.channel import Channel
from finskillbench.sandbox.limits import JsonObject, ScriptLimits, ScriptResult, format_size
from finskillbench.sandbox.process import THIS_PYTHON, ServerProcess, printable_text

_LOG = logger(__name__)

_START_SECONDS = 60.0
# Beyond wall time plus this, the server itself hangs and is replaced.
_HANG_SECONDS = 5.0
_START_ATTEMPTS = 3
# Time to wait for clean-up on close; a detached process removes the rest.
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
    # In flight when the server died: rerun alone to find the cause.
    suspect: bool = False
    watchdog: asyncio.TimerHandle | None = None
    channel: Channel | None = None

    def release(self) -> None:
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
    limits : limits of one call.
    workers : number of parallel scripts.
    preload : modules the warm process imports; none may start a thread.
    warm_up : functions as "module:function", which touch the memory a call needs. The server calls each once, and so
        does each idle child. They return the same kind of object as `main`.
    trusted : folders whose scripts run even if a guard is missing; other scripts are refused then.
    python : the interpreter; another than the current one does not need this package.
    threads : allow threads in scripts. Preloaded modules may then start threads that sleep while unused.
    libraries : distributions that scripts may use, with their dependencies and the standard library; nothing else can
        be imported or read. None allows everything installed.
    withheld : folders of installed packages that scripts cannot read or import.

    Raises SkillError on entering if the warm process cannot start. One runner serves one event loop at a time.
    """

    def __init__(
        self,
        limits: ScriptLimits | None = None,
        workers: int = 2,
        *,
        preload: Sequence[str] = (),
        warm_up: Sequence[str] = (),
        trusted: Sequence[Path] = (),
        python: Path = THIS_PYTHON,
        threads: bool = False,
        libraries: Sequence[str] | None = None,
        withheld: Sequence[Path] = (),
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: give at least 1")
        self.limits = limits or ScriptLimits()
        self.workers = workers
        self._preload, self._warm_up = tuple(preload), tuple(warm_up)
        self._trusted = tuple(trusted)
        self._python, self._threads, self._libraries, self._withheld = python, threads, libraries, withheld
        self._guards: Mapping[str, bool] = {}
        self._server: ServerProcess | None = None
        self._bin = scratch.ScratchCleaner()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: deque[_Call] = deque()
        self._running: dict[int, _Call] = {}
        self._failed_starts = 0
        self._numbers = 0

    @property
    def guards(self) -> Mapping[str, bool]:
        """Return which guards hold on this machine: files, calls, network, processes."""
        return self._guards

    @property
    def server_pid(self) -> int | None:
        """Return the ready server's process id, else None."""
        return self._server.process.pid if self._server is not None and self._server.ready else None

    def __enter__(self) -> Self:
        self._start()
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def run(self, script: Path, payload: bytes, folders: Sequence[Path] = ()) -> ScriptResult:
        """Run `main` on `payload`, the UTF-8 JSON of an object; `folders` are readable too.

        Never raises for faults of script or payload. Cancelling stops the script.
        """
        if len(payload) > self.limits.payload_bytes:
            limit = format_size(self.limits.payload_bytes)
            return _failure(f"the payload has {format_size(len(payload))}, more than the {limit} allowed")
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
        """Stop the server and all scripts, remove scratch folders, fail waiting calls."""
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
            withheld=self._withheld,
        )
        return self._server

    def _await_ready(self) -> None:
        server = self._started()
        server.connection.settimeout(_START_SECONDS)
        with contextlib.suppress(OSError):
            while not server.ready and (data := server.connection.recv(_CHUNK)):
                self._receive(data)
        if not server.ready:
            raise SkillError(f"the script runner cannot start: {server.last_error_line()}")
        server.connection.setblocking(False)

    def _started(self) -> ServerProcess:
        if self._server is None:
            raise SkillError("the script runner is closed: use it inside its with block")
        return self._server

    def _stop(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(server.connection)
        server.stop()
        self._bin.discard(server.scratch)

    def _replace(self, why: str) -> None:
        server = self._started()
        if not server.ready:
            self._failed_starts += 1
            why = f"the script runner cannot start: {server.last_error_line()}"
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
            # The loop is closed, so no caller waits for these calls.
            for call in [*self._running.values(), *self._pending]:
                self._abandon(call)
            if not self._loop.is_closed():
                self._loop.remove_reader(connection)
        loop.add_reader(connection, self._readable)
        self._loop = loop

    def _pump(self) -> None:
        """Send waiting calls while workers are free; a suspect runs alone."""
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
        channel.close_child_ends()

    def _write(self, header: frames.Header, descriptors: Sequence[int] = ()) -> None:
        """Send a frame; a socket that does not take it whole belongs to a hanging server."""
        connection, data = self._started().connection, frames.encode_frame(header)
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
            self._replace("the script ended the script runner's process; the runner was restarted")
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
            # A pipe at its end stays readable.
            loop.remove_reader(channel.printed_fd)

    def _hung(self, call: _Call) -> None:
        if call.number in self._running:
            self._replace("the script blocked the script runner's process; the runner was restarted")
            self._pump()

    def _abandon(self, call: _Call) -> None:
        call.release()
        with contextlib.suppress(ValueError):
            self._pending.remove(call)
        if self._running.pop(call.number, None) is not None and self._server is not None:
            self._write({"cancel": call.number})
            self._pump()

    def _result(self, call: _Call, header: frames.Header) -> ScriptResult:
        """Convert the server's answer, and validate the child's output again."""
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
        _LOG.debug("%s failed:\n%s", call.script, printable_text(trace))
        return _failure(error, seconds, printed)


def _settle(call: _Call, result: ScriptResult) -> None:
    call.release()
    if not call.answer.done() and not call.answer.get_loop().is_closed():
        call.answer.set_result(result)


def _failure(error: str, seconds: float = 0.0, printed: str = "") -> ScriptResult:
    return ScriptResult(False, None, " ".join(error.split()), seconds, printed)


def _parse_object(body: bytes) -> JsonObject:
    value: object = orjson.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"it is a {type(value).__name__}")
    return cast("JsonObject", value)
