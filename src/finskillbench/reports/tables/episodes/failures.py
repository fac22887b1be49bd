"""Why episodes failed, by the rules that read their trajectories."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.harness.entries import Entry, labels
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.tables.framed import CONDITION, MODEL, framed
from finskillbench.reports.tables.notes import notes
from finskillbench.runs.afterwards.failures import meaning
from finskillbench.runs.afterwards.failures.counts import count_causes

_NOTE = (
    "Of episodes without full marks. First: it is the cause to be mended first; applies: it is among the causes. "
    "`finskillbench failures RUN` has examples of each."
)


def failures_table(results: Results, failures: pl.DataFrame) -> Table | None:
    """How often each cause is the first and how often it applies; None where no episode of the models failed.

    Parameters
    ----------
    results : of the same runs. failures : as from `finskillbench.runs.afterwards.failures.failures_of`.
    """
    counted = count_causes(failures)
    entries = [Entry(*each) for each in counted.select("model", "arguments").iter_rows()]
    # A model may be told by its arguments in the results, where other entries of it were run.
    rows = results.rows.select("model", "arguments").unique()
    known = {arguments: [name for name, own in rows.iter_rows() if own == arguments] for arguments in rows["arguments"]}
    named = [_label(entry, known.get(entry.arguments, []), labels(entries)[entry]) for entry in entries]
    frame = counted.with_columns(
        pl.Series("model", named, pl.String),
        meaning=pl.Series([meaning(cause) for cause in counted["cause"]], dtype=pl.String),
    ).filter(pl.col("model").is_in(contenders(results)))
    if frame.is_empty():
        return None
    columns = (
        *(MODEL, CONDITION),
        Column("cause", "Cause"),
        Column("primary", "First", Kind.COUNT),
        Column("applies", "Applies", Kind.COUNT),
        Column("meaning", "Meaning"),
    )
    return framed("failures", "Why episodes failed", frame, columns, (*notes(results, differences=False), _NOTE))


def _label(entry: Entry, names: list[str], otherwise: str) -> str:
    """What the results call an entry."""
    return next((name for name in names if name == entry.model or name.startswith(f"{entry.model} ")), otherwise)
