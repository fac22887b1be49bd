"""Divide a plan into streams and shards; default edition and run folder.

The items of a stream run in order; different streams run in parallel. Most streams hold one item. Under a condition
with memory, a stream holds every episode of one model, repeat and subtask in the order of the edition: each starts with
the skills and verdicts of those before it. Such a stream includes the items that a run folder already has, so it grows
only at its end.

Default edition and run folder are named after digests of code and arguments, so changed code never reuses old results.
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
from typing import TYPE_CHECKING, Any, TypeAlias

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
"""Called with the name of each build step."""

if TYPE_CHECKING:
    from finskillbench.edition import Edition

_BUILDERS = ("arrays.py", "domains", "edition", "engines", "episode.py", "panels", "sources", "splits.py")
_SMALL = 15
"""Number of companies in a small edition."""
_RUNNERS = (*_BUILDERS, "harness", "runs", "sandbox", "scoring")


def default_edition(progress: Progress, suite: str = PAPER_SUITE, *, small: bool = False) -> Path:
    """Return the folder of the default edition of a suite, as `cached_edition`.

    A small one has 15 companies and one episode of each subtask.
    """
    options: dict[str, Any] = {"companies": _SMALL, "episodes": 1} if small else {}
    return cached_edition(f"{'small-' * small}{suite}", progress, suite=suite, **options)


def cached_edition(name: str, progress: Progress, **options: Any) -> Path:
    """Return the folder of an edition in the user's cache, and build it if it is missing.

    If several processes need it, one builds and the others wait. `name` must identify `options`, the arguments of
    `build_edition`. Raises `InputError` if the cache cannot be written.
    """
    folder = user_cache_path("finskillbench") / "editions" / f"{name}-{code_digest(_BUILDERS)[:12]}"
    if not folder.exists():
        from finskillbench.edition import build_edition

        with _file_lock(folder.with_name(f"{folder.name}.lock"), progress):
            if not folder.exists():
                build_edition(**options, out=folder, progress=progress)
    return folder


@contextmanager
def _file_lock(path: Path, progress: Progress) -> Generator[None]:
    """Hold an exclusive lock on a file, waiting for it if necessary; the end of the process releases it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); name an edition with --edition") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process to build the edition")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_folder(edition: Edition, *arguments: object) -> Path:
    """Return the folder below `runs/` for this edition, these arguments and this code."""
    key = orjson.dumps([edition.digest, code_digest(_RUNNERS), arguments])
    return Path("runs") / f"run-{hashlib.sha256(key).hexdigest()[:12]}"


_Key: TypeAlias = tuple[ModelKey, str, int, str]
"""Model, condition, repeat and subtask of a stream."""
_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Stream:
    """Items that run in order; with `has_memory`, an agent's skills and verdicts pass from each to the next."""

    items: tuple[Item, ...]
    has_memory: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of `of` parts of a plan; each stream belongs to exactly one."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def contains(self, stream: Stream) -> bool:
        """Return True if a stream belongs to this part; only its first item decides."""
        first = stream.items[0]
        key = orjson.dumps([first.model, first.arguments, first.condition, first.task_id, first.run_idx])
        return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") % self.of == self.number - 1


def parse_shard(text: str) -> Shard:
    """Parse a shard "i/n"; raise `InputError` unless 1 <= i <= n."""
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r} is not valid; write i/n with 1 <= i <= n, for example 1/4")
    return Shard(int(match[1]), int(match[2]))


def make_streams(plan: Plan, shard: Shard | None = None) -> tuple[Stream, ...]:
    """Divide a plan, or one shard of it, into streams in the order of execution.

    Streams with memory come first, since their items cannot run in parallel. The others follow episode by episode: a
    run that stops early then has the same episodes for every model and condition, and each episode is prepared once.
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
    """Add the items of `rows` to their streams with memory; `episodes` are all of the edition, in order."""
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
    """Return the items of a stream that are still to run, among those `requested`: those without a row, and errors.

    A stream with memory stops at an error. Raises `InputError` if in such a stream an item would run before a finished
    one, or after an error that is not requested.
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
                f"{JOURNAL}: {later.task_id} is finished under {later.arm_folder}, but {rest[0].task_id}, which "
                f"precedes it in its stream, is not; a stream grows only at its end. Restore {rest[0].trajectory} "
                "if it existed, or choose another --out"
            )
    for earlier in rest:
        if earlier not in requested:
            raise InputError(
                f"{JOURNAL}: {earlier.task_id} ended in an error under {earlier.arm_folder}, and {rest[-1].task_id} "
                "follows it in its stream; request both, or choose another --out"
            )
    if retry_errors:
        return rest
    return tuple(takewhile(lambda item: item not in rows, rest))


def restore_memory(stream: Stream, rows: Mapping[Item, Row], folder: Path) -> Memory:
    """Return the memory with which a stream resumes: all verdicts, and the skills from its last trajectory."""
    finished = [item for item in stream.items if _is_finished(rows.get(item))] if stream.has_memory else []
    if not finished:
        return EMPTY
    skills = read_trajectory(folder / finished[-1].trajectory).trace.saved_skills
    return Memory(skills, tuple(feedback(rows[item]) for item in finished))


def feedback(row: Row) -> Feedback:
    """Feedback that the agent receives on a finished episode."""
    return Feedback(row.task_id, row.status.value, row.score)


def _key(item: Item, sub_tasks: Mapping[str, str]) -> _Key:
    return item.model_key, item.condition, item.run_idx, sub_tasks[item.task_id]


def _failed(row: Row) -> bool:
    return row.status is Status.ERROR


def _is_finished(row: Row | None) -> bool:
    return row is not None and not _failed(row)
