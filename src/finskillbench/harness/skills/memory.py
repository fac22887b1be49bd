"""What the persistent arm carries from one episode of its stream to the next: saved skills, and how answers fared.

The rules for a skill that an agent wrote stand here, because what is remembered was read back from a run folder and
must keep them as well as what is saved now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.cleaning import clean_text

MAX_SAVED_SKILLS = 3
MAX_SKILL_CHARS = 20_000
MAX_NAME_CHARS = 64
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)


def skill_problem(name: str, content: str) -> str:
    """What is wrong with a skill that an agent wrote, in words it can act on; empty where nothing is."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"skill_name takes lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS} characters"
    if not content.strip():
        return "content is empty"
    if len(content) > MAX_SKILL_CHARS:
        return f"content has {len(content)} characters, the limit is {MAX_SKILL_CHARS}"
    return "" if clean_text(content) == content else "content holds a lone surrogate, which no file can"


@dataclass(frozen=True, slots=True)
class Feedback:
    """The verdict on an earlier answer as the agent hears it: its status and its score, nothing of the truth.

    Raises
    ------
    InputError : the status is none of `finskillbench.episode.Status`, or the score does not lie between 0 and 1.
    """

    task_id: str
    status: str
    score: float | None

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise InputError(f"verdict on {self.task_id}: status {self.status!r} is unknown; restore the run folder")
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise InputError(f"verdict on {self.task_id}: score {self.score} is not in [0, 1]; restore the run folder")


_STATUSES = frozenset(status.value for status in Status)


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a stream before an episode: texts of the saved skills by name, and verdicts, oldest first.

    Raises
    ------
    InputError : more skills than an agent may save, or one that it could not have saved.
    """

    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    verdicts: tuple[Feedback, ...] = ()

    def __post_init__(self) -> None:
        if len(self.skills) > MAX_SAVED_SKILLS:
            raise InputError(
                f"remembered skills: {len(self.skills)}, at most {MAX_SAVED_SKILLS} can be; restore the run folder"
            )
        for name, content in self.skills.items():
            if problem := skill_problem(name, content):
                raise InputError(f"remembered skill {name[:80]!r}: {problem}; restore the run folder")


EMPTY = Memory()
"""The state before the first episode of a stream, and of every arm that keeps nothing."""
