"""The parts of an edition by domain: what it prepares, its tasks with their labels derived again, and their files.

A domain that reads nothing but the panels is built in a process of its own, beside the others.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import orjson
from threadpoolctl import threadpool_limits

from finskillbench.domains import domain as registered
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.catalog import Catalog
from finskillbench.domains.checks.proofs import rederived
from finskillbench.domains.tables import table_file
from finskillbench.edition.references import References
from finskillbench.edition.store import CANARY, STAGES, episode_row, write_lines
from finskillbench.edition.work import Work, summary, work_of
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.errors import FinSkillBenchError
from finskillbench.garbage import seldom_sought
from finskillbench.panels import read_panels

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Part:
    """What a domain put into an edition: counts and work by subtask, parameters for the manifest, notes."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    work: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict[str, dict[str, dict[str, float]]])
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])


def build_parts(context: BuildContext, chosen: Sequence[Domain], folder: Path, progress: Progress) -> list[Part]:
    """Build some domains into an edition's folder, which holds its panels; notes are added to the context's."""
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    beside = [one.name for one in chosen if one.apart] if len(os.sched_getaffinity(0)) > 1 else []
    with ExitStack() as stack:
        waiting: dict[str, Future[Part | str]] = {}
        if beside:
            # Not forked: the numerical libraries hold threads, which a fork would break.
            spawn = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(len(beside), spawn))
            given = folder, files, context.seed, context.catalog, context.synthetic
            others = multiprocessing.active_children()
            waiting = {name: pool.submit(_apart, name, *given) for name in beside}
            pool.shutdown(wait=False)  # each process ends with its domain, and gives its memory back
            stack.push(partial(_stop, [one for one in multiprocessing.active_children() if one not in others]))
        built: dict[str, Part] = {}
        for one in chosen:
            if one.name not in waiting:
                built[one.name] = _build(context, one, folder, files, progress)
                gc.collect()  # a build looks for cyclic garbage seldom; the next domain needs the memory of this one
        for name, one in waiting.items():
            progress(f"waiting for {registered(name).title}, which is built beside")
            came = one.result()
            if isinstance(came, str):
                raise FinSkillBenchError(came)
            built[name] = came
    parts = [built[one.name] for one in chosen]
    context.notes.extend(note for part in parts for note in part.notes)
    return parts


def _stop(started: Sequence[BaseProcess], failed: type[BaseException] | None, *_: object) -> None:
    """End what is built beside at once where the rest failed: nobody waits minutes to be told why."""
    if failed is not None:
        for one in started:
            one.terminate()


def _apart(name: str, folder: Path, files: Sequence[str], seed: int, catalog: Catalog, synthetic: bool) -> Part | str:
    """Build one domain in this process, from the panels on disk; in words what kept it from that."""
    one = registered(name)
    with threadpool_limits(1), seldom_sought():
        try:
            context = BuildContext(read_panels(folder / "panels"), seed, None, catalog, synthetic)
            return _build(context, one, folder, files, lambda step: None)
        except FinSkillBenchError as error:
            return str(error)


def _build(context: BuildContext, one: Domain, folder: Path, files: Sequence[str], progress: Progress) -> Part:
    """Build the subtasks of a domain, from the panels on disk: what it read of them goes with it."""
    references, part = References(folder, files), Part()
    panels = replace(context.panels, tables=context.panels.tables.unread())
    own = replace(context, panels=panels, notes=part.notes)
    wanted = [subtask for subtask in one.subtasks if subtask.build is not None]
    if not wanted:
        return part
    progress(f"preparing {one.title}")
    prepared = one.prepare(own)
    for subtask in wanted:
        assert subtask.build is not None
        progress(f"proving {subtask.name}")
        tasks = subtask.build(own, prepared)
        if tasks:  # none where the collection does not support the subtask; a note of the context says why
            part.counts[subtask.name] = len(tasks)
            part.work[subtask.name] = write_subtask(folder, subtask, tasks, references)
    part.parameters.update(one.parameters(prepared))
    return part


def write_subtask(
    folder: Path, subtask: Subtask, tasks: Sequence[Task], references: References
) -> dict[str, dict[str, float]]:
    """Write the tasks of one subtask, each label derived a second time where it can be; returns their work."""
    references.add(_write_tables(folder, tasks))
    truths: list[Truth] = []
    works: list[tuple[str, Work]] = []
    for task in tasks:
        task_input = task.episode.input
        truth = replace(task.truth, verification=subtask.verification(task.truth.verification))
        if subtask.second is not None:
            task_input = _resolved(task, references)
            leaves = subtask.derived_again(_stored(truth.expected_output), task_input)
            truth = replace(truth, proof=rederived(truth.task_id, leaves))
        truths.append(truth)
        works.append((task.episode.difficulty, work_of(replace(task, truth=truth), task_input)))
    file = f"{subtask.name}.jsonl"
    write_lines(folder / "episodes" / file, (episode_row(_marked(task.episode)) for task in tasks))
    write_lines(folder / "truth" / file, truths)
    certificates = ({"task_id": task.episode.task_id, "certificate": task.certificate} for task in tasks)
    write_lines(folder / "certificates" / file, certificates)
    hidden = [{"task_id": task.episode.task_id, "hidden": task.hidden} for task in tasks if task.hidden is not None]
    if hidden:
        write_lines(folder / STAGES / file, hidden)
    return summary(works)


def _write_tables(folder: Path, tasks: Sequence[Task]) -> list[str]:
    """Write the tables of some tasks; returns their names in the edition."""
    written: list[str] = []
    for task in tasks:
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
