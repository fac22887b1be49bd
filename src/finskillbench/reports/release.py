"""Read the rows published with the paper as rows of profile `paper`.

Two formats are supported: `results_all.jsonl` of the full run, and the files of the Hermes runs. Missing values are
null: retries, times of day and digests; for the full run also cached and reasoning tokens, cost and scripts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl

from finskillbench.episode import Profile, Status
from finskillbench.errors import InputError
from finskillbench.harness.models import NO_ARGUMENTS, ModelKey
from finskillbench.runs.store.rows import SCHEMA

EDITION = "release"
"""Placeholder for the unknown digests of edition and scorer."""
RELEASE_FOOTNOTE = (
    "Rows of the published release have no status: it is derived from their error (turns, budget, incomplete), else "
    "from the validity of the answer's JSON. Their clusters are derived from task names."
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PORTFOLIO = re.compile(r"portfolio_.+?_\d{3}(?=_|$)")
_TICKER = re.compile(r"fa_[a-z]+_([^_]+)_")
_SAME = (
    *("model", "condition", "task_id", "sub_task", "difficulty", "score", "valid_json", "scoring_method"),
    "latency_seconds",
)
_FAILURE_PATTERNS = (
    (re.compile(r"max[ _]?(?:turns|iterations)|turn budget", re.IGNORECASE), Status.MAX_TURNS_EXHAUSTED),
    (re.compile(r"(?:token|cost) budget|budget[ _]exhausted", re.IGNORECASE), Status.BUDGET_EXHAUSTED),
    (re.compile(r"incomplete", re.IGNORECASE), Status.INCOMPLETE_SUBMISSION),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReleaseRow:
    """A published row by our column names; `failure_text` holds everything stated about a failure."""

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
    failure_text: str
    harness: str = "finskillbench"
    arguments: str = NO_ARGUMENTS
    provider: str | None = None
    as_of_date: date | None = None
    run_idx: int = 0
    total_cached_tokens: int | None = None
    total_reasoning_tokens: int | None = None
    cost_usd: float | None = None
    skills_loaded: list[str] | None = None


def to_record(row: _ReleaseRow) -> dict[str, object]:
    """Convert to a row with our columns; raises `ValueError` for an invalid score."""
    if row.score is not None and not (math.isfinite(row.score) and row.score >= 0.0):
        raise ValueError(f"score {row.score} is not a score - at `$.score`")
    values = asdict(row)
    del values["failure_text"]
    status = Status.ERROR if row.score is None else status_of(row.failure_text, valid_json=row.valid_json)
    return {
        **values,
        "cluster": cluster_of_task(row.task_id),
        "score_profile": None if row.score is None else Profile.PAPER.value,
        "scores": {profile.value: row.score if profile is Profile.PAPER else None for profile in Profile},
        "status": status.value,
        "episodes": row.turns,
        "edition": EDITION,
        "scorer_version": EDITION,
    }


def status_of(failure_text: str, *, valid_json: bool) -> Status:
    """Derive the status of an episode from a published row."""
    for pattern, status in _FAILURE_PATTERNS:
        if pattern.search(failure_text):
            return status
    return Status.SCORED if valid_json else Status.INVALID_SUBMISSION


def cluster_of_task(task_id: str) -> str:
    """Return the market date, portfolio or company that a published task shares with others, else its id."""
    family = task_id.partition("_")[0]
    if family == "pc" and (day := _DAY.search(task_id)):
        return day.group()
    if family == "rm" and (portfolio := _PORTFOLIO.search(task_id)):
        return portfolio.group()
    if family == "fa" and (ticker := _TICKER.match(task_id)):
        return ticker.group(1)
    return task_id


Count = Annotated[int, msgspec.Meta(ge=0)]


class FullRow(msgspec.Struct, frozen=True):
    """The fields used of a row; `episodes` are turns."""

    model: str
    domain: str
    condition: str
    task_id: str
    sub_task: str
    difficulty: str
    score: float
    valid_json: bool
    scoring_method: str
    episodes: Count
    total_input_tokens: Count
    total_output_tokens: Count
    latency_seconds: float
    litellm_model: str = ""
    as_of_date: date | None = None
    run_idx: Count = 0
    scoring_details: msgspec.Raw = msgspec.Raw(b"{}")
    skills_loaded: tuple[str, ...] = ()
    tool_calls_log: tuple[msgspec.Raw, ...] = ()
    error: str | None = None

    def to_release_row(self) -> _ReleaseRow:
        details = bytes(self.scoring_details).decode()
        provider, named, _ = self.litellm_model.partition("/")
        return _ReleaseRow(
            **_copied(self),
            provider=provider if named else None,
            domain=self.domain,
            as_of_date=self.as_of_date,
            run_idx=self.run_idx,
            scoring_details=details,
            turns=self.episodes,
            total_input_tokens=self.total_input_tokens,
            total_output_tokens=self.total_output_tokens,
            skills_loaded=list(self.skills_loaded),
            tool_calls=len(self.tool_calls_log),
            error=self.error,
            failure_text=f"{self.error or ''} {_error_in(self.scoring_details)}",
        )


class _Details(msgspec.Struct):
    error: object = None


def _error_in(details: msgspec.Raw) -> str:
    """Return the scorer's error in the details."""
    try:
        found = msgspec.json.decode(details, type=_Details)
    except msgspec.ValidationError:  # not an object
        return ""
    return str(found.error or "")


def _copied(row: msgspec.Struct) -> dict[str, Any]:
    """Fields that a row of the release has in every format."""
    return {name: getattr(row, name) for name in _SAME}


class HermesUsage(msgspec.Struct, frozen=True):
    """Tokens; `prompt_tokens` is the full input with cached ones."""

    prompt_tokens: Count
    completion_tokens: Count
    cache_read_tokens: Count = 0
    reasoning_tokens: Count = 0
    estimated_cost_usd: float | None = None


class HermesRow(msgspec.Struct, frozen=True):
    task_id: str
    skill_domain: str
    sub_task: str
    model: str
    condition: str
    harness: str
    score: float | None
    valid_json: bool
    turns: Count
    usage: HermesUsage
    latency_seconds: float
    difficulty: str = "unknown"
    scoring_method: str = ""
    scorer_details: msgspec.Raw = msgspec.Raw(b"{}")
    scoring_error: str | None = None
    completed: bool = True
    partial: bool = False
    tool_calls_total: Count = 0
    error: str | None = None

    def to_release_row(self) -> _ReleaseRow:
        """Convert to our names; an unfinished episode is incomplete."""
        unfinished = "incomplete" if self.partial or not self.completed else ""
        return _ReleaseRow(
            **_copied(self),
            harness=self.harness,
            arguments=ModelKey(self.model, NO_ARGUMENTS).under(self.harness).arguments,
            domain=self.skill_domain,
            scoring_details=bytes(self.scorer_details).decode(),
            turns=self.turns,
            total_input_tokens=self.usage.prompt_tokens,
            total_cached_tokens=self.usage.cache_read_tokens,
            total_output_tokens=self.usage.completion_tokens,
            total_reasoning_tokens=self.usage.reasoning_tokens,
            cost_usd=self.usage.estimated_cost_usd,
            tool_calls=self.tool_calls_total,
            error=self.error or self.scoring_error,
            failure_text=f"{self.error or ''} {'' if self.valid_json else unfinished}",
        )


class _Kind(msgspec.Struct):
    harness: str | None = None


def read_release_rows(path: Path) -> pl.DataFrame:
    """Read a file of published rows, one JSON object per line, into the columns of `rows.parquet`.

    Raises
    ------
    InputError : an unreadable or empty file, or an invalid row; with file, line and field.
    """
    records = list(_records(path))
    if not records:
        raise InputError(f"{path}: is empty; restore the file from the release")
    return pl.DataFrame(records, schema=dict(SCHEMA), orient="row")


def _records(path: Path) -> Iterator[dict[str, object]]:
    kind, full, hermes = msgspec.json.Decoder(_Kind), msgspec.json.Decoder(FullRow), msgspec.json.Decoder(HermesRow)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = (full if kind.decode(line).harness is None else hermes).decode(line)
                    yield to_record(row.to_release_row())
                except (msgspec.DecodeError, ValueError) as error:
                    raise InputError(
                        f"{path}, line {number}: neither a row of a run nor of the published release ({error}); "
                        "restore the file from the release or delete the line"
                    ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
