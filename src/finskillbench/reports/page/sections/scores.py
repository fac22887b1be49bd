"""Mean scores and differences by model and subtask: the heat map, as a picture and as a table with links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from finskillbench.analysis.results import distinct
from finskillbench.reports.figures.base import Figure
from finskillbench.reports.figures.heat import draw_heat
from finskillbench.reports.page.view import View
from finskillbench.reports.page.words import slug
from finskillbench.reports.tables.base import Column, Kind, Table

HEADLINE = "headline"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One quantity for each entry (those that are compared, then programs) and column (subtasks, then the headline).

    `condition` is the one whose episodes a cell leads to; `values` are None where nothing can be said.
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
    """The differences of every comparison, the main one first, then the means of every condition."""
    everyone = [*view.entries, *view.programs]
    order = sorted(view.results.comparisons, key=lambda each: each != view.main)
    maps = [
        _map(
            view,
            f"{treated}_minus_{reference}",
            f"{treated} − {reference}",
            treated,
            view.paired(each, everyone),
            differences=True,
        )
        for each in order
        for treated, reference in [each]
    ]
    for condition in view.conditions:
        frame = view.episodes.filter(pl.col("condition") == condition)
        maps.append(_map(view, condition, f"mean score, {condition}", condition, frame, differences=False))
    return maps


def heat_figures(view: View, maps: Sequence[HeatMap]) -> Iterator[Figure]:
    """The same as pictures."""
    for each in maps:
        rows = [*each.entries, *each.programs]
        drawn = [place for place, name in enumerate(rows) if name in view.drawn or name in each.programs]
        kind = Kind.DIFFERENCE if each.differences else Kind.SCORE
        columns = (Column("model", "Model"), *(Column(slug(name), name, kind) for name in each.columns))
        cells = tuple((row, *values) for row, values in zip(rows, each.values, strict=True))
        table = Table(each.file, f"Model by subtask: {each.title}", columns, cells, (each.population, *view.drawn_note))
        known = [value for values in each.values for value in values if value is not None]
        spread = f"from {min(known):+.3f} to {max(known):+.3f}" if known else "of which none can be said"
        words = f"A heat map of models ({len(rows)}) by subtasks ({len(each.columns)}), {spread}."
        shown, values = [rows[place] for place in drawn], [each.values[place] for place in drawn]
        drawing = draw_heat(shown, each.columns, values, differences=each.differences)
        yield Figure(table, words, lambda _, drawing=drawing: drawing)


def _map(view: View, name: str, title: str, condition: str, frame: pl.DataFrame, *, differences: bool) -> HeatMap:
    means = _means(frame, "difference" if differences else "score")
    counted = set(distinct(view.episodes.filter(pl.col("headline")), "sub_task"))
    columns = (*view.results.sub_tasks, HEADLINE) if len(counted) > 1 else tuple(view.results.sub_tasks)
    entries, programs = (
        tuple(name for name in names if any((name, column) in means for column in columns))
        for names in (view.entries, view.programs)
    )
    if differences:  # a program that reads no skill has the same scores under each condition
        programs_of = set(distinct(view.rows.filter("program"), "entry"))
        moved = {entry for (entry, _), mean in means.items() if mean}
        entries, programs = (
            tuple(name for name in names if name in moved or name not in programs_of) for names in (entries, programs)
        )
    everyone = [*entries, *programs]
    values = tuple(tuple(means.get((entry, column)) for column in columns) for entry in everyone)
    population = view.population(frame, everyone)
    file = f"heat_{slug(name)}"
    return HeatMap(name, title, condition, differences, entries, programs, columns, values, population, file)


def _means(frame: pl.DataFrame, value: str) -> dict[tuple[str, str], float]:
    """Means by entry and subtask, and over the headline."""
    headline = frame.filter(pl.col("headline")).with_columns(sub_task=pl.lit(HEADLINE))
    grouped = pl.concat([frame, headline]).group_by("entry", "sub_task").agg(pl.col(value).mean())
    return {(entry, name): mean for entry, name, mean in grouped.iter_rows()}
