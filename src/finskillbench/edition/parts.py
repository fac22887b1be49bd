"""The parts of an edition by domain: what it prepares, its tasks with their labels derived again, and their files.

They are built in as many processes as there are cores, each domain as a whole or, where it can be divided, by subtask.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from finskillbench.domains import domain as registered
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.catalog import Catalog
from finskillbench.domains.checks.proofs import rederived
from finskillbench.domains.tables import table_file
from finskillbench.edition.references import References
from finskillbench.edition.store import CANARY, STAGES, episode_row, write_lines
from finskillbench.edition.work import Processes, Work, summary, work_of
from finskillbench.episode import Episode, JsonObject
from finskillbench.panels import read_panels
from finskillbench.sources.edgar.collection import load_filings

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
        if subtask.second is not None:
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
