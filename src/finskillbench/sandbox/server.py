"""The warm parent: imports what scripts need once, then hands each call to a confined child forked ahead of time.

Started by `process.ServerProcess` as `python start.py FD CONFIG`, never forked from it. Has one loop over the runner's
socket and the pipes of the running children, in the one thread that ever does anything. Ends when the socket closes or
its owner is gone, and takes every child along.
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
from .limits import Limits, size
from .worker import GarbageError, Worker

# How often an idle server looks whether its owner still lives, for the case that the socket is held open elsewhere.
_OWNER_CHECK_SECONDS = 2.0
# How often killed children are looked at until they are gone.
_REAP_SECONDS = 0.005
# How long nothing may happen before a spare child is forked: the caller needs the processor for the last answer.
_QUIET_SECONDS = 0.002
_MAX_SOURCE_BYTES = 1024 * 1024
_MAX_COMPILED = 256
_CHUNK = 1024 * 1024
_MAX_DESCRIPTORS = 64
# How long threads that a module has started may take to settle.
_SETTLE_SECONDS = 2.0


class Server:
    """The loop of the warm parent over `connection`, with `workers` children kept waiting."""

    def __init__(
        self, connection: socket.socket, setting: child.Setting, scratch_root: Path, workers: int, owner: int
    ) -> None:
        self._connection = connection
        self._limits = setting.limits
        self._scratch_root = scratch_root
        self._workers = workers
        self._owner = owner
        self._reader = frames.FrameReader()
        self._selector = selectors.DefaultSelector()
        self._waiting: list[Worker] = []
        self._running: dict[int, Worker] = {}
        self._dying: list[Worker] = []
        # The fork hands it to each child as it is at that moment.
        self._codes: dict[str, CodeType] = {}
        self._setting = replace(setting, codes=self._codes, forget=self._forget)
        # Scratch folders that their scripts have not touched: making one costs a third of a fork.
        self._folders: list[Path] = []
        self._bin = scratch.Bin()
        # Whether calls wait at the runner: then the next order comes before a child could have warmed up.
        self._more = False
        # Two for each order that has come and was not handled yet: they pass through, what they hold is not read here.
        self._received: list[int] = []

    def serve(self) -> None:
        """Take orders until the socket closes or the owner is gone; then kill what still runs."""
        self._selector.register(self._connection, selectors.EVENT_READ)
        try:
            while self._step():
                pass
        finally:
            for worker in [*self._running.values(), *self._waiting]:
                worker.kill()
                worker.reaped(wait=True)

    def _step(self) -> bool:
        """Wait for the next thing to do and do it; False when it is time to end."""
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
        self._bin.tend()
        # Forked when nothing is more urgent, so that no call waits for a fork.
        if not events and self._needs_spare():
            try:
                self._waiting.append(self._forked())
            except OSError:
                time.sleep(_REAP_SECONDS)
        return os.getppid() == self._owner

    def _needs_spare(self) -> bool:
        """Whether to fork: always when nobody waits for an order, else only while no script needs the processor."""
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
            worker = self._hand_over(call, child.Order(script, digest, source, folders), descriptors)
        except OSError as error:
            self._reply(call, error=f"the script cannot be started: {error}")
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._running[call] = worker
        self._selector.register(worker.result_fd, selectors.EVENT_READ, worker)

    def _forked(self) -> Worker:
        """A new child, waiting for an order; OSError if the system refuses."""
        folder = self._folders.pop() if self._folders else Path(tempfile.mkdtemp(dir=self._scratch_root))
        try:
            return Worker(self._setting, folder, warm=not self._more)
        except OSError:
            self._folders.append(folder)
            raise

    def _forget(self) -> None:
        """Drop, in a child, the orders of other calls: their scripts could be read from its frames."""
        self._selector.close()
        self._reader = frames.FrameReader()
        for held in (self._waiting, self._dying, self._running):
            held.clear()

    def _hand_over(self, call: int, order: child.Order, descriptors: Sequence[int]) -> Worker:
        """A child that has taken the order; one that died waiting is passed over."""
        while True:
            fresh = not self._waiting
            worker = self._forked() if fresh else self._waiting.pop(0)
            try:
                worker.give(call, order, descriptors)
            except ConnectionError:
                worker.kill()
                self._dying.append(worker)
                if fresh:
                    raise
            else:
                return worker

    def _read(self, worker: Worker) -> None:
        """Read what a child has said, and answer the call if that settles it."""
        try:
            more = worker.read()
            kind = worker.kind()
        except BlockingIOError:
            return
        except GarbageError:
            self._fail(worker, "wrote garbage into the channel for its result, so the result is lost")
            return
        if kind is not None:
            # The answer first: taking down a process costs as much as making one.
            self._reply(worker.call, worker, kind=kind)
            if kind != child.FAILURE:
                self._remember(worker)
            self._end(worker)
        elif not more:
            self._fail(worker, worker.ending())

    def _fail(self, worker: Worker, error: str) -> None:
        self._reply(worker.call, worker, error=error)
        self._end(worker)

    def _reply(self, call: int, worker: Worker | None = None, *, kind: bytes = b"", error: str = "") -> None:
        seconds = time.monotonic() - worker.started if worker else 0.0
        header = {"call": call, "seconds": seconds, "kind": kind.decode("latin-1"), "error": error}
        self._connection.sendall(frames.encode(header))

    def _remember(self, worker: Worker) -> None:
        """Compile here, for children to come, what this child has compiled and run to a result without harm."""
        if worker.order is None or worker.order.digest in self._codes:
            return
        if len(self._codes) >= _MAX_COMPILED:
            self._codes.pop(next(iter(self._codes)))
        with contextlib.suppress(SyntaxError, ValueError, OSError):
            self._codes[worker.order.digest] = child.compile_script(worker.order.source, worker.order.script)

    def _end(self, worker: Worker) -> None:
        """Kill a child and forget its call."""
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
                self._bin.throw(worker.scratch)


def _opened(script: Path) -> int:
    """A descriptor that leaves the time of reading as it is, where the file is ours: a script could look at it."""
    # Without blocking, so that a named pipe in place of the script cannot hold everything up.
    flags = os.O_RDONLY | os.O_NONBLOCK
    with contextlib.suppress(PermissionError):
        return os.open(script, flags | getattr(os, "O_NOATIME", 0))
    return os.open(script, flags)


def _read_source(script: Path) -> bytes:
    """The text of a script; OSError unless it is a regular file of ordinary size."""
    with os.fdopen(_opened(script), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_SOURCE_BYTES:
            raise OSError(f"{script.name} is not a file of at most {size(_MAX_SOURCE_BYTES)}")
        return file.read(_MAX_SOURCE_BYTES)


def _probe(question: Callable[[], bool], *, threads: bool) -> bool:
    """Whether `question()` is true in a process with a script's privileges and limits."""
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
    """Whether this folder or file can be read; one that is not there need not be."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return os.access(path, os.R_OK)


def _guards(*, offline: bool, threads: bool) -> dict[str, bool]:
    """Which guards hold here, each of them tried: files and kernel calls that are not open, network, processes."""

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
    """Import, do the warm-up once and give it back; RuntimeError if this process cannot be forked safely after that.

    A thread is gone in a child, and with it whatever lock it held: only where `threads` says so may there be others,
    and those must sleep, as they do for ever in a process that never uses the library that has started them.
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
    if not threads and len(_others()) > 0:
        raise RuntimeError("a preloaded module started a thread, so this process cannot be forked safely")
    end = time.monotonic() + _SETTLE_SECONDS
    while not all(_asleep(thread) for thread in _others()):
        if time.monotonic() > end:
            raise RuntimeError("a preloaded module keeps a thread at work, so this process cannot be forked safely")
        time.sleep(_REAP_SECONDS)
    # Newer interpreters say at each fork what has just been looked at.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    return work


def _others() -> list[Path]:
    """What the system says of each thread but this one; nothing where it does not say."""
    tasks = Path("/proc/self/task")
    return [task for task in tasks.iterdir() if task.name != str(os.getpid())] if tasks.is_dir() else []


def _asleep(thread: Path) -> bool:
    return thread.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "S"


def main() -> None:
    """Serve the socket whose descriptor is the first argument, as the JSON in the second says."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    config = json.loads(sys.argv[2])
    scratch_root = Path(config["scratch"])
    try:
        _serve(connection, config, scratch_root)
    finally:
        # From the first moment on: an owner that was killed cannot do it.
        scratch.Bin().throw(scratch_root)


def _serve(connection: socket.socket, config: dict[str, Any], scratch_root: Path) -> None:
    """Warm up, say so, and serve until the end."""
    offline = confine.network_off()
    threads, libraries = config["threads"], config["libraries"]
    linked = scratch_root / "libraries"  # no name that a script's folder may have: its folders are made beside it
    if libraries is not None:
        access.link(libraries, linked)
    warm_up = _warm(config["preload"], config["warm_up"], threads=threads)
    readable = access.readable() if libraries is None else access.readable_of(linked)
    setting = child.Setting(
        limits=Limits(**config["limits"]),
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
    server = Server(connection, setting, scratch_root, config["workers"], config["owner"])
    # What lives for ever is moved out of the collector's sight, so that children need not copy its pages.
    gc.collect()
    gc.freeze()
    connection.sendall(frames.encode({"ready": setting.guards}))
    server.serve()
