"""How episodes ended, what went wrong in them, and what those without a verdict could change."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.coverage import LEAST, coverage
from finskillbench.analysis.inference.proportions import proportions
from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.common import every_subtask
from finskillbench.reports.tables.framed import CONDITION, HARNESS, MODEL, framed, of_contenders
from finskillbench.reports.tables.notes import notes

_WILSON = (
    "Shares have Wilson 95 % intervals, of as many episodes as would be as sure if none shared anything; repeats count."
)
_BOUNDS = (
    "Verdicts: rows that did not end in an error. Worst and best: the mean, had every row without a verdict scored 0, "
    f"or 1. Less than {100 * LEAST:.0f} % with a verdict is marked."
)
_GROUP = ("model", "harness", "condition")


def status_table(results: Results) -> Table:
    """How the rows of each model ended under each condition: counts and shares."""
    rows = of_contenders(results, every_subtask).rows
    statuses = rows["status"].unique(maintain_order=True).sort().to_list()
    lines = [
        proportions(rows.with_columns(_is=pl.col("status") == status), "_is", _GROUP).with_columns(
            status=pl.lit(status)
        )
        for status in statuses
    ]
    order = rows.select(_GROUP).unique(maintain_order=True).with_row_index("_place")
    frame = pl.concat(lines).filter(pl.col("successes") > 0).join(order, on=_GROUP, how="left")
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("status", "Status"),
        Column("successes", "Rows", Kind.COUNT),
        Column("trials", "Of", Kind.COUNT),
        Column("share", "Share", Kind.SHARE, interval=True),
    )
    frame = frame.sort("_place", "successes", descending=[False, True], maintain_order=True)
    return framed("status", "How episodes ended", frame, columns, (*notes(results, differences=False), _WILSON))


def incidents_table(results: Results) -> Table | None:
    """What went wrong, by model; None where the rows do not tell."""
    if "incidents" not in results.rows.columns:
        return None
    rows = of_contenders(results, every_subtask).rows.filter(pl.col("incidents").is_not_null())
    told = rows.select("model", "harness", pl.int_range(pl.len()).alias("_row"), incident="incidents").explode(
        "incident"
    )
    counted = (
        told.drop_nulls("incident")
        .group_by("model", "harness", "incident", maintain_order=True)
        .agg(incidents=pl.len(), rows=pl.col("_row").n_unique())
        .join(rows.group_by("model", "harness").agg(of=pl.len()), on=["model", "harness"], how="left")
        .with_columns(share=pl.col("rows") / pl.col("of"))
        .sort("model", "incidents", descending=[False, True], maintain_order=True)
    )
    if counted.is_empty():
        return None
    columns = (
        *(MODEL, HARNESS),
        Column("incident", "Incident"),
        Column("incidents", "Incidents", Kind.COUNT),
        Column("rows", "Rows", Kind.COUNT),
        Column("of", "Of", Kind.COUNT),
        Column("share", "Share of rows", Kind.SHARE),
    )
    return framed("incidents", "What went wrong", counted, columns, notes(results, differences=False))


def coverage_table(results: Results) -> Table:
    """The share of rows with a verdict, and the bounds of the mean that the others leave."""
    frame = coverage(of_contenders(results)).with_columns(
        covered=pl.when("enough").then(pl.lit("")).otherwise(pl.lit("too few"))
    )
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("rows", "Rows", Kind.COUNT),
        Column("verdicts", "Verdicts", Kind.COUNT),
        Column("share", "Share", Kind.SHARE),
        Column("mean", "Mean", Kind.SCORE),
        Column("worst", "Worst", Kind.SCORE),
        Column("best", "Best", Kind.SCORE),
        Column("covered", "Marked"),
    )
    title = "Episodes with a verdict, and what the others could change"
    return framed("coverage", title, frame, columns, (*notes(results, differences=False), _BOUNDS))
