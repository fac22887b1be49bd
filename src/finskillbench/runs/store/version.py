"""Which code produced something: the package's version, and digests over the parts of it that decide an outcome."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable

SCORERS = ("arrays.py", "domains", "engines", "episode.py", "runs/verdicts.py", "scoring")
"""What decides a score, given an answer and its truth."""


def code_version() -> str:
    """The version of this package."""
    return version("finskillbench")


@cache
def scorer_version() -> str:
    """First 12 hex digits of the digest over `SCORERS`: two rows with the same one were judged by the same code."""
    return code_digest(SCORERS)[:12]


def code_digest(names: tuple[str, ...]) -> str:
    """SHA-256 over the files of this package below `names`: their paths and bytes."""
    digest = hashlib.sha256()
    package = resources.files("finskillbench")
    for name in names:
        for path, content in _files(package / name, name):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _files(entry: Traversable, path: str) -> list[tuple[str, bytes]]:
    if not entry.is_dir():
        return [(path, entry.read_bytes())]
    children = sorted((child for child in entry.iterdir() if child.name != "__pycache__"), key=lambda child: child.name)
    return [found for child in children for found in _files(child, f"{path}/{child.name}")]
