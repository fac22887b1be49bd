"""Run folders of the shards of one run, merged into the folder that an unsharded run would have left."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from finskillbench.edition.store import new_folder
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store import dropped
from finskillbench.runs.store.files import make_folder, mend, write_beside
from finskillbench.runs.store.journal import exclusive, read_lines
from finskillbench.runs.store.record import FILE, differences, read_record
from finskillbench.runs.store.rows import ROWS, TIMINGS, to_frame, write_rows


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged run folder: its rows in plan order, and the planned items that no shard has finished."""

    folder: Path
    rows: pl.DataFrame
    missing: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    folder: Path
    lines: Sequence[tuple[Item, Mapping[str, Any]]]
    dropped: Sequence[Mapping[str, Any]]

    def journal(self, item: Item) -> Path:
        return self.folder / "journal" / f"{item.arm}.jsonl"


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
        items = _planned(shards[0] / FILE, record)
        parts = [_read_part(folder) for folder in shards]
        owners = _owners(parts)
        staging = stack.enter_context(new_folder(out))
        try:
            _write(staging, record, items, parts, owners)
        except OSError as error:
            raise InputError(f"{out}: cannot be written ({error.strerror}); {mend(error)}") from error
        rows = to_frame([owners[item][1] for item in items if item in owners])
        write_rows(staging / ROWS, rows)
    return Merged(out, rows, tuple(item for item in items if item not in owners))


def _common_record(shards: Sequence[Path]) -> dict[str, Any]:
    """The record that all have, with no shard."""
    records = [{**read_record(folder / FILE), "shard": None} for folder in shards]
    for folder, record in zip(shards[1:], records[1:], strict=True):
        differing = differences(records[0], record)
        if differing:
            raise InputError(
                f"{folder}: not of the same run as {shards[0]}: another {differing[0]}; merge its own shards"
            )
    return records[0]


def _planned(path: Path, record: Mapping[str, Any]) -> tuple[Item, ...]:
    """The items of the whole plan, in its order."""
    try:
        arguments, tasks = record["arguments"], record["plan"]["task_ids"]
        return tuple(
            Item(model, Condition(condition), task_id, epoch)
            for model in arguments["models"]
            for condition in arguments["conditions"]
            for epoch in range(arguments["epochs"])
            for task_id in tasks
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: not a readable run record; name a run folder") from None


def _read_part(folder: Path) -> _Part:
    lines = [line for path in sorted((folder / "journal").glob("*.jsonl")) for line in read_lines(path)]
    return _Part(folder, lines, dropped.read_dropped(folder / dropped.FILE))


def _owners(parts: Sequence[_Part]) -> dict[Item, tuple[_Part, Mapping[str, Any]]]:
    """The part and the row that each finished item is taken from."""
    owners: dict[Item, tuple[_Part, Mapping[str, Any]]] = {}
    for part in parts:
        for item, line in dict(part.lines).items():
            if item not in owners:
                owners[item] = part, line
            elif _timeless(owners[item][1]) != _timeless(line):
                raise InputError(
                    f"{owners[item][0].journal(item)} and {part.journal(item)}: different rows of {item.task_id}, "
                    f"run {item.run_idx}; merge one of the two"
                )
    return owners


def _timeless(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in TIMINGS}


def _write(
    staging: Path,
    record: Mapping[str, Any],
    items: Sequence[Item],
    parts: Sequence[_Part],
    owners: Mapping[Item, tuple[_Part, Mapping[str, Any]]],
) -> None:
    write_beside(staging / FILE, orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    journals: dict[str, list[bytes]] = {item.arm: [] for item in items}
    planned = frozenset(items)
    for part in parts:
        # Every line of an item goes along, also of tries that failed: they were paid for.
        for item, line in part.lines:
            if item in planned and owners[item][0] is part:
                journals[item.arm].append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    make_folder(staging / "journal")
    for arm, lines in journals.items():
        write_beside(staging / "journal" / f"{arm}.jsonl", b"".join(lines))
        make_folder(staging / "trajectories" / arm)
    for item in items:
        if item in owners:
            source = owners[item][0].folder / item.trajectory
            if not source.is_file():
                raise InputError(f"{source}: is gone; run that shard again")
            shutil.copyfile(source, staging / item.trajectory)
    notes = [orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for part in parts for line in part.dropped]
    if notes:
        write_beside(staging / dropped.FILE, b"".join(notes))
