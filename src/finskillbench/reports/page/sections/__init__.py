"""Sections of a page: each module turns a `View` into figures drawn from tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from finskillbench.reports.figures.forest import Figure
from finskillbench.reports.page.sections.gains import gain_figures
from finskillbench.reports.page.sections.outcomes import (
    HeatMap,
    heat_figures,
    heat_maps,
    outcome_figures,
    repeat_figures,
)
from finskillbench.reports.page.sections.spending import budget_figures, spending_figures
from finskillbench.reports.page.view import View
from finskillbench.reports.tables.base import Kind, cell_text


@dataclass(frozen=True, slots=True)
class Section:
    """One section: `figures` below each other, `switched` one at a time, heat maps and remarks.

    `pictures` are written to files only, since heat maps appear as tables. `remarks` replace figures without variation.
    """

    name: str
    short: str
    title: str
    lead: str = ""
    figures: tuple[Figure, ...] = ()
    switched: tuple[Figure, ...] = ()
    heats: tuple[HeatMap, ...] = ()
    pictures: tuple[Figure, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def drawn(self) -> tuple[Figure, ...]:
        """All figures with files."""
        return (*self.figures, *self.switched, *self.pictures)

    @property
    def files(self) -> dict[str, list[str]]:
        """Picture files by heat map name."""
        found = defaultdict[str, list[str]](list)
        for heat, picture in ((heat, each) for heat in self.heats for each in self.pictures if each.name == heat.file):
            found[heat.name] += [f"{picture.name}.svg", f"{picture.name}.png"]
        return found

    @property
    def empty(self) -> bool:
        return not (self.drawn or self.heats or self.remarks)


def sections_of(view: View, causes: Sequence[str | None], prefix: str = "") -> list[Section]:
    """Return the non-empty sections in order; section and figure names start with `prefix`."""
    heats = tuple(heat_maps(view))
    failures = view.rows.select("entry", "condition").with_columns(cause=pl.Series(causes, dtype=pl.String))
    made = [
        Section(
            "gains",
            "Gains",
            "Differences between conditions",
            "Every difference is between scores of the same episode under two conditions.",
            figures=tuple(gain_figures(view)),
        ),
        Section(
            "scores",
            "Scores",
            "Model by subtask",
            "Cells link to their episodes. Programs are below the models: floor and ceiling."
            if view.programs
            else "Cells link to their episodes.",
            heats=heats,
            pictures=tuple(heat_figures(view, heats)),
        ),
        Section("cost", "Cost", "Costs and resources", figures=tuple(spending_figures(view))),
        Section(
            "budgets",
            "Budgets",
            "Score within a budget",
            "For a strong model, a skill can save resources: the same score within a smaller budget.",
            switched=tuple(budget_figures(view)),
        ),
        Section("repeats", "Repeats", "Reliability over repeats", figures=tuple(repeat_figures(view))),
        Section(
            "outcomes", "Outcomes", "Outcomes of episodes", figures=tuple(outcome_figures(view, failures.drop_nulls()))
        ),
    ]
    return [_named(each, prefix) for each in map(_varied, made) if not each.empty]


def _varied(section: Section) -> Section:
    """Replace figures without variation by sentences."""
    constant = [each for each in (*section.figures, *section.switched) if not each.varies]
    return replace(
        section,
        figures=tuple(each for each in section.figures if each.varies),
        switched=tuple(each for each in section.switched if each.varies),
        remarks=tuple(map(_remark, constant)),
    )


def _remark(figure: Figure) -> str:
    """Return the value that a figure would show in every row, as a sentence."""
    table = figure.table
    if not table.rows:
        return f"{table.title}: no values. {' '.join(table.notes)}"
    row = zip(table.columns, table.rows[0], strict=True)
    values = [f"{column.title} {cell_text(column, cell)}" for column, cell in row if column.kind is not Kind.TEXT]
    where = "the only row" if len(table.rows) == 1 else f"each of {len(table.rows)} rows"
    return f"{table.title}: {', '.join(values)} in {where}. {table.notes[0] if table.notes else ''}"


def _named(section: Section, prefix: str) -> Section:
    if not prefix:
        return section

    def named(figures: Sequence[Figure]) -> tuple[Figure, ...]:
        return tuple(replace(each, table=replace(each.table, name=f"{prefix}{each.name}")) for each in figures)

    return replace(
        section,
        name=f"{prefix}{section.name}",
        figures=named(section.figures),
        switched=named(section.switched),
        pictures=named(section.pictures),
        heats=tuple(replace(each, name=f"{prefix}{each.name}", file=f"{prefix}{each.file}") for each in section.heats),
    )
