"""What the persistent arm carries from one episode of its stream to the next: saved skills, and how answers fared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Feedback:
    """The verdict on an earlier answer as the agent hears it: its status and its score, nothing of the truth."""

    task_id: str
    status: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a stream before an episode: texts of the saved skills by name, and verdicts, oldest first."""

    skills: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[Feedback, ...] = ()


EMPTY = Memory()
"""The state before the first episode of a stream, and of every arm that keeps nothing."""
