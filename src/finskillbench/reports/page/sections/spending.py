"""Figures of cost against score, resources per episode, and score within a budget."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from finskillbench.analysis.repeats import GROUP, SpendingMeasure, score_within
from finskillbench.analysis.results import distinct_values
from finskillbench.reports.figures.bars import draw_marks
from finskillbench.reports.figures.forest import Curve, Figure, Panel, draw_panels
from finskillbench.reports.figures.scatter import Dot, Plane, draw_scatter
from finskillbench.reports.page.headline import MeanEstimate, estimates
from finskillbench.reports.page.view import View
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of
from finskillbench.reports.tables.common import available_marks, mark_means

_QUANTITIES = {
    "total_output_tokens": ("output_tokens", "Output tokens per episode, headline", "mean output tokens per episode"),
    "turns": ("turns", "Turns per episode, headline", "mean turns per episode"),
    "latency_seconds": ("seconds", "Seconds per episode, headline", "mean seconds per episode"),
}


def spending_figures(view: View) -> Iterator[Figure]:
    """Yield the figures of the section; none for programs, which cost nothing."""
    if view.only_programs:
        return
    means = estimates(view.episodes.filter(pl.col("headline")), ["entry", "condition"], "score")
    yield cost_and_score(view, means)
    for column, (name, title, axis) in _QUANTITIES.items():
        if column in view.rows.columns:
            yield _quantity(view, column, name, title, axis)


def cost_and_score(view: View, means: dict[str, MeanEstimate]) -> Figure:
    """Draw the mean headline score against the mean price of an episode, or output tokens without prices."""
    rows = view.rows.filter(pl.col("headline") & pl.col("entry").is_in(view.entries) & ~pl.col("failed"))
    priced = "cost_usd" in rows.columns and bool((rows["cost_usd"].drop_nulls() > 0).any())
    column = "cost_usd" if priced else "total_output_tokens"
    unit = "US dollars" if priced else "output tokens"
    points, unpriced = _priced_points(rows, column, means)
    frontier = _frontier([(amount, found.mean.value) for _, _, amount, found in points])
    on = set(frontier)
    named = view.main.treated if view.main else view.conditions[0]
    dots = [
        Dot(
            amount,
            found.mean.value,
            view.series.index(condition),
            entry.split("/")[-1] if condition == named and entry in view.drawn else "",
            f"{entry}, {condition}: {found.mean.value:.3f} for {amount:,.4g} {unit}",
            found.mean.low,
            found.mean.high,
        )
        for entry, condition, amount, found in points
    ]
    amounts = [dot.x for dot in dots] or [1.0]
    ends = (min(amounts) / 1.6, max(amounts) * 1.9)
    steps = [each for one, other in itertools.pairwise(frontier) for each in (one, (other[0], one[1]))]
    if frontier:
        steps += [frontier[-1], (ends[1], frontier[-1][1])]
    plane = Plane(
        f"mean {unit} per episode (logarithmic)",
        "mean score (headline)",
        ends,
        (0.0, 1.02),
        log=True,
        levels=_levels(view),
        bound=steps if len(steps) > 1 else (),
        series=view.series,
    )
    columns = (
        *columns_of(Kind.TEXT, model="Model", condition="Condition"),
        Column("spent", f"Mean {unit}", Kind.NUMBER, digits=4 if priced else 0),
        Column("score", "Mean score", Kind.SCORE, interval=True),
        Column("frontier", "On the frontier"),
    )
    cells: list[tuple[Cell, ...]] = [
        (entry, condition, amount, found.mean, "yes" if (amount, found.mean.value) in on else "no")
        for entry, condition, amount, found in points
    ]
    notes = [view.population(rows, view.entries)]
    notes += [f"The cost of {each} is unknown." for each in unpriced[:5]]
    if not priced:
        notes.append("No prices are known; output tokens are shown instead.")
    notes.append("A point is on the frontier if no other has a higher score at the same or a lower cost.")
    table = Table("cost_and_score", f"Cost and score, in {unit}", columns, tuple(cells), tuple(notes))
    best = [f"{entry} under {condition}" for entry, condition, *_, flag in cells if flag == "yes"]
    description = f"{len(dots)} points of model and condition. On the frontier: {', '.join(map(str, best)) or 'none'}."
    return Figure(table, description, partial(draw_scatter, dots, plane))


def _priced_points(
    rows: pl.DataFrame, column: str, means: dict[str, MeanEstimate]
) -> tuple[list[tuple[str, str, float, MeanEstimate]], list[str]]:
    """Return model, condition, mean amount and mean score of each pair, and the pairs whose amount is unknown."""
    # A mean over the episodes with known prices only would be biased.
    spent = rows.group_by("entry", "condition", maintain_order=True).agg(
        pl.when(pl.col(column).is_null().any()).then(None).otherwise(pl.col(column).mean()).alias("spent")
    )
    points: list[tuple[str, str, float, MeanEstimate]] = []
    unpriced: list[str] = []
    for entry, condition, amount in spent.iter_rows():
        found = means.get(f"{entry}\n{condition}")
        if found is None:
            continue
        if amount is None or amount <= 0:
            unpriced.append(f"{entry} under {condition}")
        else:
            points.append((entry, condition, amount, found))
    return points, unpriced


def _levels(view: View) -> list[tuple[float, str]]:
    """Return mean scores of programs as level lines."""
    found = list[tuple[float, str]]()
    for mark in available_marks(view.results) if view.programs else ():
        value = mark_means(view.results, mark, ()).get(())
        if value is not None:
            found.append((value, f"{mark.title}: {mark.model}, {mark.condition}"))
    return found


def _frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for amount, score in sorted(points, key=lambda one: (one[0], -one[1])):
        if not found or score > found[-1][1]:
            found.append((amount, score))
    return found


def _quantity(view: View, column: str, name: str, title: str, axis: str) -> Figure:
    rows = view.rows.filter(pl.col("headline") & pl.col("entry").is_in(view.entries) & ~pl.col("failed"))
    grouped = rows.group_by("entry", "condition").agg(
        mean=pl.col(column).mean(), half=pl.col(column).median(), most=pl.col(column).max(), rows=pl.col(column).count()
    )
    found = {(entry, condition): rest for entry, condition, *rest in grouped.iter_rows()}
    means = {pair: mean for pair, (mean, *_) in found.items()}
    lines = [(entry, [means.get((entry, condition)) for condition in view.series]) for entry in view.drawn]
    values = [value for _, each in lines for value in each if value is not None]
    log = bool(values) and min(values) > 0 and max(values) / min(values) > 8
    columns = (
        *columns_of(Kind.TEXT, model="Model", condition="Condition"),
        *columns_of(Kind.NUMBER, digits=1, mean="Mean", median="Median", most="Most"),
        Column("rows", "Rows", Kind.COUNT),
    )
    cells = tuple(
        (entry, condition, *found[entry, condition])
        for entry in view.entries
        for condition in view.series
        if (entry, condition) in found
    )
    unknown = rows[column].null_count()
    left = (f"{unknown} of {rows.height} rows do not report it and are left out.",) if unknown else ()
    notes = (view.population(rows, view.entries), *view.drawn_footnotes, *left)
    table = Table(name, title, columns, cells, notes)
    spread = f"from {min(values):,.4g} to {max(values):,.4g}" if values else "without known values"
    description = f"{axis[0].upper()}{axis[1:]} for each model ({len(lines)}), a mark for each condition, {spread}."
    axis = f"{axis}{' (logarithmic)' if log else ''}"
    return Figure(table, description, partial(draw_marks, lines, view.series, axis, log=log))


_MEASURES = {
    SpendingMeasure.TOKENS: ("budget_tokens", "Output tokens", "output tokens", 0),
    SpendingMeasure.TURNS: ("budget_turns", "Turns", "turns", 0),
    SpendingMeasure.SECONDS: ("budget_seconds", "Seconds", "seconds", 2),
    SpendingMeasure.DOLLARS: ("budget_dollars", "US dollars", "US dollars", 4),
}
_POINTS = 16
_FOOTNOTE = "At each budget: the mean score over all episodes, with 0 for submissions over the budget."


def budget_figures(view: View) -> Iterator[Figure]:
    """Draw score within a budget for each quantity spent; none for programs."""
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
    """Return budgets evenly spaced in logarithm between the 1st and 99th percentile of spending."""
    known = spent.filter(spent > 0).cast(pl.Float64)
    low, high = known.quantile(0.01, "lower"), known.quantile(0.99, "higher")
    assert low is not None  # something was spent
    assert high is not None
    if low == high:
        return [low]
    budgets = [low * (high / low) ** (place / (_POINTS - 1)) for place in range(_POINTS)]
    return sorted({float(round(each)) for each in budgets}) if spent.dtype.is_integer() else budgets


def _figure(view: View, measure: SpendingMeasure, rows: pl.DataFrame, budgets: Sequence[float]) -> Figure:
    name, title, unit, digits = _MEASURES[measure]
    lines = score_within(replace(view.results, rows=rows), measure, budgets)
    lines = lines.join(rows.select(*GROUP, "entry").unique(), on=GROUP, how="left", maintain_order="left")
    panels: list[Panel] = []
    for entry in distinct_values(lines, "entry"):
        of_entry = lines.filter(pl.col("entry") == entry)
        curves: list[Curve] = []
        for series, condition in enumerate(view.series):
            points = of_entry.filter(pl.col("condition") == condition, pl.col("mean").is_not_null()).sort("budget")
            if points.height:
                line = list(zip(points["budget"].to_list(), points["mean"].to_list(), strict=True))
                curves.append(Curve(series, line, points["low"].to_list(), points["high"].to_list()))
        panels.append((entry, curves))
    columns = (
        *columns_of(Kind.TEXT, model="Model", condition="Condition"),
        Column("budget", f"Budget ({unit})", Kind.NUMBER, digits=digits),
        Column("score", "Score within budget", Kind.SCORE, interval=True),
    )
    cells: list[tuple[Cell, ...]] = [
        (line["entry"], line["condition"], line["budget"], Estimate(line["mean"], line["low"], line["high"]))
        for line in lines.iter_rows(named=True)
        if line["mean"] is not None
    ]
    notes = (view.population(rows, view.drawn), _FOOTNOTE)
    table = Table(name, title, columns, tuple(cells), notes)
    description = (
        f"A panel for each model ({len(panels)}): the mean score within a budget of {unit}, a line for each "
        f"condition, for budgets from {min(budgets):,.4g} to {max(budgets):,.4g}."
    )
    axis = f"budget of {unit} per episode (logarithmic)"
    return Figure(table, description, partial(draw_panels, panels, view.series, axis, log=True))
