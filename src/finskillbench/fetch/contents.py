"""Whether a body is what was asked for: JSON with the right content, CSV with its header, and no page in its place."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Collection
from typing import TypeAlias

import orjson

from finskillbench.sources.files import as_object, one_line

Check: TypeAlias = Callable[[bytes], None]
"""Raises `ContentError` about a body that is not what was asked for."""
_SHOWN = 80
_TAG = re.compile(r"<[^>]*>|<!--.*?-->", re.DOTALL)
_UNSHOWN = re.compile(r"<(style|script)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


class ContentError(Exception):
    """What is wrong with a body.

    lasting : asking again will not help. hopeless : nor will asking the source for anything else.
    """

    def __init__(self, message: str, *, lasting: bool = False, hopeless: bool = False) -> None:
        super().__init__(message)
        self.lasting, self.hopeless = lasting or hopeless, hopeless


class NothingError(ContentError):
    """The source says in words, with an answer that is no error, that it has no such thing."""


def first_words(body: bytes) -> str:
    """The first words of a page or a message, without its tags, on one line."""
    text = body[:4000].decode("utf-8", "replace")
    text = one_line(_TAG.sub(" ", _UNSHOWN.sub(" ", text))) if is_page(body) else one_line(text)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def is_page(body: bytes) -> bool:
    """Whether a body is an HTML page."""
    start = body[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) or (
        start.startswith((b"<?xml", b"<!--")) and b"<html" in start and b"xbrl" not in body[:20_000].lower()
    )


def refuse_page(body: bytes, wanted: str) -> None:
    """Refuse an empty body, and a page or a message where `wanted` was asked for."""
    if not body.strip():
        raise ContentError(f"an empty body in place of {wanted}")
    if is_page(body):
        raise ContentError(f"a page in place of {wanted}: {first_words(body)!r}")


def json_of(body: bytes) -> object:
    """The JSON of a body."""
    refuse_page(body, "JSON")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ContentError(f"no JSON ({error.msg}): {first_words(body)!r}") from None


def object_of(body: bytes) -> dict[str, object]:
    """The JSON object of a body."""
    record = as_object(json_of(body))
    if record is None:
        raise ContentError(f"no JSON object: {first_words(body)!r}")
    return record


def cik_in(record: dict[str, object], cik: int) -> None:
    """Refuse a record of another filer than the one that was asked for."""
    given = record.get("cik")
    if str(given).lstrip("0") != str(cik):
        raise ContentError(f"the record of CIK {given!r} in place of CIK {cik}")


def rows_of(body: bytes, headers: Collection[str]) -> str:
    """The text of a CSV body that begins with one of the headers and has whole rows under it."""
    refuse_page(body, "CSV")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ContentError("bytes that are not UTF-8 in place of CSV") from None
    head, _, rows = text.partition("\n")
    if head.strip() not in headers:
        raise ContentError(f"no header {next(iter(headers))!r} but {first_words(body)!r}")
    fields = head.count(",")
    last = rows.rstrip("\r\n").rpartition("\n")[2]
    if not last.strip():
        raise ContentError("a header without rows")
    if last.count(",") != fields:
        raise ContentError(f"the last row is cut off: {last.strip()[:40]!r}")
    return text


def unzipped(body: bytes) -> bytes:
    """The only CSV of a zip archive, whose check sums are right."""
    refuse_page(body, "a zip archive")
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            if len(names) != 1:
                raise ContentError(f"{len(names)} CSV files in the archive where one is expected", lasting=True)
            return archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ContentError(f"no whole zip archive ({error}): {first_words(body)!r}") from None
