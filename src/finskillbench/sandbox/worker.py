"""The server's side of one forked child: its pipes, what it has sent, how it ended, and taking it down."""

import contextlib
import os
import secrets
import signal
import time
from pathlib import Path

from finskillbench.sandbox import child, confine
from finskillbench.sandbox.limits import size

_CHUNK = 1024 * 1024
# A child closes its pipes a moment before its exit status can be read.
_EXIT_GRACE_SECONDS = 0.2


class GarbageError(Exception):
    """What came through the pipe for the result is not a message of this call."""


class Worker:
    """One child: forked and confined ahead of its only call, which `give` hands to it."""

    def __init__(self, setting: child.Setting, scratch: Path) -> None:
        """Fork a child that works in the empty folder `scratch`; OSError if the system refuses."""
        self.call = 0
        self.order: child.Order | None = None
        self.started = self.deadline = 0.0
        self.printed = bytearray()
        self._limits = setting.limits
        self._exit_code = 0
        self._received = bytearray()
        self._token = secrets.token_bytes(child.TOKEN_BYTES)
        self.scratch = scratch
        pipes: list[int] = []
        try:
            for _ in range(3):
                pipes += os.pipe()
            order_in, order_out, result_in, result_out, printed_in, printed_out = pipes
            self.pid = os.fork()
        except OSError:
            for descriptor in pipes:
                os.close(descriptor)
            raise
        if self.pid == 0:
            child.run_child(setting, self._token, scratch, order_in, result_out, printed_out)
        for descriptor in (order_in, result_out, printed_out):
            os.close(descriptor)
        self._order_fd, self.result_fd, self.printed_fd = order_out, result_in, printed_in
        for descriptor in (result_in, printed_in):
            os.set_blocking(descriptor, False)
        confine.give_folder(scratch, self.pid)
        self._changed = scratch.stat().st_ctime_ns

    def give(self, call: int, order: child.Order) -> None:
        """Hand over the order and start its clock; BrokenPipeError if the child has died waiting."""
        self.call, self.order = call, order
        self.started = time.monotonic()
        self.deadline = self.started + self._limits.wall_seconds
        view = memoryview(child.encode_order(order))
        # The child reads all of it before any code of the script runs, so this cannot be held up.
        while view:
            view = view[os.write(self._order_fd, view) :]
        os.close(self._order_fd)
        self._order_fd = -1

    def read_printed(self) -> bool:
        """Keep the beginning of what the script prints, drop the rest; False once it can print no more."""
        data = os.read(self.printed_fd, _CHUNK)
        self.printed += data[: max(0, self._limits.printed_bytes - len(self.printed))]
        return bool(data)

    def read_result(self) -> bool:
        """Take what has come of the result; False at its end."""
        data = os.read(self.result_fd, _CHUNK)
        self._received += data
        return bool(data)

    def message(self) -> tuple[bytes, bytes] | None:
        """Kind and body of the child's message, None while it is incomplete; GarbageError if it is none."""
        head = child.TOKEN_BYTES + child.PREFIX.size
        if len(self._received) < head:
            return None
        kind, length = child.PREFIX.unpack_from(self._received, child.TOKEN_BYTES)
        if bytes(self._received[: child.TOKEN_BYTES]) != self._token or length > max(self._limits.result_bytes, _CHUNK):
            raise GarbageError
        if len(self._received) < head + length:
            return None
        with contextlib.suppress(BlockingIOError):
            while len(self.printed) < self._limits.printed_bytes and self.read_printed():
                pass
        return kind, bytes(self._received[head : head + length])

    def ending(self) -> str:
        """How a child ended that sent no message, for a reader."""
        give_up = time.monotonic() + _EXIT_GRACE_SECONDS
        while not self.reaped():
            if time.monotonic() > give_up:
                return "closed the channel for its result before returning one"
            time.sleep(0.001)
        if self._exit_code >= 0:
            return f"ended the process with exit code {self._exit_code} instead of returning a result"
        number = -self._exit_code
        if number == signal.SIGXCPU:
            return f"script exceeded {self._limits.cpu_seconds:g} s of CPU time and was stopped"
        # Native libraries abort where Python would raise MemoryError.
        hint = f"; its limit is {size(self._limits.memory_bytes)} of memory" if number == signal.SIGABRT else ""
        return f"was ended by {signal.Signals(number).name} before returning a result{hint}"

    def kill(self) -> None:
        """Kill the child with its whole group and close its pipes; `reaped` says when it is gone."""
        for descriptor in (self._order_fd, self.result_fd, self.printed_fd):
            if descriptor >= 0:
                os.close(descriptor)
        self._order_fd = self.result_fd = self.printed_fd = -1
        if self.pid:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                # Before setsid it has no group of its own.
                with contextlib.suppress(OSError):
                    os.kill(self.pid, signal.SIGKILL)

    def reaped(self, *, wait: bool = False) -> bool:
        """Whether the child is gone and its exit code read; with `wait`, wait for that."""
        if self.pid:
            try:
                pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, 0
            if pid == 0:
                return False
            self.pid, self._exit_code = 0, os.waitstatus_to_exitcode(status)
        return True

    def untouched(self) -> bool:
        """After the child is gone: whether its scratch folder is as it was, and can serve again."""
        try:
            return self.scratch.lstat().st_ctime_ns == self._changed
        except OSError:
            return False
