"""Export a run folder as Inspect logs: one `.eval` file per model and condition, for `inspect view`.

Logs are deterministic: dates come from rows, ids from digests. They hold trajectories and scores but no truth, so they
can be published with an edition that withholds it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalSample,
    EvalSampleLimit,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, GenerateConfig, ModelOutput, ModelUsage

from finskillbench.errors import InputError
from finskillbench.harness.models import ModelKey
from finskillbench.harness.providers.inspect_words import to_chat, to_usage
from finskillbench.harness.trace import Trace
from finskillbench.integrations.exports import read_arms
from finskillbench.integrations.tasks import EVERYTHING, SCORER, to_results, to_score
from finskillbench.runs.plan.items import arm_folder
from finskillbench.runs.store.journal import read_trajectory
from finskillbench.runs.store.record import FILE, RunRecord
from finskillbench.runs.store.rows import ROWS, Row
from finskillbench.runs.store.version import PART, make_folder

_COVERED_COLUMNS = frozenset({"task_id", "run_idx", "model", "score", "scores", "score_profile", "scoring_details"})
"""Columns that a sample stores elsewhere, or leaves out: the details of a verdict reveal the truth."""


def make_sample(row: Row, trace: Trace) -> EvalSample:
    """Build the sample of one episode from its row and its trace."""
    usage = to_usage(trace.usage)
    messages = to_chat(trace.messages)
    answers = [message for message in messages if isinstance(message, ChatMessageAssistant)]
    score = to_score(row.status, row.scores, trace.answer, orjson.loads(row.scoring_details))
    return EvalSample(
        id=row.task_id,
        epoch=row.run_idx + 1,
        input=trace.messages[1].content,
        target="",
        messages=messages,
        output=ModelOutput(
            model=row.model,
            choices=[ChatCompletionChoice(message=answers[-1], stop_reason="unknown")] if answers else [],
            completion=trace.answer or "",
            usage=usage,
            time=row.latency_seconds,
        ),
        scores={} if score is None else {SCORER: score},
        metadata=_metadata(row, trace),
        model_usage={} if usage is None else {row.model: usage},
        started_at=None if row.started is None else row.started.isoformat(),
        completed_at=None if row.ended is None else row.ended.isoformat(),
        total_time=row.latency_seconds + row.queue_seconds + row.retry_seconds,
        working_time=row.latency_seconds,
        uuid=f"{row.task_id}-{row.run_idx}",
        error=None if trace.error is None else EvalError(message=trace.error, traceback="", traceback_ansi=""),
        limit=_limit(trace),
        turn_count=row.episodes,
    )


def _metadata(row: Row, trace: Trace) -> dict[str, Any]:
    columns: dict[str, Any] = msgspec.to_builtins(row)
    shown = {name: value for name, value in columns.items() if name not in _COVERED_COLUMNS and value is not None}
    return {**shown, "ended": trace.ended, "prompt": trace.prompt_digest}


def _limit(trace: Trace) -> EvalSampleLimit | None:
    if trace.ended == "max_turns":
        return EvalSampleLimit(type="turn", limit=trace.turns, reason=f"no submission in {trace.turns} turns")
    if trace.ended == "budget_exhausted":
        generated = trace.usage.output_tokens
        spent = "its tokens" if generated is None else f"{generated} tokens"
        return EvalSampleLimit(type="token", limit=generated or 0, reason=f"no submission in {spent} of output")
    if trace.ended == "context_overflow":
        return EvalSampleLimit(type="context", limit=0, reason="the conversation outgrew the model")
    return None


Progress = Callable[[str, int, int], None]
"""`(log, done, total)` after each episode of a log."""


def export_run(
    run: Path,
    out: Path,
    models: Sequence[str] | None = None,
    conditions: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the logs of a run one at a time; memory holds one model under one condition.

    Parameters
    ----------
    run : the run folder, finished or not.
    out : folder of the logs, made if absent; a log of the same name is replaced.
    models, conditions : names; None selects all.

    Raises
    ------
    InputError : the folder is not a run, has no such model or condition, or a file cannot be read or written.
    """
    record, arms = read_arms(run, out, models or (), conditions or ())
    make_folder(out)
    written: list[Path] = []
    expected = Counter((item.model_key, item.condition) for item in record.items())
    for (entry, condition), arm_rows in arms.items():
        name = arm_folder(entry, condition)
        samples: list[EvalSample] = []
        for row in arm_rows:
            samples.append(make_sample(row, read_trajectory(run / row.item.trajectory).trace))
            if progress is not None:
                progress(name, len(samples), len(arm_rows))
        complete = len(samples) >= expected[entry, condition]
        log = _log(run, record, entry, condition, arm_rows, samples, complete=complete)
        written.append(_write(log, out / f"{name}.eval"))
    return written


def _log(
    run: Path,
    record: RunRecord,
    entry: ModelKey,
    condition: str,
    rows: Sequence[Row],
    samples: list[EvalSample],
    *,
    complete: bool,
) -> EvalLog:
    """Build one log; `complete` means that every requested episode is in it, errors included."""
    began = _time(sorted(row.started for row in rows if row.started is not None), run / FILE)
    ended = _time(sorted((row.ended for row in rows if row.ended is not None), reverse=True), run / ROWS)
    name = _task_name(rows)
    task = f"finskillbench/{name}"
    run_digest = hashlib.sha256(orjson.dumps([record.asked, record.edition_digest])).hexdigest()
    log_digest = hashlib.sha256(f"{run_digest}\0{entry}\0{condition}".encode()).hexdigest()
    scores = [(str(sample.id), (sample.scores or {}).get(SCORER)) for sample in samples]
    arguments = entry.named_arguments
    task_args = {"condition": condition, "edition": record.edition_path}
    ids = list(dict.fromkeys(row.task_id for row in rows))
    config = GenerateConfig(temperature=0.0, seed=arguments.get("seed"), max_tokens=arguments.get("max_tokens"))
    return EvalLog(
        status="error" if any(sample.error for sample in samples) else "success" if complete else "cancelled",
        eval=EvalSpec(
            eval_id=log_digest[:22],
            run_id=run_digest[:22],
            task_id=log_digest[22:44],
            created=began,
            task=task,
            task_display_name=f"{task} ({condition})",
            task_args=task_args,
            task_args_passed=task_args,
            tags=[condition],
            solver="finskillbench/episode_loop",
            dataset=EvalDataset(name=name, location=record.edition_path, samples=len(ids), sample_ids=[*ids]),
            model=entry.model,
            model_generate_config=config,
            config=EvalConfig(epochs=len({row.run_idx for row in rows})),
            packages={"finskillbench": record.versions["finskillbench"]},
            metadata={
                "arguments": arguments,
                "condition": condition,
                "edition": record.edition_digest,
                "mount": record.mounts[condition],
                "prompts": record.prompts_digest,
                "scorer_version": list(dict.fromkeys(row.scorer_version for row in rows)),
                "statuses": dict(Counter(row.status.value for row in rows).most_common()),
            },
        ),
        plan=EvalPlan(steps=[EvalPlanStep(solver="finskillbench/episode_loop")], config=config),
        results=to_results(scores),
        stats=EvalStats(started_at=began, completed_at=ended, model_usage=_total(samples)),
        samples=samples,
    )


def _write(log: EvalLog, path: Path) -> Path:
    part = path.with_name(path.name + PART)
    try:
        write_eval_log(log, part, format="eval")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose a writable --out") from error
    return path


def _task_name(rows: Sequence[Row]) -> str:
    """Return the narrowest task of `finskillbench.integrations.tasks` that holds these episodes."""
    for names in ({row.sub_task for row in rows}, {row.domain for row in rows}):
        if len(names) == 1:
            return names.pop()
    return EVERYTHING


def _time(moments: Iterable[datetime], file: Path) -> str:
    """Return the first moment as text; without moments the modification time of a run file."""
    moment = next(iter(moments), None) or datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return moment.isoformat(timespec="seconds")


def _total(samples: Sequence[EvalSample]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for sample in samples:
        for model, usage in sample.model_usage.items():
            total[model] = total[model] + usage if model in total else usage
    return total
