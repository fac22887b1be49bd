"""Export a run as flat rows, to a local MLflow store, or as offline runs of Weights & Biases.

MLflow gets one experiment: a parent run for the folder and a child run for each model and condition. Weights & Biases
gets one run for each, grouped by folder, for `wandb sync`. Rows, tables and attachments are included.
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

import msgspec
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
from finskillbench.harness.conditions import parse_condition
from finskillbench.harness.models import ModelKey
from finskillbench.integrations import require_extra
from finskillbench.reports.formats import Format, write_tables
from finskillbench.reports.read import RunRows, filter_run, read_run_rows
from finskillbench.reports.report import report
from finskillbench.runs.store.record import FILE, RunRecord
from finskillbench.runs.store.rows import COLUMNS, ROWS, Row, RowColumn, from_frame
from finskillbench.runs.store.version import make_folder, write_atomic

_SEPARATOR = "_"


def read_arms(
    run: Path, out: Path, models: Sequence[str] = (), conditions: Sequence[str] = ()
) -> tuple[RunRecord, dict[tuple[ModelKey, str], list[Row]]]:
    """Read the rows of a run folder by model key and condition, for an export to `out`; empty selects all.

    Raises
    ------
    InputError : the folder is not a run, has no such model or condition, or `out` is inside an edition.
    """
    refuse_inside_edition(out)
    read = filter_run(read_run_rows(run), models, [parse_condition(name) for name in conditions])
    if read.record is None:
        raise InputError(f"{run}: not a run folder (no {FILE}); pass one that `finskillbench run` wrote")
    arms: dict[tuple[ModelKey, str], list[Row]] = {}
    try:
        for row in from_frame(read.rows):
            arms.setdefault((row.item.model_key, row.condition), []).append(row)
    except msgspec.ValidationError as error:
        raise InputError(f"{run / ROWS}: written by another version ({error}); run again with this version") from None
    return read.record, arms


class FlatFormat(StrEnum):
    """Formats of a flat file."""

    PARQUET = "parquet"
    CSV = "csv"


def flat_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with scalar columns: `scores` becomes `scores_paper` and so on, lists become JSON."""
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


def describe_columns(rows: pl.DataFrame) -> dict[str, RowColumn]:
    """Return unit and meaning of each column of `flat_rows(rows)`; both are empty where unknown."""
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


def write_flat(rows: pl.DataFrame, path: Path, form: FlatFormat) -> None:
    """Write flat rows; a Parquet file holds unit and meaning of each column in its metadata.

    Raises
    ------
    InputError : the file cannot be written, or is inside an edition.
    """
    refuse_inside_edition(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write")
    write_atomic(path, _WRITERS[form](rows))


def _csv(rows: pl.DataFrame) -> bytes:
    return csv_text(flat_rows(rows)).encode("utf-8", "surrogatepass")


def _parquet(rows: pl.DataFrame) -> bytes:
    # pyarrow has no type annotations.
    arrow, parquet = cast("Any", pa), cast("Any", pq)
    table = cast("Any", flat_rows(rows).to_arrow(compat_level=pl.CompatLevel.oldest()))
    meanings = describe_columns(rows)
    fields = [field.with_metadata(meanings[field.name].metadata()) for field in table.schema]
    buffer = io.BytesIO()
    parquet.write_table(table.cast(arrow.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


_WRITERS: Mapping[FlatFormat, Callable[[pl.DataFrame], bytes]] = {FlatFormat.CSV: _csv, FlatFormat.PARQUET: _parquet}


HEADLINE = "headline"
_MEANS = {
    "turns": "turns",
    "tool_calls": "tool_calls",
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "latency_seconds": "latency_seconds",
}


@dataclass(frozen=True, slots=True)
class TrackerRun:
    """Parameters and metrics of one model under one condition in one harness.

    `metrics` are finite numbers: `score/headline`, `score/domain/NAME`, `score/subtask/NAME`, the same below `gain/`,
    `rows`, `errors`, `episodes`, `mean/turns` and so on, and the total `cost_usd`. Gains are paired differences from
    the condition in the parameter `gain_over`. Interval limits end in `_low` and `_high`. Unknown values are left out.
    """

    model: str
    harness: str
    condition: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]

    @property
    def name(self) -> str:
        """Model, condition, and a harness other than our own."""
        suffix = "" if self.harness == "finskillbench" else f" ({self.harness})"
        return f"{self.model} {self.condition}{suffix}"


def tracker_runs(run: RunRows, results: Results) -> list[TrackerRun]:
    """Return one tracker run for each model, harness and condition, in the order of the rows."""
    keys = ["model", "harness", "condition"]
    found: list[TrackerRun] = []
    for model, harness, condition in results.rows.select(keys).unique(maintain_order=True).iter_rows():
        of_arm = (pl.col("model") == model) & (pl.col("harness") == harness)
        rows = results.rows.filter(of_arm, pl.col("condition") == condition)
        against = next((each for each in results.comparisons if each.treated == condition), None)
        parameters = {**_parameters(run, results, rows), "condition": condition}
        metrics = dict(_metrics(rows, results.episodes.filter(of_arm, pl.col("condition") == condition)))
        if against is not None:
            parameters["gain_over"] = against.reference
            metrics |= dict(_means("gain", pairs(results, against).filter(of_arm), "difference"))
        found.append(TrackerRun(model, harness, condition, parameters, metrics))
    return found


def _parameters(run: RunRows, results: Results, rows: pl.DataFrame) -> dict[str, str]:
    same = ("model", "harness", "provider", "arguments", "mount", "edition", "scorer_version", "code_version", "commit")
    parameters = {
        name: ", ".join(map(str, rows[name].drop_nulls().unique().sort())) for name in same if name in rows.columns
    }
    parameters |= {"profile": results.profile.value, "run": str(run.path)}
    if run.record is not None:
        parameters |= {"prompts": run.record.prompts_digest}
        parameters |= {f"version/{name}": version for name, version in run.record.versions.items()}
    return {name: value for name, value in parameters.items() if value}


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
    """Yield means and interval limits of the headline, each domain's part of it, and each subtask."""
    counted = frame.filter("headline")
    for prefix, of, by in ((HEADLINE, counted, None), ("domain", counted, "domain"), ("subtask", frame, "sub_task")):
        if of.is_empty():
            continue
        for line in estimate_means(of, value, [by] if by else []).iter_rows(named=True):
            name = f"{what}/{prefix}/{line[by]}" if by else f"{what}/{prefix}"
            yield from ((f"{name}{end}", line[key]) for end, key in _ENDS if line[key] is not None)


_ENDS = (("", "mean"), ("_low", "low"), ("_high", "high"))


@contextmanager
def collect_files(rows: pl.DataFrame, attach: Sequence[Path]) -> Generator[Path]:
    """Provide a folder with `rows.csv`, the report tables as CSV in `tables`, and copies of attachments.

    Raises
    ------
    InputError : an attachment does not exist.
    """
    for path in attach:
        if not path.exists():
            raise InputError(f"--attach {path}: does not exist; pass a file or a folder, such as a report")
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_flat(rows, folder / "rows.csv", FlatFormat.CSV)
        write_tables(report(rows).tables(), Format.CSV, folder / "tables")
        for path in attach:
            if path.is_dir():
                shutil.copytree(path, folder / path.resolve().name)
            else:
                shutil.copy(path, folder / path.name)
        yield folder


DATABASE = "mlflow.db"
_LONGEST = 6000
"""Characters that MLflow allows in a parameter."""


def export_mlflow(
    run: RunRows, out: Path, profile: Profile = Profile.CERTIFIED, attach: Sequence[Path] = ()
) -> list[str]:
    """Add a run to the local MLflow store in a folder, which may exist already; return the run ids, parent first.

    The files of `collect_files` belong to the parent run, metrics and parameters of each `TrackerRun` to a child.

    Raises
    ------
    InputError : MLflow is not installed, or the folder cannot be made.
    """
    require_extra("mlflow")
    refuse_inside_edition(out)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    results = collect(run.rows, profile)
    arms = tracker_runs(run, results)
    make_folder(out)
    # MLflow is an extra, which type checkers need not have.
    address = f"sqlite:///{(out / DATABASE).absolute()}"
    client = cast("Any", import_module("mlflow.tracking")).MlflowClient(tracking_uri=address)
    name = run.path.resolve().name
    known = client.get_experiment_by_name(name)
    experiment = (
        known.experiment_id
        if known is not None
        else client.create_experiment(name, artifact_location=(out / "artifacts").absolute().as_uri())
    )
    begun, ended = _times(run.rows)
    parent = client.create_run(experiment, start_time=begun, run_name=name).info.run_id
    with collect_files(run.rows, attach) as folder:
        client.log_artifacts(parent, str(folder))
    ids = [parent]
    for arm in arms:
        rows = results.rows.filter(model=arm.model, harness=arm.harness, condition=arm.condition)
        ids.append(_log(client, experiment, parent, arm, _times(rows)))
    client.set_terminated(parent, end_time=ended)
    return ids


def _log(client: Any, experiment: str, parent: str, arm: TrackerRun, times: tuple[int | None, int | None]) -> str:
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
    if "started" not in rows.columns or "ended" not in rows.columns:
        return None, None
    moments = (cast("datetime | None", rows["started"].min()), cast("datetime | None", rows["ended"].max()))
    begun, ended = (None if each is None else int(each.timestamp() * 1000) for each in moments)
    return begun, ended


def export_wandb(
    run: RunRows, out: Path, profile: Profile = Profile.CERTIFIED, attach: Sequence[Path] = ()
) -> list[Path]:
    """Write a run as offline runs of Weights & Biases below `out`; return their folders, one per `TrackerRun`.

    Metrics become the summary, parameters the configuration. The files of `collect_files` belong to the first run.

    Raises
    ------
    InputError : Weights & Biases is not installed, or the folder cannot be made.
    """
    require_extra("wandb")
    refuse_inside_edition(out)
    arms = tracker_runs(run, collect(run.rows, profile))
    make_folder(out)
    wandb = cast("Any", import_module("wandb"))  # an extra, which type checkers need not have
    # Export the run alone: no console, machine statistics, code or repository.
    settings = wandb.Settings(
        console="off", x_disable_stats=True, x_disable_meta=True, disable_git=True, disable_code=True, silent=True
    )
    folders: list[Path] = []
    with collect_files(run.rows, attach) as files:
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
