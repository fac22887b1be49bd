"""Reading the release: every episode file checked on the way in, under our subtask names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from finskillbench.domains import Subtask, by_name, domain_of, subtasks
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.errors import InputError

_FOLDERS = {"unconstrained": "unconstrained_optimization", "constrained": "constrained_optimization"}
"""Folders of the release that abbreviate a subtask; the others bear its name."""
_FIELDS = {
    "task_id": str,
    "skill": str,
    "sub_task": str,
    "as_of_date": str,
    "input": dict,
    "expected_output": dict,
    "verification": dict,
}
_TASKS = {
    "constraint_monitoring": (
        "Check the portfolio against every constraint of the mandate.",
        "Respond with a JSON object with overall_compliant, violations_count and constraints.",
    ),
    "risk_identification": (
        "Identify the portfolio's greatest risk exposures and rank them by magnitude.",
        "Respond with a JSON object with top_risk_exposures, the greatest first.",
    ),
    "stress_testing": (
        "Estimate the portfolio's profit or loss under the stress scenario and attribute it.",
        "Respond with a JSON object with estimated_pnl_pct and attribution.",
    ),
    "risk_remediation": (
        "Find the trades that bring the portfolio into compliance with the mandate at the least turnover.",
        "Respond with a JSON object with trades, total_turnover and post_trade_compliant.",
    ),
}
"""Prompts where the release has none: the published harness wrote them from the input. They state the task, no more."""


@dataclass(frozen=True, slots=True)
class Published:
    """One file of the release: `file` is relative to it, `digest` its sha256, `domain` the folder below `data`."""

    file: str
    digest: str
    domain: str
    subtask: Subtask
    episode: Episode
    truth: Truth
    prompt_written: bool
    nulls: int


def read_release(folder: Path) -> list[Published]:
    """Read every episode of a release, in the benchmark's order of subtasks, then by file.

    Raises
    ------
    InputError : naming the file and what is wrong with it.
    """
    files = sorted(folder.glob("data/*/episodes/layer_a/*/*.json"))
    if not files:
        raise InputError(
            f"{folder} is no published release: it has no data/<domain>/episodes/layer_a/<subtask>/*.json; "
            "name the folder that holds data/"
        )
    found: dict[str, Published] = {}
    for path in files:
        item = _read(path, folder)
        other = found.setdefault(item.episode.task_id, item)
        if other is not item:
            raise InputError(
                f"{path}: task_id {item.episode.task_id!r} is that of {other.file} too; remove one of the two"
            )
    order = {subtask.name: place for place, subtask in enumerate(subtasks())}
    return sorted(found.values(), key=lambda item: (order[item.subtask.name], item.file))


def _read(path: Path, folder: Path) -> Published:
    nulls = 0

    def null(_: str) -> None:
        nonlocal nulls
        nulls += 1

    mend = "restore the file from the release"
    try:
        content = path.read_bytes()
        row = json.loads(content.decode("utf-8"), parse_constant=null)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {mend}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); {mend}") from None
    if not isinstance(row, dict):
        raise InputError(f"{path}: not a JSON object; {mend}")
    for field, kind in _FIELDS.items():
        if not isinstance(row.get(field), kind):
            state = "has no" if field not in row else f"is not {kind.__name__}:"
            raise InputError(f"{path}: {state} {field}; {mend}")
    subtask = _subtask(row, path)
    metadata = row.get("metadata") or {}
    difficulty = row.get("difficulty") or (metadata.get("difficulty") if isinstance(metadata, dict) else None)
    if not isinstance(difficulty, str) or not isinstance(metadata, dict):
        raise InputError(f"{path}: has no difficulty, neither of its own nor in metadata; {mend}")
    try:
        as_of = date.fromisoformat(row["as_of_date"])
    except ValueError:
        raise InputError(f"{path}: as_of_date {row['as_of_date']!r} is no date; {mend}") from None
    prompt, written = _prompt(row.get("prompt"), subtask, path)
    task_id, name = row["task_id"], subtask.name
    return Published(
        file=path.relative_to(folder).as_posix(),
        digest=hashlib.sha256(content).hexdigest(),
        domain=path.relative_to(folder).parts[1],
        subtask=subtask,
        episode=Episode(task_id, domain_of(subtask.name).name, name, as_of, difficulty, row["input"], prompt, metadata),
        truth=Truth(task_id, name, row["expected_output"], row["verification"]),
        prompt_written=written,
        nulls=nulls,
    )


def _subtask(row: Mapping[str, Any], path: Path) -> Subtask:
    """Our subtask of a file: by its sub_task, which must be that of its folder and belong to its skill."""
    name = _FOLDERS.get(row["sub_task"], row["sub_task"])
    known = [subtask.name for subtask in subtasks()]
    if name not in known:
        raise InputError(f"{path}: sub_task {row['sub_task']!r} is unknown; known are {', '.join(known)}")
    folder = _FOLDERS.get(path.parent.name, path.parent.name)
    if folder != name:
        raise InputError(f"{path}: its sub_task is {row['sub_task']} but it lies in {path.parent.name}; move it")
    subtask = by_name(name)
    if row["skill"] != domain_of(subtask.name).name:
        raise InputError(f"{path}: skill {row['skill']!r} is not {domain_of(subtask.name).name}, the domain of {name}")
    return subtask


def _prompt(value: Any, subtask: Subtask, path: Path) -> tuple[Prompt, bool]:
    """The published prompt, or the plain one; and whether it had to be written."""
    if value is None and subtask.name in _TASKS:
        return Prompt(*_TASKS[subtask.name]), True
    fields = ("task_description", "output_instructions")
    if not isinstance(value, dict) or not all(isinstance(value.get(field), str) for field in fields):
        raise InputError(f"{path}: its prompt lacks {' or '.join(fields)}; restore the file from the release")
    return Prompt(*(value[field] for field in fields)), False
