"""An episode that is played on a worker, as the driver keeps it: what it asked for, what it holds, what it has cost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from finskillbench import errors
from finskillbench.errors import FinSkillBenchError, InputError, InternalError, RunStoppedError
from finskillbench.harness.skills.given import Memory
from finskillbench.runs.cluster import messages as m
from finskillbench.runs.execute.here import Played, Terms
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.record import NOTHING, Dropped, Expense

if TYPE_CHECKING:
    from finskillbench.runs.cluster.driver import Desk, Driver

LIVES = 4
"""Workers on which one episode is tried: who loses the fourth may be killing them."""
WORKER_LOST = "worker lost"


class DeskLostError(Exception):
    """The desk at which an episode was played is gone, and with it the try."""


class Ticket:
    """One episode at a desk, and at the next where that is lost; see `finskillbench.runs.execute.here.Sitting`.

    Every reservation and every slot that a desk asks for is taken here, on the driver, so that they hold across
    workers; what a lost desk held is given back, its call under way counted at its upper bound.
    """

    def __init__(self, driver: Driver, item: Item, terms: Terms, *, calls: bool) -> None:
        self.asked = 0
        self.lost_usd = 0.0
        self.item = item
        self._driver, self._terms = driver, terms
        self._expense = NOTHING
        self._reserved: float | None = None
        self._round: int | None = None
        self._asking: set[asyncio.Task[None]] = set()
        # A program and an agent without a budget ask for nothing: they are begun when they are handed out.
        self._asks = calls or terms.budget is not None
        self._calls = calls
        self._answer: asyncio.Future[m.Done] | None = None

    def expense(self) -> Expense:
        """What this try has cost so far, its call under way at the upper bound under a budget."""
        return self._expense

    async def play(self, memory: Memory) -> Played:
        """Have it played, again where a worker is lost.

        Raises
        ------
        RunStoppedError : the budget does not reach, no worker is left, or too many were lost with this episode.
        FinSkillBenchError : what a desk could not do, by the same class as in one process.
        """
        for _ in range(LIVES):
            desk = await self._driver.choose(self.item)
            number = self._driver.number()
            self._answer = asyncio.get_running_loop().create_future()
            desk.tickets[number] = self
            desk.send(m.Play(number, self.item, memory, self._calls, self._terms.dearest))
            self.asked = 0 if self._asks else 1
            try:
                done = await self._answer
                self.lost_usd = done.lost_usd
                return self._driver.played(self.item, done)
            except DeskLostError:
                self._driver.lost(self.item)
                self._give_back()
                self._close_books()
            except asyncio.CancelledError:
                desk.send(m.Drop(number))
                raise
            finally:
                desk.tickets.pop(number, None)
                self._give_back()
        raise RunStoppedError(
            f"{self.item.task_id} was in play when {LIVES} workers were lost; see what kills them (memory?), the same "
            "command goes on"
        )

    def hear(self, desk: Desk, number: int, message: m.FromDesk) -> None:
        """Take in what the desk says of this episode."""
        budget, limiter = self._terms.budget, self._terms.limiter
        match message:
            case m.Reserve(bound=bound, invested=invested):
                self._ask(self._reserve(desk, number, bound, invested))
            case m.Settle(bound=bound, cost=cost, unanswered=unanswered):
                if budget is not None and self._reserved is not None:
                    self._reserved = None
                    budget.settle(bound, cost, unanswered)
            case m.Note(expense=expense):
                self._expense = expense
                self._terms.note(expense)
            case m.Acquire():
                self._ask(self._acquire(desk, number))
            case m.Release(begun=begun, outcome=outcome, retry_after=retry_after, expense=expense):
                if budget is None:
                    self._expense = expense
                if limiter is not None and self._round is not None:
                    self._round = None
                    limiter.release(begun, outcome, retry_after)
            case m.Done():
                if self._answer is not None and not self._answer.done():
                    self._answer.set_result(message)
            case m.Stopped(why=why):
                self.fail(RunStoppedError(why))
            case m.Failed(kind=kind, told=told):
                self.fail(_error(kind, f"worker {desk.worker}: {told}"))
            case m.Opened() | m.Beat():
                pass

    def fail(self, error: Exception) -> None:
        """End the try with an error."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def _ask(self, asking: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _reserve(self, desk: Desk, number: int, bound: float, invested: float) -> None:
        assert self._terms.budget is not None
        try:
            await self._terms.budget.reserve(bound, invested)
        except RunStoppedError as stop:
            desk.send(m.Refused(number, str(stop)))
            return
        self._reserved = bound
        self.asked = self.asked or int(not self._calls)
        desk.send(m.Granted(number))

    async def _acquire(self, desk: Desk, number: int) -> None:
        assert self._terms.limiter is not None
        self._round = await self._terms.limiter.acquire()
        self.asked += 1
        desk.send(m.Granted(number, self._round))

    def _give_back(self) -> None:
        """Return what the try holds of the budget and of the limiter, as nobody else will."""
        for task in tuple(self._asking):
            task.cancel()
        if self._reserved is not None and self._terms.budget is not None:
            self._terms.budget.settle(self._reserved, 0.0, self._reserved)
        if self._round is not None and self._terms.limiter is not None:
            self._terms.limiter.release(self._round, "failed")
        self._reserved = self._round = None

    def _close_books(self) -> None:
        """Note what a lost try has cost: it is paid, and the next begins with nothing."""
        if self._expense != NOTHING:
            self._driver.note(Dropped(self.item, WORKER_LOST, self._expense))
        self._expense = NOTHING


def _error(kind: str, told: str) -> FinSkillBenchError:
    """What failed on a worker, as the same class of error where that takes words alone."""
    known: Mapping[str, type[FinSkillBenchError]] = {
        each.__name__: each for each in (InputError, errors.EditionError, errors.SkillError, InternalError)
    }
    return known.get(kind, FinSkillBenchError if kind else InternalError)(told)
