"""A budget that is never exceeded: before each model call an upper bound of its price is set aside, after it the price
itself is taken.

Near the end calls wait for what others give back. The episode that has cost most so far goes first, since dropping it
would lose most; a call that what is left cannot pay even alone stops its episode.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from finskillbench.errors import RunStoppedError


class Purse(Protocol):
    """What calls are paid from: the budget of this process, or that of a driver elsewhere; see `Budget`."""

    async def reserve(self, bound: float, invested: float = 0.0) -> None: ...

    def settle(self, bound: float, cost: float, unanswered: float = 0.0) -> None: ...


@dataclass(eq=False, slots=True)
class _Waiting:
    bound: float
    invested: float
    granted: asyncio.Future[None]


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
        self._waiting: list[_Waiting] = []

    async def reserve(self, bound: float, invested: float = 0.0) -> None:
        """Set `bound` aside, after waiting while others may give some of theirs back.

        `invested` is what the same episode has cost so far; of the calls that wait, the largest goes first.

        Raises
        ------
        RunStoppedError : what is left does not reach, whatever the others give back.
        """
        waiting = _Waiting(bound, invested, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._grant()
        try:
            await waiting.granted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif not waiting.granted.cancelled() and waiting.granted.exception() is None:
                self.settle(bound, 0.0)  # granted in the very moment of the cancellation
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
            if self.spent + waiting.bound > self.most:
                self._waiting.remove(waiting)
                message = f"--max-cost {self.most:g} is reached: {self.spent:.2f} USD are spent"
                if self._unanswered:
                    message += f" (up to {self._unanswered:.2f} of it on calls whose answers never came)"
                waiting.granted.set_exception(
                    RunStoppedError(f"{message}, the next call may cost {waiting.bound:.4f}; raise it to go on")
                )
            elif not blocked and self.spent + self._reserved + waiting.bound <= self.most:
                self._waiting.remove(waiting)
                self._reserved += waiting.bound
                self._calls += 1
                waiting.granted.set_result(None)
            else:
                blocked = True  # nobody overtakes the first that has to wait
