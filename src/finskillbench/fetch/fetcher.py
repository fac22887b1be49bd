"""Fetch one file at a time into a folder: what is there is not asked for again, unless its source may have changed it.

A file appears whole and written down, or not at all. It is written beside its place, then entered in the journal with
its digest, then renamed. Killed between the last two, the next fetch finds the entry and the file beside, and renames
it: nothing is asked for twice.
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
from finskillbench.fetch.client import AbsentError, Answer, Client, Question
from finskillbench.fetch.configuration import ContentError, NothingError
from finskillbench.redaction import redactor_of_process
from finskillbench.sources.fetched import NAME, PARTS, Asked, Entry, Journal, Origin, digest_of_file, read_journal

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

    def write_own(self, path: str, name: str, body: bytes) -> Entry:
        """Put a file of the user in its place, unless it is there as it is."""
        origin = Origin(f"own:{name}", hashlib.sha256(body).hexdigest())
        entry = self.have(path)
        if entry is None or entry.sha256 != origin.sha256:
            self.write(Entry(path, retrieved=Client.now(), origins=(origin,)), body)
        self.keep(path)
        return self.journal.entries[path]

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


Compose = Callable[[Sequence[bytes]], bytes]
"""Makes a file of the bodies that came."""


def as_served(bodies: Sequence[bytes]) -> bytes:
    """The one body as it came."""
    return bodies[0]


def packed(bodies: Sequence[bytes]) -> bytes:
    """The one body, compressed, without a date in it."""
    return gzip.compress(bodies[0], 6, mtime=0)


@dataclass(frozen=True, slots=True)
class Item:
    """A file of the collection: what is asked for it, and what becomes of the answers.

    lasting : once published, its source never changes it.
    """

    path: str
    questions: tuple[Question, ...]
    compose: Compose = as_served
    lasting: bool = False


class Fetcher:
    """Fetches items into a folder.

    since : a day; what was last asked for on or before it may lack the end of the window. refresh : ask of everything
    whether it has changed.
    """

    def __init__(self, folder: Folder, client: Client, *, since: str, refresh: bool) -> None:
        self.folder, self.client = folder, client
        self._since, self._refresh = since, refresh

    def fetch(self, item: Item) -> Entry:
        """The entry of a file that is there now, or of one that its source does not have.

        Raises
        ------
        DownloadError : it could not be had. OSError : it could not be written.
        """
        entry = self.folder.have(item.path)
        urls = [question.url for question in item.questions]
        same = entry is not None and [origin.url for origin in entry.origins] == urls
        if entry is not None and same and self.is_fresh(entry, lasting=item.lasting):
            self.folder.keep(item.path)
            return entry
        try:
            answers = self._answers(item, entry if same else None)
            if answers is not None:
                return self.write(item, answers)
        except AbsentError as error:
            nothing = tuple(Origin(url, "") for url in urls)
            made = Entry(item.path, retrieved=self._today(), origins=nothing, absent=str(error))
            self.folder.note(made)
            return made
        if entry is None:
            raise InternalError(f"{item.path}: nothing to compare with, and the source was asked for changes")
        made = msgspec.structs.replace(entry, retrieved=self._today())
        self.folder.note(made)
        return made

    def is_fresh(self, entry: Entry, *, lasting: bool = False) -> bool:
        """Whether an entry needs no question."""
        if self._refresh and not (lasting and not entry.absent):
            return False
        return (lasting and not entry.absent) or entry.retrieved[:10] > self._since

    def write(self, item: Item, answers: Sequence[Answer]) -> Entry:
        """Put the file that the answers make in its place.

        Raises
        ------
        AbsentError, DownloadError : the answers, each right, do not make one.
        """
        bodies = [answer.body or b"" for answer in answers]
        try:
            body = item.compose(bodies)
        except NothingError as error:
            raise AbsentError(f"{item.questions[0].url}: not there ({error})") from None
        except ContentError as error:
            raise DownloadError(redactor_of_process()(f"{item.questions[0].url}: served {error}")) from None
        origins = tuple(
            Origin(question.url, hashlib.sha256(served).hexdigest(), answer.etag, answer.last_modified)
            for question, served, answer in zip(item.questions, bodies, answers, strict=True)
        )
        made = Entry(item.path, retrieved=answers[0].retrieved, origins=origins)
        self.folder.write(made, body)
        if len(item.questions) > 1:
            self.folder.drop(_part(question) for question in item.questions)
        return self.folder.journal.entries[item.path]

    def _answers(self, item: Item, entry: Entry | None) -> list[Answer] | None:
        """The answers to an item's questions; None where the only one says that nothing has changed."""
        if len(item.questions) == 1:
            origin = entry.origins[0] if entry is not None and not entry.absent else None
            etag, modified = (origin.etag, origin.last_modified) if origin else ("", "")
            answer = self.client.ask(item.questions[0], etag=etag, last_modified=modified)
            return None if answer.body is None else [answer]
        return [self._part_of(question) for question in item.questions]

    def _part_of(self, question: Question) -> Answer:
        """The answer to one of several questions, which is kept until all are answered."""
        path = _part(question)
        entry = self.folder.have(path)
        if entry is not None and entry.retrieved[:10] > self._since:
            origin = entry.origins[0]
            return Answer(self.folder.read(path), origin.etag, origin.last_modified, entry.retrieved)
        answer = self.client.ask(question)
        served = answer.body or b""
        origin = Origin(question.url, hashlib.sha256(served).hexdigest(), answer.etag, answer.last_modified)
        self.folder.write(Entry(path, retrieved=answer.retrieved, origins=(origin,)), served)
        return answer

    def _today(self) -> str:
        return self.client.now()


def _part(question: Question) -> str:
    return f"{PARTS}/{hashlib.sha256(question.url.encode()).hexdigest()[:32]}.part"
