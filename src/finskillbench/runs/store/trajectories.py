"""Trajectories: one compressed JSON file per finished episode, with everything that was said and done.

A file is readable alone: beside the trace it names the edition, the episode's place in it, and the harness.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec
import orjson

from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.trace import Trace
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.files import PART, write_beside
from finskillbench.runs.store.version import code_version

_LEVEL = 1
"""Fastest compression: a trajectory of 35 KB takes 0.1 ms; level 9 takes 0.9 ms and saves 16 % of the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One episode with what is needed to read it alone; `edition` is a digest, `arguments` are those of the entry."""

    code_version: str = field(default_factory=code_version)
    edition: str
    domain: str
    sub_task: str
    difficulty: str
    as_of_date: date
    arguments: str
    run_idx: int
    trace: Trace

    @property
    def item(self) -> Item:
        """The piece of work that the trajectory is of."""
        return Item(self.trace.model, self.arguments, self.trace.condition, self.trace.task_id, self.run_idx)


def encoded(item: Item, episode: Episode, trace: Trace, *, edition_digest: str) -> bytes:
    """The trajectory of `item` as JSON."""
    content = Trajectory(
        edition=edition_digest,
        domain=episode.skill,
        sub_task=episode.sub_task,
        difficulty=episode.difficulty,
        as_of_date=episode.as_of_date,
        arguments=item.arguments,
        run_idx=item.run_idx,
        trace=trace,
    )
    # orjson leaves out names with a _: what a model's adapter wants back is no part of a trajectory.
    return orjson.dumps(content)


def packed(data: bytes) -> bytes:
    """An encoded trajectory as its file holds it; other threads run meanwhile."""
    return gzip.compress(data, _LEVEL, mtime=0)


def write_trajectory(folder: Path, item: Item, data: bytes) -> None:
    """Write a packed trajectory of `item` into the run folder; its own folder must exist.

    The file is complete under its name or not there; the journal line comes after it.
    """
    write_beside(folder / item.trajectory, data)


def decoded(data: bytes) -> Trajectory:
    """A trajectory from the bytes of its file.

    Raises
    ------
    OSError, EOFError, ValueError, zlib.error : they are damaged, or hold something else.
    """
    return msgspec.json.decode(gzip.decompress(data), type=Trajectory)


def read_trajectory(path: Path) -> Trajectory:
    """Read a trajectory.

    Raises
    ------
    InputError : the file is absent or damaged, or holds something else.
    """
    try:
        return decoded(path.read_bytes())
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not a trajectory ({error})") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: not a readable trajectory ({error})") from error


def remove_parts(folder: Path) -> None:
    """Remove what a killed process left half-written under `folder`."""
    for part in folder.rglob(f"*{PART}"):
        part.unlink(missing_ok=True)
