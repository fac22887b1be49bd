"""The Nous Research Hermes Agent as a second harness: its own loop and tools for skills, our models and toolbox.

Hermes pins versions of libraries that ours do not bear, so it lives in an environment and in processes of its own, each
with the skills of one mount. `run(..., harness=Hermes())` plays with it.
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

from finskillbench.errors import Cause, InputError, ProviderError, SkillError
from finskillbench.harness.conditions import Arm, Condition, Mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import Play
from finskillbench.harness.model import Model
from finskillbench.harness.skills.loader import digest, read_files
from finskillbench.harness.trace import Ended, Trace
from finskillbench.integrations.hermes.session import HARNESS, HermesSession
from finskillbench.integrations.hermes.wire import Endpoint
from finskillbench.redaction import logger

VERSION = "0.19.0"
"""The frozen release; another one would be another agent."""
VARIABLE = "FINSKILLBENCH_HERMES_PYTHON"
"""Names the interpreter of the environment that Hermes is installed in."""
REMEDY = f"run make hermes in a checkout, or name its interpreter with --hermes-python or {VARIABLE}"
_ASK = "from importlib.metadata import version; print(version('hermes-agent'))"
_SECONDS = 60.0


def hermes_python(named: Path | None = None) -> Path:
    """The interpreter of Hermes: the one named, that of the variable, or that of .venv-hermes beside our environment.

    Raises
    ------
    InputError : there is none, or its Hermes is none or another; the message says what to do.
    """
    text = os.environ.get(VARIABLE, "")
    python = named or (Path(text) if text else Path(sys.prefix).parent / ".venv-hermes" / "bin" / "python")
    found = _installed(python)
    if found is None:
        raise InputError(f"Hermes Agent {VERSION} is not installed ({python}); {REMEDY}")
    if found != VERSION:
        raise InputError(f"{python} has Hermes Agent {found}, and rows are of {VERSION}; {REMEDY}")
    return python


def _installed(python: Path) -> str | None:
    """The version of Hermes that an interpreter has; None where there is no such interpreter, or no Hermes."""
    try:
        asked = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()


_LOG = logger(__name__)
_WORKER = Path(__file__).with_name("worker.py")
_PROCESSES = max(1, min(4, os.cpu_count() or 1))
"""For each mount: an episode takes Hermes half a second of one core, and one process has one core."""
_FILLED = 4
"""Episodes of a process from which on another one is started, if there may be more."""
_START_SECONDS, _GRACE_SECONDS = 180.0, 5.0
_STILL_SECONDS = 300.0
"""Hermes that neither asks nor calls for so long, while nobody keeps it waiting, has hung up."""
_LONGEST_LINE = 1024 * 1024
_TIMEOUTS = dict.fromkeys(("HERMES_API_TIMEOUT", "HERMES_STREAM_READ_TIMEOUT", "HERMES_STREAM_STALE_TIMEOUT"), "86400")
"""Seconds. A model may think for long: it is for the model layer to say when a call has failed."""
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
"""Hermes with everything off that would put words of its own into the conversation, or keep any for the next one."""


class _Worker:
    """One process; `sittings` are the episodes that it plays."""

    def __init__(self, python: Path, endpoint: Endpoint, mounted: Mount) -> None:
        self.sittings: dict[str, HermesSession] = {}
        self.is_dead = False
        self.home = Path(tempfile.mkdtemp(prefix="finskillbench-hermes-"))
        self._python, self._endpoint, self._mounted = python, endpoint, mounted
        self._over: dict[str, asyncio.Event] = {}
        self._ready = asyncio.Event()
        self._why = ""
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it, and wait until it can play.

        Raises
        ------
        ProviderError : it does not come up; the message says why.
        SkillError : a package has changed since it was read.
        """
        self._furnish()
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
        self._tell(port=self._endpoint.port, token=self._endpoint.token, version=VERSION)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), _START_SECONDS)
        if not self._ready.is_set() or self.is_dead:
            await self.close()
            raise ProviderError(f"Hermes does not start: {self._why or 'no sign of it'}", Cause.NOT_STARTED)

    def _furnish(self) -> None:
        """Write its configuration and the packages that its arm mounts."""
        (self.home / "config.yaml").write_bytes(orjson.dumps(_CONFIG))  # JSON is YAML
        for name, package in self._mounted.loadable.items():
            files = read_files(package.root)
            if digest(files) != package.digest:
                raise SkillError(f"{package.root}: the package has changed since the run began; start it again")
            for path, data in files.items():
                target = self.home / "skills" / name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)

    async def play(self, sitting: HermesSession, ended: Awaitable[Ended]) -> Ended:
        """Have Hermes play an episode until it has `ended`."""
        with ExitStack() as stack:
            name = stack.enter_context(self._endpoint.serving(sitting))
            self.sittings[name] = sitting
            over = self._over[name] = asyncio.Event()
            stack.callback(self._over.pop, name)
            stack.callback(self.sittings.pop, name)
            tools = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in sitting.expected.tools
            ]
            self._tell(
                episode=name,
                model=sitting.expected.model,
                system=sitting.expected.system,
                prompt=sitting.expected.prompt,
                tools=tools,
                skills=sitting.expected.skills,
                turns=sitting.seat.remaining.turns,
            )
            try:
                return await self._awaited(sitting, asyncio.ensure_future(ended))
            finally:
                if not over.is_set() and not self.is_dead:
                    self._tell(stop=name)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(over.wait(), _GRACE_SECONDS)

    async def _awaited(self, sitting: HermesSession, ended: asyncio.Future[Ended]) -> Ended:
        clock = sitting.seat.resources.clock
        while not ended.done():
            await asyncio.wait({ended}, timeout=_STILL_SECONDS / 10)
            if not ended.done() and not sitting.is_asking and clock() - sitting.moved > _STILL_SECONDS:
                sitting.fail(ProviderError(f"Hermes has not moved for {_STILL_SECONDS:g} seconds", Cause.ADAPTER))
        return ended.result()

    async def _read(self) -> None:
        """What it says, until it is gone."""
        assert self._process is not None
        assert self._process.stdout is not None
        with suppress(ValueError):  # a line beyond the limit, which no worker of ours writes
            while line := await self._process.stdout.readline():
                self._heard(orjson.loads(line))
        self.is_dead = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _GRACE_SECONDS)
        if self._process.returncode is None:
            # Not `Process.kill`, which looks whether it has ended and so takes its exit code from whoever waits for it.
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        code = await self._process.wait()
        self._why = self._why or f"its process ended with {code}{self._last_words()}"
        self._ready.set()
        for sitting in [*self.sittings.values()]:
            # Its neighbours in the process had no part in it: not the agent's failure, and played again.
            sitting.fail(ProviderError(f"Hermes is gone: {self._why}", Cause.DROPPED))

    def _heard(self, said: dict[str, Any]) -> None:
        if "ended" in said:
            name, error = said["ended"], said["error"]
            if name in self._over:
                self._over[name].set()
            if name in self.sittings:
                self.sittings[name].fail(ProviderError(f"Hermes has ended: {error or 'for no reason'}", Cause.ADAPTER))
        elif "ready" in said:
            self._ready.set()
        elif "failed" in said:
            self._why = said["failed"]
        elif "refused" in said:
            # An address that it was kept from is worth a warning; a process, which `platform` starts too, is not.
            say = _LOG.warning if said["refused"].startswith("socket.") else _LOG.debug
            say("Hermes was refused %s", said["refused"])

    def _last_words(self) -> str:
        with suppress(OSError):
            lines = (self.home / "worker.log").read_text(encoding="utf-8", errors="replace").split("\n")
            return next((f": {line.strip()[:300]}" for line in reversed(lines) if line.strip()), "")
        return ""

    def _tell(self, **words: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(orjson.dumps(words) + b"\n")

    async def close(self) -> None:
        """End it, and remove its folder."""
        if self._process is not None and self._reading is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            await asyncio.wait({self._reading}, timeout=_GRACE_SECONDS)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._reading
        shutil.rmtree(self.home, ignore_errors=True)


class WorkerPool:
    """The processes of a run, started as they are needed."""

    def __init__(self, python: Path, endpoint: Endpoint) -> None:
        self._python, self._endpoint = python, endpoint
        self._workers: dict[str, list[_Worker]] = {}
        self._starting: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """End all of them when the context is left."""
        try:
            yield
        finally:
            every = [each for workers in self._workers.values() for each in workers]
            await asyncio.gather(*(each.close() for each in every), return_exceptions=True)

    async def play(self, mounted: Mount, sitting: HermesSession, ended: Awaitable[Ended]) -> Ended:
        """Have an episode played by the process with its skills that has least to do."""
        async with self._starting.setdefault(mounted.digest, asyncio.Lock()):
            found = await self._free(mounted)
        return await found.play(sitting, ended)

    async def _free(self, mounted: Mount) -> _Worker:
        workers = [each for each in self._workers.get(mounted.digest, []) if not each.is_dead]
        least = min(workers, key=lambda each: len(each.sittings), default=None)
        if least is not None and (len(least.sittings) < _FILLED or len(workers) >= _PROCESSES):
            return least
        made = _Worker(self._python, self._endpoint, mounted)
        self._workers.setdefault(mounted.digest, []).append(made)
        await made.start()
        return made


_ARMS = (Condition.NO_SKILL, Condition.CURATED)


class Hermes:
    """The Hermes Agent of an interpreter, see `finskillbench.integrations.hermes.hermes_python`.

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
        """Refuse an arm that has no counterpart there.

        Raises
        ------
        InputError : it is neither no_skill nor curated nor of skills that somebody brings.
        """
        if arm.condition not in _ARMS and not arm.given:
            raise InputError(
                f"condition '{arm.condition}' does not exist under Hermes, which reads skills with its own tools and "
                f"writes none; there are {', '.join(_ARMS)} and skill:NAME"
            )

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Play]:
        """What plays episodes for as long as the context is open."""
        endpoint = Endpoint()
        crew = WorkerPool(self._python, endpoint)

        async def play(model: Model, given: EpisodeSpec, around: Resources) -> Trace:
            return await HermesSession(model, given, around).play(crew)

        async with AsyncExitStack() as stack:
            await stack.enter_async_context(endpoint.listening())
            await stack.enter_async_context(crew.working())
            yield play
