"""The folder that is filled: a file appears in it whole and written down, or not at all.

What is new is written beside its place, then entered in the journal with its digest, then renamed. Killed between
the last two, the next fetch finds the entry and the file beside, and renames it: nothing is asked for twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

from finskillbench.errors import InputError, SourceError
from finskillbench.sources.fetched import NAME, PARTS, Asked, Entry, Journal, digest_of_file, read_journal

LOCK = "lock"


class Folder:
    """A raw collection that is being fetched. Make it by `opened`."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path, self.journal = path, journal
        self._kept: set[str] = set()
        for entry in list(journal.entries.values()):
            if not entry.absent and not self._restored(entry):
                del journal.entries[entry.path]

    def have(self, path: str) -> Entry | None:
        """What was written down of a file that is there as it was, or of one that its source does not have."""
        return self.journal.entries.get(path)

    def keep(self, path: str) -> None:
        """Say that a file belongs to what is being fetched: `finish` removes all that do not."""
        self._kept.add(path)

    def read(self, path: str) -> bytes:
        """The bytes of a file that is there."""
        return (self.path / path).read_bytes()

    def write(self, entry: Entry, body: bytes) -> None:
        """Put a file in its place and write down what it is.

        Raises
        ------
        OSError : the disk is full or fails; nothing of the file is left in its place.
        """
        beside = self._beside(entry.path)
        entry = msgspec.structs.replace(entry, sha256=hashlib.sha256(body).hexdigest(), bytes=len(body))
        with beside.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        self.journal.add(entry)
        self._in_place(beside, entry)
        self.keep(entry.path)

    def note(self, entry: Entry) -> None:
        """Write down what was learned of a file without changing it, or that there is none."""
        self.journal.add(entry)
        self.keep(entry.path)
        if entry.absent:
            (self.path / entry.path).unlink(missing_ok=True)

    def drop(self, paths: Iterable[str]) -> None:
        """Remove files that only another one was made from."""
        for path in paths:
            (self.path / path).unlink(missing_ok=True)
            self.journal.entries.pop(path, None)
            self._kept.discard(path)

    def finish(self) -> None:
        """Remove what an earlier fetch brought and this one does not need, and declare the collection complete."""
        kept = frozenset(path for path in self._kept if not path.startswith(PARTS))
        for path in set(self.journal.entries) - kept:
            (self.path / path).unlink(missing_ok=True)
        self.journal.finish(kept)
        for left in (self.path / PARTS).iterdir():
            if left.name != LOCK:
                left.unlink()

    def _beside(self, path: str) -> Path:
        """Where a file lies before it is in its place: never named like one that a build would read."""
        return self.path / PARTS / f"{hashlib.sha256(path.encode()).hexdigest()[:32]}.new"

    def _in_place(self, beside: Path, entry: Entry) -> None:
        place = self.path / entry.path
        place.parent.mkdir(parents=True, exist_ok=True)
        beside.replace(place)

    def _restored(self, entry: Entry) -> bool:
        """Whether a file is there as it was written down, brought from beside its place if need be."""
        place, beside = self.path / entry.path, self._beside(entry.path)
        if place.is_file() and place.stat().st_size == entry.bytes and digest_of_file(place) == entry.sha256:
            return True
        if beside.is_file() and digest_of_file(beside) == entry.sha256:
            self._in_place(beside, entry)
            return True
        return False


@contextmanager
def opened(path: Path, asked: Asked) -> Generator[Folder]:
    """The folder of a collection, to fetch `asked` into: a new one, or one that an earlier fetch left there.

    Raises
    ------
    InputError : it holds files and no journal, another process fetches into it, or it cannot be written.
    SourceError : its journal is none.
    """
    # A crash before the first line leaves the folder of parts alone.
    if path.exists() and not ((path.is_dir() and {one.name for one in path.iterdir()} & {NAME, PARTS}) or _empty(path)):
        raise InputError(f"{path}: holds files that were not fetched (no {NAME}); name another --out")
    try:
        (path / PARTS).mkdir(parents=True, exist_ok=True)
        lock = (path / PARTS / LOCK).open("wb")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{path}: another process fetches into it; wait for it, or name another --out") from None
        journal = _journal(path, asked)
        folder = Folder(path, journal)
        journal.begin()
        yield folder


def _empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _journal(path: Path, asked: Asked) -> Journal:
    """The journal of an earlier fetch, for what is asked now."""
    try:
        found = read_journal(path)
    except SourceError as error:
        raise SourceError(error.file, "no journal of a fetch", line=error.line, remedy="name another --out") from None
    if found is None:
        return Journal(path, asked)
    found.asked = asked
    return found
