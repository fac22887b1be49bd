"""Streams: what must run in order, what may run side by side, and how a plan is cut into shards.

Most items stand alone and are streams of one. Under an arm with a memory, a stream is every episode of one
entry, repeat and subtask in the order of the edition: each starts with the skills and the verdicts that the ones before
it left. What a run folder has of a stream belongs to it, whoever asked for it, so a stream grows at its end alone.

What a run uses where nothing was said: the default edition, built once into the user's cache, and a run folder.

Both are named after digests of the code and of the arguments, so that a changed program never meets what an older one
left, and the same command finds what it left itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import orjson
from platformdirs import user_cache_path

from finskillbench.episode import PAPER_SUITE, Episode, Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import arm_of
from finskillbench.harness.models import ModelKey
from finskillbench.harness.skills.user_skills import EMPTY, Feedback, Memory
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.store.code_digest import code_digest
from finskillbench.runs.store.journal import JOURNAL, read_trajectory
from finskillbench.runs.store.rows import Row

Progress = Callable[[str], None]
"""Called with the name of each stage."""

if TYPE_CHECKING:
    from finskillbench.edition import Edition

_BUILDERS = ("arrays.py", "domains", "edition", "engines", "episode.py", "panels", "sources")
_SMALL = 15
"""Companies of a small edition."""
_RUNNERS = (*_BUILDERS, "harness", "runs", "sandbox", "scoring")


def default_edition(progress: Progress, suite: str = PAPER_SUITE, *, small: bool = False) -> Path:
    """Return the folder of the default edition of a suite, after building it where it is missing.

    A small one has 15 companies and one episode of each subtask.

    Of several processes that miss it at once, one builds it and the others wait.

    Raises
    ------
    InputError : the cache cannot be written.
    """
    folder = user_cache_path("finskillbench") / "editions" / f"{'small-' * small}{suite}-{code_digest(_BUILDERS)[:12]}"
    if not folder.exists():
        from finskillbench.edition import build_edition

        with _file_lock(folder.with_name(f"{folder.name}.lock"), progress):
            if not folder.exists():
                names, episodes = (_SMALL, 1) if small else (None, None)
                build_edition(suite=suite, companies=names, episodes=episodes, out=folder, progress=progress)
    return folder


@contextmanager
def _file_lock(path: Path, progress: Progress) -> Generator[None]:
    """Hold a lock, after waiting for whoever holds it; it is let go when the process ends, however it ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); name an edition with --edition") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process to build the default edition")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_folder(edition: Edition, *arguments: object) -> Path:
    """Return a folder below `runs/` that belongs to this edition, these arguments and this code alone."""
    key = orjson.dumps([edition.digest, code_digest(_RUNNERS), arguments])
    return Path("runs") / f"run-{hashlib.sha256(key).hexdigest()[:12]}"


_Key: TypeAlias = tuple[ModelKey, str, int, str]
"""Entry, condition, repeat and subtask of a stream."""
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

    def contains(self, stream: Stream) -> bool:
        """Whether a stream belongs to this part; depends on its first item alone, not on the rest of the plan."""
        first = stream.items[0]
        key = orjson.dumps([first.model, first.arguments, first.condition, first.task_id, first.run_idx])
        return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") % self.of == self.number - 1


def parse_shard(text: str) -> Shard:
    """Return the shard written as "i/n"; raise `InputError` unless 1 <= i <= n."""
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r} is no part of a run; write i/n with 1 <= i <= n, for example 1/4")
    return Shard(int(match[1]), int(match[2]))


def make_streams(plan: Plan, shard: Shard | None = None) -> tuple[Stream, ...]:
    """Cut a plan, or one shard of it, into streams, in the order in which they are started.

    Streams with a memory come first, since nothing in them can be run side by side. The others come episode
    by episode, so that a run that stops early has the same episodes under every model and condition, and the material
    of an episode is made once.
    """
    sub_tasks = {episode.task_id: episode.sub_task for episode in plan.episodes}
    with_memory: dict[_Key, list[Item]] = {}
    single: dict[tuple[int, str], list[Item]] = {}
    for item in plan.items:
        if arm_of(item.condition).kept:
            with_memory.setdefault(_key(item, sub_tasks), []).append(item)
        else:
            single.setdefault((item.run_idx, item.task_id), []).append(item)
    longest_first = sorted(with_memory.values(), key=len, reverse=True)
    streams = (
        *(Stream(tuple(items), has_memory=True) for items in longest_first),
        *(Stream((item,)) for items in single.values() for item in items),
    )
    return tuple(stream for stream in streams if shard is None or shard.contains(stream))


def extend_streams(streams: Iterable[Stream], rows: Iterable[Item], episodes: Sequence[Episode]) -> tuple[Stream, ...]:
    """Streams with what a folder already has of them: those with a memory take in the items of its `rows`.

    `episodes` are all of the edition, in its order.
    """
    sub_tasks = {episode.task_id: episode.sub_task for episode in episodes}
    places = {episode.task_id: place for place, episode in enumerate(episodes)}
    finished: dict[_Key, list[Item]] = {}
    for item in rows:
        if arm_of(item.condition).kept:
            finished.setdefault(_key(item, sub_tasks), []).append(item)

    def extended(stream: Stream) -> Stream:
        if not stream.has_memory:
            return stream
        items = {*stream.items, *finished.get(_key(stream.items[0], sub_tasks), ())}
        return Stream(tuple(sorted(items, key=lambda item: places[item.task_id])), has_memory=True)

    return tuple(map(extended, streams))


def missing(
    stream: Stream, rows: Mapping[Item, Row], requested: Collection[Item], *, retry_errors: bool
) -> tuple[Item, ...]:
    """The items of a stream that are still to be run, of those that are `asked` for.

    An item without a row is missing, and one that ended in an error if `retry_errors`. A stream with a memory does not
    go past an error: what followed would have another past.

    Raises
    ------
    InputError : in a stream with a memory, an item would be run before one that is finished, or after one that ended
        in an error and is not asked for.
    """
    if not stream.has_memory:
        return tuple(item for item in stream.items if item not in rows or (retry_errors and _failed(rows[item])))
    done = 0
    while done < len(stream.items) and _is_finished(rows.get(stream.items[done])):
        done += 1
    rest = stream.items[done:]
    while rest and rest[-1] not in requested and not _is_finished(rows.get(rest[-1])):
        rest = rest[:-1]
    for later in rest[1:]:
        if _is_finished(rows.get(later)):
            raise InputError(
                f"{JOURNAL}: {later.task_id} is finished under {later.arm} and {rest[0].task_id}, which comes before "
                f"it in its stream, is not: a stream grows at its end; restore {rest[0].trajectory} if it was there, "
                "or choose another --out"
            )
    for earlier in rest:
        if earlier not in requested:
            raise InputError(
                f"{JOURNAL}: {earlier.task_id} ended in an error under {earlier.arm}, and {rest[-1].task_id} comes "
                "after it in its stream; ask for both, or choose another --out"
            )
    if retry_errors:
        return rest
    return tuple(takewhile(lambda item: item not in rows, rest))


def restore_memory(stream: Stream, rows: Mapping[Item, Row], folder: Path) -> Memory:
    """What an agent remembers where its stream goes on: of every item finished so far, the verdict; of the last, the
    skills that its trajectory in the run folder holds.
    """
    finished = [item for item in stream.items if _is_finished(rows.get(item))] if stream.has_memory else []
    if not finished:
        return EMPTY
    skills = read_trajectory(folder / finished[-1].trajectory).trace.saved_skills
    return Memory(skills, tuple(feedback(rows[item]) for item in finished))


def feedback(row: Row) -> Feedback:
    """What the agent hears of a finished episode."""
    return Feedback(row.task_id, row.status.value, row.score)


def _key(item: Item, sub_tasks: Mapping[str, str]) -> _Key:
    return item.model_key, item.condition, item.run_idx, sub_tasks[item.task_id]


def _failed(row: Row) -> bool:
    return row.status is Status.ERROR


def _is_finished(row: Row | None) -> bool:
    return row is not None and not _failed(row)
