"""The journal of a run: append-only, one JSON line per finished episode, safe against kill -9.

A line goes to the operating system in one write as soon as its episode has ended, so a killed process loses nothing;
`fsync`, against a machine that stops, comes in batches. A line that was being written when the process died has
no newline: it is dropped on reading, and its episode is run again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store import files
from finskillbench.runs.store.rows import check_row

Entry = TypeVar("Entry")

SYNC_LINES = 64
SYNC_SECONDS = 1.0


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
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
    """Appends to one journal file; open it only while the run folder is held by `exclusive`."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}); {files.mend(error)}") from error
        self._pending = 0
        self._synced = clock()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line at once; wait for the disk when a batch is full. A line that does not fit leaves nothing.

        Raises
        ------
        InputError : the disk is full or gone.
        """
        data = orjson.dumps(line, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE)
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

    def _failure(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: cannot be written ({error.strerror}); {files.mend(error)}")


def read_journal(path: Path, *, mend: bool = False) -> dict[Item, dict[str, Any]]:
    """Read a journal: item to line, the last line of an item winning (an episode run again after an error).

    Arguments and errors as those of `read_lines`.
    """
    return dict(read_lines(path, mend=mend))


def read_lines(path: Path, *, mend: bool = False) -> list[tuple[Item, dict[str, Any]]]:
    """Read every line of a journal with its item, in file order.

    Arguments and errors as those of `read_json_lines`; a line also has to hold what its row needs.
    """

    def entry(line: Any) -> tuple[Item, dict[str, Any]]:
        check_row(line)
        return key_of(line), line

    return read_json_lines(path, entry, mend=mend)


def read_json_lines(path: Path, entry: Callable[[Any], Entry], *, mend: bool = False) -> list[Entry]:
    """Read an append-only file of JSON lines.

    Parameters
    ----------
    path : the file; absent counts as empty.
    entry : makes what is returned of a line; raises KeyError, TypeError or ValueError where the line is none.
    mend : cut a torn last line off the file, so that the next append starts on a fresh line. Only for the holder
        of the run folder.

    Raises
    ------
    InputError : a line is no line of this file; the message names it. Only a last line that is not even JSON is taken
        for torn.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    entries = []
    whole = 0
    number = 0
    while (end := data.find(b"\n", whole)) >= 0:
        number += 1
        try:
            line = orjson.loads(data[whole:end])
        except orjson.JSONDecodeError:
            if end + 1 == len(data):
                break
            raise _no_line(path, number, "not JSON") from None
        try:
            entries.append(entry(line))
        except (ValueError, KeyError, TypeError) as error:
            raise _no_line(path, number, str(error)) from None
        whole = end + 1
    if mend and whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)
            os.fsync(file.fileno())
    return entries


def _no_line(path: Path, number: int, why: str) -> InputError:
    return InputError(f"{path}, line {number}: not a journal line ({why}); delete it and its episode is run again")


def key_of(line: Mapping[str, Any]) -> Item:
    """The item that a journal line or a row belongs to; raises KeyError, TypeError or ValueError on anything else."""
    texts = line["model"], line["task_id"]
    if not all(isinstance(text, str) for text in texts) or type(line["run_idx"]) is not int:
        raise TypeError("not a journal line")
    return Item(texts[0], Condition(line["condition"]), texts[1], line["run_idx"])
