"""The warm server process: start, stop, and last error."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from finskillbench.redaction import logger
from finskillbench.sandbox import frames, start
from finskillbench.sandbox.guards import access
from finskillbench.sandbox.limits import ScriptLimits

_LOG = logger(__name__)
_STOP_SECONDS = 2.0
_NO_REASON = "no reason given"
THIS_PYTHON = Path(sys.executable)


class ServerProcess:
    """One server process; `ready` after its first message.

    `connection` is its socket, `frames` the partial input, `scratch` the parent of the scripts' folders, which the
    owner removes after `stop`. Parameters as in `finskillbench.sandbox.runner.ScriptRunner`.
    """

    def __init__(
        self,
        limits: ScriptLimits,
        workers: int,
        preload: Sequence[str],
        warm_up: Sequence[str],
        *,
        python: Path,
        threads: bool,
        libraries: Sequence[str] | None,
        withheld: Sequence[Path],
    ) -> None:
        self.ready = False
        self.frames = frames.FrameReader()
        self.connection, there = socket.socketpair()
        self.scratch = Path(tempfile.mkdtemp(prefix="finskillbench-"))
        # Traversable, not listable: script folders below belong to other users.
        self.scratch.chmod(0o711)
        self._errors = os.fdopen(tempfile.mkstemp(dir=self.scratch)[0], "w+b")
        config = {
            "limits": asdict(limits),
            "preload": preload,
            "warm_up": warm_up,
            "threads": threads,
            "libraries": None if libraries is None else list(map(str, access.installed(libraries))),
            "withheld": list(map(str, withheld)),
            "scratch": str(self.scratch),
            "workers": workers,
            "owner": os.getpid(),
        }
        # Without the site module, only the standard library is on the search path.
        options = ["-P"] if libraries is None else ["-P", "-S"]
        with there:
            self.process = subprocess.Popen(
                [str(python), *options, start.__file__, str(there.fileno()), json.dumps(config)],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=interpreter_environment(python) if libraries is None else access.script_environment({}),
                cwd=self.scratch,
                start_new_session=True,
            )

    def last_error_line(self) -> str:
        """Log the server's error stream and return its last line."""
        self._errors.seek(0)
        text = printable_text(self._errors.read().decode("utf-8", "replace"))
        _LOG.debug("the warm process ended:\n%s", text)
        return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), _NO_REASON)

    def kill(self) -> None:
        self.process.kill()

    def stop(self) -> None:
        """Close the socket, which ends the server's loop; kill the server if it hangs."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_SECONDS)
        self.process.kill()
        self.process.wait()
        self._errors.close()


def interpreter_environment(python: Path) -> dict[str, str]:
    """Return the environment of an interpreter; this one keeps the PYTHONPATH."""
    if python != THIS_PYTHON:
        return access.script_environment({})
    # An empty part means the current folder, which scripts must not read.
    search = [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return access.script_environment({"PYTHONPATH": os.pathsep.join(search)} if search else {})


def printable_text(text: str) -> str:
    """Replace control characters, which a terminal would obey, by "?"."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
