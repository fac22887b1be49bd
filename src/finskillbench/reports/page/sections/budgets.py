"""Score within a budget: S(B) of output tokens, turns, seconds and dollars, a panel for each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from finskillbench.analysis.budgets import GROUP, Measure, score_within
from finskillbench.analysis.results import distinct
from finskillbench.reports.figures.base import Figure
from finskillbench.reports.figures.curves import Curve, draw_panels
from finskillbench.reports.page.view import View
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table

_MEASURES = {
    Measure.TOKENS: ("budget_tokens", "Output tokens", "output tokens", 0),
    Measure.TURNS: ("budget_turns", "Turns", "turns", 0),
    Measure.SECONDS: ("budget_seconds", "Seconds", "seconds", 2),
    Measure.DOLLARS: ("budget_dollars", "US dollars", "US dollars", 4),
}
_POINTS = 16
_NOTE = (
    "At each budget: the mean over all episodes of the score where the submission came within it, and of 0 elsewhere."
)


def budget_figures(view: View) -> Iterator[Figure]:
    """A figure for each quantity that is known and was spent; none of programs, which have no budget."""
    if view.only_programs:
        return
    rows = view.rows.filter(pl.col("headline") & pl.col("entry").is_in(view.drawn))
    for measure in _MEASURES:
        if measure.value not in rows.columns:
            continue
        spent = rows.filter(pl.col("score").is_not_null())[measure.value].drop_nulls()
        if not spent.is_empty() and spent.quantile(0.99, "higher"):
            yield _figure(view, measure, rows, _budgets(spent))


def _budgets(spent: pl.Series) -> list[float]:
    """Budgets evenly in their logarithm over what all but a hundredth at either end have spent."""
    known = spent.filter(spent > 0).cast(pl.Float64)
    low, high = known.quantile(0.01, "lower"), known.quantile(0.99, "higher")
    assert low is not None  # something was spent
    assert high is not None
    if low == high:
        return [low]
    budgets = [low * (high / low) ** (place / (_POINTS - 1)) for place in range(_POINTS)]
    return sorted({float(round(each)) for each in budgets}) if spent.dtype.is_integer() else budgets


def _figure(view: View, measure: Measure, rows: pl.DataFrame, budgets: Sequence[float]) -> Figure:
    name, title, unit, digits = _MEASURES[measure]
    lines = score_within(replace(view.results, rows=rows), measure, budgets)
    lines = lines.join(rows.select(*GROUP, "entry").unique(), on=GROUP, how="left", maintain_order="left")
    panels: list[tuple[str, Sequence[Curve]]] = []
    for entry in distinct(lines, "entry"):
        of_entry = lines.filter(pl.col("entry") == entry)
        curves: list[Curve] = []
        for series, condition in enumerate(view.series):
            points = of_entry.filter(pl.col("condition") == condition, pl.col("mean").is_not_null()).sort("budget")
            if points.height:
                line = list(zip(points["budget"].to_list(), points["mean"].to_list(), strict=True))
                curves.append(Curve(series, line, points["low"].to_list(), points["high"].to_list()))
        panels.append((entry, curves))
    columns = (
        Column("model", "Model"),
        Column("condition", "Condition"),
        Column("budget", f"Budget ({unit})", Kind.NUMBER, digits=digits),
        Column("score", "Score within it", Kind.SCORE, interval=True),
    )
    cells: list[tuple[Cell, ...]] = [
        (line["entry"], line["condition"], line["budget"], Estimate(line["mean"], line["low"], line["high"]))
        for line in lines.iter_rows(named=True)
        if line["mean"] is not None
    ]
    notes = (view.population(rows, view.drawn), _NOTE)
    table = Table(name, title, columns, tuple(cells), notes)
    words = (
        f"A panel for each model ({len(panels)}): the mean score within a budget of {unit}, a line for each "
        f"condition, for budgets from {min(budgets):,.4g} to {max(budgets):,.4g}."
    )
    axis = f"budget of {unit} of an episode (logarithmic)"
    return Figure(table, words, partial(draw_panels, panels, view.series, axis, log=True))
