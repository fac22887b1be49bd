"""Run folders of the shards of one run, merged into the folder that an unsharded run would have left."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from finskillbench.edition.store import new_folder
from finskillbench.errors import InputError
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.events import AnyEvent, Call, Dropped, Expense, Finished, History, Rescored, history
from finskillbench.runs.store.files import make_folder, remedy
from finskillbench.runs.store.journal import JOURNAL, check_rows, exclusive, read_events, write_events
from finskillbench.runs.store.record import RunRecord, differences, read_record, write_record
from finskillbench.runs.store.rows import ROWS, TIMINGS, Row, to_frame, write_rows

RAN_TWICE = "another shard ran it too"
"""Why the event of an item whose row is taken from another shard is among the dropped."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged run folder: its rows in plan order, and the planned items that no shard has finished."""

    folder: Path
    rows: pl.DataFrame
    missing: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    folder: Path
    events: Sequence[AnyEvent]
    history: History


def merge(out: Path, shards: Sequence[Path]) -> Merged:
    """Merge run folders into a new one, from which the whole run can also be resumed.

    Parameters
    ----------
    out : the new folder; complete under its name or not there.
    shards : folders of runs with the same record but for the shard; none of them in use.

    Raises
    ------
    InputError : no shard, a folder that is no run, runs that differ, an item with two different rows, a trajectory
        that is gone, or an `out` that cannot be written.
    """
    if not shards:
        raise InputError("no run folder was named; name those of the shards")
    shards = list({folder.resolve(): folder for folder in shards}.values())
    with ExitStack() as stack:
        record = _common_record(shards)
        for folder in shards:
            stack.enter_context(exclusive(folder))
        items = record.items()
        parts = [_read_part(folder) for folder in shards]
        owners = _owners(parts)
        staging = stack.enter_context(new_folder(out))
        try:
            _write(staging, record, items, parts, owners)
        except OSError as error:
            raise InputError(f"{out}: cannot be written ({error.strerror}); {remedy(error)}") from error
        rows = to_frame(owners[item].history.rows[item] for item in items if item in owners)
        write_rows(staging / ROWS, rows)
    return Merged(out, rows, tuple(item for item in items if item not in owners))


def _common_record(shards: Sequence[Path]) -> RunRecord:
    """The record that all have, with no shard."""
    records = [replace(read_record(folder), shard=None) for folder in shards]
    for folder, record in zip(shards[1:], records[1:], strict=True):
        differing = differences(records[0], record)
        if differing:
            raise InputError(
                f"{folder}: not of the same run as {shards[0]}: another {differing[0]}; merge its own shards"
            )
    return records[0]


def _read_part(folder: Path) -> _Part:
    events = read_events(folder)
    found = history(events)
    check_rows(folder, found)
    return _Part(folder, events, found)


def _owners(parts: Sequence[_Part]) -> dict[Item, _Part]:
    """The part that each finished item is taken from."""
    owners: dict[Item, _Part] = {}
    for part in parts:
        for item, row in part.history.rows.items():
            owner = owners.setdefault(item, part)
            if _timeless(owner.history.rows[item]) != _timeless(row):
                raise InputError(
                    f"{owner.folder / JOURNAL} and {part.folder / JOURNAL}: different rows of {item.task_id}, "
                    f"run {item.run_idx}; merge one of the two"
                )
    return owners


def _timeless(row: Row) -> Row:
    return replace(row, commit=None, **dict.fromkeys(TIMINGS, 0.0))


def _write(
    staging: Path, record: RunRecord, items: Sequence[Item], parts: Sequence[_Part], owners: Mapping[Item, _Part]
) -> None:
    write_record(staging, record)
    write_events(staging, _merged_events(frozenset(items), parts, owners))
    for arm in {item.arm for item in items}:
        make_folder(staging / "trajectories" / arm)
    for item in items:
        if item in owners:
            source = owners[item].folder / item.trajectory
            if not source.is_file():
                raise InputError(f"{source}: is gone; run that shard again")
            shutil.copyfile(source, staging / item.trajectory)


def _merged_events(
    planned: Collection[Item], parts: Sequence[_Part], owners: Mapping[Item, _Part]
) -> Iterator[AnyEvent]:
    """Every row of an item from the part it is taken from, also of tries that failed, and all that was dropped: they
    were paid for. So was an item that two parts ran; only a copy of the same line was paid once.
    """
    for part in parts:
        for event in part.events:
            match event:
                case Finished(row=row) if owners[row.item] is not part:
                    if event not in owners[row.item].events:
                        yield Dropped(row.item, RAN_TWICE, Expense(row.episodes, row.usage, event.lost_usd))
                case Finished(row=row) | Rescored(row=row):
                    if row.item in planned and owners[row.item] is part:
                        yield event
                case Dropped():
                    yield event
                case Call():
                    pass  # its end follows, or it is among the killed
        yield from part.history.killed()
