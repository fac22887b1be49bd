"""The agent loop: function calling, at most twelve model calls unless the allowance says otherwise, one submission.

Rules, from the specification: tool calls of one turn run in order; calls after a submission are not run; a turn of
plain text is answered by a reminder; the last turn offers only `submit_answer` and requires it; a transient
provider failure is tried again up to three times with exponential backoff, and what still fails ends the episode
as an error (`finskillbench.harness.failures` has the table). A conversation that outgrows its model ends without a
submission. Where tokens are limited, each message says what is left, each call is limited to it, and what comes with a
call that went beyond it is not looked at. Clock and sleep are passed in.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Protocol

from finskillbench.errors import Cause, FinSkillBenchError, ProviderError, RunStoppedError
from finskillbench.harness.conditions import Arm
from finskillbench.harness.episode_state import EpisodeSpec, EpisodeState, Resources
from finskillbench.harness.failures import PROVIDER
from finskillbench.harness.model import AUTO, MAX_CALLS_PER_TURN, Message, Model, ToolSpec, Turn, clean_turn, is_tuned
from finskillbench.harness.prompts.compose import LAST_TURN, REMINDER
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import OURS, Ended, Trace
from finskillbench.redaction import logger

_LOG = logger(__name__)

MAX_RETRIES = 3
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 120.0
"""A provider that asks for a longer wait is asked again after this one, and the incident is counted."""


Play = Callable[[Model, EpisodeSpec, Resources], Awaitable[Trace]]
"""Plays an episode with a model: as `run_episode`, with its errors."""


class Harness(Protocol):
    """A loop between models and the tools; `name` is what rows say."""

    @property
    def name(self) -> str: ...

    def check(self, arm: Arm) -> None:
        """Refuse an arm that has no counterpart under this harness, by an `InputError`."""
        ...

    def opened(self) -> AbstractAsyncContextManager[Play]:
        """What plays episodes for as long as the context is open."""
        ...


class OurLoop:
    """The loop of this module as a harness."""

    name = OURS

    def check(self, arm: Arm) -> None:
        """Every arm is at home here."""

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Play]:
        """Nothing has to be opened."""
        yield run_episode


async def run_episode(model: Model, spec: EpisodeSpec, resources: Resources | None = None) -> Trace:
    """Let a model solve one episode under one arm; never raises for what the model or its provider does.

    Parameters
    ----------
    model : who answers.
    given : the episode and the arm.
    surroundings : script runner, filings, scratch folder, clock and sleep.

    Returns
    -------
    The trace; `trace.submission` is what `finskillbench.runs.verdicts` judges.

    Raises
    ------
    InternalError : the tools on offer are not those of the arm, or it remembers what it may not.
    InputError : the arm shows documents in the prompt, and none of the packages of the episode's domain is mounted.
    SkillError : somebody altered the scratch space, so that what the agent saved is lost.
    RunStoppedError : the model takes no further call, by order of whoever runs it; the episode counts as not begun.
    """
    provider: str | None = getattr(model, "provider", None)
    return await Conversation(
        model, EpisodeState(model.name, OURS, spec, resources or Resources(), provider)
    ).play()


class Conversation:
    """One episode while it runs, turn after turn; another loop than this one may take the turns.

    `turn` is the model's newest, `offered` are the tools that it was offered in it.
    """

    def __init__(self, model: Model, state: EpisodeState) -> None:
        self.model, self.seat = model, state
        self.turn = Turn()
        self.offered: tuple[ToolSpec, ...] = ()
        self.priced = getattr(model, "price", None) is not None

    async def play(self) -> Trace:
        """Play the episode to its end."""
        seat = self.seat
        try:
            ended, failure = await self.outcome(self._converse())
            busy = math.fsum(call.seconds for call in seat.calls) + math.fsum(record.seconds for record in seat.records)
            return seat.trace(ended, failure, turns=len(seat.calls), busy=busy)
        finally:
            seat.toolbox.close()

    async def outcome(self, playing: Awaitable[Ended]) -> tuple[Ended, FinSkillBenchError | None]:
        """How the episode ended, and what failed if something did."""
        try:
            return await playing, None
        except RunStoppedError:
            raise
        except ProviderError as error:
            # An agent must not choose its episodes by failing in those that it cannot solve.
            if error.cause is not Cause.ADAPTER or not self.seat.calls:
                return "error", error
            self.seat.incidents[-1] = "adapter_failed"
            return "adapter_failed", error
        except FinSkillBenchError as error:
            return "error", error

    async def _converse(self) -> Ended:
        while (ended := await self.take_turn()) is None:
            if not self.turn.tool_calls:
                if self.seat.left.turns:
                    self.seat.messages.append(Message("user", REMINDER))
                continue
            await self._serve(self.turn, self.offered, len(self.seat.calls))
            if self.seat.toolbox.answer is not None:
                return "submitted"
        if self.seat.left.is_overdrawn:
            for call in self.turn.tool_calls:
                self.seat.record_not_run(len(self.seat.calls), call)
        return ended

    async def take_turn(self) -> Ended | None:
        """Let the model answer the conversation so far; how the episode ended, if that was it."""
        left = self.seat.left
        if not left.turns:
            return "max_turns"
        if left.is_spent:
            return "budget_exhausted"
        last = left.turns == 1
        self.offered = (SUBMIT_ANSWER,) if last else self.seat.tools
        if last:
            self.seat.messages.append(Message("user", LAST_TURN))
        self.seat.append_remaining()
        queued, retried = self.seat.queue_seconds, self.seat.retry_seconds
        turn = self.turn = await self._generate(self.offered, SUBMIT_ANSWER.name if last else AUTO)
        queued, retried = self.seat.queue_seconds - queued, self.seat.retry_seconds - retried
        self.seat.answered(turn, queued, retried, priced=self.priced)
        if turn.stop != "done":
            self.seat.incidents.append(turn.stop)
        elif not turn.tool_calls:
            self.seat.incidents.append("text_only")
        if turn.stop == "context_overflow":
            return "context_overflow"
        self.seat.messages.append(Message("assistant", turn.text, turn.tool_calls, None, turn.replay))
        if left.is_overdrawn:
            return "budget_exhausted"
        return None

    async def _generate(self, offered: tuple[ToolSpec, ...], choice: str) -> Turn:
        """One model call with its retries; whatever still fails is raised as a `FinSkillBenchError`.

        The turn says how long it took. The seat counts what failed calls and waits after them took, and the rest of the
        time, in which the call waited for a place, for the budget or for this process.
        """
        clock = self.seat.around.clock
        for attempt in range(MAX_RETRIES + 1):
            started = clock()
            try:
                made = await self._call(offered, choice)
                turn = clean_turn(made, self.seat.around.redact)
                if len(made.tool_calls) > MAX_CALLS_PER_TURN:
                    self.seat.incidents.append("too_many_calls")
                return replace(turn, seconds=self._without_queue(clock() - started, turn.seconds))
            except ProviderError as error:
                _LOG.debug("%s: a call of %s failed", self.seat.episode.task_id, self.model.name, exc_info=True)
                self.seat.incidents.append(error.cause.value)  # a plain string: Polars would make an Enum of it
                failed = clock()
                self.seat.retry_seconds += self._without_queue(failed - started, error.seconds)
                if not PROVIDER[error.cause].retried or attempt == MAX_RETRIES:
                    raise
                self.seat.retries += 1
                if (error.retry_after or 0.0) > LONGEST_WAIT_SECONDS:
                    self.seat.incidents.append("wait_capped")
                await self.seat.around.sleep(_wait(error, attempt))
                self.seat.retry_seconds += clock() - failed
            except FinSkillBenchError:
                raise
            except Exception as error:  # an adapter's bug costs one episode, not a run of thousands
                self.seat.log_bug(_LOG, f"the adapter of {self.model.name}", error)
                self.seat.incidents.append(Cause.ADAPTER.value)
                raise ProviderError(f"{self.model.name}: {type(error).__name__}: {error}", Cause.ADAPTER) from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _without_queue(self, whole: float, known: float | None) -> float:
        """What a call itself took of its whole time, where that is known; the rest is counted as waiting."""
        taken = whole if known is None else min(known, whole)
        self.seat.queue_seconds += whole - taken
        return taken

    async def _call(self, offered: tuple[ToolSpec, ...], choice: str) -> Turn:
        seat, conversation = self.seat, tuple(self.seat.messages)
        if is_tuned(self.model):
            most = seat.left.tokens
            return await self.model.generate(conversation, offered, choice, max_tokens=most, repeat=seat.repeat)
        return await self.model.generate(conversation, offered, choice)

    async def _serve(self, turn: Turn, offered: tuple[ToolSpec, ...], number: int) -> None:
        seat = self.seat
        for call in turn.tool_calls:
            if seat.toolbox.answer is not None:
                seat.record_not_run(number, call)
            else:
                meant = seat.understood(call, offered)
                seat.record(number, meant, await seat.serve(meant, offered))


def _wait(error: ProviderError, attempt: int) -> float:
    """Seconds before the next try: what the provider asked for, else 1, 2, 4."""
    asked = error.retry_after
    return FIRST_BACKOFF_SECONDS * 2**attempt if asked is None else min(max(asked, 0.0), LONGEST_WAIT_SECONDS)
