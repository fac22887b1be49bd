"""Shared data types of tasks, submissions and verdicts: frozen, typed, without input or output.

`Episode` (visible to the agent) and `Truth` (hidden) are stored apart. Only `finskillbench.runs.verdicts` joins them,
after the agent has finished.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Literal

JsonObject = Mapping[str, Any]
"""A parsed JSON object: string keys, JSON values."""
PAPER_SUITE = "paper"
"""The paper's suite, which is built and run by default."""
Disclosure = Literal["full", "described", "data"]
"""Statement of the law that a case follows: all of it, in words without numbers, or nothing but what its data are."""


class Status(StrEnum):
    """Final status of an episode. Only `unjudged` and `error` have no score; all others but `scored` score 0."""

    SCORED = "scored"
    INVALID_SUBMISSION = "invalid_submission"
    INCOMPLETE_SUBMISSION = "incomplete_submission"
    MAX_TURNS_EXHAUSTED = "max_turns_exhausted"
    BUDGET_EXHAUSTED = "budget_exhausted"
    UNJUDGED = "unjudged"
    """Run on an edition without truth; the holder of the truth scores it later."""
    ERROR = "error"


class Profile(StrEnum):
    """A scoring profile; submissions get one score per profile that their subtask defines."""

    PAPER = "paper"
    STRICT = "strict"
    CERTIFIED = "certified"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Opening text of an episode; the harness adds the compacted input and the answer schema."""

    task_description: str
    output_instructions: str


@dataclass(frozen=True, slots=True)
class Episode:
    """The agent's view of one task.

    `skill` is the name of the domain, as in the published format. `input` holds JSON values. A large array is
    `{"tickers": [...], "ref": "panels/..."}`; the edition's resolver reads it at full precision. `metadata` is for
    stratified reports and must hold nothing of the truth, since it is exported with the episode; agents never see
    it.
    """

    task_id: str
    skill: str
    sub_task: str
    as_of_date: date
    difficulty: str
    input: JsonObject
    prompt: Prompt
    metadata: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Truth:
    """The hidden part of a task: label, verification parameters and proof summary.

    `proof` summarises the stored certificate as JSON: kind, residuals, gap, uniqueness.
    """

    task_id: str
    sub_task: str
    expected_output: JsonObject
    verification: JsonObject
    proof: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Submission:
    """Result of one episode: the answer text verbatim, or None.

    `ended` is a value of `finskillbench.harness.trace.Ended`; after "budget_exhausted" no answer counts, and
    "error" is a failure of the harness. `record` holds the moves of an interactive episode.
    """

    task_id: str
    answer: str | None
    ended: str = "submitted"
    record: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """A finite number with explanatory details.

    raw : value before its limits at 0 and 1, minus infinity without anything to judge; None if no limit applies.
    """

    value: float
    details: JsonObject = field(default_factory=dict[str, Any])
    raw: float | None = None


def lowest_raw(*parts: float | None) -> float | None:
    """Return the least of unlimited values if it is at most 0, minus infinity if one is absent, else None."""
    least = min(-math.inf if part is None else part for part in parts)
    return least if least <= 0.0 else None


LEAST_REWARD = -1.0
"""Raw reward of a submission that is missing, malformed or has nothing to judge."""


@dataclass(frozen=True, slots=True)
class Reward:
    """Reward of a finished episode, for training.

    score : the score under `certified`, as in rows.
    raw : the same before its limit at 0; below 0 the value x is compressed to x / (1 - x), above `LEAST_REWARD`.
    parts : numbers among the score's details, by name.
    """

    score: float
    raw: float
    parts: Mapping[str, float]
    status: Status


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status and scores of one submission, one score per profile."""

    task_id: str
    sub_task: str
    status: Status
    valid_json: bool
    scores: Mapping[Profile, float]
    details: JsonObject
