"""The nouns every station shares: frozen, typed, no input or output.

An `Episode` is what an agent may see and a `Truth` is what it may not; they are stored apart and joined only by
`finskillbench.runs.verdicts`, after the agent has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

JsonObject = Mapping[str, Any]
"""A parsed JSON object: string keys, JSON values."""
PAPER_SUITE = "paper"
"""The suite of the paper: the part of the benchmark that is built and run unless another is named."""


class Status(StrEnum):
    """How an episode ended (specification: scoring, Parsing a submission)."""

    SCORED = "scored"
    INVALID_SUBMISSION = "invalid_submission"
    INCOMPLETE_SUBMISSION = "incomplete_submission"
    MAX_TURNS_EXHAUSTED = "max_turns_exhausted"
    BUDGET_EXHAUSTED = "budget_exhausted"
    UNJUDGED = "unjudged"
    """Played on an edition without its truth: whoever holds that judges what is submitted."""
    ERROR = "error"


class Profile(StrEnum):
    """A scoring profile; every submission is scored under each that its subtask defines."""

    PAPER = "paper"
    STRICT = "strict"
    CERTIFIED = "certified"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The words that open an episode; the harness adds the compacted input and the answer schema."""

    task_description: str
    output_instructions: str


@dataclass(frozen=True, slots=True)
class Episode:
    """What an agent may see of one task.

    `input` holds JSON values; a large array is `{"tickers": [...], "ref": "panels/..."}`, read at full precision by
    the edition's resolver. `metadata` is for stratified reports and is never shown to an agent; it is handed out with
    the episode, so that nothing of the truth may stand in it.
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
    """What an agent may not see: the label, how to verify an answer, and where the label's proof is kept.

    `proof` is a small JSON summary (kind, residuals, gap, uniqueness) of the certificate stored with the edition.
    """

    task_id: str
    sub_task: str
    expected_output: JsonObject
    verification: JsonObject
    proof: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Submission:
    """What came back for one episode: the answer's text verbatim, or None with the reason it is missing.

    `ended` is one of "submitted", "max_turns", "budget_exhausted" (then no answer counts), "stopped" (the agent gave up
    early) and "error" (the harness failed). `record` is what was done in an episode that is played move by move.
    """

    task_id: str
    answer: str | None
    ended: str = "submitted"
    record: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """A finite number with what a reader needs to follow it."""

    value: float
    details: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one submission: a status and one score per profile."""

    task_id: str
    sub_task: str
    status: Status
    valid_json: bool
    scores: Mapping[Profile, float]
    details: JsonObject
