"""A model as one episode meets it: behind its own limiter and the budget of the run, with everything counted.

The loop's own retries pass through here too, so each try waits for a slot and is paid for.

A budget that is never exceeded: before each model call an upper bound of its price is set aside, after it the price
itself is taken.

Near the end calls wait for what others give back. The episode that has cost most so far goes first, since dropping it
would lose most; a call that what is left cannot pay even alone stops its episode.
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
from finskillbench.harness.model import FREE, Message, Model, ToolSpec, Turn, Usage, is_recalling, is_tuned, is_possible
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
    """An amount that is set aside, and what it came to; all in US dollars."""

    amount: float = 0.0
    cost: float = 0.0
    unanswered: float = 0.0


class Budget:
    """US dollars of one run folder.

    Parameters
    ----------
    most : what may be spent in all.
    spent : what has been spent before.
    """

    def __init__(self, most: float, spent: float = 0.0) -> None:
        self.most = most
        self.spent = spent
        self._reserved = 0.0
        self._unanswered = 0.0
        self._calls = 0
        self._waiting: list[_PendingReservation] = []

    async def reserve(self, bound: float, invested: float = 0.0) -> None:
        """Set `bound` aside, after waiting while others may give some of theirs back.

        `invested` is what the same episode has cost so far; of the calls that wait, the largest goes first.

        Raises
        ------
        RunStoppedError : what is left does not reach, whatever the others give back.
        """
        await self._wait(_PendingReservation(bound, invested, asyncio.get_running_loop().create_future()))

    @asynccontextmanager
    async def holding(self, bound: float, *, partial: bool) -> AsyncGenerator[Reservation]:
        """Set `bound` aside and settle what the reservation says in the end; errors as of `reserve`.

        `partly` takes all that is left where that is less, once no others hold any of it.
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
                self.settle(waiting.bound, 0.0)  # granted in the very moment of the cancellation
            raise

    def settle(self, bound: float, cost: float, unanswered: float = 0.0) -> None:
        """Give a reservation back and take what the call did cost, or may have cost where no answer came."""
        self.spent += cost + unanswered
        self._unanswered += unanswered
        self._calls -= 1
        # Sums of floats leave dust, which must not keep the last call waiting.
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
                    message += f" (up to {self._unanswered:.2f} of it on calls whose answers never came)"
                waiting.granted.set_exception(
                    RunStoppedError(f"{message}, the next call may cost {waiting.bound:.4f}; raise it to go on")
                )
            elif not blocked and (not self._calls or self.spent + self._reserved + waiting.bound <= self.most):
                self._waiting.remove(waiting)
                self._reserved += waiting.bound
                self._calls += 1
                waiting.granted.set_result(None)
            else:
                blocked = True  # nobody overtakes the first that has to wait


MESSAGE_TOKENS = 64
"""More than the tokens that mark where a message or a tool begins and ends, in any provider's format."""
HIDDEN_TOKENS = 1_024
"""More than what providers add to a request by themselves, such as the instructions for calling tools."""
CONTEXT_TOKENS = 50_000
"""Input of a call that the reserve of a whole episode allows for."""
_UNBILLED = frozenset(
    {
        *(Cause.RATE_LIMIT, Cause.SERVER, Cause.CONNECTION, Cause.BAD_REQUEST),
        *(Cause.AUTH, Cause.QUOTA, Cause.UNKNOWN_MODEL),
    }
)
"""Failures in which no answer was generated; after any other one the provider may bill what never arrived."""


def price_of(model: Participant) -> Price | None:
    """The price of a model, or None where it is not known, as for every agent; a program costs nothing."""
    return NO_CHARGE if isinstance(model, Program) else getattr(model, "price", None)


def reserve_of_attempt(
    participant: Participant, model_key: ModelKey, sub_task: str, max_tokens: int, largest_cost: float
) -> float:
    """Return US dollars to reserve for an episode before its first call; nearly all stay below.

    Of an agent it is `dearest`, the price of the dearest episode so far.
    """
    price = price_of(participant)
    if price is None:
        return largest_cost
    turns = allowance_of(model_key).within(budget_of(sub_task)).turns
    output = model_key.named_arguments.get("max_tokens", max_tokens) * price.output
    return turns * (CONTEXT_TOKENS * max(price.input, price.cached_input, price.cache_write) + output) / 1e6


class Metered:
    """One model for one episode.

    `asked` counts the calls that were made, `usage` and `calls` those that were answered. `lost_usd` is the upper bound
    of what calls cost whose answers never arrived (timeouts, dropped streams, an interruption), or came without token
    counts that can be: the provider may bill them and does not say.

    Parameters
    ----------
    model : who answers.
    limiter : of all episodes of the model; None where it has none.
    budget : of the run; None where nothing limits it. A model that costs nothing never asks it.
    max_tokens : the most that one call may generate.
    note : called under a budget before and after each call with what the episode has cost so far; before the call, the
        amount that is set aside for it is counted among the unanswered.
    clock : tells what a call takes apart from the waits before it.
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
        self.calls_begun = 0
        self.calls = 0
        self.lost_usd = 0.0
        self._model, self._limiter, self._max_tokens = model, limiter, max_tokens
        self._on_expense, self._clock = on_expense, clock
        self.price = price_of(model)
        self._budget = None if self.price == NO_CHARGE else budget
        self._messages_before = 0
        self._input_tokens_before = 0

    def expense(self, *, reserved_usd: float = 0.0) -> Expense:
        """What the episode has cost so far, with what is set aside for a call under way."""
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
        """Answer the conversation so far; arguments and errors as those of `finskillbench.harness.model.Tuned`.

        Raises
        ------
        RunStoppedError : the budget does not reach.
        """

        async def call_model() -> Turn:
            if is_tuned(self._model):
                return await self._model.generate(messages, tools, tool_choice, max_tokens=max_tokens, repeat=repeat)
            return await self._model.generate(messages, tools, tool_choice)

        limit = self._max_tokens if max_tokens is None else min(max_tokens, self._max_tokens)
        bound = 0.0 if self.price in (None, NO_CHARGE) else self._cost_bound(self.price, messages, tools, limit)
        turn = self._recalled_turn(messages, tools, tool_choice, max_tokens, repeat) or await self._call_within_budget(call_model, bound)
        self._messages_before, self._input_tokens_before = len(messages), turn.usage.input_tokens or 0
        return turn

    def _recalled_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        max_tokens: int | None,
        repeat: int,
    ) -> Turn | None:
        """An answer that was kept: it waits for nobody, and nothing is paid."""
        if not is_recalling(self._model):
            return None
        turn = self._model.recall(messages, tools, tool_choice, max_tokens, repeat)
        if turn is not None:
            self.calls_begun += 1
            self.calls += 1
            self.usage += turn.usage
        return turn

    async def _call_within_budget(self, call_model: Callable[[], Awaitable[Turn]], bound: float) -> Turn:
        """Make a call with its upper bound set aside."""
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
        """An upper bound of what the next call costs that may generate `limit` tokens, in US dollars.

        No tokeniser makes more tokens than there are bytes. What the provider counted of the conversation so far
        is a closer bound than its bytes; what it generated itself is in the new messages again.
        """
        if self._input_tokens_before:
            tokens = self._input_tokens_before + sum(map(_message_bound, messages[self._messages_before :])) + HIDDEN_TOKENS
        else:
            tokens = sum(map(_message_bound, messages)) + sum(map(_tool_bound, tools)) + HIDDEN_TOKENS
        input_price = max(price.input, price.cached_input, price.cache_write)
        return (tokens * input_price + limit * price.output) / 1e6


def _message_bound(message: Message) -> int:
    # Arguments are JSON within JSON: counted as they are escaped on the wire.
    calls = sum(len(call.id) + len(call.name) + len(json.dumps(call.arguments)) for call in message.tool_calls)
    return len(message.content.encode()) + calls + MESSAGE_TOKENS * (1 + len(message.tool_calls))


def _tool_bound(tool: ToolSpec) -> int:
    content = [tool.name, tool.description, dict(tool.parameters)]
    return len(orjson.dumps(content)) + MESSAGE_TOKENS
