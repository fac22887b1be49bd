"""Answers of known quality, by which `audit` and reports of failures test and explain the scores of a subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from finskillbench.episode import Episode, JsonObject, Truth

I = TypeVar("I", default=Any)  # noqa: E741 - the input of a task, as a TypedDict
"""The type of a task's input."""


@dataclass(frozen=True, slots=True)
class Label(Generic[I]):
    """One label under examination: the episode, its input at full precision, the truth and its certificate.

    `certificate` is empty in an edition without certificates, `hidden` without stages or in a subtask without them.
    `built` is True for an edition built here; a label of an imported release lacks what only a build writes.
    """

    episode: Episode
    task_input: I
    truth: Truth
    certificate: JsonObject
    built: bool = True
    hidden: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class GradedExample:
    """One answer, what a professional would call it, and the band in which its certified score must lie."""

    name: str
    answer: JsonObject
    least: float
    most: float


GradedExamples: TypeAlias = Callable[[Label[I]], Sequence[GradedExample]]
"""`label -> examples`, from right to wrong as a professional ranks them.

Their certified scores must not rise, and each must lie in its band. Leave out an example that an episode cannot have (a
missed breach where nothing is breached).
"""

Exploits: TypeAlias = Callable[[I], Mapping[str, JsonObject]]
"""`task_input -> name -> answer`: answers that cheat, made without the truth and without doing the work."""


@dataclass(frozen=True, slots=True)
class Shortcuts(Generic[I]):
    """Answers that leave out a part of the work or make a known mistake, and bounds of their mean certified scores.

    `answers` leaves out a name that an episode cannot have; `most_hard` is the bound of the tier "hard".
    """

    answers: Exploits[I]
    most: float = 0.5
    most_hard: float = 0.35

    def bound(self, tier: str) -> float:
        """Return the bound of a tier."""
        return self.most_hard if tier == "hard" else self.most


@dataclass(frozen=True, slots=True)
class Misreading:
    """The answer that follows from one named mistake, such as a wrong quarter.

    `cause` is the name under which reports count it, `words` say in one phrase what was taken for what. The answer may
    leave out what the mistake does not touch.
    """

    cause: str
    words: str
    answer: JsonObject


Misreadings: TypeAlias = Callable[[I], Iterable[Misreading]]
"""`task_input -> misreadings`, from the input at full precision: answers that a report of failures recognises."""


@dataclass(frozen=True, slots=True)
class Examples(Generic[I]):
    """Answers of known quality to the episodes of a subtask.

    Attributes
    ----------
    graded : answers from right to wrong; `audit` checks the order of their scores.
    exploits : cheating answers; `audit` holds them down to the floor.
    shortcuts : shortcuts and mistakes; `audit` holds them below bounds by tier, `data info --shortcuts` prints them.
    misreadings : mistakes with a name; a report of failures recognises them in wrong answers.
    """

    graded: GradedExamples[I] | None = None
    exploits: Exploits[I] | None = None
    shortcuts: Shortcuts[I] | None = None
    misreadings: Misreadings[I] | None = None
