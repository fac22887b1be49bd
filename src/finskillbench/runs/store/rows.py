"""Rows, one per episode, model, condition and repeat, with the column names of the published results."""

from __future__ import annotations

import hashlib
import io
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_type_hints

import msgspec
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.domains import cluster_of
from finskillbench.episode import Episode, Profile, Status, Verdict
from finskillbench.harness.conditions import ArmName
from finskillbench.harness.model import Usage
from finskillbench.harness.tools.contracts import READS_DATA
from finskillbench.harness.trace import Trace
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.version import code_commit, code_version, scorer_version, write_atomic


class RowColumn(NamedTuple):
    """Unit (may be empty) and description of a column."""

    unit: str
    meaning: str

    def metadata(self) -> dict[str, str]:
        """Return the metadata of the Parquet field."""
        return {"unit": self.unit, "meaning": self.meaning}


_TIMES = "the three durations add up to ended - started"
COLUMNS: Mapping[str, RowColumn] = {
    "model": RowColumn("", "name of the model, program or agent"),
    "harness": RowColumn(
        "",
        "the loop that ran the episode: finskillbench (built in), hermes, python, mcp, a program of drive --harness, "
        "handout, human",
    ),
    "provider": RowColumn("", "provider that served the model; null for programs and agents"),
    "arguments": RowColumn(
        "JSON", "arguments that identify a configuration of the model, such as seed, max_tokens and harness"
    ),
    "domain": RowColumn("", "field of work of the episode"),
    "condition": RowColumn("", "name of the condition: the skills available to the agent"),
    "task_id": RowColumn("", "identifier of the episode in the edition"),
    "sub_task": RowColumn("", "subtask of the episode"),
    "difficulty": RowColumn("", "easy, medium or hard"),
    "cluster": RowColumn("", "object shared with other episodes of the subtask: a market date, a mandate, a company"),
    "as_of_date": RowColumn("date", "date as of which the task is set"),
    "run_idx": RowColumn("", "repeat of the episode, from 0"),
    "score": RowColumn("0 to 1", "score under score_profile; null under status error and unjudged, never a zero"),
    "score_profile": RowColumn("", "first of certified, strict and paper that the subtask defines"),
    "scores": RowColumn("0 to 1", "score under each profile; null where it is not defined (paper may exceed 1)"),
    "status": RowColumn("", "scored, or the reason for a score of 0 or for no score: see the table of statuses"),
    "valid_json": RowColumn(
        "",
        "false only if a submitted text is no JSON object by the strict rules; wrong keys or no answer leave it true",
    ),
    "scoring_method": RowColumn("", "verification method of the subtask"),
    "scoring_details": RowColumn("JSON", "measurements of the scorers"),
    "signed": RowColumn("", "true if every part of the case is right; null where a case has no parts"),
    "traps": RowColumn("", "kind@place=avoided, fallen or untested for each trap and control of the episode"),
    "episodes": RowColumn("calls", "the published name of turns"),
    "turns": RowColumn("calls", "answered model calls; tool calls for an agent that does not report model calls"),
    "total_input_tokens": RowColumn(
        "tokens", "input of all answered calls, cached ones included; null where any is unknown"
    ),
    "total_cached_tokens": RowColumn(
        "tokens", "part of the input that came from the provider's cache; null where unknown"
    ),
    "total_output_tokens": RowColumn("tokens", "generated tokens, reasoning included; null where any is unknown"),
    "total_reasoning_tokens": RowColumn("tokens", "part of the output that was reasoning; null where unknown"),
    "cost_usd": RowColumn("US dollars", "price of the answered calls, reused ones included; null where it is unknown"),
    "reused_calls": RowColumn("calls", "answered calls whose answer came from the response cache"),
    "saved_usd": RowColumn("US dollars", "part of cost_usd that was not paid because answers were reused"),
    "served_models": RowColumn("", "model names that the provider reported in its answers"),
    "skills_loaded": RowColumn("", "skills from which the agent read a document, in order"),
    "scripts_run": RowColumn("", "skill scripts that were started, in order, failed and refused runs included"),
    "tool_calls": RowColumn("calls", "tool calls of the agent, including those after its submission"),
    "data_calls": RowColumn(
        "calls",
        "successful calls of get_task_data, read_table and query_xbrl; a budget of data calls charges failed ones too",
    ),
    "error": RowColumn("", "message of the failure that ended the episode"),
    "error_cause": RowColumn("", "cause of that failure, from the table of failures"),
    "incidents": RowColumn("", "all failures, in order, from the table of failures"),
    "retries": RowColumn("calls", "failed calls that were repeated"),
    "started": RowColumn("UTC", "start of the episode; null where no clock was read"),
    "ended": RowColumn("UTC", "end of the episode"),
    "latency_seconds": RowColumn("seconds", f"answered model calls and tools; for an agent its whole time; {_TIMES}"),
    "queue_seconds": RowColumn(
        "seconds", "waiting for a slot under a rate limit, for the budget or for this process; pauses of a person"
    ),
    "retry_seconds": RowColumn("seconds", "failed calls, and the waits before they were repeated"),
    "edition": RowColumn("SHA-256", "digest of the edition"),
    "mount": RowColumn("SHA-256", "digest of the condition with its mounted packages"),
    "code_version": RowColumn("", "version of this package"),
    "commit": RowColumn("Git", "commit of the code that ran; ends in -dirty if files differed; null if unknown"),
    "scorer_version": RowColumn(
        "SHA-256", "first 12 digits, over the scoring code: scores are comparable if it is equal"
    ),
    "answer_digest": RowColumn("SHA-256", "digest of the submitted text; null where there was none"),
    "digest": RowColumn("SHA-256", "digest over the columns that decide a table; an altered row no longer matches it"),
}
"""All columns, in the order of the table."""


ROWS = "rows.parquet"
SHORT_FORM = "short_form.json"
"""Copy of the short form of a run."""
HEADLINE_ORDER = (Profile.CERTIFIED, Profile.STRICT, Profile.PAPER)
"""`score` uses the first of these profiles that the subtask defines; `score_profile` names it."""
TIMINGS = ("started", "ended", "latency_seconds", "queue_seconds", "retry_seconds")
"""Columns in which equal runs may differ."""

DIGEST_COLUMNS = (
    *("model", "harness", "arguments", "condition", "task_id", "sub_task", "run_idx", "edition", "mount"),
    *("answer_digest", "status", "valid_json", "scores", "score", "score_profile", "scoring_method", "scorer_version"),
    *("signed", "traps"),
)
"""Columns that decide a table and that the digest of a row covers."""

_INTERNED_COLUMNS = (
    *("model", "harness", "provider", "arguments", "domain", "condition", "task_id", "sub_task", "difficulty"),
    *("cluster", "scoring_method", "edition", "mount", "code_version", "commit", "scorer_version"),
)
"""Texts that many rows share: 2 of the 5 KB of a row in memory."""
_CHUNK_ROWS = 10_000

_OLDEST = pl.CompatLevel.oldest()
"""Not every reader supports string views."""
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One finished episode; fields are the columns of `rows.parquet`, in this order, described in `COLUMNS`."""

    model: str
    harness: str
    provider: str | None
    arguments: str
    domain: str
    condition: ArmName
    task_id: str
    sub_task: str
    difficulty: str
    cluster: str
    as_of_date: date
    run_idx: Int64
    score: float | None
    score_profile: Profile | None
    scores: Mapping[Profile, float | None]
    status: Status
    valid_json: bool
    scoring_method: str
    scoring_details: str
    signed: bool | None
    traps: tuple[str, ...]
    episodes: Int64
    turns: Int64
    total_input_tokens: Int64 | None
    total_cached_tokens: Int64 | None
    total_output_tokens: Int64 | None
    total_reasoning_tokens: Int64 | None
    cost_usd: float | None
    reused_calls: Int64
    saved_usd: float
    served_models: tuple[str, ...]
    skills_loaded: tuple[str, ...]
    scripts_run: tuple[str, ...]
    tool_calls: Int64
    data_calls: Int64
    error: str | None
    error_cause: str | None
    incidents: tuple[str, ...]
    retries: Int64
    started: Moment | None
    ended: Moment | None
    latency_seconds: float
    queue_seconds: float
    retry_seconds: float
    edition: str
    mount: str
    code_version: str
    commit: str | None
    scorer_version: str
    answer_digest: str | None
    digest: str

    @property
    def item(self) -> Item:
        """Item of the row."""
        return Item(self.model, self.arguments, self.condition, self.task_id, self.run_idx)

    @property
    def usage(self) -> Usage:
        """Tokens and price; rows do not record how much input was written to a cache."""
        return Usage(
            input_tokens=self.total_input_tokens,
            cached_tokens=self.total_cached_tokens,
            output_tokens=self.total_output_tokens,
            reasoning_tokens=self.total_reasoning_tokens,
            cost_usd=self.cost_usd,
            reused_calls=self.reused_calls,
            saved_usd=self.saved_usd,
        )


_COLUMN_TYPES: Mapping[Any, pl.DataType] = {
    **dict.fromkeys((str, str | None, Status, Profile | None), pl.String()),
    **dict.fromkeys((float, float | None), pl.Float64()),
    **dict.fromkeys((int, int | None), pl.Int64()),
    **dict.fromkeys((bool, bool | None), pl.Boolean()),
    date: pl.Date(),
    datetime | None: pl.Datetime("us", "UTC"),
    tuple[str, ...]: pl.List(pl.String()),
    Mapping[Profile, float | None]: pl.Struct({profile.value: pl.Float64() for profile in Profile}),
}
SCHEMA: Mapping[str, pl.DataType] = {name: _COLUMN_TYPES[kind] for name, kind in get_type_hints(Row).items()}
"""Columns of `rows.parquet`."""


def make_row(item: Item, episode: Episode, trace: Trace, verdict: Verdict, *, method: str, edition_digest: str) -> Row:
    """Return the row of a finished episode; `method` is the verification method of its subtask."""
    answer = trace.answer
    row = Row(
        model=item.model,
        harness=trace.harness,
        provider=trace.provider,
        arguments=item.arguments,
        domain=episode.skill,
        condition=item.condition,
        task_id=item.task_id,
        difficulty=episode.difficulty,
        cluster=cluster_of(episode),
        as_of_date=episode.as_of_date,
        run_idx=item.run_idx,
        episodes=trace.turns,
        turns=trace.turns,
        total_input_tokens=trace.usage.input_tokens,
        total_cached_tokens=trace.usage.cached_tokens,
        total_output_tokens=trace.usage.output_tokens,
        total_reasoning_tokens=trace.usage.reasoning_tokens,
        cost_usd=trace.usage.cost_usd,
        reused_calls=trace.usage.reused_calls,
        saved_usd=trace.usage.saved_usd,
        served_models=tuple(sorted({call.served_model for call in trace.model_calls if call.served_model is not None})),
        skills_loaded=tuple(trace.skills_loaded),
        scripts_run=tuple(trace.scripts_run),
        tool_calls=len(trace.tool_calls),
        data_calls=sum(call.name in READS_DATA and call.fate == "ok" for call in trace.tool_calls),
        error=trace.error,
        error_cause=trace.error_cause,
        incidents=tuple(trace.incidents),
        retries=trace.retries,
        started=trace.started,
        ended=trace.finished,
        latency_seconds=trace.latency_seconds,
        queue_seconds=trace.queue_seconds,
        retry_seconds=trace.retry_seconds,
        edition=edition_digest,
        mount=trace.mount_digest,
        code_version=code_version(),
        commit=code_commit(),
        answer_digest=None if answer is None else answer_digest(answer),
        digest="",
        **_verdict_columns(verdict, method),
    )
    return with_digest(row)


def with_verdict(row: Row, verdict: Verdict, method: str) -> Row:
    """Return the row with another verdict."""
    return with_digest(replace(row, **_verdict_columns(verdict, method)))


def with_digest(row: Row) -> Row:
    """Return the row with its digest."""
    return replace(row, digest=row_digest(row))


def answer_digest(answer: str) -> str:
    """Return the SHA-256 of a submitted text."""
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()


def row_digest(row: Row) -> str:
    """Return the SHA-256 over the columns that decide a table, which detects edited scores."""
    parts = [getattr(row, name) for name in DIGEST_COLUMNS]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def check_row(row: Row) -> None:
    """Raise ValueError if a row does not match its digest or has a score out of range."""
    if row.digest != row_digest(row):
        raise ValueError(f"the row of {row.task_id} was altered")
    for profile, score in row.scores.items():
        # A published ranked list may score above 1.
        most = math.inf if profile is Profile.PAPER else 1.0
        if score is not None and not (0.0 <= score <= most and math.isfinite(score)):
            raise ValueError(f"the row of {row.task_id} has a score of {score} under {profile}")


def _verdict_columns(verdict: Verdict, method: str) -> dict[str, Any]:
    scores = {profile: verdict.scores.get(profile) for profile in Profile}
    headline = next((profile for profile in HEADLINE_ORDER if scores[profile] is not None), None)
    judged: Mapping[str, Any] = {} if headline is None else verdict.details.get(headline.value, {})
    details = orjson.dumps(verdict.details, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    return {
        "sub_task": verdict.sub_task,
        "score": None if headline is None else scores[headline],
        "score_profile": headline,
        "scores": scores,
        "status": verdict.status,
        "valid_json": verdict.valid_json,
        "scoring_method": method,
        "scoring_details": details.decode(),
        "signed": judged.get("signed"),
        "traps": tuple(f"{where}={came_of}" for where, came_of in judged.get("traps", {}).items()),
        "scorer_version": scorer_version(),
    }


def to_frame(rows: Iterable[Row]) -> pl.DataFrame:
    """Return rows as a table with the columns of `SCHEMA`."""
    left, parts = iter(rows), [pl.DataFrame(schema=dict(SCHEMA))]
    # In chunks: a million rows take 4.5 GB as dictionaries and one as a table.
    while records := [msgspec.to_builtins(row, builtin_types=(date, datetime)) for row in islice(left, _CHUNK_ROWS)]:
        parts.append(pl.DataFrame(records, schema=dict(SCHEMA), orient="row"))
    return pl.concat(parts, rechunk=True)


def intern_texts(row: Row) -> None:
    """Replace texts of a row that many rows share by interned copies."""
    for name in _INTERNED_COLUMNS:
        value = getattr(row, name)
        if value is not None:
            object.__setattr__(row, name, sys.intern(str(value)))


def from_frame(frame: pl.DataFrame) -> list[Row]:
    """Return the rows of a table with the columns of `SCHEMA`.

    Raises ValueError if a column is absent or has another type, or a row was altered.
    """
    rows = msgspec.convert(frame.to_dicts(), list[Row])
    for row in rows:
        check_row(row)
    return rows


def write_rows(path: Path, frame: pl.DataFrame) -> None:
    """Write the table atomically as Parquet with descriptions of its columns."""
    write_atomic(path, table_bytes(frame), durable=True)


def table_bytes(frame: pl.DataFrame) -> bytes:
    """Encode the table as Parquet with descriptions of its columns."""
    # pyarrow has no types.
    arrow, parquet, table = cast("Any", pa), cast("Any", pq), cast("Any", frame.to_arrow(compat_level=_OLDEST))
    described = [field.with_metadata(COLUMNS[field.name].metadata()) for field in table.schema]
    buffer = io.BytesIO()
    parquet.write_table(table.cast(arrow.schema(described)), buffer, compression="zstd")
    return buffer.getvalue()
