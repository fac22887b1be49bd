"""A run folder as Inspect logs: one `.eval` file per model and condition, for `inspect view` and its static bundle.

A log is the same whenever it is written: dates come from the run folder, ids from its digests. Logs hold what agents
saw and did and how it was scored, never the truth, so they can be handed around with an edition that withholds it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from finskillbench.harness.conditions import Condition, parse_condition
from finskillbench.interop.samples import make_sample
from finskillbench.interop.tasks import EVERYTHING
from finskillbench.interop.verdict_scores import SCORER, to_results
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.files import PART, make_folder
from finskillbench.runs.store.record import FILE
from finskillbench.runs.store.rows import ROWS, SCHEMA
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
    """Write the logs of a run, one at a time: the memory it takes is that of one model under one condition.

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
    written = []
    for (model, condition), arm_rows in arms.items():
        name = Item(model, condition, "", 0).arm
        samples = []
        for sample in _samples(run, arm_rows, model, condition):
            samples.append(sample)
            if progress is not None:
                progress(name, len(samples), arm_rows.height)
        log = _log(run, record, model, condition, arm_rows, samples)
        written.append(_write(log, out / f"{name}.eval"))
    return written


def _read_run(run: Path) -> tuple[Mapping[str, Any], pl.DataFrame]:
    try:
        record = orjson.loads((run / FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{run}: no run folder ({FILE}: {error}); name one that `finskillbench run` wrote") from None
    try:
        rows = pl.read_parquet(run / ROWS)
    except FileNotFoundError:
        raise InputError(f"{run}: has no {ROWS} yet; the command that started the run finishes it") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{run / ROWS}: not a table ({error}); delete it and resume the run") from None
    missing = [name for name in SCHEMA if name not in rows.columns]
    if missing:
        raise InputError(f"{run / ROWS}: has no column {missing[0]!r}; it is of another version, run again with this")
    return record, rows


def _choose(
    rows: pl.DataFrame, models: Sequence[str] | None, conditions: Sequence[str] | None, run: Path
) -> dict[tuple[str, Condition], pl.DataFrame]:
    """The rows of each wanted (model, condition), in the run's order."""
    wanted = None if conditions is None else [parse_condition(name).value for name in conditions]
    for column, names in (("model", models), ("condition", wanted)):
        held = rows[column].unique(maintain_order=True).to_list()
        unknown = [name for name in names or () if name not in held]
        if unknown:
            raise InputError(f"{run}: has no {column} {unknown[0]!r}; it holds {', '.join(held) or 'nothing'}")
    kept = rows.filter(
        pl.lit(True) if models is None else pl.col("model").is_in(models),
        pl.lit(True) if wanted is None else pl.col("condition").is_in(wanted),
    )
    if kept.is_empty():
        raise InputError(f"{run}: no episode has finished; resume the run")
    return {
        (model, Condition(condition)): part
        for (model, condition), part in kept.partition_by(
            "model", "condition", as_dict=True, maintain_order=True
        ).items()
    }


def _samples(run: Path, rows: pl.DataFrame, model: str, condition: Condition) -> Iterator[EvalSample]:
    for row in rows.iter_rows(named=True):
        path = run / Item(model, condition, row["task_id"], row["run_idx"]).trajectory
        trajectory = read_trajectory(path)
        try:
            yield make_sample(row, trajectory)
        except (KeyError, TypeError, IndexError) as error:
            raise InputError(f"{path}: not a trajectory of this version ({error!r}); run its episode again") from error


def _log(
    run: Path,
    record: Mapping[str, Any],
    model: str,
    condition: Condition,
    rows: pl.DataFrame,
    samples: list[EvalSample],
) -> EvalLog:
    arguments = record["arguments"]
    task = f"finskillbench/{_task_name(rows)}"
    identity = hashlib.sha256(orjson.dumps([record["plan"]["digest"], record["edition_digest"]])).hexdigest()
    own = hashlib.sha256(f"{identity}\0{model}\0{condition.value}".encode()).hexdigest()
    scores = [(str(sample.id), (sample.scores or {}).get(SCORER)) for sample in samples]
    unfinished = any(sample.error is not None for sample in samples)
    task_args = {"condition": condition.value, "edition": record["edition_path"], "limit": arguments["limit"]}
    ids = rows["task_id"].unique(maintain_order=True).to_list()
    # Programs take no settings, and a run of theirs alone may name none.
    config = GenerateConfig(temperature=0.0, seed=arguments["seed"], max_tokens=arguments.get("max_tokens"))
    return EvalLog(
        status="error" if unfinished else "success" if rows.height >= _planned(record) else "cancelled",
        eval=EvalSpec(
            eval_id=own[:22],
            run_id=identity[:22],
            task_id=own[22:44],
            created=_time(run / FILE),
            task=task,
            task_display_name=f"{task} ({condition.value})",
            task_args=task_args,
            task_args_passed=task_args,
            tags=[condition.value],
            solver="finskillbench/episode_loop",
            dataset=EvalDataset(
                name=_task_name(rows), location=record["edition_path"], samples=len(ids), sample_ids=ids
            ),
            model=model,
            model_generate_config=config,
            config=EvalConfig(epochs=rows["run_idx"].n_unique()),
            packages={"finskillbench": record["code_version"]},
            metadata={
                "condition": condition.value,
                "edition": record["edition_digest"],
                "mount": record["mounts"][condition.value],
                "prompts": record["prompts_digest"],
                "scorer_version": rows["scorer_version"].unique(maintain_order=True).to_list(),
                "statuses": dict(rows["status"].value_counts(sort=True).rows()),
            },
        ),
        plan=EvalPlan(steps=[EvalPlanStep(solver="finskillbench/episode_loop")], config=config),
        results=to_results(scores),
        stats=EvalStats(started_at=_time(run / FILE), completed_at=_time(run / ROWS), model_usage=_total(samples)),
        samples=samples,
    )


def _planned(record: Mapping[str, Any]) -> int:
    """Episodes of one model under one condition in the whole run; a shard's log is a part of it and never complete."""
    return record["plan"]["episodes"] * record["arguments"]["epochs"]


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


def _task_name(rows: pl.DataFrame) -> str:
    """The narrowest task of `finskillbench.interop.tasks` that holds these episodes."""
    for column in ("sub_task", "domain"):
        if rows[column].n_unique() == 1:
            return rows[column][0]
    return EVERYTHING


def _time(path: Path) -> str:
    """When a file was written; `run.json` is when the run began."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")


def _total(samples: Sequence[EvalSample]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for sample in samples:
        for model, usage in sample.model_usage.items():
            total[model] = total[model] + usage if model in total else usage
    return total
