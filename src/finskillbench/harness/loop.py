"""Agent loop: function calling, at most twelve model calls by default, one submission.

The last turn offers and requires `submit_answer` alone, and calls after a submission are not run. A turn of plain text
gets a reminder. A conversation beyond the model's context ends without a submission. Under a token limit each call is
limited to the remainder, and a turn beyond it is discarded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Protocol

from finskillbench.errors import Cause, FinSkillBenchError, ProviderError, RunStoppedError
from finskillbench.harness.conditions import Arm
from finskillbench.harness.episode_state import EpisodeSpec, EpisodeState, Resources
from finskillbench.harness.failures import PROVIDER_POLICIES
from finskillbench.harness.model import AUTO, MAX_CALLS_PER_TURN, Model, ToolSpec, Turn, clean_turn, is_tuned
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import BUILTIN_HARNESS, Ended, Trace
from finskillbench.redaction import logger

_LOG = logger(__name__)

MAX_RETRIES = 3
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 120.0
"""Upper limit of a provider's requested wait; longer requests are counted as incidents."""


Play = Callable[[Model, EpisodeSpec, Resources], Awaitable[Trace]]
"""Plays an episode with a model; signature and errors as for `run_episode`."""


class Harness(Protocol):
    """A loop between models and tools; `name` is its name in rows."""

    @property
    def name(self) -> str: ...

    def check(self, arm: Arm) -> None:
        """Raise `InputError` for a condition that this harness does not support."""
        ...

    def opened(self) -> AbstractAsyncContextManager[Play]:
        """Return a context manager that provides the function that plays episodes."""
        ...


class BuiltinLoop:
    """The loop of this module as a harness."""

    name = BUILTIN_HARNESS

    def check(self, arm: Arm) -> None:
        """All conditions are supported."""

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Play]:
        """Provide `run_episode`; nothing has to be opened."""
        yield run_episode


async def run_episode(model: Model, spec: EpisodeSpec, resources: Resources | None = None) -> Trace:
    """Let a model solve one episode under one condition; never raises for failures of the model or its provider.

    Raises
    ------
    InternalError : tools or memory differ from those of the condition.
    InputError : an inline condition has no package of the episode's domain.
    SkillError : the scratch space was altered and saved skills are lost.
    RunStoppedError : the run stopped model calls; the episode counts as not begun.
    """
    provider: str | None = getattr(model, "provider", None)
    return await Conversation(
        model, EpisodeState(model.name, BUILTIN_HARNESS, spec, resources or Resources(), provider)
    ).play()


class Conversation:
    """A model's conversation in one episode; `turn` is the newest turn."""

    def __init__(self, model: Model, state: EpisodeState) -> None:
        self.model, self.state = model, state
        self.turn = Turn()
        self.priced = getattr(model, "price", None) is not None

    async def play(self) -> Trace:
        """Play the episode to its end."""
        state = self.state
        try:
            ended, failure = await self.outcome(self._converse())
            return state.trace(ended, failure, turns=len(state.calls), busy=state.busy_seconds)
        finally:
            state.toolbox.close()

    async def outcome(self, playing: Awaitable[Ended]) -> tuple[Ended, FinSkillBenchError | None]:
        """Return how the episode ended, and its failure if there was one."""
        try:
            return await playing, None
        except RunStoppedError:
            raise
        except ProviderError as error:
            # An agent must not select its episodes by failing in the difficult ones.
            if error.cause is not Cause.ADAPTER or not self.state.calls:
                return "error", error
            self.state.incidents[-1] = "adapter_failed"
            return "adapter_failed", error
        except FinSkillBenchError as error:
            return "error", error

    async def _converse(self) -> Ended:
        while (ended := await self.take_turn() or await self.state.serve_turn(self.turn)) is None:
            pass
        if self.state.remaining.is_overdrawn:
            for call in self.turn.tool_calls:
                self.state.record_not_run(len(self.state.calls), call)
        return ended

    async def take_turn(self) -> Ended | None:
        """Let the model answer the conversation; return how the episode ended, None if it continues."""
        state = self.state
        if (ended := state.begin_turn()) is not None:
            return ended
        queued, retried = state.queue_seconds, state.retry_seconds
        last = state.offered == (SUBMIT_ANSWER,)
        turn = self.turn = await self._generate(state.offered, SUBMIT_ANSWER.name if last else AUTO)
        return state.record_turn(turn, state.queue_seconds - queued, state.retry_seconds - retried, priced=self.priced)

    async def _generate(self, offered: tuple[ToolSpec, ...], choice: str) -> Turn:
        """Make one model call with its retries and record the durations; raises the final failure."""
        clock = self.state.resources.clock
        for attempt in range(MAX_RETRIES + 1):
            started = clock()
            try:
                made = await self._call(offered, choice)
                turn = clean_turn(made, self.state.resources.redact)
                if len(made.tool_calls) > MAX_CALLS_PER_TURN:
                    self.state.incidents.append("too_many_calls")
                return replace(turn, seconds=self._without_queue(clock() - started, turn.seconds))
            except ProviderError as error:
                _LOG.debug("%s: a call of %s failed", self.state.episode.task_id, self.model.name, exc_info=True)
                self.state.incidents.append(error.cause.value)  # a plain string: Polars would infer an Enum
                failed = clock()
                self.state.retry_seconds += self._without_queue(failed - started, error.seconds)
                if not PROVIDER_POLICIES[error.cause].retried or attempt == MAX_RETRIES:
                    raise
                self.state.retries += 1
                if (error.retry_after or 0.0) > LONGEST_WAIT_SECONDS:
                    self.state.incidents.append("wait_capped")
                await self.state.resources.sleep(_wait(error, attempt))
                self.state.retry_seconds += clock() - failed
            except FinSkillBenchError:
                raise
            except Exception as error:  # an adapter's bug costs one episode, not the run
                self.state.log_bug(_LOG, f"the adapter of {self.model.name}", error)
                self.state.incidents.append(Cause.ADAPTER.value)
                raise ProviderError(f"{self.model.name}: {type(error).__name__}: {error}", Cause.ADAPTER) from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _without_queue(self, whole: float, known: float | None) -> float:
        """Return the duration of a call itself, where known; count the rest as queueing."""
        taken = whole if known is None else min(known, whole)
        self.state.queue_seconds += whole - taken
        return taken

    async def _call(self, offered: tuple[ToolSpec, ...], choice: str) -> Turn:
        state, conversation = self.state, tuple(self.state.messages)
        if is_tuned(self.model):
            limit = state.remaining.tokens
            return await self.model.generate(conversation, offered, choice, max_tokens=limit, repeat=state.repeat)
        return await self.model.generate(conversation, offered, choice)


def _wait(error: ProviderError, attempt: int) -> float:
    requested = error.retry_after
    return FIRST_BACKOFF_SECONDS * 2**attempt if requested is None else min(max(requested, 0.0), LONGEST_WAIT_SECONDS)
