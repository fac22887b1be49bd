"""Answers of known quality, with which `audit` and failure reports test and explain scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from finskillbench.episode import Episode, JsonObject, Truth

I = TypeVar("I", default=Any)  # noqa: E741 - the input of a task, as a TypedDict
"""Type of a task's input."""


@dataclass(frozen=True, slots=True)
class Label(Generic[I]):
    """One label under examination: episode, full-precision input, truth, certificate, and hidden data of interactive
    cases.

    Imported releases (`built` is False) lack fields that only a build writes.
    """

    episode: Episode
    task_input: I
    truth: Truth
    certificate: JsonObject
    built: bool = True
    hidden: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class GradedExample:
    """One answer with a professional's description of it, and the range of its certified score."""

    name: str
    answer: JsonObject
    least: float
    most: float


GradedExamples: TypeAlias = Callable[[Label[I]], Sequence[GradedExample]]
"""`label -> examples` from right to wrong: scores must not rise and must be within their ranges. Omit inapplicable
ones.
"""

Exploits: TypeAlias = Callable[[I], Mapping[str, JsonObject]]
"""`task_input -> name -> answer`: cheating answers, made without the truth and without solving the task."""


@dataclass(frozen=True, slots=True)
class Shortcuts(Generic[I]):
    """Answers that skip work or make a known mistake, with bounds of their mean certified scores; omit inapplicable
    ones.
    """

    answers: Exploits[I]
    most: float = 0.5
    most_hard: float = 0.35

    def bound(self, tier: str) -> float:
        return self.most_hard if tier == "hard" else self.most


@dataclass(frozen=True, slots=True)
class Misreading:
    """Answer that follows from one mistake; reports count it under `cause`. It may leave out unaffected fields."""

    cause: str
    description: str
    answer: JsonObject


Misreadings: TypeAlias = Callable[[I], Iterable[Misreading]]
"""`task_input -> misreadings`, from the full-precision input; failure reports recognise these answers."""


@dataclass(frozen=True, slots=True)
class Examples(Generic[I]):
    """Answers of known quality to the episodes of a subtask.

    graded : answers from right to wrong; `audit` checks the order of their scores.
    exploits : cheating answers; `audit` requires scores at the floor.
    shortcuts : shortcuts and mistakes; `audit` bounds their scores by tier, `data info --shortcuts` prints them.
    misreadings : named mistakes that failure reports recognise in wrong answers.
    """

    graded: GradedExamples[I] | None = None
    exploits: Exploits[I] | None = None
    shortcuts: Shortcuts[I] | None = None
    misreadings: Misreadings[I] | None = None
