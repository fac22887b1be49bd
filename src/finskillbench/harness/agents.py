"""Agents with their own loop: async functions that take a task and its tools and return an answer.

    async def my_agent(task, tools):
        data = await tools.call("get_task_data", field="expected_returns")
        return {"weights": {...}}

    run(edition, agents=[my_agent], out=Path("runs/mine"))

An agent runs in this process and could read the edition's files: run only code that you trust.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from finskillbench.errors import Cause, FinSkillBenchError, InputError, ProviderError, RunStoppedError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.episode_state import EpisodeSpec, EpisodeState, Resources
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage, clean_text, clean_turn
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import Ended, Trace
from finskillbench.redaction import logger

HARNESS = "python"
SECONDS, CALLS = 1800.0, 200
"""Default limits of an agent's episode: seconds and tool calls."""
_PREFIX = "agent/"
_NAME = re.compile(r"[\w./:@+-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """One episode as an agent sees it: prompts and the offered tools; `mounted` holds the condition's packages."""

    task_id: str
    sub_task: str
    condition: str
    system: str
    prompt: str
    tools: Sequence[ToolSpec]
    mounted: Mount


class Tools(Protocol):
    """Interface to the tools of one episode."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Return a tool's result; errors are returned as `{"error": ...}`. `submit_answer` ends the episode."""
        ...

    async def call_text(self, name: str, arguments: str, /) -> str:
        """Call a tool with JSON text; return one line of JSON, followed by the remaining budget."""
        ...

    def spent(self, usage: Usage, *, served_model: str | None = None) -> None:
        """Record one model call of the agent; calls that are not recorded have an unknown price."""
        ...

    def used(self, skills: Iterable[str], scripts: Iterable[str]) -> None:
        """Record skills that the agent read, and scripts ("package/scripts/x.py") that it ran, without the tools."""
        ...

    def log(self, text: str) -> None:
        """Add text of the agent to its trajectory; it is shown and not scored."""
        ...


Solve = Callable[[Task, Tools], Awaitable[str | Mapping[str, Any] | None]]
"""Solve one task: return the answer as JSON text or an object, or None after a call of `submit_answer`."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of a run.

    name : its name in rows.
    solve : plays one episode; several run concurrently in one event loop.
    seconds, calls : limits of an episode; beyond them it ends without an answer.
    harness : name of its loop in rows.
    tells_cost : True if it reports its model calls, which a run with a cost limit requires.
    reads_files : True if it gets skills as files and reads them without `load_skill` and `load_references`.
    """

    name: str
    solve: Solve
    seconds: float = SECONDS
    calls: int = CALLS
    harness: str = HARNESS
    tells_cost: bool = False
    reads_files: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"agent name {self.name[:60]!r} is not valid; use a-z, A-Z, 0-9 and ./:@+-_ (at most 120)")
        if not (self.seconds > 0 and self.calls > 0):
            raise InputError(f"{self.name}: seconds and calls must be above 0, not {self.seconds} and {self.calls}")


def as_agent(agent: Agent | Solve) -> Agent:
    """Return an agent, or wrap an async function in one; raises `InputError` for anything else."""
    if isinstance(agent, Agent):
        return agent
    name = getattr(agent, "__name__", type(agent).__name__)
    if not is_solver(agent):
        raise InputError(f"{name} is not an agent; pass an async function of (task, tools) or an Agent")
    return Agent(f"{_PREFIX}{name.strip('<>')}", agent)


def is_solver(value: object) -> bool:
    """Return True for an async function or an object with an async `__call__`."""
    return inspect.iscoroutinefunction(value) or (callable(value) and inspect.iscoroutinefunction(type(value).__call__))


_GRACE_SECONDS = 5.0
_OVER = '{"error": "the answer is submitted; the episode is over"}'
_TOO_MANY = '{"error": "this episode takes no further tool calls"}'
_DUMP = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

_log = logger(__name__)


async def play_episode(agent: Agent, spec: EpisodeSpec, resources: Resources | None = None) -> Trace:
    """Let an agent solve one episode under one condition; arguments and errors as for `loop.run_episode`.

    The agent's return value is its submission, unless it has called `submit_answer`. A failure before the first tool
    call is an error, and the episode is run again. A later failure, a timeout or too many calls ends the episode
    without an answer. Results state the remaining turns and tokens only if the agent reports its model calls.
    """
    state = EpisodeState(agent.name, agent.harness, spec, resources or Resources())
    if agent.reads_files:
        state.leave_reading_to_agent()
    return await _AgentEpisode(agent, state).play()


class _AgentEpisode:
    """The `Tools` of one episode of an agent."""

    def __init__(self, agent: Agent, state: EpisodeState) -> None:
        self._agent, self._state = agent, state
        self._calls_made = 0
        self._over = False
        self._solving: asyncio.Task[Any] | None = None

    async def play(self) -> Trace:
        state = self._state
        try:
            ended, failure = await self._outcome()
            if state.remaining.is_overdrawn and ended != "error":
                ended = "budget_exhausted"
            if not state.calls:
                state.usage = Usage()  # usage that was not reported is unknown, not zero
            return state.trace(ended, failure, turns=len(state.calls) or len(state.records))
        finally:
            state.toolbox.close()

    async def _outcome(self) -> tuple[Ended, FinSkillBenchError | None]:
        state = self._state
        state.append_remaining(self._calls_left)
        task = Task(
            state.episode.task_id,
            state.episode.sub_task,
            state.mounted.arm.condition,
            state.system,
            state.messages[-1].content,
            state.tools,
            state.mounted,
        )
        self._solving = asyncio.ensure_future(self._agent.solve(task, self))
        try:
            done, _ = await asyncio.wait({self._solving}, timeout=self._agent.seconds)
        except asyncio.CancelledError:
            self._solving.cancel()
            await asyncio.wait({self._solving}, timeout=_GRACE_SECONDS)
            raise
        if not done or self._over:
            self._over = True
            self._solving.cancel()
            await asyncio.wait({self._solving}, timeout=_GRACE_SECONDS)
            if state.remaining.is_overdrawn:
                return "budget_exhausted", None
            return self._without_answer("out_of_calls" if done else "out_of_time"), None
        try:
            await self._submit(self._solving.result())
        except (RunStoppedError, KeyboardInterrupt):
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an agent's bug costs one episode
            foreseen = isinstance(error, ProviderError)
            if not foreseen:  # provider errors are recorded in the row instead
                state.log_bug(_log, state.name, error)
            failure = _failure(state.name, error)
            if state.toolbox.answer is None and not state.records:
                state.incidents.append(failure.cause.value)
                return "error", failure
            # An agent must not select its episodes by failing in the difficult ones.
            return self._without_answer("adapter_failed"), failure
        return ("submitted", None) if state.toolbox.answer is not None else (self._without_answer("no_answer"), None)

    @property
    def _calls_left(self) -> int:
        return max(self._agent.calls - self._calls_made, 0)

    def _without_answer(self, ended: Ended) -> Ended:
        self._state.incidents.append(ended)
        return "submitted" if self._state.toolbox.answer is not None else ended

    async def _submit(self, returned: object) -> None:
        if returned is None or self._state.toolbox.answer is not None:
            return
        if not isinstance(returned, str | Mapping):
            raise TypeError(f"it returned {type(returned).__name__}, and an answer is text or an object")
        answer = returned if isinstance(returned, str) else orjson.dumps(returned, option=_DUMP).decode()
        await self._serve_call(SUBMIT_ANSWER.name, orjson.dumps({"answer": answer}).decode())

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Implement `Tools.call`."""
        text = await self.call_text(name, orjson.dumps(arguments, option=_DUMP).decode())
        return orjson.loads(text.partition("\n")[0])

    async def call_text(self, name: str, arguments: str, /) -> str:
        """Implement `Tools.call_text`."""
        await asyncio.sleep(0)  # let other agents and the timeout run
        if self._over or not self._calls_left or self._state.remaining.is_overdrawn:
            self._over = True
            if self._solving is not None:
                self._solving.cancel()
            return _TOO_MANY
        return await self._serve_call(name, arguments)

    async def _serve_call(self, name: str, arguments: str) -> str:
        state = self._state
        self._calls_made += 1
        turn = Turn(tool_calls=(ToolCall(str(self._calls_made), str(name), str(arguments)),))
        (call,) = clean_turn(turn, state.resources.redact).tool_calls
        if state.toolbox.answer is not None:
            state.record_not_run(self._calls_made, call)
            return _OVER
        served = await state.serve(call, state.tools)
        state.messages.append(Message("assistant", "", (call,)))
        state.record_tool_call(self._calls_made, call, served)
        if state.toolbox.answer is None:
            state.append_remaining(self._calls_left, turns_known=bool(state.calls))
        return state.messages[-1].content

    def used(self, skills: Iterable[str], scripts: Iterable[str]) -> None:
        """Implement `Tools.used`."""
        for name in skills:
            self._state.toolbox.mark_loaded(name)
        self._state.toolbox.scripts_run.extend(scripts)

    def log(self, text: str) -> None:
        """Implement `Tools.log`."""
        self._state.messages.append(Message("assistant", self._state.resources.redact(clean_text(text))))

    def spent(self, usage: Usage, *, served_model: str | None = None) -> None:
        """Implement `Tools.spent`."""
        turn = clean_turn(Turn(usage=usage, served_model=served_model), self._state.resources.redact)
        self._state.record_model_call(turn, priced=False)


def _failure(name: str, error: BaseException) -> ProviderError:
    if isinstance(error, ProviderError):
        return error
    return ProviderError(f"{name}: {type(error).__name__}: {error}", Cause.ADAPTER)
