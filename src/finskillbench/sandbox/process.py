"""The warm server as a process: how it is started, stopped, and asked why it ended."""

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
from finskillbench.sandbox.limits import Limits

_LOG = logger(__name__)
_STOP_SECONDS = 2.0
_NO_REASON = "no reason given"
THIS_PYTHON = Path(sys.executable)


class ServerProcess:
    """One server, started by exec: `ready` once it has said so.

    `connection` is the socket to it, `frames` what has come through it in part; `scratch` is the folder below which its
    scripts work, to be removed by the owner after `stop`. Parameters as in `finskillbench.sandbox.runner.ScriptRunner`.
    """

    def __init__(
        self,
        limits: Limits,
        workers: int,
        preload: Sequence[str],
        warm_up: Sequence[str],
        *,
        python: Path,
        threads: bool,
        libraries: Sequence[str] | None,
    ) -> None:
        self.ready = False
        self.frames = frames.FrameReader()
        self.connection, there = socket.socketpair()
        self.scratch = Path(tempfile.mkdtemp(prefix="finskillbench-"))
        # Passable, not listable: a script's own folder below belongs to a user of its own.
        self.scratch.chmod(0o711)
        self._errors = os.fdopen(tempfile.mkstemp(dir=self.scratch)[0], "w+b")
        config = {
            "limits": asdict(limits),
            "preload": preload,
            "warm_up": warm_up,
            "threads": threads,
            "libraries": None if libraries is None else list(map(str, access.installed(libraries))),
            "scratch": str(self.scratch),
            "workers": workers,
            "owner": os.getpid(),
        }
        # Without the site module only the standard library is on the search path.
        options = ["-P"] if libraries is None else ["-P", "-S"]
        with there:
            self.process = subprocess.Popen(
                [str(python), *options, start.__file__, str(there.fileno()), json.dumps(config)],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=environment(python) if libraries is None else access.environment({}),
                cwd=self.scratch,
                start_new_session=True,
            )

    def why_it_ended(self) -> str:
        """The last line the server wrote on its error stream; all of it goes into the log."""
        self._errors.seek(0)
        text = printable(self._errors.read().decode("utf-8", "replace"))
        _LOG.debug("the warm process ended:\n%s", text)
        return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), _NO_REASON)

    def kill(self) -> None:
        """End it at once: it hangs, or a script has got at it."""
        self.process.kill()

    def stop(self) -> None:
        """Close the socket, at which its loop ends; one that hangs does not deserve waiting for."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_SECONDS)
        self.process.kill()
        self.process.wait()
        self._errors.close()


def environment(python: Path) -> dict[str, str]:
    """The environment of an interpreter that runs scripts: this one searches what we search, another what it has."""
    if python != THIS_PYTHON:
        return access.environment({})
    # An empty part means the current folder, and nobody who leaves one means to open that to scripts.
    search = [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return access.environment({"PYTHONPATH": os.pathsep.join(search)} if search else {})


def printable(text: str) -> str:
    """`text` without what a terminal would obey, since a script may have written it."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
