"""The journal of a run: append-only, one JSON line per event, safe against kill -9.

A line goes to the operating system in one write as soon as it is known, so a killed process loses nothing; `fsync`,
against a machine that stops, comes in batches. A line that was being written when the process died has no newline:
it is left out on reading and cut off before the next is appended.

Trajectories: one compressed JSON file per finished episode, with everything that was said and done.

A file is readable alone: beside the trace it names the edition, the episode's place in it, and the harness.
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
"""Fastest compression: a trajectory of 35 KB takes 0.1 ms; level 9 takes 0.9 ms and saves 16 % of the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One episode with what is needed to read it alone; `edition` is a digest, `arguments` are those of the entry."""

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
        """The piece of work that the trajectory is of."""
        return Item(self.trace.model, self.arguments, self.trace.condition, self.trace.task_id, self.run_idx)


def encode_trajectory(item: Item, episode: Episode, trace: Trace, *, edition_digest: str) -> bytes:
    """The trajectory of `item` as JSON."""
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
    # orjson leaves out names with a _: what a model's adapter wants back is no part of a trajectory.
    return orjson.dumps(content)


def compress_trajectory(data: bytes) -> bytes:
    """An encoded trajectory as its file holds it; other threads run meanwhile."""
    return gzip.compress(data, _LEVEL, mtime=0)


def write_trajectory(folder: Path, item: Item, data: bytes) -> None:
    """Write a packed trajectory of `item` into the run folder; its own folder must exist.

    The file is complete under its name or not there; the journal line comes after it.
    """
    write_atomic(folder / item.trajectory, data)


def _decode(data: bytes) -> Trajectory:
    """A trajectory from the bytes of its file.

    Raises
    ------
    OSError, EOFError, ValueError, zlib.error : they are damaged, or hold something else.
    """
    return msgspec.json.decode(gzip.decompress(data), type=Trajectory)


def read_trajectory(path: Path) -> Trajectory:
    """Read a trajectory.

    Raises
    ------
    InputError : the file is absent or damaged, or holds something else.
    """
    try:
        return _decode(path.read_bytes())
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not a trajectory ({error})") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: not a readable trajectory ({error})") from error


def remove_parts(folder: Path) -> None:
    """Remove what a killed process left half-written under `folder`."""
    for part in folder.rglob(f"*{PART}"):
        part.unlink(missing_ok=True)


JOURNAL = "journal.jsonl"
SYNC_LINES = 64
SYNC_SECONDS = 1.0
_TAIL_BYTES = 64 * 1024
"""How much of its end is read at first to find the last line, which holds 2 KB."""

_decoder = msgspec.json.Decoder(AnyEvent)


@contextmanager
def exclusive(folder: Path) -> Generator[None]:
    """Hold the run folder for this process alone.

    Raises
    ------
    InputError : another process is at work in it, or it cannot be written.
    """
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
    """Appends to the journal of a run folder, which this process holds by `exclusive`.

    Raises
    ------
    InputError : the file cannot be read or written.
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
        """Write one line at once; wait for the disk when a batch is full. A line that does not fit leaves nothing.

        Raises
        ------
        InputError : the disk is full or gone.
        """
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
        """Wait until the disk has every line; raise `InputError` where it cannot take them."""
        try:
            if self._pending:
                os.fsync(self._file)
        except OSError as error:
            raise self._failure(error) from error
        self._pending = 0
        self._synced = self._clock()

    def close(self) -> None:
        """Sync and close; raise `InputError` where the disk cannot take the last lines."""
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
    """Read the journal of a run folder, oldest event first; raises as `events_of`."""
    return list(iterate_events(folder))


def iterate_events(folder: Path) -> Iterator[AnyEvent]:
    """The events of the journal of a run folder one after another, oldest first; an absent one has none.

    Raises
    ------
    InputError : a line is no event; the message names it. Only a last line that is not even JSON is taken for torn.
        Or the folder was written by a version that kept a folder of journals, which would look like no journal at all.
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
    """What the journal of a run folder comes to.

    Parameters
    ----------
    altered : whether rows that were altered after they were written are taken as well, to be judged again.

    Raises
    ------
    InputError : as `read_events`; or the last row of an episode was altered.
    """
    found = replay_events(iterate_events(folder))
    if not allow_altered:
        check_rows(folder, found)
    return found


def check_rows(folder: Path, found: History) -> None:
    """Refuse, as `InputError`, a history whose rows are not those that were written."""
    for row in found.rows.values():
        try:
            check_row(row)
        except ValueError as error:
            raise InputError(f"{folder / JOURNAL}: {error}; judge the run again with rescore") from None


def write_events(folder: Path, events: Iterable[AnyEvent]) -> None:
    """Write a whole journal into a folder that has none."""
    version.write_atomic(folder / JOURNAL, b"".join(map(_line, events)))


def _line(event: AnyEvent) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def _complete_bytes(path: Path) -> int:
    """How many bytes are whole lines: what follows the last newline is torn, and so is a last line that is no JSON.

    Only the end of the file is read: the journal of a million episodes has two gigabytes.
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
