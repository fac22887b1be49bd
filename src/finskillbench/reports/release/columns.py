"""What published rows tell, in the columns of `rows.parquet`, and what follows from the names of their tasks."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from datetime import date

from finskillbench.episode import Profile, Status
from finskillbench.harness.entries import NO_ARGUMENTS

EDITION = "release"
"""What stands for the digests of an edition and a scorer that are not told."""
NOTE = (
    "Rows of the published release do not tell their status: it is what their error says (turns, budget, incomplete), "
    "else whether the answer was valid JSON. Their clusters are read from the names of tasks."
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PORTFOLIO = re.compile(r"portfolio_.+?_\d{3}(?=_|$)")
_TICKER = re.compile(r"fa_[a-z]+_([^_]+)_")
_SAID = (
    (re.compile(r"max[ _]?(?:turns|iterations)|turn budget", re.IGNORECASE), Status.MAX_TURNS_EXHAUSTED),
    (re.compile(r"(?:token|cost) budget|budget[ _]exhausted", re.IGNORECASE), Status.BUDGET_EXHAUSTED),
    (re.compile(r"incomplete", re.IGNORECASE), Status.INCOMPLETE_SUBMISSION),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a published row tells, by the names of our columns; `said` is all that it says of a failure."""

    model: str
    domain: str
    condition: str
    task_id: str
    sub_task: str
    difficulty: str
    score: float | None
    valid_json: bool
    scoring_method: str
    scoring_details: str
    turns: int
    total_input_tokens: int
    total_output_tokens: int
    tool_calls: int
    latency_seconds: float
    error: str | None
    said: str
    harness: str = "finskillbench"
    arguments: str = NO_ARGUMENTS
    provider: str | None = None
    as_of_date: date | None = None
    run_idx: int = 0
    total_cached_tokens: int | None = None
    total_reasoning_tokens: int | None = None
    cost_usd: float | None = None
    skills_loaded: list[str] | None = None


def to_record(told: Told) -> dict[str, object]:
    """The row by the names of our columns; those that are absent are not told.

    Raises
    ------
    ValueError : a score that is none.
    """
    if told.score is not None and not (math.isfinite(told.score) and told.score >= 0.0):
        raise ValueError(f"score {told.score} is none - at `$.score`")
    values = asdict(told)
    del values["said"]
    status = Status.ERROR if told.score is None else status_of(told.said, valid_json=told.valid_json)
    return {
        **values,
        "cluster": cluster_of_task(told.task_id),
        "score_profile": None if told.score is None else Profile.PAPER.value,
        "scores": {profile.value: told.score if profile is Profile.PAPER else None for profile in Profile},
        "status": status.value,
        "episodes": told.turns,
        "edition": EDITION,
        "scorer_version": EDITION,
    }


def status_of(said: str, *, valid_json: bool) -> Status:
    """How an episode ended, as far as a published row tells."""
    for words, status in _SAID:
        if words.search(said):
            return status
    return Status.SCORED if valid_json else Status.INVALID_SUBMISSION


def cluster_of_task(task_id: str) -> str:
    """What a published task shares with others, its market date, portfolio or company; else nothing but itself."""
    family = task_id.partition("_")[0]
    if family == "pc" and (day := _DAY.search(task_id)):
        return day.group()
    if family == "rm" and (portfolio := _PORTFOLIO.search(task_id)):
        return portfolio.group()
    if family == "fa" and (ticker := _TICKER.match(task_id)):
        return ticker.group(1)
    return task_id
