"""Whether a text or a file holds the canary, so that a collection of texts can be looked through before training."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from finskillbench.edition.store import CANARY
from finskillbench.errors import InputError

GUID = CANARY.rpartition(":")[2]
"""The part that nobody writes by chance; a text that was taken apart may have lost the words before it."""
_MARK = GUID.encode()
_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def has_canary(text: str | bytes) -> bool:
    """Whether a text holds the canary, in small or large letters."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _MARK in data.lower()


def file_has_canary(path: Path) -> bool:
    """Whether a file holds it: as it is, or unpacked where it is gzipped; Parquet says it in its footer.

    Raises
    ------
    InputError : the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        return _found(_chunks(path, packed=False)) or (packed and _found(_chunks(path, packed=True)))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({error}); name a file") from None


def _found(chunks: Iterator[bytes]) -> bool:
    kept = b""
    for chunk in chunks:
        if has_canary(kept + chunk):
            return True
        kept = chunk[-len(_MARK) :]
    return False


def _chunks(path: Path, *, packed: bool) -> Iterator[bytes]:
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
