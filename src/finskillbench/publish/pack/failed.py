"""Failure analysis: how episodes ended, causes of failure as far as they are known, and an example of each."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.errors import FinSkillBenchError
from finskillbench.harness.models import Entry, labels
from finskillbench.publish.pack.chapters import Chapter, captioned
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.tables.episodes.endings import failures_table, incidents_table, status_table
from finskillbench.reports.tables.framed import framed
from finskillbench.runs.afterwards.failures import failures_of

_ROWS = "all rows of the models under validation, repeats counted; unit"
_CAUSES = "First: rows in which it is the earliest cause. Applies: rows in which it is among the causes."


def failures_chapter(results: Results, runs: Sequence[RunRows], rows: pl.DataFrame) -> Chapter:
    """The endings, causes and examples of the models that are compared; `rows` are as the runs have them."""
    words = [
        "A row of status error is a failure of the provider or of the harness and carries no score. Every other ending "
        "is attributed to the agent and is scored. Causes are assigned by rule from the recorded trajectories; "
        "the appendix has an example of each."
    ]
    found: list[pl.DataFrame] = []
    for run in runs:
        if run.record is None or not run.has_trajectories:
            words.append(f"{run.path.name}: causes are not known; the run has no trajectories.")
            continue
        try:
            found.append(failures_of(run.path))
        except FinSkillBenchError as error:
            words.append(f"{run.path.name}: causes are not known ({error}).")
    tables = [
        *captioned(
            status_table(results),
            "Endings of episodes",
            f"{_ROWS}: rows, with Wilson 95 % intervals of the effective sample size",
        ),
        *captioned(incidents_table(results), "Incidents", f"{_ROWS}: incidents and rows"),
    ]
    examples: tuple[Table, ...] = ()
    if found:
        failures = pl.concat(found)
        own = _of_contenders(results, rows, failures)
        population = f"{own.height:,} rows of the models under validation without full marks; unit"
        shown = "finskillbench show RUN TASK --model M --condition C --run-idx REPEAT displays the trajectory."
        tables += captioned(failures_table(results, failures), "Causes of failure", f"{population}: rows", _CAUSES)
        examples = captioned(
            _examples(own), "An example of each cause of failure", f"{population}: score, 0 to 1", shown
        )
    return Chapter("failures", "Failure analysis", tuple(words), tables=tuple(tables), appendix=examples)


def _of_contenders(results: Results, rows: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """The failures of the models that are compared, under their names in tables."""
    entries = [Entry(*each) for each in rows.select("model", "arguments").unique(maintain_order=True).iter_rows()]
    names = {entry: name for entry, name in labels(entries).items() if name in contenders(results)}
    named = pl.DataFrame(
        [(entry.model, entry.arguments, name) for entry, name in names.items()],
        schema={"model": pl.String, "arguments": pl.String, "name": pl.String},
        orient="row",
    )
    return causes.join(named, on=["model", "arguments"], how="inner", maintain_order="left")


def _examples(causes: pl.DataFrame) -> Table:
    """The row with the lowest score of each cause, with what the rule found."""
    lowest = causes.sort("score", nulls_last=False, maintain_order=True).unique(
        "cause", keep="first", maintain_order=True
    )
    columns = (
        Column("cause", "Cause"),
        Column("model", "Model"),
        Column("condition", "Condition"),
        Column("task_id", "Task"),
        Column("run_idx", "Repeat", Kind.COUNT),
        Column("score", "Score", Kind.SCORE),
        Column("evidence", "Evidence"),
    )
    return framed("examples", "", lowest.with_columns(harness=pl.lit("")), columns, ())
