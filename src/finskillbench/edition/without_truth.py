"""Labels built on the workers of a Dask cluster, subtask by subtask; the driver alone writes the edition.

A worker reads the panels and the raw files at the driver's own paths, prepares a domain once, and hands back the files
of each subtask that it is given as bytes. They depend on nothing but panels, seed and catalog, so Dask may build those
of a lost worker again wherever it likes: the edition is that of one process, byte for byte.
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
from finskillbench.edition.parts import Order, Part, write_subtask
from finskillbench.edition.references import References
from finskillbench.errors import FinSkillBenchError, InputError
from finskillbench.garbage import relaxed_gc
from finskillbench.scoring.values import is_object

Progress = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a subtask: its files, the counts of the manifest, and the notes in the order of one process."""

    files: Mapping[str, bytes]
    count: int
    work: Mapping[str, Mapping[str, float]]
    prepared_notes: tuple[str, ...]
    notes: tuple[str, ...]
    parameters: Mapping[str, Any]


def check_cluster(address: str) -> None:
    """Look at a cluster before anything is built; raises `InputError` where it will not do."""

    async def look() -> None:
        async with connected(address):
            pass

    _run(look())


def hand_out(address: str, order: Order, chosen: Sequence[Domain], progress: Progress) -> list[Part]:
    """Build some domains into the edition's folder, one part for each.

    Raises
    ------
    FinSkillBenchError : as a build in one process; or a worker cannot read what it is pointed to.
    """
    return _run(_handed_out(address, order, chosen, progress))


async def _handed_out(address: str, order: Order, chosen: Sequence[Domain], progress: Progress) -> list[Part]:
    async with connected(address) as connection:
        wanted = [(one, subtask) for one in chosen for subtask in one.subtasks if subtask.build is not None]
        progress(f"handing out {len(wanted)} subtasks")
        ends = [asyncio.create_task(_one(connection, order, *each, progress)) for each in wanted]
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
        part.parameters.update(merged(part.parameters, each.parameters))
        if each.count:
            part.counts[subtask.name] = each.count
            part.work[subtask.name] = {level: dict(work) for level, work in each.work.items()}
    return [parts[one.name] for one in chosen]


def merged(told: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of two workers as one: what a build counts of its own subtask stands below the same name on each."""
    found = dict(told)
    for name, value in more.items():
        before = found.get(name)
        found[name] = merged(before, value) if is_object(before) and is_object(value) else value
    return found


def added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What of `after` is new or other than it was before."""
    found: dict[str, Any] = {}
    for name, value in after.items():
        old = before.get(name)
        if is_object(old) and is_object(value):
            if inner := added(old, value):
                found[name] = inner
        elif name not in before or old != value:
            found[name] = value
    return found


async def _one(connection: Connection, order: Order, one: Domain, subtask: Subtask, progress: Progress) -> Made:
    """Have one subtask built, and write its files."""
    future = connection.client.submit(make, order, facts(), one.name, subtask.name, pure=False, retries=0)
    made = await connection.outcome(future)
    if isinstance(made, str):
        raise InputError(made)
    if not isinstance(made, Made):
        told = str(made).splitlines()[0] if str(made) else repr(made)
        raise FinSkillBenchError(f"{subtask.name} could not be built on {connection.address}: {told}")
    for name, data in made.files.items():
        path = order.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    future.release()
    progress(f"proved {subtask.name}")
    return replace(made, files={})


def make(order: Order, required: Mapping[str, str], domain: str, subtask: str) -> Made | str:
    """Build one subtask on a worker with the `required` versions; in words what kept it from that."""
    from distributed import get_worker

    worker: Any = get_worker()
    where = f"worker {worker.address}"
    if facts() != required:
        return f"{where}: it has another version of finskillbench or of a library; install the driver's on every worker"
    if not (order.folder / "panels").is_dir() or not order.raw.is_dir():
        lacking = order.raw if order.folder.is_dir() else order.folder
        return f"{where}: {lacking} cannot be read there; --out and --raw-dir must be the same path on every worker"
    try:
        with threadpool_limits(1), relaxed_gc():
            return _made(order, registered(domain), subtask)
    except FinSkillBenchError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A domain as this process has prepared it: its objects, notes and parameters before any subtask is built."""

    context: BuildContext
    objects: Any
    notes: tuple[str, ...]
    parameters: Mapping[str, Any]


_prepared: dict[tuple[Path, str], _Prepared] = {}
"""Those of one build: the next subtask of one need not prepare it again."""


def _made(order: Order, one: Domain, name: str) -> Made:
    key = order.folder, one.name
    if key not in _prepared:
        for other in [each for each in _prepared if each[0] != order.folder]:
            del _prepared[other]
        context = order.context(one)
        objects = one.prepare(context)
        _prepared[key] = _Prepared(context, objects, tuple(context.notes), deepcopy(one.parameters(objects)))
    known = _prepared[key]
    own, objects = replace(known.context, notes=[]), known.objects
    # What other subtasks of this process counted is told with them, so that all stands in the order of one process.
    before = deepcopy(one.parameters(objects))
    subtask = next(each for each in one.subtasks if each.name == name)
    assert subtask.build is not None
    with tempfile.TemporaryDirectory(prefix="finskillbench-labels-") as scratch:
        folder = Path(scratch)
        (folder / "panels").symlink_to(order.folder / "panels")
        references = References(folder, order.files)
        count, work = write_subtask(folder, subtask, subtask.build(own, objects), references)
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "panels" not in path.relative_to(folder).parts[:1]
        }
    counted = merged(known.parameters, added(before, one.parameters(objects)))
    return Made(files, count, work, known.notes, tuple(own.notes), counted)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, in a loop of its own; where one runs already, as in a notebook, in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1, "build") as pool:
        return pool.submit(asyncio.run, coroutine).result()
