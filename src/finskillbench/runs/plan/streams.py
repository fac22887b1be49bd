"""Streams: what must run in order, what may run side by side, and how a plan is cut into shards.

Most items stand alone and are streams of one. Under an arm with a memory, a stream is every episode of one
model, repeat and subtask in plan order: each starts with the skills and the verdicts that the ones before it left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import arm_of
from finskillbench.harness.skills.memory import EMPTY, Feedback, Memory
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.store.journal import JOURNAL
from finskillbench.runs.store.rows import Row
from finskillbench.runs.store.trajectories import read_trajectory

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Stream:
    """Items that run one after another; `has_memory` says that what an agent learnt goes from each to the next."""

    items: tuple[Item, ...]
    has_memory: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of `of` parts of a plan; every stream belongs to exactly one."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def holds(self, stream: Stream) -> bool:
        """Whether a stream belongs to this part; depends on its first item alone, not on the rest of the plan."""
        first = stream.items[0]
        key = orjson.dumps([first.model, first.condition, first.task_id, first.run_idx])
        return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") % self.of == self.number - 1


def parse_shard(text: str) -> Shard:
    """Return the shard written as "i/n"; raise `InputError` unless 1 <= i <= n."""
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r} is no part of a run; write i/n with 1 <= i <= n, for example 1/4")
    return Shard(int(match[1]), int(match[2]))


def make_streams(plan: Plan) -> tuple[Stream, ...]:
    """Cut a plan into streams, in the order in which they are started.

    Streams with a memory come first, since nothing in them can be run side by side. The others come episode
    by episode, so that a run that stops early has the same episodes under every model and condition, and the material
    of an episode is made once.
    """
    sub_tasks = {episode.task_id: episode.sub_task for episode in plan.episodes}
    keeping: dict[tuple[str, str, int, str], list[Item]] = {}
    single: dict[tuple[int, str], list[Item]] = {}
    for item in plan.items:
        if arm_of(item.condition).kept:
            key = (item.model, item.condition, item.run_idx, sub_tasks[item.task_id])
            keeping.setdefault(key, []).append(item)
        else:
            single.setdefault((item.run_idx, item.task_id), []).append(item)
    longest_first = sorted(keeping.values(), key=len, reverse=True)
    return (
        *(Stream(tuple(items), has_memory=True) for items in longest_first),
        *(Stream((item,)) for items in single.values() for item in items),
    )


def missing(stream: Stream, rows: Mapping[Item, Row], *, retry_errors: bool) -> tuple[Item, ...]:
    """The items of a stream that are still to be run.

    An item without a row is missing, and one that ended in an error if `retry_errors`. A stream with a memory does not
    go past an error: what followed would have another past.

    Raises
    ------
    InputError : in a stream with a memory, an item is finished after one that is not.
    """

    def is_open(item: Item) -> bool:
        return item not in rows or (retry_errors and rows[item].status is Status.ERROR)

    if not stream.has_memory:
        return tuple(item for item in stream.items if is_open(item))
    done = 0
    while done < len(stream.items) and _remembers(rows.get(stream.items[done])):
        done += 1
    rest = stream.items[done:]
    for later in rest[1:]:
        if later in rows:
            raise InputError(
                f"{JOURNAL}: {later.task_id} is finished under {later.arm} and {rest[0].task_id}, which comes before "
                f"it in its stream, is not; restore {rest[0].trajectory} or choose another --out"
            )
    return rest if rest and is_open(rest[0]) else ()


def remembered(stream: Stream, rows: Mapping[Item, Row], folder: Path) -> Memory:
    """What an agent remembers where its stream goes on: of every item finished so far, the verdict; of the last, the
    skills that its trajectory in the run folder holds.
    """
    finished = [item for item in stream.items if _remembers(rows.get(item))] if stream.has_memory else []
    if not finished:
        return EMPTY
    skills = read_trajectory(folder / finished[-1].trajectory).trace.saved_skills
    return Memory(skills, tuple(feedback(rows[item]) for item in finished))


def feedback(row: Row) -> Feedback:
    """What the agent hears of a finished episode."""
    return Feedback(row.task_id, row.status.value, row.score)


def planned(streams: Sequence[Stream]) -> frozenset[Item]:
    """All items of some streams."""
    return frozenset(item for stream in streams for item in stream.items)


def _remembers(row: Row | None) -> bool:
    return row is not None and row.status is not Status.ERROR
