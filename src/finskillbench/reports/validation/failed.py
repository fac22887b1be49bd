"""How episodes ended, why they failed as far as that is known, and examples that can be looked at."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.errors import FinSkillBenchError
from finskillbench.harness.entries import Entry, labels
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.tables.episodes.endings import coverage_table, incidents_table, status_table
from finskillbench.reports.tables.episodes.failures import failures_table
from finskillbench.reports.validation.chapters import Chapter, present
from finskillbench.runs.afterwards.failures import failures_of

_EXAMPLES = 2
"""Of each way to fail."""


def failures_chapter(results: Results, runs: Sequence[RunRows], rows: pl.DataFrame) -> Chapter:
    """The endings, causes and examples of the models that are compared; `rows` are as the runs have them."""
    words = [
        "A row of status error is a failure of the provider or the harness and no score; every other ending is the "
        "agent's own and counts."
    ]
    found: list[pl.DataFrame] = []
    for run in runs:
        if run.record is None or not run.has_trajectories:
            words.append(f"{run.path.name}: causes are not known, since it has no trajectories.")
            continue
        try:
            found.append(failures_of(run.path))
        except FinSkillBenchError as error:
            words.append(f"{run.path.name}: causes are not known ({error}).")
    tables = [coverage_table(results), status_table(results), incidents_table(results)]
    if found:
        failures = pl.concat(found)
        tables += [failures_table(results, failures), _examples(_of_contenders(results, rows, failures), runs)]
    return Chapter("failures", "Failures by cause, with examples", tuple(words), tables=present(*tables))


def _of_contenders(results: Results, rows: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """The failures of the models that are compared, under what tables call these."""
    entries = [Entry(*each) for each in rows.select("model", "arguments").unique(maintain_order=True).iter_rows()]
    names = {entry: name for entry, name in labels(entries).items() if name in contenders(results)}
    named = pl.DataFrame(
        [(entry.model, entry.arguments, name) for entry, name in names.items()],
        schema={"model": pl.String, "arguments": pl.String, "name": pl.String},
        orient="row",
    )
    return causes.join(named, on=["model", "arguments"], how="inner", maintain_order="left")


def _examples(causes: pl.DataFrame, runs: Sequence[RunRows]) -> Table:
    """The worst of each cause with what the rule saw, and the command that shows it."""
    chosen = causes.sort("score", nulls_last=False, maintain_order=True).group_by("cause", maintain_order=True)
    folders = {task: run for run in runs if run.has_trajectories for task in run.rows["task_id"].unique()}
    rows: list[tuple[Cell, ...]] = [
        (row["cause"], row["sub_task"], row["score"], row["evidence"], _show(folders[row["task_id"]], row))
        for row in chosen.head(_EXAMPLES).iter_rows(named=True)
    ]
    columns = (
        Column("cause", "Cause"),
        Column("sub_task", "Subtask"),
        Column("score", "Score", Kind.SCORE),
        Column("evidence", "What was seen"),
        Column("show", "Shown by"),
    )
    return Table("examples", "Examples of each cause", columns, tuple(rows))


def _show(run: RunRows, row: Mapping[str, object]) -> str:
    chosen = ("--model", str(row["model"]), "--condition", str(row["condition"]), "--run-idx", str(row["run_idx"]))
    return shlex.join(("finskillbench", "show", run.path.name, str(row["task_id"]), *chosen))
