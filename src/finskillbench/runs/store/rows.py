"""Rows: one per episode x model x condition x repeat, with the names of the published results."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from finskillbench.episode import Episode, Profile, Verdict
from finskillbench.harness.trace import Trace
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.files import write_beside
from finskillbench.runs.store.version import code_version, scorer_version

HARNESS = "finskillbench"
ROWS = "rows.parquet"
HEADLINE_ORDER = (Profile.CERTIFIED, Profile.STRICT, Profile.PAPER)
"""`score` is that of the first of these profiles that the subtask defines; `score_profile` says which."""

SCHEMA: Mapping[str, Any] = {
    "model": pl.String,
    "harness": pl.String,
    "domain": pl.String,
    "condition": pl.String,
    "task_id": pl.String,
    "sub_task": pl.String,
    "difficulty": pl.String,
    "as_of_date": pl.Date,
    "run_idx": pl.Int64,
    "score": pl.Float64,
    "score_profile": pl.String,
    "scores": pl.Struct({profile.value: pl.Float64 for profile in Profile}),
    "status": pl.String,
    "valid_json": pl.Boolean,
    "scoring_method": pl.String,
    "scoring_details": pl.String,
    "episodes": pl.Int64,
    "total_input_tokens": pl.Int64,
    "total_cached_tokens": pl.Int64,
    "total_output_tokens": pl.Int64,
    "total_reasoning_tokens": pl.Int64,
    "cost_usd": pl.Float64,
    "served_models": pl.List(pl.String),
    "skills_loaded": pl.List(pl.String),
    "scripts_run": pl.List(pl.String),
    "tool_calls": pl.Int64,
    "error": pl.String,
    "error_cause": pl.String,
    "incidents": pl.List(pl.String),
    "retries": pl.Int64,
    "latency_seconds": pl.Float64,
    "edition": pl.String,
    "mount": pl.String,
    "code_version": pl.String,
    "scorer_version": pl.String,
}
"""Columns of `rows.parquet`; `scoring_details` is JSON text, `episodes` are turns, `edition` and `mount` are digests.

Cached tokens are part of the input's, reasoning tokens of the output's.
"""

_MAY_BE_NULL = ("score", "score_profile", "cost_usd", "error", "error_cause")

TIMINGS = ("latency_seconds",)
"""Columns in which two runs of the same work may differ."""


def make_row(
    item: Item,
    episode: Episode,
    trace: Trace,
    verdict: Verdict,
    *,
    method: str,
    edition_digest: str,
) -> dict[str, Any]:
    """Build the row, and journal line, of one finished episode.

    A verdict of status `error` has no scores, so its row has nulls, never zeros. `cost_usd` is null where
    the price is not known.
    """
    return {
        "model": item.model,
        "harness": HARNESS,
        "domain": episode.skill,
        "condition": item.condition.value,
        "task_id": item.task_id,
        "difficulty": episode.difficulty,
        "as_of_date": episode.as_of_date,
        "run_idx": item.run_idx,
        **judged_columns(verdict, method),
        "episodes": trace.turns,
        "total_input_tokens": trace.usage.input_tokens,
        "total_cached_tokens": trace.usage.cached_tokens,
        "total_output_tokens": trace.usage.output_tokens,
        "total_reasoning_tokens": trace.usage.reasoning_tokens,
        "cost_usd": trace.usage.cost_usd,
        "served_models": sorted({call.served_model for call in trace.model_calls if call.served_model is not None}),
        "skills_loaded": list(trace.skills_loaded),
        "scripts_run": list(trace.scripts_run),
        "tool_calls": len(trace.tool_calls),
        "error": trace.error,
        "error_cause": trace.error_cause,
        "incidents": list(trace.incidents),
        "retries": trace.retries,
        "latency_seconds": trace.latency_seconds,
        "edition": edition_digest,
        "mount": trace.mount_digest,
        "code_version": code_version(),
    }


def judged_columns(verdict: Verdict, method: str) -> dict[str, Any]:
    """The columns that follow from a verdict alone: those that change when an episode is judged again."""
    scores = {profile.value: verdict.scores.get(profile) for profile in Profile}
    headline = next((p.value for p in HEADLINE_ORDER if scores[p.value] is not None), None)
    details = orjson.dumps(verdict.details, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    return {
        "sub_task": verdict.sub_task,
        "score": scores[headline] if headline is not None else None,
        "score_profile": headline,
        "scores": scores,
        "status": verdict.status.value,
        "valid_json": verdict.valid_json,
        "scoring_method": method,
        "scoring_details": details.decode(),
        "scorer_version": scorer_version(),
    }


def check_row(line: object) -> None:
    """Check that a journal line holds what `to_frame` needs; raise TypeError or ValueError, naming the field."""
    if not isinstance(line, dict):
        raise TypeError("not an object")
    for name, kind in SCHEMA.items():
        if name not in line:
            raise ValueError(f"no {name!r}")
        if not _fits(line[name], kind) or (line[name] is None and name not in _MAY_BE_NULL):
            raise TypeError(f"{name} is {line[name]!r:.60}")


def _fits(value: object, kind: Any) -> bool:
    """Whether a JSON value, or null, can stand in a column of that kind."""
    if value is None:
        return True
    if kind == pl.Date:
        try:
            return isinstance(value, str) and bool(date.fromisoformat(value))
        except ValueError:
            return False
    if isinstance(kind, pl.List):
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if isinstance(kind, pl.Struct):
        return isinstance(value, dict) and all(_fits(value.get(field.name), field.dtype) for field in kind.fields)
    if kind == pl.Int64:
        return type(value) is int and abs(value) < 2**63
    return type(value) in {pl.String: (str,), pl.Boolean: (bool,), pl.Float64: (float, int)}[kind]


def to_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Journal lines as a table with the columns of `SCHEMA`."""
    # Dates are text in a journal and dates in a fresh row; going through text treats both alike.
    texts = [{**row, "as_of_date": str(row["as_of_date"])} for row in rows]
    frame = pl.DataFrame(texts, schema={**SCHEMA, "as_of_date": pl.String}, orient="row")
    return frame.with_columns(pl.col("as_of_date").str.to_date())


def write_rows(path: Path, frame: pl.DataFrame) -> None:
    """Write the table as Parquet, beside and then renamed."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    write_beside(path, buffer.getvalue(), durable=True)
