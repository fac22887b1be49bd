"""The pace of requests to one source, kept over all threads, and its pauses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pace:
    """Spaces requests evenly: no second ever holds more than `per_second` of them, however many threads ask.

    Evenly rather than in bursts, because the SEC counts in windows that nobody knows.
    """

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._gap = 1.0 / per_second
        self._clock, self._sleep = clock, sleep
        self._next = clock()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Sleep until it is the caller's turn, or until `sleep` says that it was woken."""
        while True:
            with self._lock:
                now = self._clock()
                if now >= self._next:
                    self._next = now + self._gap
                    return
                left = self._next - now
            if self._sleep(left):
                return

    def pause(self, seconds: float) -> None:
        """Let nobody ask for so many seconds: the source said so."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
