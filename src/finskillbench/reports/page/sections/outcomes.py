"""Figures of episode outcomes, repeats, and the heat map by model and subtask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import passes
from finskillbench.analysis.results import EPISODE, distinct_values
from finskillbench.episode import Status
from finskillbench.reports.figures.bars import draw_heat, draw_shares
from finskillbench.reports.figures.forest import Curve, Figure, Panel, draw_panels
from finskillbench.reports.page.view import View, column_name
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of

_MOST = 7
"""Kinds with their own colour; the others are pooled."""
_NONE = "none"


def outcome_figures(view: View, causes: pl.DataFrame) -> Iterator[Figure]:
    """Draw status, incidents, and causes of failure if any (columns entry, condition, cause)."""
    rows = view.rows.filter(pl.col("entry").is_in(view.entries))
    order = [each.value for each in Status]
    yield _bars(view, rows.select("entry", "condition", kind="status"), order, "status", "Status of episodes")
    if "incidents" in rows.columns:
        met = rows.select("entry", "condition", kind=pl.col("incidents").list.first().fill_null(_NONE))
        if met["kind"].n_unique() > 1:
            counts = met.filter(pl.col("kind") != _NONE)["kind"].value_counts(sort=True)
            footnote = "A row counts once, by its first incident; the list of episodes has all."
            yield _bars(view, met, [_NONE, *counts["kind"]], "incidents", "Incidents", footnote)
    found = causes.filter(pl.col("entry").is_in(view.entries)).select("entry", "condition", kind="cause")
    if not found.is_empty():
        order = found["kind"].value_counts(sort=True)["kind"].to_list()
        footnote = "Causes are classified by rules from trajectories."
        yield _bars(view, found, order, "causes", "Causes of failure", footnote)


def _bars(view: View, rows: pl.DataFrame, order: Sequence[str], name: str, title: str, footnote: str = "") -> Figure:
    kinds = [kind for kind in order if kind in set(distinct_values(rows, "kind"))]
    most = len(kinds) if len(kinds) <= _MOST + 1 else _MOST
    counted = rows.group_by("entry", "condition", "kind").len()
    counts = Counter({(entry, condition, kind): number for entry, condition, kind, number in counted.iter_rows()})
    pairs = {
        (entry, condition): [counts[entry, condition, kind] for kind in kinds]
        for entry in view.entries
        for condition in view.series
    }
    pairs = {pair: numbers for pair, numbers in pairs.items() if any(numbers)}
    bars = [
        (f"{entry} · {condition}", [*numbers[:most], *([sum(numbers[most:])] if most < len(kinds) else [])])
        for (entry, condition), numbers in pairs.items()
        if entry in view.drawn
    ]
    series = [*kinds[:most], *(["other"] if most < len(kinds) else [])]
    columns = (
        *columns_of(Kind.TEXT, model="Model", condition="Condition"),
        *(Column(column_name(kind), kind, Kind.COUNT) for kind in kinds),
    )
    cells: list[tuple[Cell, ...]] = [(*pair, *numbers) for pair, numbers in pairs.items()]
    notes = [view.population(view.rows, view.entries), footnote, *view.drawn_footnotes]
    table = Table(name, title, columns, tuple(cells), tuple(filter(None, notes)))
    whole = rows["kind"].value_counts(sort=True)
    parts = [f"{kind} {number:,}" for kind, number in whole.iter_rows()]
    description = f"Stacked bars for {len(bars)} pairs of model and condition. In all: {', '.join(parts)}."
    return Figure(table, description, partial(draw_shares, bars, series, "rows"))


_MOST_REPEATS = 8
_COLUMNS = (
    *columns_of(Kind.TEXT, model="Model", condition="Condition"),
    Column("k", "k", Kind.COUNT),
    *columns_of(Kind.SCORE, interval=True, pass_hat="pass^k: all k", pass_at="pass@k: at least one"),
)


def repeat_figures(view: View) -> Iterator[Figure]:
    """Draw pass^k if every model and condition repeated some episode; else nothing."""
    runs = view.rows.group_by(EPISODE).len().group_by("model", "condition").agg(pl.col("len").max())
    most = min([*runs["len"].to_list(), _MOST_REPEATS])
    if most < 2:
        return
    found: dict[tuple[str, str, int], list[Estimate | None]] = {}
    entries = view.rows.select("model", "harness", "entry").unique()
    for k in range(1, most + 1):
        chances = passes(view.results, k).filter("headline").join(entries, on=["model", "harness"], how="left")
        for value in ("pass_hat", "pass_at"):
            lines = estimate_means(chances, value, ["entry", "condition"], bounds=(0.0, 1.0))
            estimates = lines.select("entry", "condition", "mean", "low", "high").iter_rows()
            for entry, condition, mean, low, high in estimates:
                cells = found.setdefault((entry, condition, k), [])
                cells.append(None if mean is None else Estimate(mean, low, high))
    rows: list[tuple[Cell, ...]] = [
        (*key, *cells) for key, cells in sorted(found.items(), key=lambda one: one[0]) if key[0] in view.entries
    ]
    panels: list[Panel] = []
    for entry in view.drawn:
        curves: list[Curve] = []
        for series, condition in enumerate(view.series):
            known = [(k, found.get((entry, condition, k), [None])[0]) for k in range(1, most + 1)]
            line = [(k, each) for k, each in known if each is not None]
            points = [(float(k), each.value) for k, each in line]
            if points:
                curves.append(Curve(series, points, [each.low for _, each in line], [each.high for _, each in line]))
        panels.append((entry, curves))
    notes = (view.population(view.rows.filter("headline"), view.entries), *view.drawn_footnotes)
    table = Table("pass_k", "pass^k: all of k repeats have a full score", _COLUMNS, tuple(rows), notes)
    description = (
        f"A panel for each model ({len(panels)}): the chance that all of k repeats are right, for k from 1 to {most}."
    )
    yield Figure(table, description, partial(draw_panels, panels, view.series, "k, repeats of an episode"))


HEADLINE = "headline"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One quantity by entry (models, then programs) and column (subtasks, then the headline).

    `condition` selects the episodes that a cell links to; `values` are None if unavailable.
    """

    name: str
    title: str
    condition: str
    differences: bool
    entries: tuple[str, ...]
    programs: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    population: str
    file: str
    """Name of its picture."""


def heat_maps(view: View) -> list[HeatMap]:
    """Return differences of every comparison, the main one first, then means of every condition."""
    everyone = [*view.entries, *view.programs]
    order = sorted(view.results.comparisons, key=lambda each: each != view.main)
    maps: list[HeatMap] = []
    for each in order:
        name, title = f"{each.treated}_minus_{each.reference}", f"{each.treated} − {each.reference}"
        maps.append(_map(view, name, title, each.treated, view.paired(each, everyone), differences=True))
    for condition in view.conditions:
        frame = view.episodes.filter(pl.col("condition") == condition)
        maps.append(_map(view, condition, f"mean score, {condition}", condition, frame, differences=False))
    return maps


def heat_figures(view: View, maps: Sequence[HeatMap]) -> Iterator[Figure]:
    """Draw heat maps as pictures."""
    for each in maps:
        rows = [*each.entries, *each.programs]
        drawn = [place for place, name in enumerate(rows) if name in view.drawn or name in each.programs]
        kind = Kind.DIFFERENCE if each.differences else Kind.SCORE
        columns = (Column("model", "Model"), *(Column(column_name(name), name, kind) for name in each.columns))
        cells = tuple((row, *values) for row, values in zip(rows, each.values, strict=True))
        notes = (each.population, *view.drawn_footnotes)
        table = Table(each.file, f"Model by subtask: {each.title}", columns, cells, notes)
        known = [value for values in each.values for value in values if value is not None]
        spread = f"from {min(known):+.3f} to {max(known):+.3f}" if known else "without any value"
        description = f"A heat map of models ({len(rows)}) by subtasks ({len(each.columns)}), {spread}."
        shown, values = [rows[place] for place in drawn], [each.values[place] for place in drawn]
        drawing = draw_heat(shown, each.columns, values, differences=each.differences)
        yield Figure(table, description, lambda _, drawing=drawing: drawing)


def _map(view: View, name: str, title: str, condition: str, frame: pl.DataFrame, *, differences: bool) -> HeatMap:
    means = _means(frame, "difference" if differences else "score")
    counted = set(distinct_values(view.episodes.filter(pl.col("headline")), "sub_task"))
    columns = (*view.results.sub_tasks, HEADLINE) if len(counted) > 1 else tuple(view.results.sub_tasks)
    entries, programs = (
        tuple(name for name in names if any((name, column) in means for column in columns))
        for names in (view.entries, view.programs)
    )
    if differences:  # programs that ignore skills have the same scores under each condition
        programs_of = set(distinct_values(view.rows.filter("program"), "entry"))
        moved = {entry for (entry, _), mean in means.items() if mean}
        entries, programs = (
            tuple(name for name in names if name in moved or name not in programs_of) for names in (entries, programs)
        )
    everyone = [*entries, *programs]
    values = tuple(tuple(means.get((entry, column)) for column in columns) for entry in everyone)
    population = view.population(frame, everyone)
    file = f"heat_{column_name(name)}"
    return HeatMap(name, title, condition, differences, entries, programs, columns, values, population, file)


def _means(frame: pl.DataFrame, value: str) -> dict[tuple[str, str], float]:
    """Return means by entry and subtask, and over the headline."""
    headline = frame.filter(pl.col("headline")).with_columns(sub_task=pl.lit(HEADLINE))
    grouped = pl.concat([frame, headline]).group_by("entry", "sub_task").agg(pl.col(value).mean())
    return {(entry, name): mean for entry, name, mean in grouped.iter_rows()}
