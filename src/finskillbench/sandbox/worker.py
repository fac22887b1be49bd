"""The server's side of one forked child: its order, what it has said, how it ended, and taking it down."""

import contextlib
import os
import secrets
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from . import child
from .guards import confine
from .limits import size

_CHUNK = 1024
# A child closes its pipes a moment before its exit status can be read.
_EXIT_GRACE_SECONDS = 0.2


class GarbageError(Exception):
    """What came through the pipe for the result is not a message of this call."""


class Worker:
    """One child: forked and confined ahead of its only call, which `give` hands to it."""

    def __init__(self, setting: child.Setting, scratch: Path, *, warm: bool) -> None:
        """Fork a child that works in the empty folder `scratch`, after the warm-up if `warm`.

        Raises
        ------
        OSError : the system refuses.
        """
        self.call = 0
        self.order: child.Order | None = None
        self.started = self.deadline = 0.0
        self._limits = setting.limits
        self._exit_code = 0
        self._received = bytearray()
        self._token = secrets.token_bytes(child.TOKEN_BYTES)
        self.scratch = scratch
        channel, there = socket.socketpair()
        with there:
            result_in, result_out = os.pipe()
            try:
                self.pid = os.fork()
                if self.pid == 0:
                    child.run_child(setting, self._token, scratch, there.fileno(), result_out, warm=warm)
            except OSError:
                channel.close()
                os.close(result_in)
                raise
            finally:
                os.close(result_out)
        self._channel, self.result_fd = channel, result_in
        os.set_blocking(result_in, False)
        confine.give_folder(scratch, self.pid)
        self._changed = scratch.stat().st_ctime_ns

    def give(self, call: int, order: child.Order, descriptors: Sequence[int]) -> None:
        """Hand over the order and start its clock; ConnectionError if the child has died waiting."""
        self.call, self.order = call, order
        self.started = time.monotonic()
        self.deadline = self.started + self._limits.wall_seconds
        # The child reads all of it before any code of the script runs, so this cannot be held up.
        child.send_order(self._channel, order, descriptors)
        self._channel.close()

    def read(self) -> bool:
        """Take what the child has said; False at its end."""
        data = os.read(self.result_fd, _CHUNK)
        self._received += data
        return bool(data)

    def kind(self) -> bytes | None:
        """The kind of the child's result, None while it has not said; GarbageError if it says something else."""
        if len(self._received) <= child.TOKEN_BYTES:
            return None
        if bytes(self._received[: child.TOKEN_BYTES]) != self._token:
            raise GarbageError
        return bytes(self._received[child.TOKEN_BYTES :][:1])

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
        """Kill the child with its whole group and close its channels; `reaped` says when it is gone."""
        self._channel.close()
        if self.result_fd >= 0:
            os.close(self.result_fd)
            self.result_fd = -1
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
