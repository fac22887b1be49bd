"""`provenance.jsonl`: origin, time and digest of every file of a fetched collection.

During a fetch it is an append-only journal. A complete fetch rewrites it sorted, with the request first.
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

PROVENANCE_FILE = "provenance.jsonl"
PARTS_FOLDER = ".fetch"
"""Folder of incomplete files."""
_RESUME = "run the same `finskillbench data fetch` again"
_RESUME_OR_REMOVE = f"{_RESUME}, or remove {PROVENANCE_FILE} to skip the verification"


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A response that a file was made from: URL without keys, digest as served, and cache validators."""

    url: str
    sha256: str
    etag: str = ""
    last_modified: str = ""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file, or one that its source does not have (`absent`, with the reason).

    retrieved : time of the last request, UTC. origins : empty if derived from other files of the collection.
    """

    path: str
    retrieved: str = ""
    sha256: str = ""
    bytes: int = 0
    origins: tuple[Origin, ...] = ()
    absent: str = ""


class FetchRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """First line of the journal: the request (months YYYY-MM), and its completion."""

    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    universe: str
    prices: str
    complete: bool = False


Kind = TypeVar("Kind", FetchRequest, Entry)


@dataclass
class ProvenanceJournal:
    """Entries of a collection by path; every change is on disk before it takes effect."""

    folder: Path
    request: FetchRequest
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        return self.folder / PROVENANCE_FILE

    def add(self, entry: Entry) -> None:
        """Append an entry; a later one replaces an earlier one of the same path."""
        with self._lock:
            self._append(entry)
            self.entries[entry.path] = entry

    def begin(self) -> None:
        """Record that a fetch has begun; nothing is built until it is complete."""
        self._rewrite()

    def finish(self, kept: frozenset[str]) -> None:
        """Rewrite the journal as complete, with the entries of `kept` only."""
        self.request = msgspec.structs.replace(self.request, complete=True)
        self.entries = {path: entry for path, entry in self.entries.items() if path in kept}
        self._rewrite()

    def _append(self, record: Entry) -> None:
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _rewrite(self) -> None:
        temporary = self.path.with_suffix(".new")
        records: list[FetchRequest | Entry] = [self.request, *(self.entries[path] for path in sorted(self.entries))]
        with temporary.open("wb") as file:
            file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)


def read_journal(folder: Path) -> ProvenanceJournal | None:
    """Read the journal of a collection, None if it was not fetched; SourceError for an invalid line."""
    path = folder / PROVENANCE_FILE
    if not path.is_file():
        return None
    lines = path.read_bytes().split(b"\n")
    whole = lines[:-1]
    if not whole:
        raise SourceError(path, "there is no complete line", line=1, remedy=f"remove the file and {_RESUME}")
    journal = ProvenanceJournal(folder, _record(path, 1, whole[0], FetchRequest))
    for number, line in enumerate(whole[1:], 2):
        entry = _record(path, number, line, Entry)
        journal.entries[entry.path] = entry
    return journal


def _record(path: Path, number: int, line: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise SourceError(path, f"not a line of a journal ({error})", line=number, remedy=_RESUME_OR_REMOVE) from None


@dataclass(frozen=True, slots=True)
class FetchedCollection:
    """A complete and unaltered collection: its request, and one digest for all files."""

    request: FetchRequest
    digest: str

    @property
    def window(self) -> tuple[date, date]:
        """Return the first and last day of the requested months."""
        first, last = (date.fromisoformat(f"{month}-01") for month in (self.request.start, self.request.end))
        return first, (last + timedelta(days=31)).replace(day=1) - timedelta(days=1)

    @property
    def manifest_entry(self) -> dict[str, str]:
        """Return the record of the collection in an edition's manifest."""
        scope = {"from": self.request.start, "to": self.request.end, "universe": self.request.universe}
        return {**scope, "prices": self.request.prices, "provenance": self.digest}


def verify_collection(folder: Path, files: Iterable[str]) -> FetchedCollection | None:
    """Verify the files of a collection that a build may read; None if it was not fetched.

    Raises
    ------
    SourceError : the fetch is incomplete; a file was altered, removed or added.
    """
    journal = read_journal(folder)
    if journal is None:
        return None
    if not journal.request.complete:
        raise SourceError(journal.path, "the fetch is not complete", remedy=f"{_RESUME} to complete it")
    entries = {path: entry for path, entry in journal.entries.items() if not entry.absent}
    for path, entry in entries.items():
        if not (folder / path).is_file():
            raise SourceError(folder / path, f"is missing; it was fetched {entry.retrieved}", remedy=_RESUME_OR_REMOVE)
        if digest_of_file(folder / path) != entry.sha256:
            raise SourceError(
                folder / path, f"was altered since it was fetched {entry.retrieved}", remedy=_RESUME_OR_REMOVE
            )
    for path in files:
        if path not in entries:
            raise SourceError(
                folder / path, f"is not listed in {PROVENANCE_FILE}", remedy=f"remove the file, or {_RESUME_OR_REMOVE}"
            )
    listing = "".join(f"{path} {entry.sha256}\n" for path, entry in sorted(entries.items()))
    return FetchedCollection(journal.request, hashlib.sha256(listing.encode()).hexdigest())


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
