"""Tables 3 and 4 of the paper, and others of their shape: a group in each row, a condition in each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import (
    Gap,
    Group,
    Mean,
    Scope,
    compared,
    comparison_columns,
    condition_columns,
    every_subtask,
    falling,
    gaps,
    headline_only,
    headlines,
    means,
    order_of,
    with_headline,
)
from finskillbench.reports.tables.notes import notes
from finskillbench.reports.tables.programs import mark_columns, mark_means, marks_run

REMARKS = Column("remarks", "Remarks")
"""What is wrong with a row: means that cover a part, errors."""


def domains_table(results: Results) -> Table:
    """Table 3: the domains."""
    return _grouped(results, Column("domain", "Domain"), "domains", "Mean score by domain")


def difficulty_table(results: Results) -> Table:
    """The difficulties that the edition gives its episodes."""
    return _grouped(results, Column("difficulty", "Difficulty"), "difficulty", "Mean score by difficulty")


def subtasks_table(results: Results) -> Table:
    """Table 4: the subtasks, the one that gains most first; those outside the headline as well."""
    table = _grouped(results, Column("sub_task", "Subtask"), "subtasks", "Mean score by subtask", every_subtask)
    home = dict(results.rows.select("sub_task", "domain").unique().iter_rows())
    rows = [(row[0], home[str(row[0])], *row[1:]) for row in table.rows]
    if results.comparisons:
        first = 3 + len(results.conditions)
        rows.sort(key=lambda row: falling(row[first]))
    columns = (table.columns[0], Column("domain", "Domain"), *table.columns[1:])
    return Table(table.name, table.title, columns, tuple(rows), table.notes)


def headline_table(results: Results, title: str) -> Table:
    """The subtasks in the order of the domains, and the headline last."""
    return _grouped(results, Column("sub_task", "Subtask"), "overview", title, with_headline)


def condition_cells(
    results: Results, group: Group, mean: Mapping[Group, Mean], changes: Sequence[Mapping[Group, Gap]]
) -> list[Cell]:
    """The most episodes behind a mean, the mean of each condition, and each difference."""
    found = [mean.get((*group, condition)) for condition in results.conditions]
    return [
        max((each.episodes for each in found if each), default=0),
        *(each.value if each else None for each in found),
        *(each[group].estimate if group in each else None for each in changes),
    ]


def remarks(results: Results, planned: pl.DataFrame, by: str, mean: Mapping[Group, Mean]) -> dict[str, str]:
    """Where means of a group cover fewer episodes than others, and how many of its rows ended in an error.

    Parameters
    ----------
    planned : rows, also those without a score. mean : by group and condition.
    """
    failed = {
        (group, condition): count
        for group, condition, count in planned.filter("failed").group_by(by, "condition").len().iter_rows()
    }
    told: dict[str, str] = {}
    for group in planned[by].unique(maintain_order=True).to_list():
        found = {name: mean.get((group, name)) for name in results.conditions}
        most = max((each.episodes for each in found.values() if each), default=0)
        words = [f"{name} {each.episodes} of {most}" for name, each in found.items() if each and each.episodes < most]
        words += [f"{name} {failed[group, name]} err" for name in found if (group, name) in failed]
        if words:
            told[group] = ", ".join(words)
    return told


def _grouped(results: Results, first: Column, name: str, title: str, scope: Scope = headline_only) -> Table:
    """A row for each value of the column that `first` is called after."""
    by = first.name
    planned = compared(results, results.rows, scope)
    mean = means(compared(results, results.episodes, scope), (by, "condition"))
    changes = [gaps(results, each, (by,), scope=scope) for each in results.comparisons]
    run = marks_run(results)
    marks = [mark_means(results, each, (by,), scope) for each in run]
    said = remarks(results, planned, by, mean)
    there = set(planned[by])
    rows: list[tuple[Cell, ...]] = [
        (
            group,
            *condition_cells(results, (group,), mean, changes),
            *(each.get((group,)) for each in marks),
            *([said.get(group, "")] if said else []),
        )
        for group in [*order_of(results, by), *headlines(results)]
        if group in there
    ]
    columns = (
        first,
        Column("episodes", "Episodes", Kind.COUNT),
        *condition_columns(results),
        *comparison_columns(results),
        *mark_columns(run),
        *([REMARKS] if said else []),
    )
    return Table(name, title, columns, tuple(rows), notes(results))
