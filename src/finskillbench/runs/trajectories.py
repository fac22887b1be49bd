"""Trajectories: one compressed JSON file per finished episode, with everything that was said and done."""

from __future__ import annotations

import dataclasses
import gzip
import zlib
from pathlib import Path
from typing import Any

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.trace import Trace
from finskillbench.runs.files import PART, write_beside
from finskillbench.runs.plan import Item

_LEVEL = 1
"""Fastest compression: a trajectory of 35 KB takes 0.1 ms; level 9 takes 0.9 ms and saves 16 % of the bytes."""


def write_trajectory(folder: Path, item: Item, trace: Trace) -> None:
    """Write the trajectory of `item` into the run folder; its own folder must exist.

    The file is complete under its name or not there; the journal line comes after it.
    """
    content = {"run_idx": item.run_idx, **{f.name: getattr(trace, f.name) for f in dataclasses.fields(trace)}}
    write_beside(folder / item.trajectory, gzip.compress(orjson.dumps(content), _LEVEL, mtime=0))


def read_trajectory(path: Path) -> dict[str, Any]:
    """Read a trajectory as plain JSON.

    Raises
    ------
    InputError : the file is absent or damaged.
    """
    try:
        return orjson.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: not a readable trajectory ({error})") from error


def remove_parts(folder: Path) -> None:
    """Remove what a killed process left half-written under `folder`."""
    for part in folder.rglob(f"*{PART}"):
        part.unlink(missing_ok=True)
