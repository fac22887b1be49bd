"""The rows that were published with the paper, as rows of ours under the profile `paper`.

Two formats are read: `results_all.jsonl` of the full run, and the files of the Hermes runs. What they do not tell is
null: retries, times of day and digests; of the full run also cached and reasoning tokens, cost and scripts.

What published rows tell, in the columns of `rows.parquet`, and what follows from the names of their tasks.

A line of `results_all.jsonl`: the paper's full run, in its own harness.

A line of the published Hermes runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl

from finskillbench.episode import Profile, Status
from finskillbench.errors import InputError
from finskillbench.harness.models import NO_ARGUMENTS, ModelKey
from finskillbench.runs.store.rows import SCHEMA

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
class _Told:
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


def to_record(told: _Told) -> dict[str, object]:
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


Count = Annotated[int, msgspec.Meta(ge=0)]


class FullRow(msgspec.Struct, frozen=True):
    """The fields that are used; `episodes` are turns."""

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

    def told(self) -> _Told:
        """The row by our names."""
        details = bytes(self.scoring_details).decode()
        provider, named, _ = self.litellm_model.partition("/")
        return _Told(
            model=self.model,
            provider=provider if named else None,
            domain=self.domain,
            condition=self.condition,
            task_id=self.task_id,
            sub_task=self.sub_task,
            difficulty=self.difficulty,
            as_of_date=self.as_of_date,
            run_idx=self.run_idx,
            score=self.score,
            valid_json=self.valid_json,
            scoring_method=self.scoring_method,
            scoring_details=details,
            turns=self.episodes,
            total_input_tokens=self.total_input_tokens,
            total_output_tokens=self.total_output_tokens,
            skills_loaded=list(self.skills_loaded),
            tool_calls=len(self.tool_calls_log),
            latency_seconds=self.latency_seconds,
            error=self.error,
            said=f"{self.error or ''} {_error_in(self.scoring_details)}",
        )


class _Details(msgspec.Struct):
    error: object = None


def _error_in(details: msgspec.Raw) -> str:
    """What a scorer said of a submission that it could not score."""
    try:
        found = msgspec.json.decode(details, type=_Details)
    except msgspec.ValidationError:  # no object
        return ""
    return str(found.error or "")


class HermesUsage(msgspec.Struct, frozen=True):
    """Tokens; `prompt_tokens` is all of the input, cached ones included."""

    prompt_tokens: Count
    completion_tokens: Count
    cache_read_tokens: Count = 0
    reasoning_tokens: Count = 0
    estimated_cost_usd: float | None = None


class HermesRow(msgspec.Struct, frozen=True):
    """The fields that are used."""

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

    def told(self) -> _Told:
        """The row by our names; an episode that the harness did not finish is incomplete."""
        unfinished = "incomplete" if self.partial or not self.completed else ""
        return _Told(
            model=self.model,
            harness=self.harness,
            arguments=ModelKey(self.model, NO_ARGUMENTS).under(self.harness).arguments,
            domain=self.skill_domain,
            condition=self.condition,
            task_id=self.task_id,
            sub_task=self.sub_task,
            difficulty=self.difficulty,
            score=self.score,
            valid_json=self.valid_json,
            scoring_method=self.scoring_method,
            scoring_details=bytes(self.scorer_details).decode(),
            turns=self.turns,
            total_input_tokens=self.usage.prompt_tokens,
            total_cached_tokens=self.usage.cache_read_tokens,
            total_output_tokens=self.usage.completion_tokens,
            total_reasoning_tokens=self.usage.reasoning_tokens,
            cost_usd=self.usage.estimated_cost_usd,
            tool_calls=self.tool_calls_total,
            latency_seconds=self.latency_seconds,
            error=self.error or self.scoring_error,
            said=f"{self.error or ''} {'' if self.valid_json else unfinished}",
        )


class _Kind(msgspec.Struct):
    """What tells the formats apart."""

    harness: str | None = None


def read_release(path: Path) -> pl.DataFrame:
    """Read a file of published rows, a JSON object in each line.

    Returns
    -------
    Rows with the columns of `rows.parquet`.

    Raises
    ------
    InputError : it cannot be read, has no line, or one that is no such row; the message names file, line and field.
    """
    records = list(_records(path))
    if not records:
        raise InputError(f"{path}: is empty; take the file from the release again")
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
                    yield to_record(row.told())
                except (msgspec.DecodeError, ValueError) as error:
                    raise InputError(
                        f"{path}, line {number}: no row of a run, nor of the published release ({error}); "
                        "take the file from the release again or delete the line"
                    ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
