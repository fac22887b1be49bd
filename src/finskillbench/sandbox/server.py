"""The warm server: imports what scripts need once, and passes each call to a confined child forked in advance.

Started by `process.ServerProcess` as `python start.py FD CONFIG`. Single-threaded, with one loop over the runner's
socket and the children's pipes. Exits, with all children, when the socket closes or its owner is gone.
"""

import contextlib
import gc
import hashlib
import importlib
import json
import os
import selectors
import socket
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

from . import child, frames, scratch
from .guards import access, calls, confine
from .limits import ScriptLimits, format_size
from .worker import GarbageError, Worker

# Interval of the check that the owner is alive, in case the socket is held open elsewhere.
_OWNER_CHECK_SECONDS = 2.0
# Polling interval for killed children.
_REAP_SECONDS = 0.005
# Idle time before a spare child is forked: the caller needs the processor for the last answer.
_QUIET_SECONDS = 0.002
_MAX_SOURCE_BYTES = 1024 * 1024
_MAX_COMPILED = 256
_CHUNK = 1024 * 1024
_MAX_DESCRIPTORS = 64
# Time limit for module-started threads to sleep.
_SETTLE_SECONDS = 2.0


class Server:
    """The server loop over `connection`, with `workers` children kept waiting."""

    def __init__(
        self, connection: socket.socket, child_config: child.ChildConfig, scratch_root: Path, workers: int, owner: int
    ) -> None:
        self._connection = connection
        self._limits = child_config.limits
        self._scratch_root = scratch_root
        self._workers = workers
        self._owner = owner
        self._reader = frames.FrameReader()
        self._selector = selectors.DefaultSelector()
        self._waiting: list[Worker] = []
        self._running: dict[int, Worker] = {}
        self._dying: list[Worker] = []
        # Each child inherits this dictionary as it is at its fork.
        self._codes: dict[str, CodeType] = {}
        self._setting = replace(child_config, codes=self._codes, forget=self._forget)
        # Unused scratch folders: creating one costs a third of a fork.
        self._folders: list[Path] = []
        self._bin = scratch.ScratchCleaner()
        # More calls are queued at the runner: the next one arrives before a child could warm up.
        self._more = False
        # Two per received, unhandled request; forwarded without being read.
        self._received: list[int] = []

    def serve(self) -> None:
        """Handle calls until the socket closes or the owner is gone; then kill all children."""
        self._selector.register(self._connection, selectors.EVENT_READ)
        try:
            while self._step():
                pass
        finally:
            for worker in [*self._running.values(), *self._waiting]:
                worker.kill()
                worker.reaped(wait=True)

    def _step(self) -> bool:
        now = time.monotonic()
        wait = min([_OWNER_CHECK_SECONDS, *(max(0.0, worker.deadline - now) for worker in self._running.values())])
        if self._needs_spare():
            wait = _QUIET_SECONDS if self._waiting else 0.0
        elif self._dying:
            wait = min(wait, _REAP_SECONDS)
        events = self._selector.select(wait)
        for key, _ in events:
            if key.fileobj is self._connection:
                data, descriptors, _, _ = socket.recv_fds(self._connection, _CHUNK, _MAX_DESCRIPTORS)
                if not data:
                    return False
                self._received += descriptors
                for header, _ in self._reader.feed(data):
                    self._handle(header)
            elif key.data.call in self._running:
                self._read(key.data)
        now = time.monotonic()
        for worker in [worker for worker in self._running.values() if now >= worker.deadline]:
            self._fail(worker, f"script exceeded {self._limits.wall_seconds:g} s of wall time and was stopped")
        self._reap()
        self._bin.poll()
        # Fork when idle, so that no call waits for a fork.
        if not events and self._needs_spare():
            try:
                self._waiting.append(self._forked())
            except OSError:
                time.sleep(_REAP_SECONDS)
        return os.getppid() == self._owner

    def _needs_spare(self) -> bool:
        """Decide on a fork: always if no child waits, else only while no script runs."""
        return len(self._waiting) < (1 if self._running else self._workers)

    def _handle(self, header: frames.Header) -> None:
        if "cancel" in header:
            worker = self._running.get(header["cancel"])
            if worker is not None:
                self._end(worker)
            return
        call, script, self._more = header["call"], Path(header["script"]), header["more"]
        descriptors, self._received = self._received[:2], self._received[2:]
        try:
            source = _read_source(script)
            digest = hashlib.sha256(os.fsencode(script) + b"\0" + source).hexdigest()
            folders = tuple(map(Path, header["folders"]))
            worker = self._assign(call, child.CallRequest(script, digest, source, folders), descriptors)
        except OSError as error:
            self._reply(call, error=f"the script cannot be started: {error}")
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._running[call] = worker
        self._selector.register(worker.result_fd, selectors.EVENT_READ, worker)

    def _forked(self) -> Worker:
        folder = self._folders.pop() if self._folders else Path(tempfile.mkdtemp(dir=self._scratch_root))
        try:
            return Worker(self._setting, folder, warm=not self._more)
        except OSError:
            self._folders.append(folder)
            raise

    def _forget(self) -> None:
        """Drop the data of other calls in a new child, where a script could read it."""
        self._selector.close()
        self._reader = frames.FrameReader()
        for held in (self._waiting, self._dying, self._running):
            held.clear()

    def _assign(self, call: int, request: child.CallRequest, descriptors: Sequence[int]) -> Worker:
        """Send a request to a child, skipping children that died waiting."""
        while True:
            fresh = not self._waiting
            worker = self._forked() if fresh else self._waiting.pop(0)
            try:
                worker.start_call(call, request, descriptors)
            except ConnectionError:
                worker.kill()
                self._dying.append(worker)
                if fresh:
                    raise
            else:
                return worker

    def _read(self, worker: Worker) -> None:
        try:
            more = worker.read()
            kind = worker.kind()
        except BlockingIOError:
            return
        except GarbageError:
            self._fail(worker, "wrote invalid data to its result channel, so the result is lost")
            return
        if kind is not None:
            # Answer first: ending a process costs as much as starting one.
            self._reply(worker.call, worker, kind=kind)
            if kind != child.FAILURE:
                self._cache_code(worker)
            self._end(worker)
        elif not more:
            self._fail(worker, worker.ending())

    def _fail(self, worker: Worker, error: str) -> None:
        self._reply(worker.call, worker, error=error)
        self._end(worker)

    def _reply(self, call: int, worker: Worker | None = None, *, kind: bytes = b"", error: str = "") -> None:
        seconds = time.monotonic() - worker.started if worker else 0.0
        header = {"call": call, "seconds": seconds, "kind": kind.decode("latin-1"), "error": error}
        self._connection.sendall(frames.encode_frame(header))

    def _cache_code(self, worker: Worker) -> None:
        if worker.request is None or worker.request.digest in self._codes:
            return
        if len(self._codes) >= _MAX_COMPILED:
            self._codes.pop(next(iter(self._codes)))
        with contextlib.suppress(SyntaxError, ValueError, OSError):
            self._codes[worker.request.digest] = child.compile_script(worker.request.source, worker.request.script)

    def _end(self, worker: Worker) -> None:
        del self._running[worker.call]
        self._selector.unregister(worker.result_fd)
        worker.kill()
        self._dying.append(worker)

    def _reap(self) -> None:
        if not self._dying:
            return
        gone = [worker for worker in self._dying if worker.reaped()]
        self._dying = [worker for worker in self._dying if worker not in gone]
        for worker in gone:
            if worker.untouched():
                self._folders.append(worker.scratch)
            else:
                self._bin.discard(worker.scratch)


def _opened(script: Path) -> int:
    """Open a script without updating its access time, if we own it: scripts could read the time."""
    # Non-blocking, so that a named pipe in place of the script cannot block.
    flags = os.O_RDONLY | os.O_NONBLOCK
    with contextlib.suppress(PermissionError):
        return os.open(script, flags | getattr(os, "O_NOATIME", 0))
    return os.open(script, flags)


def _read_source(script: Path) -> bytes:
    """Read a script; OSError unless it is a regular file within the size limit."""
    with os.fdopen(_opened(script), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_SOURCE_BYTES:
            raise OSError(f"{script.name} is not a file of at most {format_size(_MAX_SOURCE_BYTES)}")
        return file.read(_MAX_SOURCE_BYTES)


def _probe(question: Callable[[], bool], *, threads: bool) -> bool:
    """Evaluate `question` in a forked process with a script's privileges and limits."""
    pid = os.fork()
    if pid == 0:
        try:
            confine.drop_privileges(keep_reading=False)
            generous = 1 << 44
            confine.limit_resources(cpu_seconds=5, memory_bytes=generous, file_bytes=generous, threads=threads)
            os._exit(0 if question() else 1)
        except BaseException:  # noqa: BLE001 - a forked child must end here, not in the server's code
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _can_read(paths: Iterable[Path]) -> bool:
    return all(_listable(path) for path in (*map(Path, filter(None, sys.path)), Path(sys.prefix), *paths))


def _listable(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return os.access(path, os.R_OK)


def _guards(*, offline: bool, threads: bool) -> dict[str, bool]:
    def calls_restricted() -> bool:
        calls.restrict(threads=threads)
        return _cannot_fork()

    calls_held = _probe(calls_restricted, threads=threads)
    return {
        "files": confine.landlock_version() > 0,
        "calls": calls_held,
        "network": offline or calls_held,
        "processes": calls_held or _probe(_cannot_fork, threads=threads),
    }


def _cannot_fork() -> bool:
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        return True
    return False


def _warm(preload: list[str], warm_up: list[str], *, threads: bool) -> Callable[[], None]:
    """Import modules, run the warm-up once and return it; raise RuntimeError if forks would be unsafe.

    A fork loses all other threads, with any lock they hold: only sleeping ones are accepted, and with `threads` only.
    """
    for name in preload:
        importlib.import_module(name)
    functions: list[Callable[[], object]] = []
    for path in warm_up:
        module, _, function = path.partition(":")
        functions.append(getattr(importlib.import_module(module), function))

    def work() -> None:
        for function in functions:
            child.encode_result(function())

    work()
    if not threads and len(_other_threads()) > 0:
        raise RuntimeError("a preloaded module started a thread, so this process cannot be forked safely")
    end = time.monotonic() + _SETTLE_SECONDS
    while not all(_asleep(thread) for thread in _other_threads()):
        if time.monotonic() > end:
            raise RuntimeError("a preloaded module keeps a thread at work, so this process cannot be forked safely")
        time.sleep(_REAP_SECONDS)
    # Newer interpreters warn at each fork about the condition checked above.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    return work


def _other_threads() -> list[Path]:
    tasks = Path("/proc/self/task")
    return [task for task in tasks.iterdir() if task.name != str(os.getpid())] if tasks.is_dir() else []


def _asleep(thread: Path) -> bool:
    return thread.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "S"


def main() -> None:
    """Serve the socket of the first argument with the JSON configuration of the second."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    config = json.loads(sys.argv[2])
    scratch_root = Path(config["scratch"])
    try:
        _serve(connection, config, scratch_root)
    finally:
        # Also after errors: a killed owner cannot clean up.
        scratch.ScratchCleaner().discard(scratch_root)


def _serve(connection: socket.socket, config: dict[str, Any], scratch_root: Path) -> None:
    offline = confine.network_off()
    threads, libraries = config["threads"], config["libraries"]
    linked = scratch_root / "libraries"  # no clash: script folders have other names
    if libraries is not None:
        access.link(libraries, linked)
    warm_up = _warm(config["preload"], config["warm_up"], threads=threads)
    readable = access.readable(config["withheld"]) if libraries is None else access.readable_of(linked)
    child_config = child.ChildConfig(
        limits=ScriptLimits(**config["limits"]),
        guards=_guards(offline=offline, threads=threads),
        readable=readable,
        threads=threads,
        base_memory=confine.address_space(),
        keep_reading=not _probe(lambda: _can_read(path for path, _ in readable), threads=threads),
        server=os.getpid(),
        codes={},
        warm_up=warm_up,
        forget=lambda: None,
    )
    server = Server(connection, child_config, scratch_root, config["workers"], config["owner"])
    # Move permanent objects out of the collector, so that children do not copy their pages.
    gc.collect()
    gc.freeze()
    connection.sendall(frames.encode_frame({"ready": child_config.guards}))
    server.serve()
