"""A run folder as Inspect logs: one `.eval` file per entry and condition, for `inspect view` and its static bundle.

A log is the same whenever it is written: dates come from its rows, ids from its digests. Logs hold what agents
saw and did and how it was scored, never the truth, so they can be handed around with an edition that withholds it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import orjson
import polars as pl
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalSample,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import GenerateConfig, ModelUsage

from finskillbench.edition.store import refuse_inside_edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import parse_condition
from finskillbench.harness.models import Entry
from finskillbench.integrations.samples import make_sample
from finskillbench.integrations.tasks import EVERYTHING
from finskillbench.integrations.verdict_scores import SCORER, to_results
from finskillbench.runs.plan.items import arm_folder
from finskillbench.runs.store.files import PART, make_folder
from finskillbench.runs.store.record import FILE, RunRecord, read_record
from finskillbench.runs.store.rows import ROWS, Row, from_frame
from finskillbench.runs.store.trajectories import read_trajectory

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
    """Write the logs of a run, one at a time: the memory it takes is that of one entry under one condition.

    Parameters
    ----------
    run : the run folder; what its `rows.parquet` lists is exported.
    out : folder of the logs, made if absent; a log of the same name is replaced.
    models, conditions : names; None takes all of the run.

    Returns
    -------
    The files, in the run's order.

    Raises
    ------
    InputError : the folder is no finished run, has no such model or condition, or a file cannot be read or written.
    """
    refuse_inside_edition(out)
    record, rows = _read_run(run)
    arms = _choose(rows, models, conditions, run)
    make_folder(out)
    written: list[Path] = []
    asked = Counter((item.entry, item.condition) for item in record.items())
    for (entry, condition), arm_rows in arms.items():
        name = arm_folder(entry, condition)
        samples: list[EvalSample] = []
        for row in arm_rows:
            samples.append(make_sample(row, read_trajectory(run / row.item.trajectory).trace))
            if progress is not None:
                progress(name, len(samples), len(arm_rows))
        log = _log(run, record, entry, condition, arm_rows, samples, complete=len(samples) >= asked[entry, condition])
        written.append(_write(log, out / f"{name}.eval"))
    return written


def _read_run(run: Path) -> tuple[RunRecord, list[Row]]:
    if not (run / FILE).is_file():
        raise InputError(f"{run}: no run folder (it has no {FILE}); name one that `finskillbench run` wrote")
    record = read_record(run)
    try:
        return record, from_frame(pl.read_parquet(run / ROWS))
    except FileNotFoundError:
        raise InputError(f"{run}: has no {ROWS} yet; the command that started the run finishes it") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{run / ROWS}: is of another version ({error}); run again with this one") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{run / ROWS}: not a table ({error}); delete it and resume the run") from None


def _choose(
    rows: Sequence[Row], models: Sequence[str] | None, conditions: Sequence[str] | None, run: Path
) -> dict[tuple[Entry, str], list[Row]]:
    """The rows of each wanted entry and condition, in the run's order."""
    wanted = None if conditions is None else [parse_condition(name) for name in conditions]
    for column, names, present in (
        ("model", models, dict.fromkeys(row.model for row in rows)),
        ("condition", wanted, dict.fromkeys(row.condition for row in rows)),
    ):
        unknown = [name for name in names or () if name not in present]
        if unknown:
            raise InputError(f"{run}: has no {column} {unknown[0]!r}; it holds {', '.join(present) or 'nothing'}")
    arms: dict[tuple[Entry, str], list[Row]] = {}
    for row in rows:
        if (models is None or row.model in models) and (wanted is None or row.condition in wanted):
            arms.setdefault((row.item.entry, row.condition), []).append(row)
    if not arms:
        raise InputError(f"{run}: no episode has finished; resume the run")
    return arms


def _log(
    run: Path,
    record: RunRecord,
    entry: Entry,
    condition: str,
    rows: Sequence[Row],
    samples: list[EvalSample],
    *,
    complete: bool,
) -> EvalLog:
    """One log; it is `complete` if it has every episode that was asked for, errors included."""
    began = _time(sorted(row.started for row in rows if row.started is not None), run / FILE)
    ended = _time(sorted((row.ended for row in rows if row.ended is not None), reverse=True), run / ROWS)
    name = _task_name(rows)
    task = f"finskillbench/{name}"
    run_digest = hashlib.sha256(orjson.dumps([record.asked, record.edition_digest])).hexdigest()
    log_digest = hashlib.sha256(f"{run_digest}\0{entry}\0{condition}".encode()).hexdigest()
    scores = [(str(sample.id), (sample.scores or {}).get(SCORER)) for sample in samples]
    said = entry.said
    task_args = {"condition": condition, "edition": record.edition_path}
    ids = list(dict.fromkeys(row.task_id for row in rows))
    config = GenerateConfig(temperature=0.0, seed=said.get("seed"), max_tokens=said.get("max_tokens"))
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
                "arguments": said,
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
    """Write a log beside its place, then rename it."""
    part = path.with_name(path.name + PART)
    try:
        write_eval_log(log, part, format="eval")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose a writable --out") from error
    return path


def _task_name(rows: Sequence[Row]) -> str:
    """The narrowest task of `finskillbench.integrations.tasks` that holds these episodes."""
    for names in ({row.sub_task for row in rows}, {row.domain for row in rows}):
        if len(names) == 1:
            return names.pop()
    return EVERYTHING


def _time(moments: Iterable[datetime], file: Path) -> str:
    """The first of some moments; where rows tell none, when a file of the run was written."""
    moment = next(iter(moments), None) or datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return moment.isoformat(timespec="seconds")


def _total(samples: Sequence[EvalSample]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for sample in samples:
        for model, usage in sample.model_usage.items():
            total[model] = total[model] + usage if model in total else usage
    return total
