"""The parts of an edition by domain: what it prepares, its tasks with their labels derived again, and their files.

They are built in as many processes as there are cores, each domain as a whole or, where it can be divided, by subtask.

How much work an episode takes: what has to be read, decided and computed, counted and not judged.

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
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, replace
from datetime import date
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import orjson
from threadpoolctl import threadpool_limits

from finskillbench.domains import domain as registered
from finskillbench.domains import domains
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.catalog import Catalog
from finskillbench.domains.checks.proofs import rederived
from finskillbench.domains.tables import table_file
from finskillbench.edition.references import References
from finskillbench.edition.store import CANARY, STAGES, episode_row, write_lines
from finskillbench.episode import Episode, JsonObject
from finskillbench.garbage import SELDOM
from finskillbench.panels import read_panels
from finskillbench.scoring.values import array, is_array, is_object, mapping, number
from finskillbench.sources.edgar.collection import load_filings

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


Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """Inputs of one build, from which every process that can read its folders builds the same part.

    `folder` is the edition's, which holds its panels; `raw` the raw files; `files` those that references may name.
    """

    folder: Path
    raw: Path
    files: tuple[str, ...]
    seed: int
    catalog: Catalog
    synthetic: bool
    filed: tuple[date, date] | None
    episodes: int | None = None

    def context(self, one: Domain) -> BuildContext:
        """The context that a domain is built in, with notes of its own; raw filings are read where it needs them."""
        filings = load_filings(self.raw) if "company facts" in one.needs else None
        panels = read_panels(self.folder / "panels")
        return BuildContext(panels, self.seed, filings, self.catalog, self.synthetic, self.filed, self.episodes)


@dataclass(frozen=True, slots=True)
class Part:
    """Share of a domain in an edition: counts and work by subtask, parameters for the manifest, notes."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    work: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict[str, dict[str, dict[str, float]]])
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])


class Unit(NamedTuple):
    """Subtasks of a domain that one process builds."""

    domain: str
    subtasks: tuple[str, ...]


def units_of(chosen: Sequence[Domain]) -> list[Unit]:
    """Divide the work of a build: a unit for each domain, or for each subtask of a domain that can be divided."""
    found: list[Unit] = []
    for one in chosen:
        names = [subtask.name for subtask in one.subtasks if subtask.build is not None]
        found += [Unit(one.name, (name,)) for name in names] if one.divisible else [Unit(one.name, tuple(names))]
    return [unit for unit in found if unit.subtasks]


def build_parts(order: Order, units: Sequence[Unit], processes: Processes, progress: Progress) -> list[Part]:
    """Build some units into the edition's folder, whole domains first; parts are in the order of the units."""
    left = deque(sorted(range(len(units)), key=lambda place: -len(units[place].subtasks)))
    found: dict[int, Part] = {}

    def hand_on() -> None:
        while (place := _taken(left)) is not None:
            found[place] = processes.submit(_build, order, units[place]).result()

    with ThreadPoolExecutor(max(processes.count, 1), "build") as threads:
        waiting = [threads.submit(hand_on) for _ in range(processes.count)]
        try:
            while (place := _taken(left)) is not None:
                found[place] = _build(order, units[place], progress)
                if left:
                    gc.collect()  # a build looks for cyclic garbage seldom; the next domain needs this memory
            progress("waiting for the other processes")
            for each in waiting:
                each.result()
        except BaseException:
            left.clear()
            processes.stop()
            raise
    return [found[place] for place in range(len(units))]


def _taken(left: deque[int]) -> int | None:
    """Take the first of a queue that other threads take from; None once it is empty."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _build(order: Order, unit: Unit, progress: Progress = lambda step: None) -> Part:
    """Build the subtasks of a unit, from the panels on disk; tables that it read of them are dropped with it."""
    one, references, part = registered(unit.domain), References(order.folder, order.files), Part()
    context = replace(order.context(one), notes=part.notes)
    progress(f"preparing {one.title}")
    prepared = one.prepare(context)
    for subtask in one.subtasks:
        if subtask.build is None or subtask.name not in unit.subtasks:
            continue
        progress(f"proving {subtask.name}")
        count, work = write_subtask(order.folder, subtask, subtask.build(context, prepared), references)
        if count:  # none where the collection does not support the subtask; a note of the context says why
            part.counts[subtask.name], part.work[subtask.name] = count, work
    part.parameters.update(one.parameters(prepared))
    return part


def write_subtask(
    folder: Path, subtask: Subtask, tasks: Iterable[Task], references: References
) -> tuple[int, dict[str, dict[str, float]]]:
    """Write the tasks of one subtask, each label derived a second time where it can be; return their count and work.

    Tables are written and dropped as each task comes.
    """
    written: list[Task] = []
    works: list[tuple[str, Work]] = []
    for task in tasks:
        references.add(_write_tables(folder, task))
        task_input = task.episode.input
        truth = replace(task.truth, verification=subtask.verification.for_label(task.truth.verification))
        if subtask.rederive is not None:
            task_input = _resolved(task, references)
            leaves = subtask.derived_again(_stored(truth.expected_output), task_input)
            truth = replace(truth, proof=rederived(truth.task_id, leaves))
        written.append(replace(task, truth=truth, tables={}))
        works.append((task.episode.difficulty, work_of(written[-1], task_input)))
    if not written:
        return 0, {}
    file = f"{subtask.name}.jsonl"
    write_lines(folder / "episodes" / file, (episode_row(_marked(task.episode)) for task in written))
    write_lines(folder / "truth" / file, [task.truth for task in written])
    certificates = ({"task_id": task.episode.task_id, "certificate": task.certificate} for task in written)
    write_lines(folder / "certificates" / file, certificates)
    hidden = [{"task_id": task.episode.task_id, "hidden": task.hidden} for task in written if task.hidden is not None]
    if hidden:
        write_lines(folder / STAGES / file, hidden)
    return len(written), summary(works)


def _write_tables(folder: Path, task: Task) -> list[str]:
    """Write the tables of a task; return their names in the edition."""
    written: list[str] = []
    for name, frame in task.tables.items():
        written.append(table_file(task.episode.task_id, name))
        path = folder / written[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path, compression="zstd", statistics=False)
    return written


def _marked(episode: Episode) -> Episode:
    return replace(episode, metadata={**episode.metadata, "canary": CANARY})


def _resolved(task: Task, references: References) -> dict[str, Any]:
    """The input of a task as an agent will read it."""
    return {name: references.resolved(value) for name, value in _stored(task.episode.input).items()}


def _stored(value: JsonObject) -> dict[str, Any]:
    """An object as it reads back from the edition's files."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))
