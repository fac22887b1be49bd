"""Reading the release: every episode file checked on the way in, under our subtask names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from finskillbench.domains import Subtask, by_name, domain_of, domains, subtasks
from finskillbench.domains.base import Released
from finskillbench.edition.store import LARGEST_TEXT
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.errors import InputError
from finskillbench.scoring.values import is_object, mapping

_FIELDS = {
    "task_id": str,
    "skill": str,
    "sub_task": str,
    "as_of_date": str,
    "input": dict,
    "expected_output": dict,
    "verification": dict,
}


@dataclass(frozen=True, slots=True)
class Published:
    """One file of the release: `file` is relative to it, `digest` its sha256, `domain` the folder below `data`."""

    file: str
    digest: str
    domain: str
    subtask: Subtask
    released: Released
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

    remedy = "restore the file from the release"
    try:
        if (size := path.stat().st_size) > LARGEST_TEXT:
            raise InputError(f"{path}: has {size:,} bytes, more than any file of a release; {remedy}")
        content = path.read_bytes()
        row = json.loads(content.decode("utf-8"), parse_constant=null)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); {remedy}") from None
    if not is_object(row):
        raise InputError(f"{path}: not a JSON object; {remedy}")
    for field, kind in _FIELDS.items():
        if not isinstance(row.get(field), kind):
            state = "has no" if field not in row else f"is not {kind.__name__}:"
            raise InputError(f"{path}: {state} {field}; {remedy}")
    subtask, released = _subtask(row, path)
    metadata: object = row.get("metadata") or {}
    difficulty = row.get("difficulty") or mapping(metadata).get("difficulty")
    if not isinstance(difficulty, str) or not is_object(metadata):
        raise InputError(f"{path}: has no difficulty, neither of its own nor in metadata; {remedy}")
    try:
        as_of = date.fromisoformat(row["as_of_date"])
    except ValueError:
        raise InputError(f"{path}: as_of_date {row['as_of_date']!r} is no date; {remedy}") from None
    prompt = _prompt(row.get("prompt"), released, path)
    task_id, name = row["task_id"], subtask.name
    return Published(
        file=path.relative_to(folder).as_posix(),
        digest=hashlib.sha256(content).hexdigest(),
        domain=path.relative_to(folder).parts[1],
        subtask=subtask,
        released=released,
        episode=Episode(task_id, domain_of(subtask.name).name, name, as_of, difficulty, row["input"], prompt, metadata),
        truth=Truth(task_id, name, row["expected_output"], row["verification"]),
        prompt_written=row.get("prompt") is None,
        nulls=nulls,
    )


def _subtask(row: Mapping[str, Any], path: Path) -> tuple[Subtask, Released]:
    """Our subtask of a file: by its sub_task, which must be that of its folder and belong to its skill."""
    everything = {name: one for each in domains() for name, one in each.released.items()}
    called = {one.folder: name for name, one in everything.items() if one.folder is not None}
    name = called.get(row["sub_task"], row["sub_task"])
    known = [subtask.name for subtask in subtasks()]
    if name not in known:
        raise InputError(f"{path}: sub_task {row['sub_task']!r} is unknown; known are {', '.join(known)}")
    folder = called.get(path.parent.name, path.parent.name)
    if folder != name:
        raise InputError(f"{path}: its sub_task is {row['sub_task']} but it lies in {path.parent.name}; move it")
    skill = domain_of(name).name
    if row["skill"] != skill:
        raise InputError(f"{path}: skill {row['skill']!r} is not {skill}, the domain of {name}")
    return by_name(name), everything.get(name, Released(lambda _: ()))


def _prompt(value: object, released: Released, path: Path) -> Prompt:
    """The published prompt, or the plain one where the release has none."""
    if value is None and released.prompt is not None:
        return released.prompt
    try:
        return msgspec.convert(value, Prompt)
    except msgspec.ValidationError:
        fields = " or ".join(Prompt.__dataclass_fields__)
        raise InputError(f"{path}: its prompt lacks {fields}; restore the file from the release") from None
