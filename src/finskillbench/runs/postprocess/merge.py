"""Merge run folders of one edition and scorer into the folder that a single run would have left."""

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
    combine_records,
    first_difference,
    read_record,
    replay_events,
    write_record,
)
from finskillbench.runs.store.rows import ROWS, SHORT_FORM, TIMINGS, Row, to_frame, write_rows
from finskillbench.runs.store.version import make_folder, remedy

DUPLICATE_RUN = "another run has it too"
"""Reason of `Dropped` for an item whose row comes from another run."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Merged run folder: its rows in the order of a plan, and the requested items that no run has finished."""

    folder: Path
    rows: pl.DataFrame
    missing: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    folder: Path
    events: Sequence[AnyEvent]
    history: History


def merge_runs(out: Path, runs: Sequence[Path]) -> Merged:
    """Merge run folders into a new one, which can be resumed and extended like any other.

    It is a run of a short form if all `runs` are of the same one.

    Parameters
    ----------
    out : new folder; written atomically.
    runs : run folders, for example shards or runs of different models; none may be in use.

    Raises
    ------
    InputError : no folder, not a run folder, incompatible runs, different rows for one item, a stream with memory in
        two parts, a missing trajectory, or an `out` that cannot be written.
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
        forms = {file.read_bytes() if (file := folder / SHORT_FORM).is_file() else None for folder in runs}
        if len(forms) == 1 and (form := forms.pop()):
            (staging / SHORT_FORM).write_bytes(form)
    return Merged(out, rows, tuple(item for item in record.items() if item not in owners))


def _common_record(runs: Sequence[Path]) -> RunRecord:
    record = read_record(runs[0])
    for folder in runs[1:]:
        other = read_record(folder)
        if differing := first_difference(record, other):
            remedy = (
                "judge both again with finskillbench rescore"
                if "scorer_version" in differing
                else "merge only runs that agree"
            )
            raise InputError(f"{folder}: cannot be merged with {runs[0]}: different {differing}; {remedy}")
        record = combine_records(record, other)
    return record


def _read_part(folder: Path) -> _Part:
    events = read_events(folder)
    found = replay_events(events)
    check_rows(folder, found)
    return _Part(folder, events, found)


def _owners(parts: Sequence[_Part]) -> dict[Item, _Part]:
    """Choose the part that provides each finished item; one without an error takes precedence."""
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
        # Memory differs between folders, so a stream comes from the part that has most of it.
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
    """Return the finished items of each stream with memory."""
    streams: dict[tuple[ModelKey, str, int, str], list[Item]] = {}
    for item, part in owners.items():
        if arm_of(item.condition).kept:
            key = (item.model_key, item.condition, item.run_idx, part.history.rows[item].sub_task)
            streams.setdefault(key, []).append(item)
    return streams.values()


def _has_finished(part: _Part, item: Item) -> bool:
    """Return True if a part has finished an item without an error."""
    row = part.history.rows.get(item)
    return row is not None and row.status is not Status.ERROR


def _outcome(row: Row) -> Row:
    """Return a row without its times and code version, in which equal runs may differ."""
    return replace(row, code_version="", commit=None, **dict.fromkeys(TIMINGS, 0.0))


def _write(
    staging: Path, record: RunRecord, items: Sequence[Item], parts: Sequence[_Part], owners: Mapping[Item, _Part]
) -> None:
    write_record(staging, record)
    write_events(staging, _merged_events(parts, owners))
    for arm in {item.arm_folder for item in items}:
        make_folder(staging / "trajectories" / arm)
    for item in items:
        source = owners[item].folder / item.trajectory
        if not source.is_file():
            raise InputError(f"{source}: is missing; rerun the command of that run folder")
        shutil.copyfile(source, staging / item.trajectory)


def _merged_events(parts: Sequence[_Part], owners: Mapping[Item, _Part]) -> Iterator[AnyEvent]:
    """Yield all events that cost money, including failed and duplicate attempts; exact copies of a line count once."""
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
                    pass  # followed by its end, or among the killed
        yield from part.history.killed()
