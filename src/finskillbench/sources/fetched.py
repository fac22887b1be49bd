"""`provenance.jsonl`: for every file of a fetched collection where it came from, when, and what it was.

While a fetch runs the file is a journal, to which lines are only ever added; a line that a crash cut off is dropped.
When everything is there it is written anew, sorted, one line for each file and at its head what was asked for. Then,
and only then, is the collection complete.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec

from finskillbench.errors import SourceError

NAME = "provenance.jsonl"
PARTS = ".fetch"
"""Folder of what belongs to files that are not complete."""
_AGAIN = "run the same `finskillbench data fetch` again"
_VOUCH = f"{_AGAIN}, or remove {NAME} to answer for the files yourself"


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer that a file was made from: its address without keys, its digest as served, and the source's marks."""

    url: str
    sha256: str
    etag: str = ""
    last_modified: str = ""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file, or a thing that its source does not have (`absent`, with the reason).

    path : in the collection. retrieved : when its source was last asked, UTC. sha256, bytes : of the file as it lies
    there. origins : what it was made from; none where it was derived from other files of the collection.
    """

    path: str
    retrieved: str = ""
    sha256: str = ""
    bytes: int = 0
    origins: tuple[Origin, ...] = ()
    absent: str = ""


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head: what was asked for, and whether it is all there. Months are YYYY-MM."""

    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    universe: str
    prices: str
    complete: bool = False


Kind = TypeVar("Kind", Asked, Entry)


@dataclass
class Journal:
    """The entries of a collection by path; every change is on disk before it counts."""

    folder: Path
    asked: Asked
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / NAME

    def add(self, entry: Entry) -> None:
        """Write down what a file is; a later entry of a path replaces an earlier one."""
        with self._lock:
            self._append(entry)
            self.entries[entry.path] = entry

    def begin(self) -> None:
        """Write down that a fetch of `asked` has begun: until it is complete nothing is built."""
        self._rewrite()

    def finish(self, kept: frozenset[str]) -> None:
        """Write it anew, complete, with the entries of the paths in `kept` only."""
        self.asked = msgspec.structs.replace(self.asked, complete=True)
        self.entries = {path: entry for path, entry in self.entries.items() if path in kept}
        self._rewrite()

    def _append(self, record: Entry) -> None:
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _rewrite(self) -> None:
        beside = self.path.with_suffix(".new")
        records: list[Asked | Entry] = [self.asked, *(self.entries[path] for path in sorted(self.entries))]
        with beside.open("wb") as file:
            file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


def read_journal(folder: Path) -> Journal | None:
    """The journal of a collection; None where it was not fetched.

    Raises
    ------
    SourceError : a line that is none of ours, other than a last one that was cut off.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    lines = path.read_bytes().split(b"\n")
    whole = lines[:-1]
    if not whole:
        raise SourceError(path, "there is no whole line", line=1, remedy=f"remove the file and {_AGAIN}")
    journal = Journal(folder, _record(path, 1, whole[0], Asked))
    for number, line in enumerate(whole[1:], 2):
        entry = _record(path, number, line, Entry)
        journal.entries[entry.path] = entry
    return journal


def _record(path: Path, number: int, line: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise SourceError(path, f"no line of a journal ({error})", line=number, remedy=_VOUCH) from None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A complete collection, every file of it as it was fetched: what was asked for, and one digest for all files."""

    asked: Asked
    digest: str

    @property
    def window(self) -> tuple[date, date]:
        """The first and the last day of the months that were asked for."""
        first, last = (date.fromisoformat(f"{month}-01") for month in (self.asked.start, self.asked.end))
        return first, (last + timedelta(days=31)).replace(day=1) - timedelta(days=1)

    @property
    def told(self) -> dict[str, str]:
        """What the manifest of an edition says of it."""
        asked = {"from": self.asked.start, "to": self.asked.end, "universe": self.asked.universe}
        return {**asked, "prices": self.asked.prices, "provenance": self.digest}


def verified(folder: Path, files: Iterable[str]) -> Fetched | None:
    """A fetched collection whose files are what was fetched; None where it was not fetched.

    Parameters
    ----------
    folder : the collection. files : paths in it that a build may read.

    Raises
    ------
    SourceError : the fetch is not complete; a file was altered, is missing or was added since.
    """
    journal = read_journal(folder)
    if journal is None:
        return None
    if not journal.asked.complete:
        raise SourceError(journal.path, "the fetch is not complete", remedy=f"{_AGAIN} to complete it")
    entries = {path: entry for path, entry in journal.entries.items() if not entry.absent}
    for path, entry in entries.items():
        if not (folder / path).is_file():
            raise SourceError(folder / path, f"is missing; it was fetched {entry.retrieved}", remedy=_VOUCH)
        if digest_of_file(folder / path) != entry.sha256:
            raise SourceError(folder / path, f"was altered since it was fetched {entry.retrieved}", remedy=_VOUCH)
    for path in files:
        if path not in entries:
            raise SourceError(folder / path, f"is not listed in {NAME}", remedy=f"remove the file, or {_VOUCH}")
    listing = "".join(f"{path} {entry.sha256}\n" for path, entry in sorted(entries.items()))
    return Fetched(journal.asked, hashlib.sha256(listing.encode()).hexdigest())


def digest_of_file(path: Path) -> str:
    """sha256 of one file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
