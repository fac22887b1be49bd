"""Runs skill scripts cold, each in a fresh interpreter, for packages whose dependencies are not this library's.

Same interface and limits as `runner.ScriptRunner`; the script's command line is its interface, so what it prints on
standard output has to be its result and nothing else.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from finskillbench.errors import SkillError
from finskillbench.sandbox import child, confine, scratch
from finskillbench.sandbox.limits import Limits, ScriptResult, size
from finskillbench.sandbox.runner import parse_object

_CHUNK = 64 * 1024
# How long leaving the context waits for what scripts have left; a process of its own goes on removing the rest.
_CLEAN_SECONDS = 2.0


class SubprocessRunner:
    """Context manager that runs `interpreter script --input FILE` per call, `workers` at once.

    Raises SkillError on entering if `interpreter` is no executable file.
    """

    def __init__(self, interpreter: Path, limits: Limits | None = None, workers: int = 2) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: give at least 1")
        self.interpreter = Path(interpreter)
        self.limits = limits or Limits()
        self.workers = workers
        self._free: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bin = scratch.Bin()

    def __enter__(self) -> Self:
        if not os.access(self.interpreter, os.X_OK) or not self.interpreter.is_file():
            raise SkillError(f"{self.interpreter}: not an interpreter that can be run; give the path of its python")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._free = None
        self._bin.close(_CLEAN_SECONDS)

    async def run(self, script: Path, payload: bytes) -> ScriptResult:
        """Run `script` on `payload`, the UTF-8 JSON of an object; never raises for what either does."""
        if len(payload) > self.limits.payload_bytes:
            limit = size(self.limits.payload_bytes)
            return _failed(f"the payload has {size(len(payload))}, more than the {limit} allowed")
        loop = asyncio.get_running_loop()
        if self._free is None or self._loop is not loop:
            self._free, self._loop = asyncio.Semaphore(self.workers), loop
        async with self._free:
            folder = Path(tempfile.mkdtemp(prefix="finskillbench-"))
            try:
                return await self._run(script.absolute(), payload, folder)
            except OSError as error:
                return _failed(f"the script cannot be started: {error}")
            finally:
                self._bin.throw(folder)

    async def _run(self, script: Path, payload: bytes, folder: Path) -> ScriptResult:
        file = folder / "input.json"
        file.write_bytes(payload)
        file.chmod(0o644)
        limits = {
            "cpu_seconds": math.ceil(self.limits.cpu_seconds),
            "memory_bytes": self.limits.memory_bytes,
            "file_bytes": self.limits.file_bytes,
        }
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(self.interpreter, Path(confine.__file__), json.dumps(limits), folder, script, "--input", file),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child.environment({"HOME": str(folder), "TMPDIR": str(folder)}),
            cwd=folder,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self.limits.wall_seconds):
                assert process.stdout is not None
                assert process.stderr is not None
                output, printed, _ = await asyncio.gather(
                    _read(process.stdout, self.limits.result_bytes + 1),
                    _read(process.stderr, self.limits.printed_bytes, last=True),
                    process.wait(),
                )
        except TimeoutError:
            text = f"script exceeded {self.limits.wall_seconds:g} s of wall time and was stopped"
            return _failed(text, time.monotonic() - started)
        finally:
            # The group outlives its leader; nothing of it may outlive the call.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return self._result(process.returncode or 0, output, printed, time.monotonic() - started)

    def _result(self, code: int, output: bytes, printed: bytes, seconds: float) -> ScriptResult:
        words = printed.decode("utf-8", "replace")
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        if code == -signal.SIGXCPU:
            return _failed(f"script exceeded {self.limits.cpu_seconds:g} s of CPU time and was stopped", seconds, words)
        if code < 0:
            return _failed(f"was ended by {signal.Signals(-code).name} before returning a result", seconds, words)
        if code > 0:
            said = lines[-1] if lines else "it gave no reason"
            if said.startswith(("MemoryError", "numpy._core._exceptions._ArrayMemoryError")):
                said = f"used more than {size(self.limits.memory_bytes)} of memory"
            return _failed(f"ended with exit code {code}: {said}", seconds, words)
        if len(output) > self.limits.result_bytes:
            return _failed(f"returned more than the {size(self.limits.result_bytes)} of JSON allowed", seconds, words)
        try:
            return ScriptResult(True, parse_object(output), None, seconds, words)
        except ValueError as error:
            return _failed(f"printed something that is not a JSON object: {error}", seconds, words)


async def _read(stream: asyncio.StreamReader, limit: int, *, last: bool = False) -> bytes:
    """The first `limit` bytes of a stream, or the last; the others are read and dropped."""
    kept = b""
    while data := await stream.read(_CHUNK):
        kept = (kept + data)[-limit:] if last else kept + data[: limit - len(kept)]
    return kept


def _failed(error: str, seconds: float = 0.0, printed: str = "") -> ScriptResult:
    return ScriptResult(False, None, " ".join(error.split())[:1000], seconds, printed)
