"""One file at a time: what is there already is not asked for, what may have changed is asked whether it has."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from finskillbench.errors import DownloadError, InternalError
from finskillbench.fetch.http.client import AbsentError, Answer, Client, Question
from finskillbench.fetch.http.contents import ContentError, NothingError
from finskillbench.fetch.store.folder import Folder
from finskillbench.redaction import redactor_of_process
from finskillbench.sources.fetched import PARTS, Entry, Origin

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
