"""A run for other programs: flat rows, a local MLflow store, offline runs of Weights & Biases.

MLflow gets an experiment with one run for the folder and one below it for each model and condition; Weights & Biases
one run for each, grouped by the folder, which `wandb sync` sends. The run's rows, tables and attachments go along.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import Results, collect, pairs
from finskillbench.csv_output import csv_text
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.integrations import require_extra
from finskillbench.reports.formats import Format, write_tables
from finskillbench.reports.read import RunRows
from finskillbench.reports.report import report
from finskillbench.runs.store.rows import COLUMNS, RowColumn
from finskillbench.runs.store.version import make_folder, write_atomic

_SEPARATOR = "_"


class Flat(StrEnum):
    """The formats of a flat file."""

    PARQUET = "parquet"
    CSV = "csv"


def flat_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a plain value in each column: `scores` as `scores_paper` and so on, lists as JSON."""
    columns: list[pl.Series] = []
    for series in rows:
        if isinstance(series.dtype, pl.Struct):
            fields = series.struct.unnest()
            columns += [fields[name].alias(f"{series.name}{_SEPARATOR}{name}") for name in fields.columns]
        elif isinstance(series.dtype, pl.List):
            texts = [None if each is None else orjson.dumps(each).decode() for each in series.to_list()]
            columns.append(pl.Series(series.name, texts, pl.String))
        else:
            columns.append(series)
    return pl.DataFrame(columns)


def described(rows: pl.DataFrame) -> dict[str, RowColumn]:
    """Unit and meaning of each column of `flat_rows(rows)`, as far as they are known."""
    known: dict[str, RowColumn] = {}
    for name, kind in rows.schema.items():
        column = COLUMNS.get(name, RowColumn("", ""))
        if isinstance(kind, pl.Struct):
            known |= {f"{name}_{field.name}": RowColumn(column.unit, f"under {field.name}") for field in kind.fields}
        elif isinstance(kind, pl.List):
            known[name] = RowColumn("JSON", column.meaning)
        else:
            known[name] = column
    return known


def write_flat(rows: pl.DataFrame, path: Path, form: Flat) -> None:
    """Write the flat rows; a Parquet file has unit and meaning of each column in its metadata.

    Raises
    ------
    InputError : the file cannot be written, or would lie in an edition.
    """
    refuse_inside_edition(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write")
    write_atomic(path, _WRITERS[form](rows))


def _csv(rows: pl.DataFrame) -> bytes:
    return csv_text(flat_rows(rows)).encode("utf-8", "surrogatepass")


def _parquet(rows: pl.DataFrame) -> bytes:
    # pyarrow comes without types.
    arrow, parquet = cast("Any", pa), cast("Any", pq)
    table = cast("Any", flat_rows(rows).to_arrow(compat_level=pl.CompatLevel.oldest()))
    meanings = described(rows)
    fields = [field.with_metadata(meanings[field.name].metadata()) for field in table.schema]
    buffer = io.BytesIO()
    parquet.write_table(table.cast(arrow.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


_WRITERS: Mapping[Flat, Callable[[pl.DataFrame], bytes]] = {Flat.CSV: _csv, Flat.PARQUET: _parquet}


HEADLINE = "headline"
_MEANS = {
    "turns": "turns",
    "tool_calls": "tool_calls",
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "latency_seconds": "latency_seconds",
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One model under one condition in one harness.

    `parameters` are texts. `metrics` are finite numbers by name: `score/headline`, `score/domain/NAME`,
    `score/subtask/NAME` and `gain/...` (the paired difference from the condition that stands beside it as
    `gain_over`), each with `_low` and `_high` where an interval can be said; `episodes`, `errors`, `mean/turns` and
    the like, and `cost_usd` in all. What cannot be said is left out.
    """

    model: str
    harness: str
    condition: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]

    @property
    def name(self) -> str:
        """What tells it from the others."""
        beside = "" if self.harness == "finskillbench" else f" ({self.harness})"
        return f"{self.model} {self.condition}{beside}"


def arms_of(run: RunRows, results: Results) -> list[Arm]:
    """The arms of a run, in the order of its rows."""
    keys = ["model", "harness", "condition"]
    found: list[Arm] = []
    for model, harness, condition in results.rows.select(keys).unique(maintain_order=True).iter_rows():
        of_arm = (pl.col("model") == model) & (pl.col("harness") == harness)
        rows = results.rows.filter(of_arm, pl.col("condition") == condition)
        against = next((each for each in results.comparisons if each.treated == condition), None)
        parameters = {**_parameters(run, results, rows), "condition": condition}
        metrics = dict(_metrics(rows, results.episodes.filter(of_arm, pl.col("condition") == condition)))
        if against is not None:
            parameters["gain_over"] = against.reference
            metrics |= dict(_means("gain", pairs(results, against).filter(of_arm), "difference"))
        found.append(Arm(model, harness, condition, parameters, metrics))
    return found


def _parameters(run: RunRows, results: Results, rows: pl.DataFrame) -> dict[str, str]:
    same = ("model", "harness", "provider", "arguments", "mount", "edition", "scorer_version", "code_version", "commit")
    told = {name: ", ".join(map(str, rows[name].drop_nulls().unique().sort())) for name in same if name in rows.columns}
    told |= {"profile": results.profile.value, "run": str(run.path)}
    if run.record is not None:
        told |= {"prompts": run.record.prompts_digest}
        told |= {f"version/{name}": version for name, version in run.record.versions.items()}
    return {name: value for name, value in told.items() if value}


def _metrics(rows: pl.DataFrame, episodes: pl.DataFrame) -> Iterator[tuple[str, float]]:
    yield "rows", rows.height
    yield "errors", int(rows["failed"].sum())
    yield "episodes", episodes.height
    yield from _means("score", episodes, "score")
    for column, name in _MEANS.items():
        known = rows[column].drop_nulls() if column in rows.columns else pl.Series()
        if known.len():
            yield f"mean/{name}", float(known.sum()) / known.len()
    if "cost_usd" in rows.columns and not rows["cost_usd"].has_nulls():
        yield "cost_usd", float(rows["cost_usd"].sum())


def _means(what: str, frame: pl.DataFrame, value: str) -> Iterator[tuple[str, float]]:
    """Means with the ends of their intervals: of the headline, of its part in each domain, of each subtask."""
    counted = frame.filter("headline")
    for prefix, of, by in ((HEADLINE, counted, None), ("domain", counted, "domain"), ("subtask", frame, "sub_task")):
        if of.is_empty():
            continue
        for line in estimate_means(of, value, [by] if by else []).iter_rows(named=True):
            name = f"{what}/{prefix}/{line[by]}" if by else f"{what}/{prefix}"
            yield from ((f"{name}{end}", line[key]) for end, key in _ENDS if line[key] is not None)


_ENDS = (("", "mean"), ("_low", "low"), ("_high", "high"))


@contextmanager
def gathered(rows: pl.DataFrame, attach: Sequence[Path]) -> Generator[Path]:
    """A folder with `rows.csv`, the tables of the report as CSV in `tables`, and copies of what is attached.

    Raises
    ------
    InputError : something to attach is not there.
    """
    for path in attach:
        if not path.exists():
            raise InputError(f"--attach {path}: is not there; name a file or a folder, such as that of a report")
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_flat(rows, folder / "rows.csv", Flat.CSV)
        write_tables(report(rows).tables(), Format.CSV, folder / "tables")
        for path in attach:
            if path.is_dir():
                shutil.copytree(path, folder / path.resolve().name)
            else:
                shutil.copy(path, folder / path.name)
        yield folder


DATABASE = "mlflow.db"
_LONGEST = 6000
"""Characters that MLflow takes in a parameter."""


def export_mlflow(
    run: RunRows, out: Path, profile: Profile = Profile.CERTIFIED, attach: Sequence[Path] = ()
) -> list[str]:
    """Add a run to the store in a folder; one that is there grows, and nothing leaves this machine.

    The metrics and parameters are those of `Arm`; the files of `gathered` lie at the run of the folder.

    Returns
    -------
    The MLflow ids: of the run folder, then of each arm.

    Raises
    ------
    InputError : MLflow is not installed, or the folder cannot be made.
    """
    require_extra("mlflow")
    refuse_inside_edition(out)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read on import
    results = collect(run.rows, profile)
    arms = arms_of(run, results)
    make_folder(out)
    # MLflow is an extra, which type checkers need not have.
    client = cast("Any", import_module("mlflow.tracking")).MlflowClient(
        tracking_uri=f"sqlite:///{(out / DATABASE).absolute()}"
    )
    name = run.path.resolve().name
    known = client.get_experiment_by_name(name)
    experiment = (
        known.experiment_id
        if known is not None
        else client.create_experiment(name, artifact_location=(out / "artifacts").absolute().as_uri())
    )
    begun, ended = _times(run.rows)
    parent = client.create_run(experiment, start_time=begun, run_name=name).info.run_id
    with gathered(run.rows, attach) as folder:
        client.log_artifacts(parent, str(folder))
    ids = [parent]
    for arm in arms:
        rows = results.rows.filter(model=arm.model, harness=arm.harness, condition=arm.condition)
        ids.append(_log(client, experiment, parent, arm, _times(rows)))
    client.set_terminated(parent, end_time=ended)
    return ids


def _log(client: Any, experiment: str, parent: str, arm: Arm, times: tuple[int | None, int | None]) -> str:
    entities = cast("Any", import_module("mlflow.entities"))
    begun, ended = times
    tags = {"mlflow.parentRunId": parent}
    made: str = client.create_run(experiment, start_time=begun, tags=tags, run_name=arm.name).info.run_id
    client.log_batch(
        made,
        metrics=[entities.Metric(name, value, ended or 0, 0) for name, value in arm.metrics.items()],
        params=[entities.Param(name, value[:_LONGEST]) for name, value in arm.parameters.items()],
    )
    client.set_terminated(made, end_time=ended)
    return made


def _times(rows: pl.DataFrame) -> tuple[int | None, int | None]:
    """When the first episode began and the last was over, in milliseconds since 1970; None where nobody knows."""
    if "started" not in rows.columns or "ended" not in rows.columns:
        return None, None
    moments = (cast("datetime | None", rows["started"].min()), cast("datetime | None", rows["ended"].max()))
    begun, ended = (None if each is None else int(each.timestamp() * 1000) for each in moments)
    return begun, ended


def export_wandb(
    run: RunRows, out: Path, profile: Profile = Profile.CERTIFIED, attach: Sequence[Path] = ()
) -> list[Path]:
    """Write a run below `out` as offline runs; nothing leaves this machine.

    The metrics of `Arm` are the summary of its run, its parameters the configuration; the files of `gathered` lie at
    the first.

    Returns
    -------
    The folders of the offline runs, one for each arm.

    Raises
    ------
    InputError : Weights & Biases is not installed, or the folder cannot be made.
    """
    require_extra("wandb")
    refuse_inside_edition(out)
    arms = arms_of(run, collect(run.rows, profile))
    make_folder(out)
    wandb = cast("Any", import_module("wandb"))  # an extra, which type checkers need not have
    # Only what a run says of itself: no console, no figures of this machine, no code, no repository.
    settings = wandb.Settings(
        console="off", x_disable_stats=True, x_disable_meta=True, disable_git=True, disable_code=True, silent=True
    )
    folders: list[Path] = []
    with gathered(run.rows, attach) as files:
        for arm in arms:
            made = wandb.init(
                project="finskillbench",
                group=run.path.resolve().name,
                name=arm.name,
                job_type=arm.condition,
                config=dict(arm.parameters),
                dir=str(out.absolute()),
                mode="offline",
                reinit="create_new",
                settings=settings,
            )
            made.summary.update(dict(arm.metrics))
            if not folders:
                shutil.copytree(files, made.dir, dirs_exist_ok=True)
            made.finish()
            folders.append(Path(made.dir).parent)
    return folders
