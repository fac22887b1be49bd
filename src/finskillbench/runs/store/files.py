"""Outputs that are never seen half-written: written beside, then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from finskillbench.errors import InputError

PART = ".part"
"""Suffix of a file that is being written."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME = 120


def write_beside(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write `data` to `path` so that a reader finds the old file or the new one, never a part.

    Parameters
    ----------
    path : where; its folder must exist.
    data : the whole content.
    durable : also wait until the disk has it.

    Raises
    ------
    InputError : the file cannot be written.
    """
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise InputError(f"{path}: cannot be written ({error.strerror}); {remedy(error)}") from error


def remedy(error: OSError) -> str:
    """What a user can do about a file that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "free some space, then the same command goes on" if full else "choose a writable --out"


def make_folder(path: Path) -> None:
    """Make a folder and its parents; raise `InputError` where that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made ({error.strerror}); {remedy(error)}") from error


def file_name(text: str) -> str:
    """A file name for `text`: the same text where it is safe and short, else cleaned with a digest behind it.

    A `/`, as in the names of models, becomes a plain `-`; whoever files several texts checks that they differ.
    """
    dashed = text.replace("/", "-")
    clean = _UNSAFE.sub("-", dashed)[:_MAX_NAME].lstrip(".")
    if clean == dashed:
        return clean
    return f"{clean}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
