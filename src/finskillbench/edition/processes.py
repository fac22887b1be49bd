"""Processes that share the work of a build with the one that drives it."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from finskillbench.domains import domains
from finskillbench.garbage import SELDOM

P = ParamSpec("P")
T = TypeVar("T")


class Processes:
    """One process for each core but the driver's; on one core the driver does the work itself.

    They are spawned at the first call of `submit` and import the numerical libraries while the driver works on. A
    `with` block that ends in an error ends them at once.
    """

    def __init__(self, most: int) -> None:
        """Have at most `most` processes beside the driver."""
        self.count = min(most, len(os.sched_getaffinity(0)) - 1)
        self._before = multiprocessing.active_children()
        self._pool: ProcessPoolExecutor | None = None
        if self.count > 0:
            # Not forked: the numerical libraries hold threads, which a fork would break.
            self._pool = ProcessPoolExecutor(self.count, multiprocessing.get_context("spawn"), _set_up)

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call in a free process; without any, make the call here and now."""
        if self._pool is not None:
            return self._pool.submit(function, *args, **kwargs)
        done: Future[T] = Future()
        done.set_result(function(*args, **kwargs))
        return done

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, failed: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        if failed is not None:
            self.stop()
        self._pool.shutdown(cancel_futures=True)

    def stop(self) -> None:
        """End the processes, whatever they do; calls that wait for them fail."""
        for child in multiprocessing.active_children():
            if child not in self._before:
                child.terminate()


def _set_up() -> None:
    """Import every library, then have BLAS use one thread and the garbage collector run rarely."""
    domains()
    threadpool_limits(1)
    gc.set_threshold(SELDOM)
