"""What a reader of a log could find in its bytes."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from finskillbench.domains.tables import EpisodeTable


def members(path: Path) -> str:
    """Every member of a log as one text."""
    with zipfile.ZipFile(path) as archive:
        return "\n".join(f"{name}\n{archive.read(name).decode()}" for name in archive.namelist())


def written_numbers(text: str) -> set[str]:
    """Every decimal number that stands in a text."""
    return set(re.findall(r"-?[0-9]+\.[0-9]+", text))


def numbers(value: Any) -> set[str]:
    """The numbers in a value that are long enough to be recognised and no rounding noise, as they are written.

    The value is JSON, with tables of an episode in it.
    """
    if isinstance(value, EpisodeTable):
        return numbers(value.frame.to_dict(as_series=False))
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values()), set())
    if isinstance(value, list | tuple):
        return set().union(*map(numbers, value), set())
    text = repr(value) if isinstance(value, float) and 1e-3 < abs(value) < 1e15 else ""
    return {text} if len(text) >= 10 else set()
