"""Read the rows of runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import polars as pl

from finskillbench.analysis.library import DISCOVERY, DISTRACTORS
from finskillbench.domains import suite_of, suites_named
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import package_names
from finskillbench.reports.release import read_release_rows
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.record import FILE, RunRecord, read_record
from finskillbench.runs.store.rows import ROWS, SCHEMA, from_frame, to_frame

_PARQUET = b"PAR1"
_ITEM = ("model", "harness", "arguments", "condition", "task_id", "run_idx", "edition")


@dataclass(frozen=True, slots=True)
class RunRows:
    """Rows of one run; `path` is as given, and `record` is None for a table without its run folder.

    `missing` counts requested episodes without a row.
    """

    path: Path
    rows: pl.DataFrame
    record: RunRecord | None = None
    missing: int = 0

    @property
    def sealed(self) -> bool:
        """True if every row has a digest, checked on reading."""
        return "digest" in self.rows.columns and not self.rows["digest"].has_nulls()

    @property
    def has_trajectories(self) -> bool:
        """True if `finskillbench show` can show its episodes."""
        return (self.path / "trajectories").is_dir()


def read_run_rows(path: Path) -> RunRows:
    """Read a run folder, a table of rows, or a file of published rows (`finskillbench.reports.release`).

    Raises
    ------
    InputError : none of these, a damaged file, or an altered row.
    """
    if path.is_file():
        return RunRows(path, _table(path) if _is_parquet(path) else read_release_rows(path))
    if not (path / FILE).is_file():
        raise InputError(f"{path}: neither a run folder (no {FILE}) nor a file; name the output of `finskillbench run`")
    record = read_record(path)
    if (path / ROWS).is_file():
        rows = _table(path / ROWS)
    else:
        found = read_history(path).rows
        rows = to_frame(found[item] for item in record.in_order(found))
    rows = _with_discovery(rows, record)
    return RunRows(path, rows, record, max(0, len(record.items()) - rows.height))


def _with_discovery(rows: pl.DataFrame, record: RunRecord) -> pl.DataFrame:
    """Add the columns of `finskillbench.analysis.library` that need the record of a run with libraries."""
    libraries = {name: mounted for name, mounted in record.mounts.items() if "library" in mounted}
    if not libraries:
        return rows
    found: list[tuple[str | None, int | None]] = []
    for condition, domain, turns, loaded in rows.select("condition", "domain", "turns", "skills_loaded").iter_rows():
        if condition not in libraries:
            found.append((None, None))
            continue
        listed, tokens = libraries[condition]["library"][domain], libraries[condition]["tokens"]
        public = f"{listed['public']} of {record.library}" if listed["public"] else "none public"
        irrelevant = [tokens.get(name, 0) for name in loaded if name not in package_names(domain)]
        found.append((f"{public}, {listed['generated']} generated", listed["listing_tokens"] * turns + sum(irrelevant)))
    added = pl.DataFrame(found, schema={DISTRACTORS: pl.String, DISCOVERY: pl.Int64}, orient="row")
    return pl.concat([rows, added], how="horizontal")


def read_runs(paths: Sequence[Path]) -> list[RunRows]:
    """Read several runs without duplicates.

    Raises
    ------
    InputError : as `read_run_rows`; or no run is named.
    """
    if not paths:
        raise InputError("no run was named; name run folders or files of rows")
    return [read_run_rows(path) for path in {path.resolve(): path for path in paths}.values()]


def filter_run(
    run: RunRows, models: Collection[str] = (), conditions: Collection[str] = (), suite: str | None = None
) -> RunRows:
    """Select models, conditions and one suite of a run; empty selects all.

    Raises
    ------
    InputError : an unknown model, condition or suite, or no rows left.
    """
    rows = run.rows
    for column, wanted in (("model", models), ("condition", conditions)):
        there = rows[column].unique(maintain_order=True).to_list()
        if unknown := [name for name in wanted if name not in there]:
            raise InputError(f"{run.path}: has no {column} {unknown[0]!r}; it holds {', '.join(there) or 'nothing'}")
        rows = rows.filter(pl.col(column).is_in(list(wanted))) if wanted else rows
    if suite is not None:
        wanted = suites_named(suite)
        rows = rows.filter(pl.col("sub_task").map_elements(lambda name: suite_of(name) in wanted, pl.Boolean))
        if rows.is_empty():
            raise InputError(f"{run.path}: has no episodes of the suite {suite}; use finskillbench run --suite {suite}")
    if rows.is_empty():
        raise InputError(f"{run.path}: no episode has finished; resume the run")
    return replace(run, rows=rows)


def join_runs(runs: Sequence[RunRows]) -> pl.DataFrame:
    """Join the rows of several runs in one table, for `finskillbench.report`.

    Duplicate rows are kept once; a row in error gives way to one without.

    Raises
    ------
    InputError : there are no rows, or two runs have different rows of one episode.
    """
    tables = [run.rows.with_columns(_run=pl.lit(str(run.path))) for run in runs if run.rows.height]
    if not tables:
        raise InputError(f"{', '.join(str(run.path) for run in runs)}: no episode has finished; run again first")
    try:
        rows = pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{tables[-1]['_run'][0]}: columns differ from those of the others ({error})") from None
    return _once(rows).drop("_run") if len(tables) > 1 else rows.drop("_run")


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    item = [name for name in _ITEM if name in rows.columns]
    if "status" not in rows.columns or "task_id" not in item:
        return rows
    ended = pl.col("status") != Status.ERROR.value
    kept = rows.filter(ended | ~ended.any().over(item))
    outcome = [name for name in ("status", "scores", "answer_digest") if name in rows.columns]
    several = kept.filter(pl.struct(outcome).n_unique().over(item) > 1, pl.col("_run").n_unique().over(item) > 1)
    if several.height:
        task, condition, one = several.select("task_id", "condition", "_run").row(0)
        other = several.filter(pl.col("task_id") == task, pl.col("condition") == condition, pl.col("_run") != one)
        raise InputError(
            f"{one} and {other['_run'][0]}: different rows of {task} under {condition}; "
            "report one of the two, or see finskillbench compare"
        )
    return kept.filter(pl.col("_run") == pl.col("_run").first().over(item))


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET)) == _PARQUET or path.suffix == ".parquet"
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _table(path: Path) -> pl.DataFrame:
    try:
        rows = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: not a table of rows ({error}); name the rows.parquet of a run") from None
    # Rows of another program, or of an earlier version, have no digests of ours; additional columns are allowed.
    if SCHEMA.items() <= rows.schema.items():
        try:
            from_frame(rows.select(*SCHEMA))
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: not a table of rows ({error}); name the rows.parquet of a run") from None
        except ValueError as error:
            raise InputError(f"{path}: {error}; update the run with finskillbench rescore") from None
    return rows
