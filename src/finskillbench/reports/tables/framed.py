"""Tables of frames that the analysis has made already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, interval_names
from finskillbench.reports.tables.common import Scope, compared, headline_only

MODEL = Column("model", "Model")
HARNESS = Column("harness", "Harness")
CONDITION = Column("condition", "Condition")


def framed(name: str, title: str, frame: pl.DataFrame, columns: Sequence[Column], notes: Sequence[str]) -> Table:
    """A table of the columns of a frame that have these names.

    A column with intervals takes its ends from `NAME_low` and `NAME_high`, or where there are none from `low` and
    `high`. Of several harnesses there is a column; of one there is none.
    """
    shown = [column for column in columns if column.name != HARNESS.name or frame[HARNESS.name].n_unique() > 1]
    cells = [_cells(frame, column) for column in shown]
    return Table(name, title, tuple(shown), tuple(zip(*cells, strict=True)), tuple(notes))


def of_contenders(results: Results, scope: Scope = headline_only) -> Results:
    """The results of the models that tables compare, on the subtasks that a table counts."""
    rows, episodes = (compared(results, frame, scope) for frame in (results.rows, results.episodes))
    return replace(results, rows=rows, episodes=episodes)


def _cells(frame: pl.DataFrame, column: Column) -> list[Cell]:
    values = frame[column.name]
    if not column.interval:
        if column.kind is Kind.TEXT:
            return values.cast(pl.String).to_list()
        return values.cast(pl.Int64 if column.kind is Kind.COUNT else pl.Float64).to_list()
    _, *own = interval_names(column)
    low, high = (frame[name] for name in (own if own[0] in frame.columns else ("low", "high")))
    return [
        None if value is None else Estimate(value, *((None, None) if None in (below, above) else (below, above)))
        for value, below, above in zip(values.to_list(), low.to_list(), high.to_list(), strict=True)
    ]
