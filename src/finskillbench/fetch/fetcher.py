"""Fetch single files into a folder, skipping files that are there and cannot have changed.

A file is written to a temporary path, entered in the journal with its digest, then renamed. After an interruption
between the last two steps, the next fetch completes the rename without a download.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from finskillbench.errors import DownloadError, InputError, InternalError, SourceError
from finskillbench.fetch.client import AbsentError, Client, SourceRequest, SourceResponse
from finskillbench.fetch.configuration import ContentError, NoDataError
from finskillbench.redaction import redactor_of_process
from finskillbench.sources.fetched import (
    PARTS_FOLDER,
    PROVENANCE_FILE,
    Entry,
    FetchRequest,
    Origin,
    ProvenanceJournal,
    digest_of_file,
    read_journal,
)

LOCK = "lock"


class Folder:
    """A raw collection that is being fetched; create it by `open_folder`."""

    def __init__(self, path: Path, journal: ProvenanceJournal) -> None:
        self.path, self.journal = path, journal
        self._kept: set[str] = set()
        for entry in list(journal.entries.values()):
            if not entry.absent and not self._restored(entry):
                del journal.entries[entry.path]

    def have(self, path: str) -> Entry | None:
        """Return the entry of a file that is unchanged, or that its source does not have."""
        return self.journal.entries.get(path)

    def keep(self, path: str) -> None:
        """Mark a file as part of the collection; `finish` removes all others."""
        self._kept.add(path)

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def write(self, entry: Entry, body: bytes) -> None:
        """Write a file and its entry in the journal; OSError leaves no partial file."""
        temporary = self._temporary_path(entry.path)
        entry = msgspec.structs.replace(entry, sha256=hashlib.sha256(body).hexdigest(), bytes=len(body))
        with temporary.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        self.journal.add(entry)
        self._in_place(temporary, entry)
        self.keep(entry.path)

    def write_user_file(self, path: str, name: str, body: bytes) -> Entry:
        """Write a file of the user unless it is there unchanged."""
        origin = Origin(f"own:{name}", hashlib.sha256(body).hexdigest())
        entry = self.have(path)
        if entry is None or entry.sha256 != origin.sha256:
            self.write(Entry(path, retrieved=Client.now(), origins=(origin,)), body)
        self.keep(path)
        return self.journal.entries[path]

    def record(self, entry: Entry) -> None:
        """Record an entry without writing its file; delete the file if the entry is absent."""
        self.journal.add(entry)
        self.keep(entry.path)
        if entry.absent:
            (self.path / entry.path).unlink(missing_ok=True)

    def drop(self, paths: Iterable[str]) -> None:
        """Remove intermediate files."""
        for path in paths:
            (self.path / path).unlink(missing_ok=True)
            self.journal.entries.pop(path, None)
            self._kept.discard(path)

    def finish(self) -> None:
        """Remove files of earlier fetches that are not needed, and mark the collection complete."""
        kept = frozenset(path for path in self._kept if not path.startswith(PARTS_FOLDER))
        for path in set(self.journal.entries) - kept:
            (self.path / path).unlink(missing_ok=True)
        self.journal.finish(kept)
        for left in (self.path / PARTS_FOLDER).iterdir():
            if left.name != LOCK:
                left.unlink()

    def _temporary_path(self, path: str) -> Path:
        """Return the path of an incomplete file, under a name that no build reads."""
        return self.path / PARTS_FOLDER / f"{hashlib.sha256(path.encode()).hexdigest()[:32]}.new"

    def _in_place(self, temporary: Path, entry: Entry) -> None:
        place = self.path / entry.path
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(place)

    def _restored(self, entry: Entry) -> bool:
        """Return true if a file matches its entry, after completing an interrupted rename."""
        place, temporary = self.path / entry.path, self._temporary_path(entry.path)
        if place.is_file() and place.stat().st_size == entry.bytes and digest_of_file(place) == entry.sha256:
            return True
        if temporary.is_file() and digest_of_file(temporary) == entry.sha256:
            self._in_place(temporary, entry)
            return True
        return False


@contextmanager
def open_folder(path: Path, request: FetchRequest) -> Generator[Folder]:
    """Open the folder of a collection, new or from an earlier fetch, and lock it.

    Raises
    ------
    InputError : it holds files without a journal, is locked by another process, or cannot be written.
    SourceError : its journal is invalid.
    """
    # A crash before the first journal line leaves only the folder of temporary files.
    if path.exists() and not (
        (path.is_dir() and {one.name for one in path.iterdir()} & {PROVENANCE_FILE, PARTS_FOLDER}) or _empty(path)
    ):
        raise InputError(f"{path}: contains files that were not fetched (no {PROVENANCE_FILE}); choose another --out")
    try:
        (path / PARTS_FOLDER).mkdir(parents=True, exist_ok=True)
        lock = (path / PARTS_FOLDER / LOCK).open("wb")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{path}: another process is fetching into it; wait for it, or choose another --out"
            ) from None
        journal = _journal(path, request)
        folder = Folder(path, journal)
        journal.begin()
        yield folder


def _empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _journal(path: Path, request: FetchRequest) -> ProvenanceJournal:
    try:
        found = read_journal(path)
    except SourceError as error:
        raise SourceError(
            error.file, "not a journal of a fetch", line=error.line, remedy="choose another --out"
        ) from None
    if found is None:
        return ProvenanceJournal(path, request)
    found.request = request
    return found


Compose = Callable[[Sequence[bytes]], bytes]
"""Makes a file from response bodies."""


def as_served(bodies: Sequence[bytes]) -> bytes:
    return bodies[0]


def gzipped(bodies: Sequence[bytes]) -> bytes:
    """Compress the one body reproducibly, without a timestamp."""
    return gzip.compress(bodies[0], 6, mtime=0)


@dataclass(frozen=True, slots=True)
class FetchItem:
    """A file of the collection; `immutable` if its source never changes it after publication."""

    path: str
    requests: tuple[SourceRequest, ...]
    compose: Compose = as_served
    immutable: bool = False


class Fetcher:
    """Fetches items into a folder.

    since : last day of the window; items retrieved on or before it may be incomplete. refresh : check all for changes.
    """

    def __init__(self, folder: Folder, client: Client, *, since: str, refresh: bool) -> None:
        self.folder, self.client = folder, client
        self._since, self._refresh = since, refresh

    def fetch(self, item: FetchItem) -> Entry:
        """Fetch a file unless it is current; return its entry, which may be absent. Raises DownloadError or OSError."""
        entry = self.folder.have(item.path)
        urls = [question.url for question in item.requests]
        same = entry is not None and [origin.url for origin in entry.origins] == urls
        if entry is not None and same and self.is_fresh(entry, immutable=item.immutable):
            self.folder.keep(item.path)
            return entry
        try:
            answers = self._answers(item, entry if same else None)
            if answers is not None:
                return self.write(item, answers)
        except AbsentError as error:
            nothing = tuple(Origin(url, "") for url in urls)
            made = Entry(item.path, retrieved=self._today(), origins=nothing, absent=str(error))
            self.folder.record(made)
            return made
        if entry is None:
            raise InternalError(f"{item.path}: the source reports no change, but there is no earlier entry")
        made = msgspec.structs.replace(entry, retrieved=self._today())
        self.folder.record(made)
        return made

    def is_fresh(self, entry: Entry, *, immutable: bool = False) -> bool:
        """Return true if an entry needs no request."""
        if self._refresh and not (immutable and not entry.absent):
            return False
        return (immutable and not entry.absent) or entry.retrieved[:10] > self._since

    def write(self, item: FetchItem, answers: Sequence[SourceResponse]) -> Entry:
        """Compose a file from valid responses; AbsentError or DownloadError if they do not give one."""
        bodies = [answer.body or b"" for answer in answers]
        try:
            body = item.compose(bodies)
        except NoDataError as error:
            raise AbsentError(f"{item.requests[0].url}: not found ({error})") from None
        except ContentError as error:
            raise DownloadError(redactor_of_process()(f"{item.requests[0].url}: served {error}")) from None
        origins = tuple(
            Origin(question.url, hashlib.sha256(served).hexdigest(), answer.etag, answer.last_modified)
            for question, served, answer in zip(item.requests, bodies, answers, strict=True)
        )
        made = Entry(item.path, retrieved=answers[0].retrieved, origins=origins)
        self.folder.write(made, body)
        if len(item.requests) > 1:
            self.folder.drop(_part(question) for question in item.requests)
        return self.folder.journal.entries[item.path]

    def _answers(self, item: FetchItem, entry: Entry | None) -> list[SourceResponse] | None:
        """Return the responses to an item's requests; None if the only one reports no change."""
        if len(item.requests) == 1:
            origin = entry.origins[0] if entry is not None and not entry.absent else None
            etag, modified = (origin.etag, origin.last_modified) if origin else ("", "")
            answer = self.client.get(item.requests[0], etag=etag, last_modified=modified)
            return None if answer.body is None else [answer]
        return [self._part_of(question) for question in item.requests]

    def _part_of(self, request: SourceRequest) -> SourceResponse:
        """Return the response to one of several requests; it is stored until all have arrived."""
        path = _part(request)
        entry = self.folder.have(path)
        if entry is not None and entry.retrieved[:10] > self._since:
            origin = entry.origins[0]
            return SourceResponse(self.folder.read(path), origin.etag, origin.last_modified, entry.retrieved)
        answer = self.client.get(request)
        served = answer.body or b""
        origin = Origin(request.url, hashlib.sha256(served).hexdigest(), answer.etag, answer.last_modified)
        self.folder.write(Entry(path, retrieved=answer.retrieved, origins=(origin,)), served)
        return answer

    def _today(self) -> str:
        return self.client.now()


def _part(request: SourceRequest) -> str:
    return f"{PARTS_FOLDER}/{hashlib.sha256(request.url.encode()).hexdigest()[:32]}.part"
