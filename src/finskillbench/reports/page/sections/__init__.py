"""The sections of a page: a module for each kind of figure, a `View` in, figures out, each drawn from its own table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from finskillbench.reports.figures.base import Figure
from finskillbench.reports.page.sections.budgets import budget_figures
from finskillbench.reports.page.sections.gains import gain_figures
from finskillbench.reports.page.sections.outcomes import outcome_figures
from finskillbench.reports.page.sections.repeats import repeat_figures
from finskillbench.reports.page.sections.scores import HeatMap, heat_figures, heat_maps
from finskillbench.reports.page.sections.spending import spending_figures
from finskillbench.reports.page.view import View
from finskillbench.reports.tables.base import Table


@dataclass(frozen=True, slots=True)
class Section:
    """One section: `figures` below each other, `switched` one at a time, heat maps as tables, and plain tables.

    `pictures` are figures that only go to files: heat maps stand in the page as tables.
    """

    name: str
    short: str
    title: str
    lead: str = ""
    figures: tuple[Figure, ...] = ()
    switched: tuple[Figure, ...] = ()
    heats: tuple[HeatMap, ...] = ()
    pictures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()

    @property
    def drawn(self) -> tuple[Figure, ...]:
        """All that have files."""
        return (*self.figures, *self.switched, *self.pictures)

    @property
    def files(self) -> dict[str, list[str]]:
        """The files of each heat map, by its name."""
        found = defaultdict[str, list[str]](list)
        for heat, picture in ((heat, each) for heat in self.heats for each in self.pictures if each.name == heat.file):
            found[heat.name] += [f"{picture.name}.svg", f"{picture.name}.png"]
        return found

    @property
    def empty(self) -> bool:
        """Whether it has nothing to show."""
        return not (self.drawn or self.heats or self.tables)


def sections_of(view: View, causes: Sequence[str | None]) -> list[Section]:
    """The sections that have something to show, in their order."""
    heats = tuple(heat_maps(view))
    failures = view.rows.select("entry", "condition").with_columns(cause=pl.Series(causes, dtype=pl.String))
    made = [
        Section(
            "gains",
            "Gains",
            "What skills changed",
            "Every difference is between scores of the same episode under two conditions.",
            figures=tuple(gain_figures(view)),
        ),
        Section(
            "scores",
            "Scores",
            "Model by subtask",
            "A cell leads to its episodes. Programs stand below the models: floor and ceiling."
            if view.programs
            else "A cell leads to its episodes.",
            heats=heats,
            pictures=tuple(heat_figures(view, heats)),
        ),
        Section("cost", "Cost", "What it cost", figures=tuple(spending_figures(view))),
        Section(
            "budgets",
            "Budgets",
            "Score within a budget",
            "For a strong model a skill is worth what it saves: the same score within a smaller budget.",
            switched=tuple(budget_figures(view)),
        ),
        Section("repeats", "Repeats", "Right once, or every time", figures=tuple(repeat_figures(view))),
        Section(
            "outcomes",
            "Outcomes",
            "How episodes came out",
            figures=tuple(outcome_figures(view, failures.drop_nulls())),
        ),
    ]
    return [each for each in made if not each.empty]
