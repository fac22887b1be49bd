"""Adaptive limit of concurrent calls of a model.

Additive increase, multiplicative decrease: a rate limit halves the limit, at most once per round. As many answers as
the limit raise it by one; calls that began before it was halved do not count. After a rate limit no call starts before
the provider's Retry-After, or one second, has passed; otherwise free slots would use up the retries of waiting calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from finskillbench.errors import RunStoppedError
from finskillbench.harness.loop import FIRST_BACKOFF_SECONDS, LONGEST_WAIT_SECONDS

Outcome = Literal["answered", "limited", "failed"]


class Limiter:
    """Concurrent calls of one model, first come, first served; `most` is the initial and maximum limit."""

    def __init__(self, most: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.most = self.limit = most
        self._round = self._in_flight = self._answers = 0
        self._sleep = sleep
        self._pauses: set[asyncio.Task[None]] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> int:
        """Wait for a slot; return the round, an argument of `release`."""
        if self._waiting or not self._has_free_slot():
            slot = asyncio.get_running_loop().create_future()
            self._waiting.append(slot)
            try:
                await slot
            except asyncio.CancelledError:
                if slot in self._waiting:
                    self._waiting.remove(slot)
                elif not slot.cancelled():  # the slot was granted at the moment of cancellation
                    self._in_flight -= 1
                    self._grant_waiting()
                raise
        else:
            self._in_flight += 1
        return self._round

    def release(self, round_begun: int, outcome: Outcome, retry_after: float | None = None) -> None:
        """Release a slot that was taken in `round_begun`; `retry_after` is the provider's wait in seconds."""
        self._in_flight -= 1
        if outcome == "limited":
            self._start_pause(FIRST_BACKOFF_SECONDS if retry_after is None else retry_after)
            if round_begun == self._round:
                self._round += 1
                self._answers = 0
                self.limit = max(1, self.limit // 2)
        elif outcome == "answered" and round_begun == self._round:
            self._answers += 1
            if self._answers >= self.limit:
                self._answers = 0
                self.limit = min(self.most, self.limit + 1)
        self._grant_waiting()

    def _has_free_slot(self) -> bool:
        return self._in_flight < self.limit and not self._pauses

    def _grant_waiting(self) -> None:
        while self._waiting and self._has_free_slot():
            slot = self._waiting.popleft()
            if not slot.done():
                self._in_flight += 1
                slot.set_result(None)

    def _start_pause(self, seconds: float) -> None:
        pause = asyncio.create_task(self._pause(min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)))
        self._pauses.add(pause)
        pause.add_done_callback(self._end_pause)

    async def _pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    def _end_pause(self, pause: asyncio.Task[None]) -> None:
        self._pauses.discard(pause)
        self._grant_waiting()


class SharedLimiter(Limiter):
    """Limiter for one of several processes that share the limit of a model by a semaphore.

    `semaphore` is a `distributed.Semaphore`, which has no types; `is_active` returns False once the run is over.
    """

    def __init__(self, most: int, semaphore: Any, is_active: Callable[[], bool]) -> None:
        super().__init__(most)
        self._semaphore, self._is_active = semaphore, is_active
        self._releases: set[asyncio.Future[Any]] = set()

    async def acquire(self) -> int:
        """Wait for a local and a shared slot; raise `RunStoppedError` once the run is over."""
        round_begun = await super().acquire()
        try:
            await self._semaphore.acquire()
        except BaseException:
            super().release(round_begun, "failed")
            raise
        if not self._is_active():
            self.release(round_begun, "failed")
            raise RunStoppedError("the driver is lost")
        return round_begun

    def release(self, round_begun: int, outcome: Outcome, retry_after: float | None = None) -> None:
        """Release both slots."""
        super().release(round_begun, outcome, retry_after)
        release = asyncio.ensure_future(self._semaphore.release())
        self._releases.add(release)
        release.add_done_callback(self._releases.discard)
