"""How much work an episode takes: what has to be read, decided and computed, counted and not judged.

`difficulty` names a stratum; these figures say what its episodes ask for, so that a reader sees whether hard is more
work than easy. All three are counted from what the build has at hand, so that they cost it nothing:

- reads: fields of the input, and figures as filed that an episode may see;
- decisions: limits, views, shocks and holdings that the answer has to heed one by one, the entries that it lists, and
  the figures for which one of several things that filings state has to be chosen;
- computations: numbers that were derived for the answer or, for an optimum, conditions that hold it in place, over all
  the programs that were solved.

Processes that share the work of a build with the one that drives it.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import astuple, dataclass
from statistics import median
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from finskillbench.domains import domains
from finskillbench.domains.building import Task
from finskillbench.garbage import SELDOM
from finskillbench.scoring.values import array, is_array, is_object, mapping, number

_LISTED = ("constraints", "limits", "analyst_views", "views", "shocks", "market_shocks", "sector_limits", "holdings")
"""Fields whose entries are heeded one by one."""
LEVELS = ("easy", "medium", "hard")


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one episode."""

    reads: int
    decisions: int
    computations: int


def work_of(task: Task, resolved: Mapping[str, Any]) -> Work:
    """The work of a task whose input has its references resolved."""
    filed = sum(len(array(part)) for value in resolved.values() for part in _tables(value))
    return Work(
        reads=len(resolved) + filed,
        decisions=_entries(task.episode.input) + _listed(task.truth.expected_output) + _chosen(task.certificate),
        computations=_computed(task.certificate) or _derived(task.truth.proof),
    )


def summary(works: Iterable[tuple[str, Work]]) -> dict[str, dict[str, float]]:
    """Median reads, decisions and computations by difficulty, in the order of the levels."""
    by_level: dict[str, list[Work]] = {}
    for level, work in works:
        by_level.setdefault(level, []).append(work)
    known = sorted(by_level, key=lambda level: LEVELS.index(level) if level in LEVELS else len(LEVELS))
    names = ("reads", "decisions", "computations")
    found: dict[str, dict[str, float]] = {}
    for level in known:
        columns = zip(*map(astuple, by_level[level]), strict=True)
        found[level] = {name: float(median(column)) for name, column in zip(names, columns, strict=True)}
    return found


def _tables(value: object) -> list[object]:
    """Tables of rows as filed; a matrix is one read however large it is."""
    return [value[name] for name in ("facts", "segments") if name in value] if is_object(value) else []


def _entries(value: object) -> int:
    """Entries of the fields of an input that are heeded one by one, however deep."""
    if not is_object(value):
        return 0
    own = sum(len(part) for name, part in value.items() if name in _LISTED and (is_object(part) or is_array(part)))
    return own + sum(_entries(part) for name, part in value.items() if name not in ("conventions", "covariance_matrix"))


def _listed(answer: object) -> int:
    """Entries that an answer lists: weights held, trades, statuses, exposures, drivers."""
    if not is_object(answer):
        return len(array(answer))
    return sum(_listed(one) if is_object(one) or is_array(one) else one not in (0, None) for one in answer.values())


def _chosen(certificate: object) -> int:
    return int(number(mapping(certificate).get("decisions")) or 0)


def _computed(certificate: object) -> int:
    """Conditions of the programs of a certificate, each as often as programs were solved."""
    if not is_object(certificate):
        return 0
    programs = number(certificate.get("programs_solved")) or 1
    own = int(programs) * len(array(certificate.get("multipliers")))
    return own + sum(_computed(part) for part in certificate.values() if is_object(part))


def _derived(proof: object) -> int:
    return int(number(mapping(proof).get("numbers")) or 0)


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
