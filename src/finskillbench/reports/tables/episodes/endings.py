"""Tables of statuses, incidents, verdict coverage, causes of failure, traps and signed cases."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.inference import proportions
from finskillbench.analysis.results import LEAST, Results, verdict_coverage
from finskillbench.harness.models import ModelKey, labels
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Column, Kind, Table, columns_of
from finskillbench.runs.postprocess.failures import meaning
from finskillbench.runs.postprocess.failures.counts import count_causes

_WILSON = (
    "Shares have Wilson 95 % intervals, over the effective number of episodes given what they share; repeats count."
)
_BOUNDS = (
    "Verdicts: rows that did not end in an error. Worst and best: the mean if every row without a verdict scored 0 "
    f"or 1. Less than {100 * LEAST:.0f} % with a verdict is marked."
)
_GROUP = ("model", "harness", "condition")


def status_table(results: Results) -> Table:
    """Tabulate row counts and shares by status, model and condition."""
    rows = common.without_baselines(results, common.every_subtask).rows
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
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("status", "Status"),
        *columns_of(Kind.COUNT, successes="Rows", trials="Of"),
        Column("share", "Share", Kind.SHARE, interval=True),
    )
    frame = frame.sort("_place", "successes", descending=[False, True], maintain_order=True)
    footnotes = (*common.notes(results, differences=False), _WILSON)
    return common.table_from_frame("status", "Status of episodes", frame, columns, footnotes)


def incidents_table(results: Results) -> Table | None:
    """Tabulate incidents by model; None if the rows have none."""
    if "incidents" not in results.rows.columns:
        return None
    rows = common.without_baselines(results, common.every_subtask).rows.filter(pl.col("incidents").is_not_null())
    numbered = rows.select("model", "harness", pl.int_range(pl.len()).alias("_row"), incident="incidents")
    incidents = numbered.explode("incident")
    counted = (
        incidents.drop_nulls("incident")
        .group_by("model", "harness", "incident", maintain_order=True)
        .agg(incidents=pl.len(), rows=pl.col("_row").n_unique())
        .join(rows.group_by("model", "harness").agg(of=pl.len()), on=["model", "harness"], how="left")
        .with_columns(share=pl.col("rows") / pl.col("of"))
        .sort("model", "incidents", descending=[False, True], maintain_order=True)
    )
    if counted.is_empty():
        return None
    columns = (
        *(common.MODEL, common.HARNESS),
        Column("incident", "Incident"),
        *columns_of(Kind.COUNT, incidents="Incidents", rows="Rows", of="Of"),
        Column("share", "Share of rows", Kind.SHARE),
    )
    return common.table_from_frame("incidents", "Incidents", counted, columns, common.notes(results, differences=False))


def coverage_table(results: Results) -> Table:
    """Tabulate the share of rows with a verdict, and bounds of the mean."""
    frame = verdict_coverage(common.without_baselines(results)).with_columns(
        covered=pl.when("enough").then(pl.lit("")).otherwise(pl.lit("too few"))
    )
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        *columns_of(Kind.COUNT, rows="Rows", verdicts="Verdicts"),
        Column("share", "Share", Kind.SHARE),
        *columns_of(Kind.SCORE, mean="Mean", worst="Worst", best="Best"),
        Column("covered", "Marked"),
    )
    title = "Verdict coverage and bounds of the mean"
    return common.table_from_frame(
        "coverage", title, frame, columns, (*common.notes(results, differences=False), _BOUNDS)
    )


_FOOTNOTE = (
    "Episodes without full marks. First: the primary cause; applies: one of the causes. "
    "`finskillbench failures RUN` shows examples of each."
)


def failures_table(results: Results, failures: pl.DataFrame) -> Table | None:
    """Tabulate how often each cause is the primary one and how often it applies; None without failures.

    `failures` is the result of `finskillbench.runs.postprocess.failures.failures_of` for the same runs.
    """
    counted = count_causes(failures)
    entries = [ModelKey(*each) for each in counted.select("model", "arguments").iter_rows()]
    # Results name a model with its arguments if it has several entries.
    rows = results.rows.select("model", "arguments").unique()
    known = {
        arguments: [name for name, other in rows.iter_rows() if other == arguments] for arguments in rows["arguments"]
    }
    named = [_label(entry, known.get(entry.arguments, []), labels(entries)[entry]) for entry in entries]
    frame = counted.with_columns(
        pl.Series("model", named, pl.String),
        meaning=pl.Series([meaning(cause) for cause in counted["cause"]], dtype=pl.String),
    ).filter(pl.col("model").is_in(common.hosted_models(results)))
    if frame.is_empty():
        return None
    columns = (
        *(common.MODEL, common.CONDITION),
        Column("cause", "Cause"),
        *columns_of(Kind.COUNT, primary="First", applies="Applies"),
        Column("meaning", "Meaning"),
    )
    footnotes = (*common.notes(results, differences=False), _FOOTNOTE)
    return common.table_from_frame("failures", "Causes of failure", frame, columns, footnotes)


def _label(entry: ModelKey, names: list[str], otherwise: str) -> str:
    """Return the name of an entry in the results."""
    return next((name for name in names if name == entry.model or name.startswith(f"{entry.model} ")), otherwise)


_TRAPS = (
    "A trap is a mistake that a case invites; places are the traps and controls of all cases. Avoided: the answer does "
    "not contain the mistake; fallen: it does; the remaining answers did not test it."
)
_SIGNED = "Signed: every part of the case is right, so that a professional could sign it."


def traps_table(results: Results) -> Table | None:
    """Tabulate avoided traps by kind, model and condition; None if no row has traps."""
    if "traps" not in results.rows.columns:
        return None
    rows = common.without_baselines(results, common.every_subtask).rows
    traps = rows.select(*_GROUP, "sub_task", "traps").explode("traps").drop_nulls()
    if traps.is_empty():
        return None
    name, outcome = (pl.col("traps").str.split("=").list.get(place) for place in (0, -1))
    frame = (
        traps.with_columns(kind=name.str.split("@").list.first(), came_of=outcome)
        .group_by(*_GROUP, "sub_task", "kind", maintain_order=True)
        .agg(
            places=pl.len(),
            avoided=(pl.col("came_of") == "avoided").mean(),
            fallen=(pl.col("came_of") == "fallen").mean(),
        )
        .sort(*_GROUP, "sub_task", "kind")
    )
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("sub_task", "Subtask"),
        Column("kind", "Trap"),
        Column("places", "Places", Kind.COUNT),
        *columns_of(Kind.SHARE, avoided="Avoided", fallen="Fallen"),
    )
    return common.table_from_frame(
        "traps", "Traps avoided", frame, columns, (*common.notes(results, differences=False), _TRAPS)
    )


def signed_table(results: Results) -> Table | None:
    """Tabulate the share of cases that could be signed, by model and condition; None without cases with parts."""
    if "signed" not in results.rows.columns:
        return None
    rows = common.without_baselines(results, common.every_subtask).rows.filter(pl.col("signed").is_not_null())
    if rows.is_empty():
        return None
    frame = proportions(rows, "signed", [*_GROUP, "sub_task"])
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("sub_task", "Subtask"),
        *columns_of(Kind.COUNT, successes="Signed", trials="Of"),
        Column("share", "Share", Kind.SHARE, interval=True),
    )
    return common.table_from_frame(
        "signed", "Cases signed", frame, columns, (*common.notes(results, differences=False), _SIGNED)
    )
