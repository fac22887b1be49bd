"""Build the parts of an edition in parallel processes, and count the work of each episode.

- reads: fields of the input, and as-filed figures that an episode may see;
- decisions: limits, views, shocks and holdings to consider, entries of the answer, figures chosen among several;
- computations: numbers derived for the answer or, for an optimum, optimality conditions over all programs solved.
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
from typing import Any, NamedTuple, ParamSpec, TypeVar

import orjson
from threadpoolctl import threadpool_limits

from finskillbench.domains import domain as registered
from finskillbench.domains import domains
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.catalog import Catalog
from finskillbench.domains.checks.proofs import rederivation_proof
from finskillbench.domains.tables import table_file
from finskillbench.edition.references import References
from finskillbench.edition.store import CANARY, STAGES, episode_row, write_lines
from finskillbench.episode import Disclosure, Episode, JsonObject
from finskillbench.garbage import GC_THRESHOLD
from finskillbench.panels import read_panels
from finskillbench.scoring.values import as_array, as_number, as_object, is_array, is_object
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.splits import is_for_training, is_reserved

_LISTED = ("constraints", "limits", "analyst_views", "views", "shocks", "market_shocks", "sector_limits", "holdings")
"""Input fields whose entries each count as one decision."""
LEVELS = ("easy", "medium", "hard")


@dataclass(frozen=True, slots=True)
class Work:
    reads: int
    decisions: int
    computations: int


def work_of(task: BuiltTask, resolved: Mapping[str, Any]) -> Work:
    """Count the work of a task, given its input with references resolved."""
    filed = sum(len(as_array(part)) for value in resolved.values() for part in _tables(value))
    return Work(
        reads=len(resolved) + filed,
        decisions=_entries(task.episode.input) + _listed(task.truth.expected_output) + _chosen(task.certificate),
        computations=_computed(task.certificate) or _derived(task.truth.proof),
    )


def summary(works: Iterable[tuple[str, Work]]) -> dict[str, dict[str, float]]:
    """Return median reads, decisions and computations by difficulty, in the order of the levels."""
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
    """Return as-filed row tables; a matrix counts as one read."""
    return [value[name] for name in ("facts", "segments") if name in value] if is_object(value) else []


def _entries(value: object) -> int:
    """Count entries of `_LISTED` fields at any depth."""
    if not is_object(value):
        return 0
    listed = sum(len(part) for name, part in value.items() if name in _LISTED and (is_object(part) or is_array(part)))
    return listed + sum(
        _entries(part) for name, part in value.items() if name not in ("conventions", "covariance_matrix")
    )


def _listed(answer: object) -> int:
    if not is_object(answer):
        return len(as_array(answer))
    return sum(_listed(one) if is_object(one) or is_array(one) else one not in (0, None) for one in answer.values())


def _chosen(certificate: object) -> int:
    return int(as_number(as_object(certificate).get("decisions")) or 0)


def _computed(certificate: object) -> int:
    """Count the conditions of a certificate's programs, each once per program solved."""
    if not is_object(certificate):
        return 0
    programs = as_number(certificate.get("programs_solved")) or 1
    conditions = int(programs) * len(as_array(certificate.get("multipliers")))
    return conditions + sum(_computed(part) for part in certificate.values() if is_object(part))


def _derived(proof: object) -> int:
    return int(as_number(as_object(proof).get("numbers")) or 0)


P = ParamSpec("P")
T = TypeVar("T")


class Processes:
    """Process pool with one process per core except the driver's; on one core the driver does the work.

    Processes are spawned at the first `submit`. A `with` block that ends in an error terminates them.
    """

    def __init__(self, most: int) -> None:
        self.count = min(most, len(os.sched_getaffinity(0)) - 1)
        self._before = multiprocessing.active_children()
        self._pool: ProcessPoolExecutor | None = None
        if self.count > 0:
            # Not forked: the numerical libraries hold threads, which a fork would break.
            self._pool = ProcessPoolExecutor(self.count, multiprocessing.get_context("spawn"), _set_up)

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call in a free process; without a pool, run it in this process."""
        if self._pool is not None:
            return self._pool.submit(function, *args, **kwargs)
        done: Future[T] = Future()
        done.set_result(function(*args, **kwargs))
        return done

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, failed: type[BaseException] | None, *details: object) -> None:
        if self._pool is None:
            return
        if failed is not None:
            self.stop()
        self._pool.shutdown(cancel_futures=True)

    def stop(self) -> None:
        """Terminate the processes; pending calls fail."""
        for child in multiprocessing.active_children():
            if child not in self._before:
                child.terminate()


def _set_up() -> None:
    domains()
    threadpool_limits(1)
    gc.set_threshold(GC_THRESHOLD)


Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """Inputs of one build; every process that can read its folders builds the same part.

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
    disclosure: Disclosure | None = None

    def context(self, one: Domain) -> BuildContext:
        """Create the build context of a domain; raw filings are read only if needed."""
        filings = load_filings(self.raw) if "company facts" in one.needs else None
        panels = read_panels(self.folder / "panels")
        return BuildContext(
            panels, self.seed, filings, self.catalog, self.synthetic, self.filed, self.episodes, self.disclosure
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Share of a domain in an edition: counts and work by subtask, manifest parameters, notes."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    work: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict[str, dict[str, dict[str, float]]])
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])


class Unit(NamedTuple):
    domain: str
    subtasks: tuple[str, ...]


def units_of(chosen: Sequence[Domain]) -> list[Unit]:
    """Divide a build into units: one per domain, or one per subtask of a divisible domain."""
    found: list[Unit] = []
    for one in chosen:
        names = [subtask.name for subtask in one.subtasks if subtask.build is not None]
        found += [Unit(one.name, (name,)) for name in names] if one.divisible else [Unit(one.name, tuple(names))]
    return [unit for unit in found if unit.subtasks]


def build_parts(spec: BuildSpec, units: Sequence[Unit], processes: Processes, progress: Progress) -> list[Part]:
    """Build units into the edition's folder, largest first; return parts in the order of the units."""
    left = deque(sorted(range(len(units)), key=lambda place: -len(units[place].subtasks)))
    found: dict[int, Part] = {}

    def run_units() -> None:
        while (place := _taken(left)) is not None:
            found[place] = processes.submit(_build, spec, units[place]).result()

    with ThreadPoolExecutor(max(processes.count, 1), "build") as threads:
        waiting = [threads.submit(run_units) for _ in range(processes.count)]
        try:
            while (place := _taken(left)) is not None:
                found[place] = _build(spec, units[place], progress)
                if left:
                    gc.collect()  # relaxed_gc rarely collects; the next domain needs this memory
            progress("waiting for the other processes")
            for each in waiting:
                each.result()
        except BaseException:
            left.clear()
            processes.stop()
            raise
    return [found[place] for place in range(len(units))]


def _taken(left: deque[int]) -> int | None:
    """Pop the first entry of a queue shared by threads; None if it is empty."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _build(spec: BuildSpec, unit: Unit, progress: Progress = lambda step: None) -> Part:
    one, references, part = registered(unit.domain), References(spec.folder, spec.files), Part()
    context = replace(spec.context(one), notes=part.notes)
    progress(f"preparing {one.title}")
    prepared = one.prepare(context)
    for subtask in one.subtasks:
        if subtask.build is None or subtask.name not in unit.subtasks:
            continue
        progress(f"proving {subtask.name}")
        tasks = _of_split(spec.seed, subtask, subtask.build(context, prepared))
        count, work = write_subtask(spec.folder, subtask, tasks, references)
        if count:  # zero if the collection does not support the subtask; a note of the context gives the reason
            part.counts[subtask.name], part.work[subtask.name] = count, work
    part.parameters.update(one.parameters(prepared))
    return part


def _of_split(seed: int, subtask: Subtask, tasks: Iterable[BuiltTask]) -> Iterable[BuiltTask]:
    """Leave out the tasks of reserved templates if a seed is for training."""
    if not is_for_training(seed):
        return tasks
    return (task for task in tasks if not is_reserved(subtask.template(task.episode, task.certificate)))


def write_subtask(
    folder: Path, subtask: Subtask, tasks: Iterable[BuiltTask], references: References
) -> tuple[int, dict[str, dict[str, float]]]:
    """Write the tasks of one subtask and rederive each label if possible; return their count and work."""
    written: list[BuiltTask] = []
    works: list[tuple[str, Work]] = []
    for task in tasks:
        references.add(_write_tables(folder, task))
        task_input = task.episode.input
        truth = replace(task.truth, verification=subtask.verification.for_label(task.truth.verification))
        if subtask.rederive is not None:
            stored_input = _stored(task.episode.input)
            task_input = {name: references.resolved(value) for name, value in stored_input.items()}
            leaves = subtask.derived_again(_stored(truth.expected_output), task_input)
            truth = replace(truth, proof=rederivation_proof(truth.task_id, leaves))
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


def _write_tables(folder: Path, task: BuiltTask) -> list[str]:
    written: list[str] = []
    for name, frame in task.tables.items():
        written.append(table_file(task.episode.task_id, name))
        path = folder / written[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path, compression="zstd", statistics=False)
    return written


def _marked(episode: Episode) -> Episode:
    return replace(episode, metadata={**episode.metadata, "canary": CANARY})


def _stored(value: JsonObject) -> dict[str, Any]:
    """Convert an object to its value as read back from JSON."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))
