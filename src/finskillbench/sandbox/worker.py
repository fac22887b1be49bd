"""Server-side handle of one forked child."""

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
from .limits import format_size

_CHUNK = 1024
# A child closes its pipes shortly before its exit status is available.
_EXIT_GRACE_SECONDS = 0.2


class GarbageError(Exception):
    """The result pipe delivered no message of this call."""


class Worker:
    """One child, forked and confined before its only call (`start_call`)."""

    def __init__(self, config: child.ChildConfig, scratch: Path, *, warm: bool) -> None:
        """Fork a child that works in the empty folder `scratch`, after the warm-up if `warm`; raises OSError."""
        self.call = 0
        self.request: child.CallRequest | None = None
        self.started = self.deadline = 0.0
        self._limits = config.limits
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
                    child.run_child(config, self._token, scratch, there.fileno(), result_out, warm=warm)
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

    def start_call(self, call: int, request: child.CallRequest, descriptors: Sequence[int]) -> None:
        """Send the request and start its clock; ConnectionError if the child died waiting."""
        self.call, self.request = call, request
        self.started = time.monotonic()
        self.deadline = self.started + self._limits.wall_seconds
        # Cannot block: the child reads everything before it runs the script.
        child.send_request(self._channel, request, descriptors)
        self._channel.close()

    def read(self) -> bool:
        """Read the child's output; False at its end."""
        data = os.read(self.result_fd, _CHUNK)
        self._received += data
        return bool(data)

    def kind(self) -> bytes | None:
        """Return the kind of the result, None if incomplete; GarbageError for anything else."""
        if len(self._received) <= child.TOKEN_BYTES:
            return None
        if bytes(self._received[: child.TOKEN_BYTES]) != self._token:
            raise GarbageError
        return bytes(self._received[child.TOKEN_BYTES :][:1])

    def ending(self) -> str:
        """Explain the end of a child that sent no message."""
        give_up = time.monotonic() + _EXIT_GRACE_SECONDS
        while not self.reaped():
            if time.monotonic() > give_up:
                return "closed its result channel before returning a result"
            time.sleep(0.001)
        if self._exit_code >= 0:
            return f"ended the process with exit code {self._exit_code} instead of returning a result"
        number = -self._exit_code
        if number == signal.SIGXCPU:
            return f"script exceeded {self._limits.cpu_seconds:g} s of CPU time and was stopped"
        # Native libraries abort where Python raises MemoryError.
        hint = f"; its limit is {format_size(self._limits.memory_bytes)} of memory" if number == signal.SIGABRT else ""
        return f"was ended by {signal.Signals(number).name} before returning a result{hint}"

    def kill(self) -> None:
        """Kill the child's process group and close its channels."""
        self._channel.close()
        if self.result_fd >= 0:
            os.close(self.result_fd)
            self.result_fd = -1
        if self.pid:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                # Before setsid the child has no own group.
                with contextlib.suppress(OSError):
                    os.kill(self.pid, signal.SIGKILL)

    def reaped(self, *, wait: bool = False) -> bool:
        """Return True once the child is gone and its exit code read; `wait` blocks."""
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
        """Return True if a finished child left its scratch folder unchanged."""
        try:
            return self.scratch.lstat().st_ctime_ns == self._changed
        except OSError:
            return False
