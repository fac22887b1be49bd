"""What an import found: for each episode whether its inputs are all there, and if not why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec


class Reason(StrEnum):
    """Why an input does not resolve."""

    MISSING_FILE = "missing_file"
    """A file that the input refers to is not in the release."""
    UNREADABLE_FILE = "unreadable_file"
    """The file is there, but no tool can hand it to an agent."""
    EMPTY_INPUT = "empty_input"
    """A field that the answer depends on is empty."""
    ABSENT_INPUT = "absent_input"
    """A field that the answer depends on is not there."""
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
    """One episode: where it came from, what the import added, and what does not resolve.

    `copied` are references pointed to a file of the edition, `inlined` fields filled with a published definition,
    `prompt_written` says that the release has no prompt for it, `nulls` counts NaN and infinities read as null.
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
        """Whether every input that the answer depends on is there."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class ImportReport:
    """All episodes of an import, in the order of the edition's subtasks and files."""

    path: Path
    episodes: tuple[EpisodeImport, ...]

    @property
    def unresolved(self) -> dict[str, str]:
        """Task id to one line of reasons, for the episodes whose inputs are not all there."""
        return {
            episode.task_id: "; ".join(f"{each.field}: {each.detail}" for each in episode.problems)
            for episode in self.episodes
            if not episode.resolves
        }

    def summary(self) -> dict[str, Any]:
        """Counts: episodes, those whose inputs resolve, in all and by subtask; episodes by reason."""
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
        """The summary in words, for the notes of the manifest."""
        found = self.summary()
        lines = [
            f"{found['resolve']} of {found['episodes']} episodes have all the inputs that their answers depend on."
        ]
        lines += [f"{count} episodes: {_WORDS[Reason(reason)]}." for reason, count in found["by_reason"].items()]
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
        """JSON values."""
        return {
            "summary": self.summary(),
            "episodes": [_row(episode) for episode in self.episodes],
        }


def _row(episode: EpisodeImport) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(episode))
    head = {name: fields.pop(name) for name in ("task_id", "sub_task", "file")}
    return {**head, "resolves": episode.resolves, **fields}


_WORDS = {
    Reason.MISSING_FILE: "a file they refer to is not in the release",
    Reason.UNREADABLE_FILE: "a file they refer to cannot be handed to an agent",
    Reason.EMPTY_INPUT: "an input that the answer depends on is empty",
    Reason.ABSENT_INPUT: "an input that the answer depends on is not given",
    Reason.NO_DEFINITION: "a mandate or scenario is given by its id alone",
}
