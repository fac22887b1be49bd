"""Trajectories: one compressed JSON file per finished episode, with everything that was said and done.

A file is readable alone: beside the trace it names the edition, the episode's place in it, and the harness.
"""

from __future__ import annotations

import dataclasses
import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from finskillbench.episode import Episode, Submission
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.model import Message, ToolCall, Usage
from finskillbench.harness.trace import CallRecord, ToolRecord, Trace
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.files import PART, write_beside
from finskillbench.runs.store.rows import HARNESS
from finskillbench.runs.store.version import code_version

_LEVEL = 1
"""Fastest compression: a trajectory of 35 KB takes 0.1 ms; level 9 takes 0.9 ms and saves 16 % of the bytes."""


def write_trajectory(folder: Path, item: Item, episode: Episode, trace: Trace, *, edition_digest: str) -> None:
    """Write the trajectory of `item` into the run folder; its own folder must exist.

    The file is complete under its name or not there; the journal line comes after it.
    """
    content = {
        "harness": HARNESS,
        "code_version": code_version(),
        "edition": edition_digest,
        "domain": episode.skill,
        "sub_task": episode.sub_task,
        "difficulty": episode.difficulty,
        "as_of_date": episode.as_of_date,
        "run_idx": item.run_idx,
        **{f.name: getattr(trace, f.name) for f in dataclasses.fields(trace)},
    }
    write_beside(folder / item.trajectory, gzip.compress(orjson.dumps(content), _LEVEL, mtime=0))


def read_trajectory(path: Path) -> dict[str, Any]:
    """Read a trajectory as plain JSON; `trace_of` and `item_of` make typed things of it.

    Raises
    ------
    InputError : the file is absent or damaged, or holds something else.
    """
    try:
        content = orjson.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: not a readable trajectory ({error})") from error
    missing = next((name for name in _KEYS if name not in content), None) if isinstance(content, dict) else "task_id"
    if missing is not None:
        raise InputError(f"{path}: not a trajectory (no {missing!r})")
    return content


def trace_of(content: Mapping[str, Any]) -> Trace:
    """The trace that a trajectory was written from.

    Raises
    ------
    KeyError, TypeError : `content` is not what `read_trajectory` returned.
    """
    fields = {name: content[name] for name in _TRACE}
    fields["messages"] = tuple(
        Message(**{**each, "tool_calls": tuple(ToolCall(**call) for call in each["tool_calls"])})
        for each in fields["messages"]
    )
    fields["tool_calls"] = tuple(ToolRecord(**each) for each in fields["tool_calls"])
    fields["model_calls"] = tuple(
        CallRecord(**{**each, "usage": Usage(**each["usage"])}) for each in fields["model_calls"]
    )
    fields["usage"] = Usage(**fields["usage"])
    for name in ("incidents", "tools", "skills_loaded", "scripts_run"):
        fields[name] = tuple(fields[name])
    return Trace(**fields)


def item_of(content: Mapping[str, Any]) -> Item:
    """The piece of work that a trajectory is of; raises as `trace_of`, and ValueError for an unknown condition."""
    return Item(content["model"], Condition(content["condition"]), content["task_id"], content["run_idx"])


def submission_of(content: Mapping[str, Any]) -> Submission:
    """What the verdict on a trajectory is made of."""
    return Submission(content["task_id"], content["answer"], content["ended"])


_TRACE = tuple(field.name for field in dataclasses.fields(Trace))
_KEYS = ("edition", "domain", "sub_task", "difficulty", "as_of_date", "run_idx", *_TRACE)


def remove_parts(folder: Path) -> None:
    """Remove what a killed process left half-written under `folder`."""
    for part in folder.rglob(f"*{PART}"):
        part.unlink(missing_ok=True)
