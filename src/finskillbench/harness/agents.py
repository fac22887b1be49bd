"""Agents with a loop of their own: a function that is given a task and its tools, and returns an answer.

    async def my_agent(task, tools):
        data = await tools.call("get_task_data", field="expected_returns")
        return {"weights": {...}}

    run(edition, agents=[my_agent], out=Path("runs/mine"))

It runs in this process and is trusted as much as whoever wrote it: nothing keeps it from reading the edition's files.

An episode played by an agent with a loop of its own: the same tools, prompt and record as in ours.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from finskillbench.errors import Cause, FinSkillBenchError, InputError, ProviderError, RunStoppedError
from finskillbench.harness.episode_state import EpisodeSpec, EpisodeState, Resources
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage, clean_text, clean_turn
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import Ended, Trace
from finskillbench.redaction import logger

HARNESS = "python"
"""The harness of rows whose episodes a Python function has played."""
SECONDS, CALLS = 1800.0, 200
"""How long an episode of an agent may take, and how many tool calls, unless it says otherwise."""
_PREFIX = "agent/"
_NAME = re.compile(r"[\w./:@+-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is given of an episode: the words that a model would read, and the tools on offer."""

    task_id: str
    sub_task: str
    condition: str
    system: str
    prompt: str
    tools: Sequence[ToolSpec]


class Tools(Protocol):
    """The tools of one episode, by name."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers; whatever goes wrong comes back as `{"error": ...}`. `submit_answer` ends the episode."""
        ...

    async def call_text(self, name: str, arguments: str, /) -> str:
        """The same in text, as models write and read it: one line of JSON, and below it what is left of the budget."""
        ...

    def spent(self, usage: Usage, *, served_model: str | None = None) -> None:
        """Note a model call that the agent has made; what is not told has an unknown price."""
        ...

    def said(self, text: str) -> None:
        """Note words of the agent beside its calls; they are shown in its trajectory and judged by nobody."""
        ...


Solve = Callable[[Task, Tools], Awaitable[str | Mapping[str, Any] | None]]
"""Solves one task: returns the answer as JSON text or as an object, or None where it called `submit_answer` itself."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of a run.

    name : under which rows file it.
    solve : plays one episode; several run at once, in one event loop.
    seconds, calls : an episode that takes longer, or calls more tools, ends without an answer.
    harness : whose loop it is, as rows say it.
    tells_cost : whether it tells what it spends, so that a run may have a limit on that.
    """

    name: str
    solve: Solve
    seconds: float = SECONDS
    calls: int = CALLS
    harness: str = HARNESS
    tells_cost: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"an agent is called {self.name[:60]!r}; letters, digits and ./:@+-_ make a name")
        if not (self.seconds > 0 and self.calls > 0):
            raise InputError(f"{self.name}: seconds and calls must be above 0, not {self.seconds} and {self.calls}")


def as_agent(given: Agent | Solve) -> Agent:
    """An agent as it is, or one made of an async function and called after it.

    Raises
    ------
    InputError : it is neither.
    """
    if isinstance(given, Agent):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    if not is_solver(given):
        raise InputError(f"{name} is no agent: give an async function of (task, tools), or an Agent")
    return Agent(f"{_PREFIX}{name.strip('<>')}", given)


def is_solver(value: object) -> bool:
    """Whether a value is an async function, or an object that is called like one."""
    return inspect.iscoroutinefunction(value) or (callable(value) and inspect.iscoroutinefunction(type(value).__call__))


_GRACE_SECONDS = 5.0
"""How long an agent that is cut short may take to tidy up."""
_OVER = '{"error": "the answer is submitted; the episode is over"}'
_TOO_MANY = '{"error": "this episode takes no further tool calls"}'
_DUMP = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

_log = logger(__name__)


async def play_episode(agent: Agent, spec: EpisodeSpec, resources: Resources | None = None) -> Trace:
    """Let an agent solve one episode under one arm; never raises for what the agent does.

    Arguments and errors as those of `finskillbench.harness.loop.run_episode`. What an agent returns is its submission,
    unless it has called `submit_answer` before. One that fails before it has called a tool ends in an error, which is
    run again; one that fails later, takes too long or calls too many tools has given no answer. It is told how many
    turns and tokens it has, and with each result how many tool calls are left. Its own loop counts the turns: what is
    left of them and of tokens stands there only where it tells each call of its model.
    """
    return await _AgentEpisode(agent, EpisodeState(agent.name, agent.harness, spec, resources or Resources())).play()


class _AgentEpisode:
    """An agent at its seat; the `Tools` that it is given."""

    def __init__(self, agent: Agent, seat: EpisodeState) -> None:
        self._agent, self._seat = agent, seat
        self._asked = 0
        self._over = False
        self._solving: asyncio.Task[Any] | None = None

    async def play(self) -> Trace:
        seat = self._seat
        try:
            ended, failure = await self._outcome()
            if seat.left.is_overdrawn and ended != "error":
                ended = "budget_exhausted"
            if not seat.calls:
                seat.usage = Usage()  # what an agent does not tell of costs is not known to be nothing
            return seat.trace(ended, failure, turns=len(seat.calls) or len(seat.records))
        finally:
            seat.toolbox.close()

    async def _outcome(self) -> tuple[Ended, FinSkillBenchError | None]:
        seat = self._seat
        seat.append_remaining(self._calls_left)
        task = Task(
            seat.episode.task_id,
            seat.episode.sub_task,
            seat.mounted.arm.condition,
            seat.system,
            seat.messages[-1].content,
            seat.tools,
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
            if seat.left.is_overdrawn:
                return "budget_exhausted", None
            return self._without_answer("out_of_calls" if done else "out_of_time"), None
        try:
            await self._submit(self._solving.result())
        except (RunStoppedError, KeyboardInterrupt):
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an agent's bug costs one episode
            foreseen = isinstance(error, ProviderError)
            if not foreseen:  # what is foreseen is in the row, and in the end of a run that it stops
                seat.log_bug(_log, seat.name, error)
            failure = _failure(seat.name, error)
            if seat.toolbox.answer is None and not seat.records:
                seat.incidents.append(failure.cause.value)
                return "error", failure
            # An agent must not choose its episodes by failing in those that it cannot solve.
            return self._without_answer("adapter_failed"), failure
        return ("submitted", None) if seat.toolbox.answer is not None else (self._without_answer("no_answer"), None)

    @property
    def _calls_left(self) -> int:
        return max(self._agent.calls - self._asked, 0)

    def _without_answer(self, ended: Ended) -> Ended:
        """How an episode ended that was cut short; an answer that was submitted before stands."""
        self._seat.incidents.append(ended)
        return "submitted" if self._seat.toolbox.answer is not None else ended

    async def _submit(self, said: object) -> None:
        if said is None or self._seat.toolbox.answer is not None:
            return
        if not isinstance(said, str | Mapping):
            raise TypeError(f"it returned {type(said).__name__}, and an answer is text or an object")
        answer = said if isinstance(said, str) else orjson.dumps(said, option=_DUMP).decode()
        await self._serve(SUBMIT_ANSWER.name, orjson.dumps({"answer": answer}).decode())

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """As of `Tools`."""
        text = await self.call_text(name, orjson.dumps(arguments, option=_DUMP).decode())
        return orjson.loads(text.partition("\n")[0])

    async def call_text(self, name: str, arguments: str, /) -> str:
        """As of `Tools`."""
        await asyncio.sleep(0)  # an agent that never waits must not starve the others, nor outlive its time
        if self._over or not self._calls_left or self._seat.left.is_overdrawn:
            self._over = True
            if self._solving is not None:
                self._solving.cancel()
            return _TOO_MANY
        return await self._serve(name, arguments)

    async def _serve(self, name: str, arguments: str) -> str:
        seat = self._seat
        self._asked += 1
        said = Turn(tool_calls=(ToolCall(str(self._asked), str(name), str(arguments)),))
        (call,) = clean_turn(said, seat.around.redact).tool_calls
        if seat.toolbox.answer is not None:
            seat.record_not_run(self._asked, call)
            return _OVER
        served = await seat.serve(call, seat.tools)
        seat.messages.append(Message("assistant", "", (call,)))
        seat.record(self._asked, call, served)
        if seat.toolbox.answer is None:
            seat.append_remaining(self._calls_left, turns_known=bool(seat.calls))
        return seat.messages[-1].content

    def said(self, text: str) -> None:
        """As of `Tools`."""
        self._seat.messages.append(Message("assistant", self._seat.around.redact(clean_text(text))))

    def spent(self, usage: Usage, *, served_model: str | None = None) -> None:
        """As of `Tools`."""
        turn = clean_turn(Turn(usage=usage, served_model=served_model), self._seat.around.redact)
        self._seat.answered(turn, priced=False)


def _failure(name: str, error: BaseException) -> ProviderError:
    """What ended an agent: a failure that names its cause, or a bug of its own."""
    if isinstance(error, ProviderError):
        return error
    return ProviderError(f"{name}: {type(error).__name__}: {error}", Cause.ADAPTER)
