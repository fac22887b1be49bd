"""Journal and trajectories of a run folder.

The journal is append-only, with one JSON line per event, and survives kill -9: each line is written at once, and
`fsync` against machine failures comes in batches. A line without newline is torn; reading ignores it, and the next
append removes it. A trajectory is one compressed JSON file per finished episode, readable without any other file.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec
import orjson

from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.trace import Trace
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store import version
from finskillbench.runs.store.record import AnyEvent, Finished, History, Rescored, replay_events
from finskillbench.runs.store.rows import check_row, intern_texts
from finskillbench.runs.store.version import PART, code_version, write_atomic

_LEVEL = 1
"""Fastest compression: 35 KB take 0.1 ms; level 9 takes 0.9 ms and saves 16 % of the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One episode, readable alone; `edition` is a digest, `arguments` are those of the model."""

    code_version: str = field(default_factory=code_version)
    edition: str
    domain: str
    sub_task: str
    difficulty: str
    as_of_date: date
    arguments: str
    run_idx: int
    trace: Trace

    @property
    def item(self) -> Item:
        """Item of the trajectory."""
        return Item(self.trace.model, self.arguments, self.trace.condition, self.trace.task_id, self.run_idx)


def encode_trajectory(item: Item, episode: Episode, trace: Trace, *, edition_digest: str) -> bytes:
    """Encode a trajectory as JSON."""
    content = Trajectory(
        edition=edition_digest,
        domain=episode.skill,
        sub_task=episode.sub_task,
        difficulty=episode.difficulty,
        as_of_date=episode.as_of_date,
        arguments=item.arguments,
        run_idx=item.run_idx,
        trace=trace,
    )
    # orjson omits names that start with _, such as the state of a model adapter.
    return orjson.dumps(content)


def compress_trajectory(data: bytes) -> bytes:
    """Compress an encoded trajectory; releases the GIL."""
    return gzip.compress(data, _LEVEL, mtime=0)


def write_trajectory(folder: Path, item: Item, data: bytes) -> None:
    """Write a compressed trajectory atomically, before its journal line; its folder must exist."""
    write_atomic(folder / item.trajectory, data)


def _decode(data: bytes) -> Trajectory:
    """Decode a file; raise OSError, EOFError, ValueError or zlib.error if it is damaged or not a trajectory."""
    return msgspec.json.decode(gzip.decompress(data), type=Trajectory)


def read_trajectory(path: Path) -> Trajectory:
    """Read a trajectory; raise `InputError` if the file is absent, damaged or not a trajectory."""
    try:
        return _decode(path.read_bytes())
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not a trajectory ({error})") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: not a readable trajectory ({error})") from error


def remove_parts(folder: Path) -> None:
    """Remove files that a killed process left incomplete."""
    for part in folder.rglob(f"*{PART}"):
        part.unlink(missing_ok=True)


JOURNAL = "journal.jsonl"
SYNC_LINES = 64
SYNC_SECONDS = 1.0
_TAIL_BYTES = 64 * 1024
"""Bytes read first to find the last line, which takes about 2 KB."""

_decoder = msgspec.json.Decoder(AnyEvent)


@contextmanager
def exclusive(folder: Path) -> Generator[None]:
    """Lock the run folder for this process; raise `InputError` if another one holds it or it cannot be written."""
    path = folder / "run.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose a writable --out") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{folder}: another process is writing this run; wait for it or stop it") from None
        yield
    finally:
        os.close(handle)


class Journal:
    """Appends to the journal of a run folder that this process has locked by `exclusive`.

    All methods raise `InputError` if the file cannot be read or written, for example on a full disk.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._path = folder / JOURNAL
        complete = _complete_bytes(self._path)
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._file, complete)
        except OSError as error:
            raise self._failure(error) from error
        self._pending = 0
        self._synced = clock()

    def append(self, event: AnyEvent) -> None:
        """Write one line at once, and sync when a batch is full; a line that fails leaves no trace."""
        data = _line(event)
        before = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, before)
            raise self._failure(error) from error
        self._pending += 1
        if self._pending >= SYNC_LINES or self._clock() - self._synced >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Wait until every line is on disk."""
        try:
            if self._pending:
                os.fsync(self._file)
        except OSError as error:
            raise self._failure(error) from error
        self._pending = 0
        self._synced = self._clock()

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failure(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: cannot be written ({error.strerror}); {version.remedy(error)}")


def read_events(folder: Path) -> list[AnyEvent]:
    """Read the journal of a run folder, oldest event first; raises as `iterate_events`."""
    return list(iterate_events(folder))


def iterate_events(folder: Path) -> Iterator[AnyEvent]:
    """Yield the events of a journal, oldest first; none if it is absent.

    Raises `InputError` if a line is not an event (a last line that is not JSON counts as torn), or for a folder of
    journals from an earlier version.
    """
    if (folder / "journal").is_dir():
        raise InputError(
            f"{folder}: written by an earlier version, whose journals this one cannot read; choose another --out"
        )
    path = folder / JOURNAL
    remaining = _complete_bytes(path)
    if not remaining:
        return
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                remaining -= len(line)
                if remaining < 0:
                    return
                yield _event(path, number, line)
    except OSError as error:
        raise _unreadable(path, error) from error


def _event(path: Path, number: int, line: bytes) -> AnyEvent:
    try:
        event = _decoder.decode(line)
    except msgspec.DecodeError as error:
        raise InputError(
            f"{path}, line {number}: not a journal line ({error}); delete it and its episode is run again"
        ) from None
    if isinstance(event, Finished | Rescored):
        intern_texts(event.row)
    return event


def read_history(folder: Path, *, allow_altered: bool = False) -> History:
    """Read the state that the journal of a run folder implies; raises as `read_events`.

    Altered rows raise `InputError`, unless `allow_altered` admits them for rescoring.
    """
    found = replay_events(iterate_events(folder))
    if not allow_altered:
        check_rows(folder, found)
    return found


def check_rows(folder: Path, found: History) -> None:
    """Raise `InputError` if a row was altered after it was written."""
    for row in found.rows.values():
        try:
            check_row(row)
        except ValueError as error:
            raise InputError(f"{folder / JOURNAL}: {error}; run finskillbench rescore") from None


def write_events(folder: Path, events: Iterable[AnyEvent]) -> None:
    """Write a complete journal into a folder without one."""
    version.write_atomic(folder / JOURNAL, b"".join(map(_line, events)))


def _line(event: AnyEvent) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def _complete_bytes(path: Path) -> int:
    """Return the size of the complete lines, without text after the last newline or a last line that is not JSON.

    Reads only the end of the file, since the journal of a million episodes has two gigabytes.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            data, begin = b"", size
            while begin and data.count(b"\n") < 3:
                begin = max(0, begin - _TAIL_BYTES)
                file.seek(begin)
                data = file.read(size - begin)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise _unreadable(path, error) from error
    end = data.rfind(b"\n") + 1
    start = data.rfind(b"\n", 0, max(end - 1, 0)) + 1
    try:
        if end:
            msgspec.json.decode(data[start:end])
    except msgspec.DecodeError:
        return begin + start
    return begin + end if end else 0


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be read ({error.strerror})")
