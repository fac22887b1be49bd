"""Run folders of one edition and one scorer, merged into the folder that one run of all would have left."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from finskillbench.edition.store import new_folder
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import arm_of
from finskillbench.harness.models import ModelKey
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import JOURNAL, check_rows, exclusive, read_events, write_events
from finskillbench.runs.store.record import (
    AnyEvent,
    Call,
    Dropped,
    Expense,
    Finished,
    History,
    Rescored,
    RunRecord,
    first_difference,
    replay_events,
    read_record,
    combine_records,
    write_record,
)
from finskillbench.runs.store.rows import ROWS, TIMINGS, Row, to_frame, write_rows
from finskillbench.runs.store.version import make_folder, remedy

DUPLICATE_RUN = "another run has it too"
"""Why the event of an item whose row is taken from another run is among the dropped."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged run folder: its rows in the order of a plan, and what was asked for and no run has finished."""

    folder: Path
    rows: pl.DataFrame
    missing: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    folder: Path
    events: Sequence[AnyEvent]
    history: History


def merge_runs(out: Path, runs: Sequence[Path]) -> Merged:
    """Merge run folders into a new one, which can go on and grow as any other.

    Parameters
    ----------
    out : the new folder; complete under its name or not there.
    runs : run folders, say of shards, or of other models or conditions; none of them in use.

    Raises
    ------
    InputError : no folder, one that is no run, runs that cannot stand in one table, an item with two different rows,
        a stream with a memory in two parts, a trajectory that is gone, or an `out` that cannot be written.
    """
    if not runs:
        raise InputError("no run folder was named; name those to merge")
    runs = list({folder.resolve(): folder for folder in runs}.values())
    with ExitStack() as stack:
        record = _common_record(runs)
        for folder in runs:
            stack.enter_context(exclusive(folder))
        parts = [_read_part(folder) for folder in runs]
        owners = _owners(parts)
        items = record.in_order(owners)
        staging = stack.enter_context(new_folder(out))
        try:
            _write(staging, record, items, parts, owners)
        except OSError as error:
            raise InputError(f"{out}: cannot be written ({error.strerror}); {remedy(error)}") from error
        rows = to_frame(owners[item].history.rows[item] for item in items)
        write_rows(staging / ROWS, rows)
    return Merged(out, rows, tuple(item for item in record.items() if item not in owners))


def _common_record(runs: Sequence[Path]) -> RunRecord:
    """What was asked for in all of them."""

    record = read_record(runs[0])
    for folder in runs[1:]:
        other = read_record(folder)
        if differing := first_difference(record, other):
            remedy = "judge both again with finskillbench rescore" if "scorer_version" in differing else "merge its like"
            raise InputError(f"{folder}: cannot stand in one table with {runs[0]}: another {differing}; {remedy}")
        record = combine_records(record, other)
    return record


def _read_part(folder: Path) -> _Part:
    events = read_events(folder)
    found = replay_events(events)
    check_rows(folder, found)
    return _Part(folder, events, found)


def _owners(parts: Sequence[_Part]) -> dict[Item, _Part]:
    """The part that each finished item is taken from; one that ended in an error gives way to one that did not."""
    owners: dict[Item, _Part] = {}
    for part in parts:
        for item, row in part.history.rows.items():
            owner = owners.setdefault(item, part)
            other = owner.history.rows[item]
            if Status.ERROR in (row.status, other.status) and row.status != other.status:
                owners[item] = owner if row.status is Status.ERROR else part
            elif _outcome(other) != _outcome(row):
                raise InputError(
                    f"{owner.folder / JOURNAL} and {part.folder / JOURNAL}: different rows of {item.task_id}, "
                    f"run {item.run_idx}; merge one of the two"
                )
    for stream in _streams(owners):
        # What an agent remembered in one folder it did not in another: its stream is taken from the one that has most.
        longest = max(parts, key=lambda part: sum(_has_finished(part, item) for item in stream))
        for item in stream:
            if _has_finished(owners[item], item) and not _has_finished(longest, item):
                raise InputError(
                    f"{longest.folder} and {owners[item].folder}: both have a part of the stream of {item.task_id} "
                    f"under {item.condition}, run {item.run_idx}, in which each episode remembers those before it; "
                    "merge one of the two"
                )
            if item in longest.history.rows:
                owners[item] = longest
    return owners


def _streams(owners: Mapping[Item, _Part]) -> Iterable[list[Item]]:
    """The finished items of each stream with a memory."""
    streams: dict[tuple[ModelKey, str, int, str], list[Item]] = {}
    for item, part in owners.items():
        if arm_of(item.condition).kept:
            key = (item.model_key, item.condition, item.run_idx, part.history.rows[item].sub_task)
            streams.setdefault(key, []).append(item)
    return streams.values()


def _has_finished(part: _Part, item: Item) -> bool:
    """Whether a part has finished an item other than by an error."""
    row = part.history.rows.get(item)
    return row is not None and row.status is not Status.ERROR


def _outcome(row: Row) -> Row:
    """The row without what two runs of the same work may differ in: its times, and the code that made it."""
    return replace(row, code_version="", commit=None, **dict.fromkeys(TIMINGS, 0.0))


def _write(
    staging: Path, record: RunRecord, items: Sequence[Item], parts: Sequence[_Part], owners: Mapping[Item, _Part]
) -> None:
    write_record(staging, record)
    write_events(staging, _merged_events(parts, owners))
    for arm in {item.arm for item in items}:
        make_folder(staging / "trajectories" / arm)
    for item in items:
        source = owners[item].folder / item.trajectory
        if not source.is_file():
            raise InputError(f"{source}: is gone; run that folder's own command again")
        shutil.copyfile(source, staging / item.trajectory)


def _merged_events(parts: Sequence[_Part], owners: Mapping[Item, _Part]) -> Iterator[AnyEvent]:
    """Every row of an item from the part it is taken from, also of tries that failed, and all that was dropped: they
    were paid for. So was an item that two parts ran; only a copy of the same line was paid once.
    """
    for part in parts:
        for event in part.events:
            match event:
                case Finished(row=row) if owners[row.item] is not part:
                    if event not in owners[row.item].events:
                        yield Dropped(row.item, DUPLICATE_RUN, Expense(row.episodes, row.usage, event.lost_usd))
                case Finished(row=row) | Rescored(row=row):
                    if owners[row.item] is part:
                        yield event
                case Dropped():
                    yield event
                case Call():
                    pass  # its end follows, or it is among the killed
        yield from part.history.killed()
