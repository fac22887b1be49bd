"""How far a run has come: counts by model, for whoever shows them.

How many calls a model gets at once: as many as allowed until its provider says "too many", then adaptively.

Additive increase, multiplicative decrease: a rate limit halves the limit, at most once per round (calls that were on
their way when it was halved say nothing new), and a window of answers, one limit long, raises it by one. After
a rate limit nobody calls before the provider's Retry-After, or one second, has passed: else the free slots would spend
the retries of everybody who waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from finskillbench.episode import Status
from finskillbench.errors import RunStoppedError
from finskillbench.harness.loop import FIRST_BACKOFF_SECONDS, LONGEST_WAIT_SECONDS
from finskillbench.notebook import Bar
from finskillbench.runs.store.rows import Row
from finskillbench.sums import summed

Outcome = Literal["answered", "limited", "failed"]


class Limiter:
    """The calls of one model; first come, first served.

    Parameters
    ----------
    most : calls in flight at the start, and ever.
    sleep : waits after a rate limit; tests pass their own.
    """

    def __init__(self, most: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.most = most
        self.limit = most
        self._round = 0
        self._in_flight = 0
        self._answers = 0
        self._sleep = sleep
        self._pauses: set[asyncio.Task[None]] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> int:
        """Wait for a slot; returns the round, which `release` wants back."""
        if self._waiting or not self._has_room():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                elif not turn.cancelled():  # handed a slot in the very moment of the cancellation
                    self._in_flight -= 1
                    self._hand_on()
                raise
        else:
            self._in_flight += 1
        return self._round

    def release(self, begun: int, outcome: Outcome, retry_after: float | None = None) -> None:
        """Give a slot back and say how the call went; `retry_after` is the wait in seconds that the provider asked for.

        `begun` is the round in which the slot was taken.
        """
        self._in_flight -= 1
        if outcome == "limited":
            self._close(FIRST_BACKOFF_SECONDS if retry_after is None else retry_after)
            if begun == self._round:
                self._round += 1
                self._answers = 0
                self.limit = max(1, self.limit // 2)
        elif outcome == "answered" and begun == self._round:
            self._answers += 1
            if self._answers >= self.limit:
                self._answers = 0
                self.limit = min(self.most, self.limit + 1)
        self._hand_on()

    def _has_room(self) -> bool:
        return self._in_flight < self.limit and not self._pauses

    def _hand_on(self) -> None:
        while self._waiting and self._has_room():
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def _close(self, seconds: float) -> None:
        pause = asyncio.create_task(self._pause(min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)))
        self._pauses.add(pause)
        pause.add_done_callback(self._open)

    async def _pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    def _open(self, pause: asyncio.Task[None]) -> None:
        self._pauses.discard(pause)
        self._hand_on()


class SharedLimiter(Limiter):
    """The calls of one model from one of several processes, which a semaphore counts over all of them.

    Parameters
    ----------
    semaphore : `distributed.Semaphore`, which comes without types.
    is_wanted : whether the run still goes on.
    """

    def __init__(self, most: int, semaphore: Any, is_wanted: Callable[[], bool]) -> None:
        super().__init__(most)
        self._semaphore, self._is_wanted = semaphore, is_wanted
        self._releases: set[asyncio.Future[Any]] = set()

    async def acquire(self) -> int:
        """Wait for a slot here and for one of all; raises `RunStoppedError` once the run is over."""
        begun = await super().acquire()
        try:
            await self._semaphore.acquire()
        except BaseException:
            super().release(begun, "failed")
            raise
        if not self._is_wanted():
            self.release(begun, "failed")
            raise RunStoppedError("the driver is lost")
        return begun

    def release(self, begun: int, outcome: Outcome, retry_after: float | None = None) -> None:
        """Give both slots back."""
        super().release(begun, outcome, retry_after)
        release = asyncio.ensure_future(self._semaphore.release())
        self._releases.add(release)
        release.add_done_callback(self._releases.discard)


@dataclass(slots=True)
class Counts:
    """Of one model, or of all: episodes planned, finished before and now, failed; US dollars of all rows.

    `cost_usd` is None as soon as the price of one row is not known.
    """

    planned: int = 0
    kept: int = 0
    ran: int = 0
    errors: int = 0
    cost_usd: float | None = 0.0

    @property
    def done(self) -> int:
        """Episodes that need not be run any more."""
        return self.kept + self.ran

    def add(self, row: Row) -> None:
        """Count the price and the failure of a row."""
        self.errors += row.status is Status.ERROR
        known = self.cost_usd is not None and row.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (row.cost_usd or 0.0) if known else None

    def summary(self, seconds: float) -> str:
        """One line after so many seconds: done of planned, errors, cost if there is one, time left."""
        parts = [f"{self.done:,} of {self.planned:,} episodes", f"{self.errors:,} error{'s' * (self.errors != 1)}"]
        if self.cost_usd is None:
            parts.append("cost unknown")
        elif self.cost_usd:
            parts.append(f"USD {self.cost_usd:.2f}")
        if self.ran and self.planned > self.done:
            parts.append(f"{timedelta(seconds=round(seconds / self.ran * (self.planned - self.done)))} left")
        return ", ".join(parts)


@dataclass(slots=True)
class Board:
    """Counts by model, in the order of the plan; `notice` is the latest thing a user should be told, if any."""

    models: dict[str, Counts] = field(default_factory=dict[str, Counts])
    notice: str = ""

    @property
    def done(self) -> int:
        """Episodes that need not be run any more."""
        return sum(counts.done for counts in self.models.values())

    @property
    def planned(self) -> int:
        """Episodes of the run, or of its shard."""
        return sum(counts.planned for counts in self.models.values())

    @property
    def total(self) -> Counts:
        """Counts of all models together."""
        every = list(self.models.values())
        costs = [counts.cost_usd for counts in every]
        known = [cost for cost in costs if cost is not None]
        return Counts(
            self.planned,
            sum(counts.kept for counts in every),
            sum(counts.ran for counts in every),
            sum(counts.errors for counts in every),
            summed(known) if len(known) == len(costs) else None,
        )


_SECONDS_BETWEEN_UPDATES = 0.5
Progress = Callable[[Board, Row | None], None]
"""Called with the board, and the row that has just come in: after each episode, and with no row at the start and with
each new notice."""


class NotebookProgress:
    """Progress in the cell of a notebook; nothing elsewhere."""

    def __init__(self) -> None:
        self._bar, self._started = Bar(), time.monotonic()
        self._shown = -_SECONDS_BETWEEN_UPDATES  # the first call is shown at once

    def __call__(self, board: Board, row: Row | None) -> None:
        """Show the board, at most twice a second and at the end."""
        seconds = time.monotonic() - self._started
        if seconds - self._shown >= _SECONDS_BETWEEN_UPDATES or board.done == board.planned:
            self._shown = seconds
            self._bar.show(board.total.summary(seconds), board.done, board.planned)


def make_board(planned: Iterable[str], kept: Iterable[Row]) -> Board:
    """A board at the start: the model of each planned episode, and the rows of those finished before."""
    board = Board()
    for model in planned:
        board.models.setdefault(model, Counts()).planned += 1
    for row in kept:
        counts = board.models[row.model]
        counts.kept += 1
        counts.add(row)
    return board
