"""Build labels on the workers of a Dask cluster, subtask by subtask; only the driver writes the edition.

Workers read panels and raw files at the driver's paths, prepare each domain once, and return files as bytes. Results
depend on panels, seed and catalog only: Dask may rebuild those of a lost worker anywhere, and the edition is identical
to that of one process.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from finskillbench.cluster.connection import Connection, connected, facts
from finskillbench.domains import domain as registered
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext
from finskillbench.edition.parts import BuildSpec, Part, write_subtask
from finskillbench.edition.references import References
from finskillbench.errors import FinSkillBenchError, InputError
from finskillbench.garbage import relaxed_gc
from finskillbench.scoring.values import is_object

Progress = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BuiltSubtask:
    """A built subtask: its files, manifest counts and parameters, and notes in single-process order."""

    files: Mapping[str, bytes]
    count: int
    work: Mapping[str, Mapping[str, float]]
    prepared_notes: tuple[str, ...]
    notes: tuple[str, ...]
    parameters: Mapping[str, Any]


def check_cluster(address: str) -> None:
    """Check a cluster before a build; raises `InputError` if it is unusable."""

    async def look() -> None:
        async with connected(address):
            pass

    _run(look())


def build_on_cluster(address: str, spec: BuildSpec, chosen: Sequence[Domain], progress: Progress) -> list[Part]:
    """Build domains into the edition's folder on a cluster, one part for each.

    Raises `FinSkillBenchError` as a build in one process, or if a worker cannot read the folders.
    """
    return _run(_build_on_cluster(address, spec, chosen, progress))


async def _build_on_cluster(address: str, spec: BuildSpec, chosen: Sequence[Domain], progress: Progress) -> list[Part]:
    async with connected(address) as connection:
        wanted = [(one, subtask) for one in chosen for subtask in one.subtasks if subtask.build is not None]
        progress(f"distributing {len(wanted)} subtasks")
        ends = [asyncio.create_task(_build_remote(connection, spec, *each, progress)) for each in wanted]
        try:
            made = await asyncio.gather(*ends)
        finally:
            for end in ends:
                end.cancel()
    parts = {one.name: Part() for one in chosen}
    for (one, subtask), each in zip(wanted, made, strict=True):
        part = parts[one.name]
        if not part.parameters:
            part.notes.extend(each.prepared_notes)
        part.notes.extend(each.notes)
        part.parameters.update(merge_parameters(part.parameters, each.parameters))
        if each.count:
            part.counts[subtask.name] = each.count
            part.work[subtask.name] = {level: dict(work) for level, work in each.work.items()}
    return [parts[one.name] for one in chosen]


def merge_parameters(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the parameters of two workers; nested objects are merged key by key."""
    found = dict(known)
    for name, value in more.items():
        before = found.get(name)
        found[name] = merge_parameters(before, value) if is_object(before) and is_object(value) else value
    return found


def changed_parameters(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of `after` that are new or differ from `before`."""
    found: dict[str, Any] = {}
    for name, value in after.items():
        old = before.get(name)
        if is_object(old) and is_object(value):
            if inner := changed_parameters(old, value):
                found[name] = inner
        elif name not in before or old != value:
            found[name] = value
    return found


async def _build_remote(
    connection: Connection, spec: BuildSpec, one: Domain, subtask: Subtask, progress: Progress
) -> BuiltSubtask:
    """Build one subtask on a worker, and write its files."""
    future = connection.client.submit(build_on_worker, spec, facts(), one.name, subtask.name, pure=False, retries=0)
    made = await connection.outcome(future)
    if isinstance(made, str):
        raise InputError(made)
    if not isinstance(made, BuiltSubtask):
        reason = str(made).splitlines()[0] if str(made) else repr(made)
        raise FinSkillBenchError(f"{subtask.name} could not be built on {connection.address}: {reason}")
    for name, data in made.files.items():
        path = spec.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    future.release()
    progress(f"proved {subtask.name}")
    return replace(made, files={})


def build_on_worker(spec: BuildSpec, required: Mapping[str, str], domain: str, subtask: str) -> BuiltSubtask | str:
    """Build one subtask on a worker with the `required` versions; return a text if the worker is unusable."""
    from distributed import get_worker

    worker: Any = get_worker()
    where = f"worker {worker.address}"
    if facts() != required:
        return f"{where}: its version of finskillbench or of a library differs; install the driver's on every worker"
    if not (spec.folder / "panels").is_dir() or not spec.raw.is_dir():
        lacking = spec.raw if spec.folder.is_dir() else spec.folder
        return f"{where}: {lacking} cannot be read; --out and --raw-dir must be the same path on every worker"
    try:
        with threadpool_limits(1), relaxed_gc():
            return _build_subtask(spec, registered(domain), subtask)
    except FinSkillBenchError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class _Prepared:
    context: BuildContext
    objects: Any
    notes: tuple[str, ...]
    parameters: Mapping[str, Any]


_prepared: dict[tuple[Path, str], _Prepared] = {}


def _build_subtask(spec: BuildSpec, one: Domain, name: str) -> BuiltSubtask:
    key = spec.folder, one.name
    if key not in _prepared:
        for other in [each for each in _prepared if each[0] != spec.folder]:
            del _prepared[other]
        context = spec.context(one)
        objects = one.prepare(context)
        _prepared[key] = _Prepared(context, objects, tuple(context.notes), deepcopy(one.parameters(objects)))
    known = _prepared[key]
    context, objects = replace(known.context, notes=[]), known.objects
    # Include counts of earlier subtasks in this process, so that the order matches that of one process.
    before = deepcopy(one.parameters(objects))
    subtask = next(each for each in one.subtasks if each.name == name)
    assert subtask.build is not None
    with tempfile.TemporaryDirectory(prefix="finskillbench-labels-") as scratch:
        folder = Path(scratch)
        (folder / "panels").symlink_to(spec.folder / "panels")
        references = References(folder, spec.files)
        count, work = write_subtask(folder, subtask, subtask.build(context, objects), references)
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "panels" not in path.relative_to(folder).parts[:1]
        }
    counted = merge_parameters(known.parameters, changed_parameters(before, one.parameters(objects)))
    return BuiltSubtask(files, count, work, known.notes, tuple(context.notes), counted)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; inside a running loop, as in a notebook, use another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1, "build") as pool:
        return pool.submit(asyncio.run, coroutine).result()
