"""The Nous Research Hermes Agent as a second harness: its loop and skill tools with our models and toolbox.

Hermes pins library versions that conflict with ours, so it runs in another environment, in one process or more per
mount. Use it with `run(..., harness=Hermes())`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.conditions import Arm, Condition, Mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import Play
from finskillbench.harness.model import Model
from finskillbench.harness.skills.loader import write_package
from finskillbench.harness.trace import Ended, Trace
from finskillbench.integrations.hermes.session import HARNESS, HermesSession
from finskillbench.integrations.hermes.wire import Endpoint
from finskillbench.redaction import logger

VERSION = "0.19.0"
"""Supported release; rows of another one would not be comparable."""
VARIABLE = "FINSKILLBENCH_HERMES_PYTHON"
"""Environment variable with the path of Hermes's interpreter."""
REMEDY = f"run make hermes in a checkout, or name its interpreter with --hermes-python or {VARIABLE}"
_VERSION_SCRIPT = "from importlib.metadata import version; print(version('hermes-agent'))"
_SECONDS = 60.0


def hermes_python(named: Path | None = None) -> Path:
    """Return Hermes's interpreter: the named one, that of the variable, or that of .venv-hermes next to our
    environment.

    Raises
    ------
    InputError : it is missing, or its Hermes is missing or of another version.
    """
    text = os.environ.get(VARIABLE, "")
    python = named or (Path(text) if text else Path(sys.prefix).parent / ".venv-hermes" / "bin" / "python")
    found = _installed(python)
    if found is None:
        raise InputError(f"Hermes Agent {VERSION} is not installed ({python}); {REMEDY}")
    if found != VERSION:
        raise InputError(f"{python} has Hermes Agent {found}; version {VERSION} is needed; {REMEDY}")
    return python


def _installed(python: Path) -> str | None:
    try:
        completed = subprocess.run(
            [python, "-I", "-c", _VERSION_SCRIPT], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()


_LOG = logger(__name__)
_WORKER = Path(__file__).with_name("worker.py")
_PROCESSES = max(1, min(4, os.cpu_count() or 1))
"""Processes per mount: an episode takes Hermes half a second of one core, and a process uses one core."""
_EPISODES_PER_PROCESS = 4
"""Episodes of a process before another one is started."""
_START_SECONDS, _GRACE_SECONDS = 180.0, 5.0
_STALL_SECONDS = 300.0
"""Time without a request after which Hermes counts as hung; generation by the model does not count."""
_LONGEST_LINE = 1024 * 1024
_TIMEOUTS = dict.fromkeys(("HERMES_API_TIMEOUT", "HERMES_STREAM_READ_TIMEOUT", "HERMES_STREAM_STALE_TIMEOUT"), "86400")
"""Seconds, effectively without limit: the model layer decides when a call has timed out."""
_CONFIG = {
    "model": {"context_length": 200_000},
    "compression": {"enabled": False},
    "memory": {"memory_enabled": False, "user_profile_enabled": False},
    "tools": {"tool_search": {"enabled": "off"}},
    "skills": {"creation_nudge_interval": 0, "inline_shell": False},
    "agent": {"environment_probe": False, "api_max_retries": 1},
    "tool_loop_guardrails": {"warnings_enabled": False},
    "display": {"turn_completion_explainer": False},
}
"""Disables all that would add text to the conversation, or carry text to the next one."""


class _Worker:
    def __init__(self, python: Path, endpoint: Endpoint, mounted: Mount) -> None:
        self.sessions: dict[str, HermesSession] = {}
        self.is_dead = False
        self.home = Path(tempfile.mkdtemp(prefix="finskillbench-hermes-"))
        self._python, self._endpoint, self._mounted = python, endpoint, mounted
        self._finished: dict[str, asyncio.Event] = {}
        self._ready = asyncio.Event()
        self._failure = ""
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready.

        Raises
        ------
        ProviderError : it does not start; the message names the reason.
        SkillError : a skill package has changed since it was read.
        """
        self._write_home()
        home = str(self.home)
        places = dict.fromkeys(("HOME", "TMPDIR", "HERMES_HOME"), home)
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "NO_PROXY": "*", **places, **_TIMEOUTS}
        with (self.home / "worker.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(self._python, "-I", "-X", "utf8", str(_WORKER)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=self.home,
                env=environment,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
        self._reading = asyncio.ensure_future(self._read())
        self._send(port=self._endpoint.port, token=self._endpoint.token, version=VERSION)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), _START_SECONDS)
        if not self._ready.is_set() or self.is_dead:
            await self.close()
            raise ProviderError(f"Hermes does not start: {self._failure or 'no response'}", Cause.NOT_STARTED)

    def _write_home(self) -> None:
        (self.home / "config.yaml").write_bytes(orjson.dumps(_CONFIG))  # JSON is valid YAML
        for name, package in self._mounted.loadable.items():
            write_package(package, self.home / "skills" / name)

    async def play(self, session: HermesSession, ended: Awaitable[Ended]) -> Ended:
        with ExitStack() as stack:
            name = stack.enter_context(self._endpoint.serving(session))
            self.sessions[name] = session
            finished = self._finished[name] = asyncio.Event()
            stack.callback(self._finished.pop, name)
            stack.callback(self.sessions.pop, name)
            tools = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in session.expected.tools
            ]
            self._send(
                episode=name,
                model=session.expected.model,
                system=session.expected.system,
                prompt=session.expected.prompt,
                tools=tools,
                skills=session.expected.skills,
                turns=session.state.remaining.turns,
            )
            try:
                return await self._await_end(session, asyncio.ensure_future(ended))
            finally:
                if not finished.is_set() and not self.is_dead:
                    self._send(stop=name)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(finished.wait(), _GRACE_SECONDS)

    async def _await_end(self, session: HermesSession, ended: asyncio.Future[Ended]) -> Ended:
        clock = session.state.resources.clock
        while not ended.done():
            await asyncio.wait({ended}, timeout=_STALL_SECONDS / 10)
            if not ended.done() and not session.is_generating and clock() - session.last_activity > _STALL_SECONDS:
                session.fail(ProviderError(f"Hermes has not moved for {_STALL_SECONDS:g} seconds", Cause.ADAPTER))
        return ended.result()

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with suppress(ValueError):  # a line beyond the limit, which our worker never writes
            while line := await self._process.stdout.readline():
                self._handle_message(orjson.loads(line))
        self.is_dead = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _GRACE_SECONDS)
        if self._process.returncode is None:
            # Not `Process.kill`: it polls the process and would take the exit code from the waiter.
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        code = await self._process.wait()
        self._failure = self._failure or f"its process ended with {code}{self._last_log_line()}"
        self._ready.set()
        for session in [*self.sessions.values()]:
            # The other episodes of the process did not cause its end: not the agent's failure, and played again.
            session.fail(ProviderError(f"Hermes is gone: {self._failure}", Cause.DROPPED))

    def _handle_message(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            name, error = message["ended"], message["error"]
            if name in self._finished:
                self._finished[name].set()
            if name in self.sessions:
                self.sessions[name].fail(ProviderError(f"Hermes has ended: {error or 'for no reason'}", Cause.ADAPTER))
        elif "ready" in message:
            self._ready.set()
        elif "failed" in message:
            self._failure = message["failed"]
        elif "refused" in message:
            # A refused address deserves a warning; a refused process does not, since `platform` starts one.
            say = _LOG.warning if message["refused"].startswith("socket.") else _LOG.debug
            say("Hermes was refused %s", message["refused"])

    def _last_log_line(self) -> str:
        with suppress(OSError):
            lines = (self.home / "worker.log").read_text(encoding="utf-8", errors="replace").split("\n")
            return next((f": {line.strip()[:300]}" for line in reversed(lines) if line.strip()), "")
        return ""

    def _send(self, **fields: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(orjson.dumps(fields) + b"\n")

    async def close(self) -> None:
        """End the process and remove its folder."""
        if self._process is not None and self._reading is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            await asyncio.wait({self._reading}, timeout=_GRACE_SECONDS)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._reading
        shutil.rmtree(self.home, ignore_errors=True)


class WorkerPool:
    """Hermes processes of a run, started on demand."""

    def __init__(self, python: Path, endpoint: Endpoint) -> None:
        self._python, self._endpoint = python, endpoint
        self._workers: dict[str, list[_Worker]] = {}
        self._starting: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """End all processes when the context closes."""
        try:
            yield
        finally:
            every = [each for workers in self._workers.values() for each in workers]
            await asyncio.gather(*(each.close() for each in every), return_exceptions=True)

    async def play(self, mounted: Mount, session: HermesSession, ended: Awaitable[Ended]) -> Ended:
        """Play an episode in the least busy process with its skills."""
        async with self._starting.setdefault(mounted.digest, asyncio.Lock()):
            found = await self._free(mounted)
        return await found.play(session, ended)

    async def _free(self, mounted: Mount) -> _Worker:
        workers = [each for each in self._workers.get(mounted.digest, []) if not each.is_dead]
        least = min(workers, key=lambda each: len(each.sessions), default=None)
        if least is not None and (len(least.sessions) < _EPISODES_PER_PROCESS or len(workers) >= _PROCESSES):
            return least
        made = _Worker(self._python, self._endpoint, mounted)
        self._workers.setdefault(mounted.digest, []).append(made)
        await made.start()
        return made


_ARMS = (Condition.NO_SKILL, Condition.CURATED)


class Hermes:
    """Hermes Agent as a harness; `hermes_python` finds its interpreter.

    Raises
    ------
    InputError : it is not installed there, or in another version.
    """

    name = HARNESS

    def __init__(self, python: Path | None = None) -> None:
        self._python = hermes_python(python)

    def __str__(self) -> str:
        return f"Hermes Agent {VERSION}, {self._python}"

    def check(self, arm: Arm) -> None:
        """Refuse conditions that Hermes does not support.

        Raises
        ------
        InputError : the condition is not no_skill, curated or skills of the user.
        """
        if arm.condition not in _ARMS and not arm.given:
            raise InputError(
                f"condition '{arm.condition}' does not exist under Hermes, which reads skills with its own tools and "
                f"writes none; there are {', '.join(_ARMS)} and skill:NAME"
            )

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Play]:
        """Provide the function that plays episodes while the context is open."""
        endpoint = Endpoint()
        pool = WorkerPool(self._python, endpoint)

        async def play(model: Model, spec: EpisodeSpec, resources: Resources) -> Trace:
            return await HermesSession(model, spec, resources).play(pool)

        async with AsyncExitStack() as stack:
            await stack.enter_async_context(endpoint.listening())
            await stack.enter_async_context(pool.working())
            yield play
