"""The budget and the limiter of a driver as an episode on a worker meets them: every question is a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from finskillbench.errors import RunStoppedError
from finskillbench.runs.cluster import messages as m
from finskillbench.runs.execute.board import Outcome
from finskillbench.runs.store.record import NOTHING, Expense

Say = Callable[[m.FromDesk], None]


class Question:
    """Something asked of the driver, one at a time."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[int] | None = None

    @property
    def waits(self) -> bool:
        """Whether an answer is awaited."""
        return self._answer is not None and not self._answer.done()

    async def answer(self) -> int:
        """Wait for the answer; raises `RunStoppedError` where it is a refusal."""
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    def grant(self, value: int) -> None:
        """Answer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(value)

    def refuse(self, why: str) -> None:
        """Refuse."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(RunStoppedError(why))


class RemoteBudget:
    """The budget of the run for one episode; see `finskillbench.runs.execute.metered.Budget`."""

    def __init__(self, number: int, say: Say) -> None:
        self.asked = Question()
        self._number, self._say = number, say

    async def reserve(self, bound: float, invested: float = 0.0) -> None:
        """Set `bound` aside; raises `RunStoppedError` where what is left does not reach."""
        self._say(m.Reserve(self._number, bound, invested))
        await self.asked.answer()

    def settle(self, bound: float, cost: float, unanswered: float = 0.0) -> None:
        """Give a reservation back and take what the call did cost."""
        self._say(m.Settle(self._number, bound, cost, unanswered))


class RemoteSlots:
    """The limiter of a model for one episode; see `finskillbench.runs.execute.board.Limiter`."""

    def __init__(self, number: int, say: Say) -> None:
        self.asked = Question()
        self._number, self._say = number, say
        self._expense: Callable[[], Expense] = lambda: NOTHING

    def tells(self, expense: Callable[[], Expense]) -> None:
        """Have the driver told after each call what the episode has cost so far."""
        self._expense = expense

    async def acquire(self) -> int:
        """Wait for a slot; returns the round, which `release` wants back."""
        self._say(m.Acquire(self._number))
        return await self.asked.answer()

    def release(self, begun: int, outcome: Outcome, retry_after: float | None = None) -> None:
        """Give the slot back and say how the call went."""
        self._say(m.Release(self._number, begun, outcome, retry_after, self._expense()))
