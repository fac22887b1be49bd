"""Read and check the episode files of a published release, and report which inputs resolve."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from finskillbench.domains import Subtask, domain_of, domains, subtask_named, subtasks
from finskillbench.domains.base import Released
from finskillbench.edition.store import LARGEST_TEXT
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.errors import InputError
from finskillbench.scoring.values import as_object, is_object

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


def read_published_episodes(folder: Path) -> list[Published]:
    """Read every episode, in benchmark order, then by file; an `InputError` names file and problem."""
    files = sorted(folder.glob("data/*/episodes/layer_a/*/*.json"))
    if not files:
        raise InputError(
            f"{folder} is not a published release: it has no data/<domain>/episodes/layer_a/<subtask>/*.json; "
            "name the folder that holds data/"
        )
    found: dict[str, Published] = {}
    for path in files:
        item = _read(path, folder)
        other = found.setdefault(item.episode.task_id, item)
        if other is not item:
            raise InputError(
                f"{path}: task_id {item.episode.task_id!r} is also used by {other.file}; remove one of the two"
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
    difficulty = row.get("difficulty") or as_object(metadata).get("difficulty")
    if not isinstance(difficulty, str) or not is_object(metadata):
        raise InputError(f"{path}: has no difficulty, neither at the top level nor in metadata; {remedy}")
    try:
        as_of = date.fromisoformat(row["as_of_date"])
    except ValueError:
        raise InputError(f"{path}: as_of_date {row['as_of_date']!r} is not a date; {remedy}") from None
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
    everything = {name: one for each in domains() for name, one in each.released.items()}
    called = {one.folder: name for name, one in everything.items() if one.folder is not None}
    name = called.get(row["sub_task"], row["sub_task"])
    known = [subtask.name for subtask in subtasks()]
    if name not in known:
        raise InputError(f"{path}: sub_task {row['sub_task']!r} is unknown; known are {', '.join(known)}")
    folder = called.get(path.parent.name, path.parent.name)
    if folder != name:
        raise InputError(f"{path}: its sub_task is {row['sub_task']}, but its folder is {path.parent.name}; move it")
    skill = domain_of(name).name
    if row["skill"] != skill:
        raise InputError(f"{path}: skill {row['skill']!r} is not {skill}, the domain of {name}")
    return subtask_named(name), everything.get(name, Released(lambda _: ()))


def _prompt(value: object, released: Released, path: Path) -> Prompt:
    if value is None and released.prompt is not None:
        return released.prompt
    try:
        return msgspec.convert(value, Prompt)
    except msgspec.ValidationError:
        fields = " or ".join(Prompt.__dataclass_fields__)
        raise InputError(f"{path}: its prompt lacks {fields}; restore the file from the release") from None


class Reason(StrEnum):
    MISSING_FILE = "missing_file"
    """A file that the input refers to is not in the release."""
    UNREADABLE_FILE = "unreadable_file"
    """The file exists, but no tool can serve it to an agent."""
    EMPTY_INPUT = "empty_input"
    """A field that the answer depends on is empty."""
    ABSENT_INPUT = "absent_input"
    """A field that the answer depends on is missing."""
    NO_DEFINITION = "no_definition"
    """A mandate or scenario is given by its id alone, and the release does not define it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One input that does not resolve: the field (dotted), the reason, and the file or id concerned."""

    reason: Reason
    field: str
    detail: str


@dataclass(frozen=True, slots=True)
class EpisodeImport:
    """Import result of one episode: source file, additions and unresolved inputs.

    `copied` are references that point to a file of the edition, `inlined` fields filled with a published definition,
    `prompt_written` marks a prompt missing in the release, `nulls` counts NaN and infinities read as null.
    """

    task_id: str
    sub_task: str
    file: str
    problems: tuple[Problem, ...]
    copied: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    prompt_written: bool = False
    nulls: int = 0

    @property
    def resolves(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class ImportReport:
    """All episodes of an import, in the order of the edition's subtasks and files."""

    path: Path
    episodes: tuple[EpisodeImport, ...]

    @property
    def unresolved(self) -> dict[str, str]:
        """Task id to one line of reasons, for the episodes with missing inputs."""
        return {
            episode.task_id: "; ".join(f"{each.field}: {each.detail}" for each in episode.problems)
            for episode in self.episodes
            if not episode.resolves
        }

    def summary(self) -> dict[str, Any]:
        """Count episodes and those whose inputs resolve, in total and by subtask; episodes by reason."""
        by_subtask: dict[str, Counter[str]] = {}
        for episode in self.episodes:
            counted = by_subtask.setdefault(episode.sub_task, Counter(episodes=0, resolve=0))
            counted["episodes"] += 1
            counted["resolve"] += episode.resolves
        return {
            "episodes": len(self.episodes),
            "resolve": sum(episode.resolves for episode in self.episodes),
            "by_sub_task": {name: dict(counted) for name, counted in by_subtask.items()},
            "by_reason": {
                reason.value: count
                for reason in Reason
                if (count := sum(any(p.reason is reason for p in e.problems) for e in self.episodes))
            },
            "copied": len({ref for episode in self.episodes for ref in episode.copied}),
            "inlined": sum(bool(episode.inlined) for episode in self.episodes),
            "prompts_written": sum(episode.prompt_written for episode in self.episodes),
            "nulls": sum(episode.nulls for episode in self.episodes),
        }

    def sentences(self) -> list[str]:
        """Return the summary as sentences for the manifest's notes."""
        found = self.summary()
        lines = [
            f"{found['resolve']} of {found['episodes']} episodes have all the inputs that their answers depend on."
        ]
        lines += [f"{count} episodes: {_REASON_TEXTS[Reason(reason)]}." for reason, count in found["by_reason"].items()]
        if found["inlined"]:
            lines.append(
                f"{found['inlined']} episodes named a mandate or scenario whose published definition was added."
            )
        if found["prompts_written"]:
            lines.append(f"{found['prompts_written']} episodes had no prompt; a plain one was written.")
        if found["nulls"]:
            lines.append(f"{found['nulls']} numbers were NaN or infinite and are null here.")
        return lines

    def to_json(self) -> dict[str, Any]:
        return {"summary": self.summary(), "episodes": [_row(episode) for episode in self.episodes]}


def _row(episode: EpisodeImport) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(episode))
    head = {name: fields.pop(name) for name in ("task_id", "sub_task", "file")}
    return {**head, "resolves": episode.resolves, **fields}


_REASON_TEXTS = {
    Reason.MISSING_FILE: "a file they refer to is not in the release",
    Reason.UNREADABLE_FILE: "a file they refer to cannot be served to an agent",
    Reason.EMPTY_INPUT: "an input that the answer depends on is empty",
    Reason.ABSENT_INPUT: "an input that the answer depends on is not given",
    Reason.NO_DEFINITION: "a mandate or scenario is given by its id alone",
}
