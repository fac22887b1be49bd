"""Model calls of an episode under a limiter and a budget, with all usage counted.

Retries of the loop pass through here too, so each one waits for a slot and is paid for. A budget is never exceeded: an
upper bound of the price is reserved before each model call and replaced by the price after it.

Near the end calls wait for reservations of others. The episode with the highest cost so far goes first, since dropping
it would lose most. A call that exceeds the remaining budget by itself stops its episode.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import orjson

from finskillbench.errors import Cause, ProviderError, RunStoppedError
from finskillbench.harness.model import FREE, Message, Model, ToolSpec, Turn, Usage, is_possible, is_recalling, is_tuned
from finskillbench.harness.models import ModelKey, Participant, allowance_of
from finskillbench.harness.programs.program import Program
from finskillbench.harness.providers.prices import NO_CHARGE, Price
from finskillbench.harness.tools.contracts import budget_of
from finskillbench.runs.execute.limiter import Limiter, Outcome
from finskillbench.runs.store.record import Expense


@dataclass(eq=False, slots=True)
class _PendingReservation:
    bound: float
    invested: float
    granted: asyncio.Future[None]
    partial: bool = False


@dataclass(slots=True)
class Reservation:
    """Reserved amount and its outcome, in US dollars."""

    amount: float = 0.0
    cost: float = 0.0
    unanswered: float = 0.0


class Budget:
    """Budget of a run folder in US dollars: `most` in total, `spent` before."""

    def __init__(self, most: float, spent: float = 0.0) -> None:
        self.most, self.spent = most, spent
        self._reserved = self._unanswered = 0.0
        self._calls = 0
        self._waiting: list[_PendingReservation] = []

    async def reserve(self, bound: float, invested: float = 0.0) -> None:
        """Reserve `bound`, waiting while other reservations may still be released.

        `invested` is the cost of the same episode so far; the waiting call with the largest one goes first. Raises
        `RunStoppedError` if the remaining budget is too small even if all reservations are released.
        """
        await self._wait(_PendingReservation(bound, invested, asyncio.get_running_loop().create_future()))

    @asynccontextmanager
    async def holding(self, bound: float, *, partial: bool) -> AsyncGenerator[Reservation]:
        """Reserve `bound` and settle the reservation at the end; raises as `reserve`.

        `partial` accepts less: all that remains once there are no other reservations.
        """
        waiting = _PendingReservation(bound, 0.0, asyncio.get_running_loop().create_future(), partial)
        await self._wait(waiting)
        reservation = Reservation(waiting.bound)
        try:
            yield reservation
        finally:
            self.settle(reservation.amount, reservation.cost, reservation.unanswered)

    async def _wait(self, waiting: _PendingReservation) -> None:
        self._waiting.append(waiting)
        self._grant()
        try:
            await waiting.granted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif not waiting.granted.cancelled() and waiting.granted.exception() is None:
                self.settle(waiting.bound, 0.0)  # granted at the moment of cancellation
            raise

    def settle(self, bound: float, cost: float, unanswered: float = 0.0) -> None:
        """Release a reservation, and add the cost of the call and the possible cost of unanswered calls."""
        self.spent += cost + unanswered
        self._unanswered += unanswered
        self._calls -= 1
        # Rounding errors of the sum must not block the last call.
        self._reserved = self._reserved - bound if self._calls else 0.0
        self._grant()

    def _grant(self) -> None:
        self._waiting.sort(key=lambda waiting: -waiting.invested)
        blocked = False
        for waiting in tuple(self._waiting):
            if waiting.granted.done():  # cancelled; it removes itself
                continue
            if waiting.partial:
                waiting.bound = min(waiting.bound, max(self.most - self.spent, 0.0))
            if self.spent + waiting.bound > self.most and not waiting.partial:
                self._waiting.remove(waiting)
                message = f"--max-cost {self.most:g} is reached: {self.spent:.2f} USD are spent"
                if self._unanswered:
                    message += f" (up to {self._unanswered:.2f} of it on unanswered calls)"
                waiting.granted.set_exception(
                    RunStoppedError(f"{message}, the next call may cost {waiting.bound:.4f}; raise it to continue")
                )
            elif not blocked and (not self._calls or self.spent + self._reserved + waiting.bound <= self.most):
                self._waiting.remove(waiting)
                self._reserved += waiting.bound
                self._calls += 1
                waiting.granted.set_result(None)
            else:
                blocked = True  # calls are granted in order


MESSAGE_TOKENS = 64
"""Upper bound of the tokens that delimit a message or a tool, in the format of any provider."""
HIDDEN_TOKENS = 1_024
"""Upper bound of the tokens that providers add to a request, such as instructions for calling tools."""
CONTEXT_TOKENS = 50_000
"""Input tokens per call in the reserve of a whole episode."""
_UNBILLED = frozenset(
    {
        *(Cause.RATE_LIMIT, Cause.SERVER, Cause.CONNECTION, Cause.BAD_REQUEST),
        *(Cause.AUTH, Cause.QUOTA, Cause.UNKNOWN_MODEL),
    }
)
"""Failures without a generated answer; after any other failure the provider may bill an answer that never arrived."""


def price_of(model: Participant) -> Price | None:
    """Return the price of a model: zero for a program, None if unknown, as for every agent."""
    return NO_CHARGE if isinstance(model, Program) else getattr(model, "price", None)


def reserve_of_attempt(
    participant: Participant, model_key: ModelKey, sub_task: str, max_tokens: int, largest_cost: float
) -> float:
    """Return US dollars to reserve for an episode before its first call; nearly all episodes cost less.

    For an agent it is `largest_cost`, the cost of the most expensive episode so far.
    """
    price = price_of(participant)
    if price is None:
        return largest_cost
    turns = allowance_of(model_key).within(budget_of(sub_task)).turns
    output = model_key.named_arguments.get("max_tokens", max_tokens) * price.output
    return turns * (CONTEXT_TOKENS * max(price.input, price.cached_input, price.cache_write) + output) / 1e6


class Metered:
    """One model for one episode.

    `calls_begun` counts calls made; `usage` and `calls` cover answered ones. `lost_usd` bounds the cost of calls
    without an answer (timeouts, dropped streams, interrupts) or without valid token counts, which the provider may
    bill.

    Parameters
    ----------
    limiter, budget : shared by all episodes of the model, and by the run; None: no limit.
    max_tokens : maximum number of tokens that one call may generate.
    on_expense : called under a budget with the cost so far, before (reserve included) and after each call.
    clock : measures calls without the waits before them.
    """

    def __init__(
        self,
        model: Model,
        limiter: Limiter | None,
        budget: Budget | None,
        max_tokens: int,
        on_expense: Callable[[Expense], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = model.name
        self.provider: str | None = getattr(model, "provider", None)
        self.usage = FREE
        self.calls_begun = self.calls = 0
        self.lost_usd = 0.0
        self._model, self._limiter, self._max_tokens = model, limiter, max_tokens
        self._on_expense, self._clock = on_expense, clock
        self.price = price_of(model)
        self._budget = None if self.price == NO_CHARGE else budget
        self._messages_before = self._input_tokens_before = 0

    def expense(self, *, reserved_usd: float = 0.0) -> Expense:
        """Return the cost of the episode so far, with the reserve of a call in flight."""
        return Expense(self.calls, self.usage, self.lost_usd + reserved_usd)

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        *,
        max_tokens: int | None = None,
        repeat: int = 0,
    ) -> Turn:
        """Answer as `finskillbench.harness.model.Tuned`; raise `RunStoppedError` if the budget is exhausted."""

        async def call_model() -> Turn:
            if is_tuned(self._model):
                return await self._model.generate(messages, tools, tool_choice, max_tokens=max_tokens, repeat=repeat)
            return await self._model.generate(messages, tools, tool_choice)

        limit = self._max_tokens if max_tokens is None else min(max_tokens, self._max_tokens)
        bound = 0.0 if self.price in (None, NO_CHARGE) else self._cost_bound(self.price, messages, tools, limit)
        turn = None
        if is_recalling(self._model):
            turn = self._model.recall(messages, tools, tool_choice, max_tokens, repeat)
        if turn is None:  # a stored answer needs no slot and costs nothing
            turn = await self._call_within_budget(call_model, bound)
        else:
            self.calls_begun += 1
            self.calls += 1
            self.usage += turn.usage
        self._messages_before, self._input_tokens_before = len(messages), turn.usage.input_tokens or 0
        return turn

    async def _call_within_budget(self, call_model: Callable[[], Awaitable[Turn]], bound: float) -> Turn:
        if self._budget is None:
            return await self._call_within_limit(call_model, bound)
        await self._budget.reserve(bound, self.usage.paid_usd + self.lost_usd)
        cost_before = self.usage.paid_usd, self.lost_usd
        try:
            if self._on_expense is not None:
                self._on_expense(self.expense(reserved_usd=bound))
            return await self._call_within_limit(call_model, bound)
        finally:
            self._budget.settle(bound, self.usage.paid_usd - cost_before[0], self.lost_usd - cost_before[1])
            if self._on_expense is not None:
                self._on_expense(self.expense())

    async def _call_within_limit(self, call_model: Callable[[], Awaitable[Turn]], bound: float) -> Turn:
        if self._limiter is None:
            return await self._call(call_model, bound)
        round_begun = await self._limiter.acquire()
        outcome: Outcome = "failed"
        retry_after: float | None = None
        try:
            turn = await self._call(call_model, bound)
            outcome = "answered"
            return turn
        except ProviderError as error:
            if error.cause is Cause.RATE_LIMIT:
                outcome, retry_after = "limited", error.retry_after
            raise
        finally:
            self._limiter.release(round_begun, outcome, retry_after)

    async def _call(self, call_model: Callable[[], Awaitable[Turn]], bound: float) -> Turn:
        self.calls_begun += 1
        started = self._clock()
        try:
            turn = await call_model()
        except ProviderError as error:
            error.seconds = self._clock() - started
            if error.cause not in _UNBILLED:
                self.lost_usd += bound
            raise
        except (Exception, asyncio.CancelledError):
            self.lost_usd += bound
            raise
        if turn.seconds is None:
            turn = replace(turn, seconds=self._clock() - started)
        if not is_possible(turn.usage):
            turn = replace(turn, usage=Usage())
        if turn.usage.cost_usd is None and self.price is not None:
            if turn.usage.is_known or self.price == NO_CHARGE:
                turn = replace(turn, usage=replace(turn.usage, cost_usd=self.price.cost(turn.usage)))
            else:
                self.lost_usd += bound
        self.usage += turn.usage
        self.calls += 1
        return turn

    def _cost_bound(self, price: Price, messages: Sequence[Message], tools: Sequence[ToolSpec], limit: int) -> float:
        """Return an upper bound of the cost of the next call with at most `limit` generated tokens, in US dollars.

        A tokeniser makes at most one token per byte. The provider's count of the conversation so far is a closer bound
        than its bytes; the tokens that it generated are part of the new messages.
        """
        if self._input_tokens_before:
            added = messages[self._messages_before :]
            tokens = self._input_tokens_before + sum(map(_message_bound, added)) + HIDDEN_TOKENS
        else:
            tokens = sum(map(_message_bound, messages)) + sum(map(_tool_bound, tools)) + HIDDEN_TOKENS
        input_price = max(price.input, price.cached_input, price.cache_write)
        return (tokens * input_price + limit * price.output) / 1e6


def _message_bound(message: Message) -> int:
    # Arguments are JSON within JSON, so count them with escapes.
    calls = sum(len(call.id) + len(call.name) + len(json.dumps(call.arguments)) for call in message.tool_calls)
    return len(message.content.encode()) + calls + MESSAGE_TOKENS * (1 + len(message.tool_calls))


def _tool_bound(tool: ToolSpec) -> int:
    content = [tool.name, tool.description, dict(tool.parameters)]
    return len(orjson.dumps(content)) + MESSAGE_TOKENS
