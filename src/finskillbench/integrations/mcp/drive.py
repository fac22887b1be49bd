"""Run a command-line agent over the episodes of an edition, as a run.

The command starts once per episode in an empty folder and is killed with its children at the end. The end of its
output, without secrets, and its reported usage are recorded.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
import orjson

from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.agents import CALLS, SECONDS, Agent, Task, Tools
from finskillbench.harness.model import Usage
from finskillbench.harness.skills.loader import write_package
from finskillbench.integrations.mcp.episode_server import (
    HARNESS,
    EpisodeServer,
    listening,
    on_loopback,
    on_socket,
    prompt_text,
)
from finskillbench.integrations.mcp.programs import Program, program_named, skills_used
from finskillbench.redaction import logger, redactor_of_process
from finskillbench.runs.execute.run import RunResult, run

KEPT_CHARS = 65_536
"""Maximum length of the recorded output; its end is kept."""
_MARGIN = 16_384
"""Longer than any secret; cut off at the front, where truncation may have split a secret and hidden it from redaction.
"""
_KEPT_BYTES = 4 * (KEPT_CHARS + _MARGIN)
_CHUNK = 65_536
_READ_PAUSE = 0.01
"""Pause in seconds after a full chunk, so that heavy output does not block other episodes."""
_LATE_SECONDS = 0.5
"""Seconds to read output after the command ended; a process outside its group may keep the pipe open."""
_MAX_USAGE_BYTES, _MAX_LOG_BYTES = 1 << 20, 1 << 26

_log = logger(__name__)


class Output:
    """Recorded output of a command."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False
        self._end = -1

    @contextmanager
    def pipe(self) -> Generator[int]:
        """Provide the write end of a pipe for the command; it is closed here once the command has started."""
        self._end, write_end = os.pipe()
        try:
            yield write_end
        except BaseException:
            os.close(self._end)
            raise
        finally:
            os.close(write_end)

    async def read(self) -> None:
        """Read until the write end is closed."""
        reader = asyncio.StreamReader(limit=_CHUNK)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._end, "rb", buffering=0)
        )
        try:
            while chunk := await reader.read(_CHUNK):
                self._kept += chunk
                if len(self._kept) > 2 * _KEPT_BYTES:
                    del self._kept[:-_KEPT_BYTES]
                    self._cut = True
                if len(chunk) == _CHUNK:
                    await asyncio.sleep(_READ_PAUSE)
        finally:
            transport.close()

    async def finish(self, reading: asyncio.Future[None]) -> None:
        """Read what is still in the pipe, but do not wait for more."""
        await asyncio.wait({reading}, timeout=_LATE_SECONDS)
        reading.cancel()

    @property
    def text(self) -> str:
        """End of the output, without the secrets of this process."""
        kept = self._kept[-_KEPT_BYTES:]
        cut = self._cut or len(self._kept) > len(kept)
        text = redactor_of_process()(kept.decode("utf-8", "replace"))[_MARGIN if cut else 0 :]
        return f"[...]{text[-KEPT_CHARS:]}" if cut or len(text) > KEPT_CHARS else text

    @property
    def last_line(self) -> str:
        """Last line that is not blank, as `: line`, or an empty text."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return f": {lines[-1].strip()[:300]}" if lines else ""


class _UsageLine(msgspec.Struct, forbid_unknown_fields=True):
    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None


def _read(path: Path, most: int) -> bytes:
    """Return the start of an ordinary file that a command wrote; empty if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""


def read_usage(path: Path) -> Iterator[tuple[Usage, str | None]]:
    """Yield usage and model from each JSON line of a usage file: one line per model call, or one for all.

    A line that cannot be read counts as usage of unknown cost.
    """
    for line in _read(path, _MAX_USAGE_BYTES).splitlines():
        try:
            spent = msgspec.json.decode(line, type=_UsageLine)
        except msgspec.MsgspecError as error:
            _log.warning("%s: no line of usage (%s)", path.name, error)
            yield Usage(), None
        else:
            counts = msgspec.structs.asdict(spent)
            yield Usage(**{name: value for name, value in counts.items() if name != "model"}), spent.model


CONFIG, URL, PROMPT_FILE, USAGE_FILE = "{mcp_config}", "{mcp_url}", "{prompt_file}", "{usage_file}"
LOG_FILE = "{log_file}"
"""Placeholders of a command line."""
_PROCESSES = Path(__file__).with_name("processes.py")
_PLACE = re.compile(r"\{[a-z_]+\}")
_AFTER_SUBMISSION = 30.0
"""Seconds that a command may run on after the answer is in, for instance to write its usage."""
_WAITS = (1.0, 2.0, 4.0)
"""Seconds before a command that failed at once is started again."""


def parse_command(text: str) -> tuple[str, ...]:
    """Split a command line, with full paths for its program and for arguments that name existing files.

    `--option=FILE` names a file as `FILE` does. Full paths are needed because agents run in other folders.

    Raises
    ------
    InputError : the command line cannot be parsed, its program is missing, a placeholder is unknown, or none gives
        access to the tools.
    """
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--agent-command {text!r} cannot be parsed: {error}") from None
    places = (CONFIG, URL, PROMPT_FILE, USAGE_FILE, LOG_FILE)
    if strange := sorted({*_PLACE.findall(text)} - {*places}):
        raise InputError(f"--agent-command: unknown placeholder {strange[0]}; available: {', '.join(places)}")
    if CONFIG not in text and URL not in text:
        raise InputError(f"--agent-command has neither {CONFIG} nor {URL}: the agent could not reach its tools")
    program = shutil.which(arguments[0])
    if program is None:
        raise InputError(f"--agent-command: the program {arguments[0]!r} is not found; give its full path")
    return (str(Path(program).absolute()), *map(_resolved, arguments[1:]))


def parse_harness(name: str, command: str) -> Program | None:
    """Return the program of `--harness`, None for `mcp`; raise `InputError` if unknown or without a log file."""
    if name == HARNESS:
        return None
    program = program_named(name, HARNESS)
    if LOG_FILE not in command:
        raise InputError(f"--harness {name} needs {LOG_FILE} in --agent-command, where the program writes its log")
    return program


def _resolved(word: str) -> str:
    option, equals, name = word.rpartition("=")
    return f"{option}{equals}{Path(name).absolute()}" if name and Path(name).is_file() else word


class Watch:
    """Handle of the process of `processes.watch`, which is notified of the start and the end of every agent."""

    def __init__(self, notes: IO[bytes]) -> None:
        self._notes = notes

    def report(self, sign: str, pid: int, folder: Path) -> None:
        """Notify the process; a broken pipe is ignored."""
        with suppress(OSError):
            self._notes.write(f"{sign} {pid} {folder}\n".encode())


@contextmanager
def watching() -> Generator[Watch]:
    """Start a process that kills the running agents if this process is killed."""
    program = [sys.executable, "-I", str(_PROCESSES), "watch"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, bufsize=0, start_new_session=True) as process:
        assert process.stdin is not None
        yield Watch(process.stdin)


@dataclass(frozen=True, slots=True)
class Command:
    """Agent that runs a command line once per episode.

    Output is recorded with the trajectory, redacted and bounded. A command that fails before its first tool call is
    started again three times; then the error ends the run. A later failure fails its episode.

    A `program` finds the condition's packages in its own skill folder; its log states which it used.
    """

    command_line: Sequence[str]
    watch: Watch
    program: Program | None = None

    async def __call__(self, task: Task, tools: Tools) -> None:
        """Solve a task; the answer is what was submitted."""
        for wait in (*_WAITS, None):
            server = EpisodeServer(task, tools)
            code, last = await self._play(server, task, tools)
            if code == 0:
                return
            why = f"{Path(self.command_line[0]).name} ended with {_ending(code)}{last}"
            if server.call_count:
                raise ProviderError(f"{why}, after {server.call_count} tool calls", Cause.ADAPTER)
            if wait is None:
                raise ProviderError(f"{why}, before its first tool call", Cause.NOT_STARTED)
            await asyncio.sleep(wait)

    async def _play(self, server: EpisodeServer, task: Task, tools: Tools) -> tuple[int, str]:
        """Run the command once; return its exit code, 0 if it was ended after its answer, and its last line."""
        folder = Path(tempfile.mkdtemp(prefix="finskillbench-"))
        output = Output()
        try:
            async with AsyncExitStack() as stack:
                command_line = await self._prepare(folder, server, task, stack)
                stack.push_async_callback(server.close)
                code = await self._run(command_line, folder, server, output)
        finally:
            for usage, model in read_usage(folder / _name(USAGE_FILE)):
                tools.spent(usage, served_model=model)
            is_logged = self.program is None or self._record_use(self.program, folder, task, tools)
            if output.text:
                tools.log(output.text)
            shutil.rmtree(folder, ignore_errors=True)
        if server.call_count and not is_logged:
            raise ProviderError(f"{LOG_FILE} holds no tool call in the format of --harness", Cause.ADAPTER)
        return code, output.last_line

    def _record_use(self, program: Program, folder: Path, task: Task, tools: Tools) -> bool:
        """Record the skills that a program used; return False if its log holds no tool call."""
        uses = list(program.read(_read(folder / _name(LOG_FILE), _MAX_LOG_BYTES)))
        tools.used(*skills_used(uses, task.mounted.loadable, scripts=task.mounted.arm.scripts))
        return bool(uses)

    async def _prepare(self, folder: Path, server: EpisodeServer, task: Task, stack: AsyncExitStack) -> list[str]:
        places = {place: str(folder / _name(place)) for place in (CONFIG, PROMPT_FILE, USAGE_FILE, LOG_FILE)}
        wanted = "\0".join(self.command_line)
        Path(places[PROMPT_FILE]).write_text(prompt_text(task), encoding="utf-8")
        if self.program is not None:
            for name, package in task.mounted.loadable.items():
                place = folder / self.program.folder / name
                write_package(package, place, scripts=task.mounted.arm.scripts)
        if CONFIG in wanted:
            address = folder / "socket"
            await stack.enter_async_context(on_socket(server, address))
            entry = {"command": sys.executable, "args": ["-I", str(_PROCESSES), "bridge", str(address)]}
            Path(places[CONFIG]).write_bytes(orjson.dumps({"mcpServers": {"finskillbench": entry}}))
        if URL in wanted:
            listener = stack.enter_context(listening())
            places[URL] = await stack.enter_async_context(on_loopback(server, listener))
        return [_PLACE.sub(lambda found: places.get(found[0], found[0]), word) for word in self.command_line]

    async def _run(self, command_line: Sequence[str], folder: Path, server: EpisodeServer, output: Output) -> int:
        environment = {name: value for name, value in os.environ.items() if name != "OLDPWD"} | {"PWD": str(folder)}
        with output.pipe() as pipe:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command_line,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=pipe,
                    stderr=pipe,
                    cwd=folder,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProviderError(
                    f"{command_line[0]}: cannot be started ({error.strerror})", Cause.NOT_STARTED
                ) from None
        self.watch.report("+", process.pid, folder)
        reading = asyncio.ensure_future(output.read())
        exited, submitted = asyncio.ensure_future(process.wait()), asyncio.ensure_future(server.submitted.wait())
        try:
            await asyncio.wait({exited, submitted}, return_when=asyncio.FIRST_COMPLETED)
            if not exited.done():
                await asyncio.wait({exited}, timeout=_AFTER_SUBMISSION)
            return exited.result() if exited.done() else 0
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            submitted.cancel()
            await exited
            self.watch.report("-", process.pid, folder)
            await output.finish(reading)


def _name(place: str) -> str:
    return {CONFIG: "mcp.json", PROMPT_FILE: "prompt.md", USAGE_FILE: "usage.jsonl", LOG_FILE: "log"}[place]


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


MAX_CONCURRENCY = 4
"""Default number of concurrent commands."""


def drive_agent(
    edition: Edition,
    command: str,
    name: str,
    *,
    harness: str = HARNESS,
    seconds: float = SECONDS,
    calls: int = CALLS,
    max_cost: float | None = None,
    max_concurrency: int = MAX_CONCURRENCY,
    **options: Any,
) -> RunResult:
    """Start a command once for each episode, or resume an earlier call.

    Parameters
    ----------
    command : command line with the placeholders of `parse_command`.
    name : name of the agent in rows.
    harness : `mcp`, or the program in `programs.PROGRAMS` that the command runs: packages of a condition go to its
        skill folder, and its log states which it used.
    seconds, calls : limits of an episode; beyond them it ends without an answer.
    max_cost : limit in US dollars for the run folder, by the reported usage. No episode starts that would exceed it at
        the cost of the dearest episode so far.
    edition, conditions, subtasks, max_concurrency, options : as for `finskillbench.runs.execute.run.run`.

    Raises
    ------
    InputError, EditionError : as for `run`, or the command cannot be started or lacks a usage file under `max_cost`.
    """
    command_line, program = parse_command(command), parse_harness(harness, command)
    reports_cost = USAGE_FILE in command
    if max_cost is not None and not reports_cost:
        raise InputError(f"--max-cost needs {USAGE_FILE} in --agent-command, where the agent writes its usage")
    with watching() as watch:
        solve = Command(command_line, watch, program)
        agent = Agent(name, solve, seconds, calls, harness, reports_cost, reads_files=program is not None)
        return run(edition, agents=[agent], max_concurrency=max_concurrency, max_cost=max_cost, **options)
