"""Any command-line agent over the episodes of an edition: a run like any other.

The command is started once for each episode, in a folder of its own, and ended with its children. Kept of it are its
last words, without secrets, and what it says it has spent.
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
from finskillbench.integrations.mcp.episode_server import (
    HARNESS,
    EpisodeServer,
    listening,
    on_loopback,
    on_socket,
    prompt_text,
)
from finskillbench.redaction import logger, redactor_of_process
from finskillbench.runs.execute.run import DEFAULT_CONDITIONS, RunResult, run

KEPT_CHARS = 65_536
"""Of a command's output, its last words."""
_MARGIN = 16_384
"""Longer than any secret: as much is cut off at the front, where the bound may have halved one."""
_KEPT_BYTES = 4 * (KEPT_CHARS + _MARGIN)
_CHUNK = 65_536
_BREATH = 0.01
"""Seconds between two reads, so that a flood holds up nobody but who makes it."""
_LATE_SECONDS = 0.5
"""How long output is still read when the command has ended: a process that left its group may hold it open for ever."""
_MOST_USAGE = 1 << 20

_log = logger(__name__)


class Output:
    """The last words of a command."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False
        self._end = -1

    @contextmanager
    def pipe(self) -> Generator[int]:
        """The end of a pipe for the command to write to, which is closed here once it is started."""
        self._end, given = os.pipe()
        try:
            yield given
        except BaseException:
            os.close(self._end)
            raise
        finally:
            os.close(given)

    async def read(self) -> None:
        """Read until nobody holds the other end."""
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
                    await asyncio.sleep(_BREATH)
        finally:
            transport.close()

    async def finish(self, reading: asyncio.Future[None]) -> None:
        """Read what is still in the pipe, but do not wait for more."""
        await asyncio.wait({reading}, timeout=_LATE_SECONDS)
        reading.cancel()

    @property
    def text(self) -> str:
        """The last words, without the secrets of this process."""
        kept = self._kept[-_KEPT_BYTES:]
        cut = self._cut or len(self._kept) > len(kept)
        text = redactor_of_process()(kept.decode("utf-8", "replace"))[_MARGIN if cut else 0 :]
        return f"[...]{text[-KEPT_CHARS:]}" if cut or len(text) > KEPT_CHARS else text

    @property
    def last_line(self) -> str:
        """The last line that says anything, as `: words`, or nothing."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return f": {lines[-1].strip()[:300]}" if lines else ""


class _Spent(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a usage file."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None


def read_usage(path: Path) -> Iterator[tuple[Usage, str | None]]:
    """What a command says it has spent: a line of JSON for each model call, or one for all of them.

    A line that is no such thing is an unknown price.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_MOST_USAGE) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return
    for line in data.splitlines():
        try:
            spent = msgspec.json.decode(line, type=_Spent)
        except msgspec.MsgspecError as error:
            _log.warning("%s: no line of usage (%s)", path.name, error)
            yield Usage(), None
        else:
            counts = msgspec.structs.asdict(spent)
            yield Usage(**{name: value for name, value in counts.items() if name != "model"}), spent.model


CONFIG, URL, PROMPT_FILE, USAGE_FILE = "{mcp_config}", "{mcp_url}", "{prompt_file}", "{usage_file}"
"""What stands in a command for the places that it is given."""
_PROCESSES = Path(__file__).with_name("processes.py")
_PLACE = re.compile(r"\{[a-z_]+\}")
_AFTER_SUBMISSION = 30.0
"""Seconds in which a command may come to its own end once the answer is in: it may say something, or tell its usage."""
_WAITS = (1.0, 2.0, 4.0)
"""Seconds before a command that failed at once is started again."""


def parse_command(text: str) -> tuple[str, ...]:
    """The words of a command line with full paths: of its program, and of existing files that words name from here.

    Agents run in folders of their own. `--option=FILE` names a file as `FILE` does.

    Raises
    ------
    InputError : it is none, its program is not there, it names a place that there is not, or none with the tools.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--agent-command {text!r} is no command line: {error}") from None
    places = (CONFIG, URL, PROMPT_FILE, USAGE_FILE)
    if strange := sorted({*_PLACE.findall(text)} - {*places}):
        raise InputError(f"--agent-command: there is no {strange[0]}; there are {', '.join(places)}")
    if CONFIG not in text and URL not in text:
        raise InputError(f"--agent-command has neither {CONFIG} nor {URL}: the agent could not reach its tools")
    program = shutil.which(words[0])
    if program is None:
        raise InputError(f"--agent-command: the program {words[0]!r} is not found; give its full path")
    return (str(Path(program).absolute()), *map(_resolved, words[1:]))


def _resolved(word: str) -> str:
    """A word in which an existing file of the current folder has its full path."""
    option, equals, name = word.rpartition("=")
    return f"{option}{equals}{Path(name).absolute()}" if name and Path(name).is_file() else word


class Watch:
    """The process of `processes.watch`, told of every agent that is started and has ended."""

    def __init__(self, notes: IO[bytes]) -> None:
        self._notes = notes

    def note(self, sign: str, pid: int, folder: Path) -> None:
        """Tell it; where it is gone, nothing is lost but what it is there for."""
        with suppress(OSError):
            self._notes.write(f"{sign} {pid} {folder}\n".encode())


@contextmanager
def watching() -> Generator[Watch]:
    """Have agents killed should this process be killed."""
    program = [sys.executable, "-I", str(_PROCESSES), "watch"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, bufsize=0, start_new_session=True) as process:
        assert process.stdin is not None
        yield Watch(process.stdin)


@dataclass(frozen=True, slots=True)
class Command:
    """The agent: `words` is the command line, `watch` kills what it has started should this process be killed.

    Its output is kept with the trajectory, without secrets and bounded. One that fails before it has called a tool is
    started again three times, then it is an error that ends the run; one that fails later has failed its episode.
    """

    words: Sequence[str]
    watch: Watch

    async def __call__(self, task: Task, tools: Tools) -> None:
        """Solve a task; the answer is what was submitted."""
        for wait in (*_WAITS, None):
            desk = EpisodeServer(task, tools)
            code, last = await self._play(desk, task, tools)
            if code == 0:
                return
            why = f"{Path(self.words[0]).name} ended with {_ending(code)}{last}"
            if desk.asked:
                raise ProviderError(f"{why}, after {desk.asked} tool calls", Cause.ADAPTER)
            if wait is None:
                raise ProviderError(f"{why}, before its first tool call", Cause.NOT_STARTED)
            await asyncio.sleep(wait)

    async def _play(self, desk: EpisodeServer, task: Task, tools: Tools) -> tuple[int, str]:
        """Start the command once: its exit code, 0 also where the answer was in and it had to be ended, and its end."""
        folder = Path(tempfile.mkdtemp(prefix="finskillbench-"))
        output = Output()
        try:
            async with AsyncExitStack() as stack:
                words = await self._prepare(folder, desk, task, stack)
                stack.push_async_callback(desk.close)
                code = await self._run(words, folder, desk, output)
            return code, output.last_line
        finally:
            for usage, model in read_usage(folder / _name(USAGE_FILE)):
                tools.spent(usage, served_model=model)
            if output.text:
                tools.log(output.text)
            shutil.rmtree(folder, ignore_errors=True)

    async def _prepare(self, folder: Path, desk: EpisodeServer, task: Task, stack: AsyncExitStack) -> list[str]:
        """Write what the command is given, open the ways to the desk that it names, and fill in its words."""
        places = {place: str(folder / _name(place)) for place in (CONFIG, PROMPT_FILE, USAGE_FILE)}
        wanted = "\0".join(self.words)
        Path(places[PROMPT_FILE]).write_text(prompt_text(task), encoding="utf-8")
        if CONFIG in wanted:
            address = folder / "socket"
            await stack.enter_async_context(on_socket(desk, address))
            server = {"command": sys.executable, "args": ["-I", str(_PROCESSES), "bridge", str(address)]}
            Path(places[CONFIG]).write_bytes(orjson.dumps({"mcpServers": {"finskillbench": server}}))
        if URL in wanted:
            listener = stack.enter_context(listening())
            places[URL] = await stack.enter_async_context(on_loopback(desk, listener))
        return [_PLACE.sub(lambda found: places.get(found[0], found[0]), word) for word in self.words]

    async def _run(self, words: Sequence[str], folder: Path, desk: EpisodeServer, output: Output) -> int:
        """Run the command to its end, or to that of the episode; nothing that it started in its group outlives it."""
        here = {name: value for name, value in os.environ.items() if name != "OLDPWD"} | {"PWD": str(folder)}
        with output.pipe() as pipe:
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=pipe,
                    stderr=pipe,
                    cwd=folder,
                    env=here,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProviderError(f"{words[0]}: cannot be started ({error.strerror})", Cause.NOT_STARTED) from None
        self.watch.note("+", process.pid, folder)
        reading = asyncio.ensure_future(output.read())
        exited, submitted = asyncio.ensure_future(process.wait()), asyncio.ensure_future(desk.submitted.wait())
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
            self.watch.note("-", process.pid, folder)
            await output.finish(reading)


def _name(place: str) -> str:
    return {CONFIG: "mcp.json", PROMPT_FILE: "prompt.md", USAGE_FILE: "usage.jsonl"}[place]


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


MAX_CONCURRENCY = 4
"""Commands at a time, unless it is said otherwise: each is some process with a memory of its own."""


def drive(
    edition: Edition,
    command: str,
    name: str,
    conditions: Sequence[str] = DEFAULT_CONDITIONS,
    subtasks: Sequence[str] | None = None,
    *,
    seconds: float = SECONDS,
    calls: int = CALLS,
    max_cost: float | None = None,
    max_concurrency: int = MAX_CONCURRENCY,
    **options: Any,
) -> RunResult:
    """Start a command once for each episode, or go on where an earlier call stopped.

    Parameters
    ----------
    edition, conditions, subtasks, max_concurrency, options : as of `finskillbench.runs.execute.run.run`.
    command : the command line, with the places of `parse_command`.
    name : under which rows file the agent.
    seconds, calls : an episode that takes longer, or calls more tools, ends without an answer.
    max_cost : US dollars that the run folder may cost, as the agent tells it: nothing is begun that would not fit if it
        cost as much as the dearest episode so far.

    Raises
    ------
    InputError : the command cannot be started, or has no place to tell its cost under `max_cost`, or as of `run`.
    EditionError : as of `run`.
    """
    words = parse_command(command)
    tells_cost = USAGE_FILE in command
    if max_cost is not None and not tells_cost:
        raise InputError(f"--max-cost needs {USAGE_FILE} in --agent-command, where the agent tells what it has spent")
    with watching() as watch:
        agent = Agent(name, Command(words, watch), seconds, calls, HARNESS, tells_cost)
        return run(
            edition,
            conditions=conditions,
            subtasks=subtasks,
            agents=[agent],
            max_concurrency=max_concurrency,
            max_cost=max_cost,
            **options,
        )
