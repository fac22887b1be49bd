"""Episodes as environments: reset, tool calls by turns, and a reward at the end.

An environment plays one episode at a time, with the turns, tools, limits and records of the built-in loop. Any number
of environments share one `TaskSource` in one process. What happens depends on task and calls alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import orjson

from finskillbench.episode import Reward
from finskillbench.errors import InputError
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance
from finskillbench.harness.episode_state import EpisodeSpec, EpisodeState, Resources
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, clean_turn
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import Ended, Trace

HARNESS = "environment"
IDLE_SECONDS = 1800.0
"""Time without a call after which an episode is closed, by default."""


class OpenTask(NamedTuple):
    """A task that an environment can play; `judge` may read the truth, and returns the reward of a finished episode."""

    spec: EpisodeSpec
    resources: Resources
    judge: Callable[[Trace], Reward]


class TaskSource(Protocol):
    """Tasks that environments of one process share."""

    def task_of(self, seed: int) -> str:
        """Return the task that a seed selects."""
        ...

    def open(self, task: str, allowance: Allowance) -> OpenTask:
        """Open a task; raise `InputError` if there is none of this name. It is called in a running event loop."""
        ...


@dataclass(frozen=True, slots=True)
class Observation:
    """Observation of an agent after a reset or a turn.

    messages : new messages: system and task at first, then results in the order of the calls, and notices.
    tools : tools that the next turn offers; none at the end.
    reward : reward at the end, None before.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    reward: Reward | None = None

    @property
    def is_final(self) -> bool:
        """Return True at the end of an episode."""
        return self.reward is not None

    @property
    def text(self) -> str:
        """Return the contents of the messages, separated by empty lines."""
        return "\n\n".join(message.content for message in self.messages)


class Environment:
    """An environment over the tasks of a source; use it from one event loop.

    allowance : limits of an episode, where its subtask has none.
    idle_seconds : time without a call after which an episode ends without a submission.
    """

    def __init__(
        self, source: TaskSource, allowance: Allowance = DEFAULT_ALLOWANCE, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._source, self._allowance, self._idle_seconds = source, allowance, idle_seconds
        self._task: OpenTask | None = None
        self._state: EpisodeState | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._final: Observation | None = None
        self.trace: Trace | None = None

    @property
    def reward(self) -> Reward | None:
        """Reward of the finished episode."""
        return None if self._final is None else self._final.reward

    async def reset(self, task: str | int) -> Observation:
        """Begin an episode, by task id or by a seed that chooses one; an unfinished episode is closed.

        Raises
        ------
        InputError : there is no such task.
        """
        self.close()
        name = self._source.task_of(task) if isinstance(task, int) else task
        self._task = self._source.open(name, self._allowance)
        state = self._state = EpisodeState(HARNESS, HARNESS, self._task.spec, self._task.resources)
        self._final = self.trace = None
        state.begin_turn()
        self._await_call()
        return Observation(tuple(state.messages), state.offered)

    async def step(self, *calls: ToolCall, text: str = "") -> Observation:
        """Play one turn with its calls, or text alone; invalid calls are answered by an error and count.

        After the end, the final observation is returned again. Raises `InputError` before the first reset.
        """
        if self._final is not None:
            return self._final
        state = self._state
        if state is None:
            raise InputError("the environment has no episode; call reset first")
        self._cancel_timer()
        turn = clean_turn(Turn(text, tuple(calls)), state.resources.redact)
        ended = state.record_turn(turn, priced=False)
        seen = len(state.messages)
        ended = ended or await state.serve_turn(turn) or state.begin_turn()
        if self._final is not None:  # closed during the calls
            return self._final
        if ended is not None:
            return self._end(ended, seen)
        self._await_call()
        return Observation(tuple(state.messages[seen:]), state.offered)

    async def submit(self, answer: str | Mapping[str, Any]) -> Reward | None:
        """Submit an answer as JSON text or an object; return its reward, None if the call was refused."""
        text = answer if isinstance(answer, str) else orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        arguments = orjson.dumps({"answer": text}).decode()
        return (await self.step(ToolCall("submit", SUBMIT_ANSWER.name, arguments))).reward

    def close(self) -> None:
        """End the episode without a submission, if it goes on."""
        self._cancel_timer()
        if self._state is not None and self._final is None:
            self._end("no_answer", len(self._state.messages))

    def _end(self, ended: Ended, seen: int) -> Observation:
        state, task = self._state, self._task
        assert state is not None
        assert task is not None
        self.trace = state.trace(ended, None, turns=len(state.calls), busy=state.busy_seconds)
        state.toolbox.close()
        self._final = Observation(tuple(state.messages[seen:]), reward=task.judge(self.trace))
        return self._final

    def _await_call(self) -> None:
        def expire() -> None:
            assert self._state is not None
            self._state.incidents.append("out_of_time")
            self._end("out_of_time", len(self._state.messages))

        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, expire)

    def _cancel_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
