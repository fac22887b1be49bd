"""The short table at the end of a run: what was measured, between the floor and the ceiling of the programs."""

from __future__ import annotations

from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import (
    compared,
    comparison_columns,
    condition_columns,
    contenders,
    every_subtask,
    gaps,
    means,
)
from finskillbench.reports.tables.notes import notes
from finskillbench.reports.tables.scores.floors import floors_table
from finskillbench.reports.tables.scores.grouped import condition_cells, headline_table
from finskillbench.reports.tables.scores.models import endings, mark_rows


def overview_table(results: Results, published: Results | None = None) -> Table:
    """Of programs alone, what each scores by subtask; of one model, its subtasks with the headline last; of several,
    a row each.

    Parameters
    ----------
    results : of any rows. published : the same under the profile `paper`, for the floor of the published scorers.
    """
    if results.rows["program"].all() and len(results.models) > 1:
        return floors_table(results, published)
    models = contenders(results)
    if len(models) > 1:
        return _of_models(results)
    table = headline_table(results, f"Mean score of {models[0]}, profile {results.profile}")
    return Table(table.name, table.title, table.columns, table.rows, (*_answered(results), *table.notes))


def _of_models(results: Results) -> Table:
    """Several models: the headline of each."""
    mean = means(compared(results, results.episodes), ("model", "condition"))
    changes = [gaps(results, each, ("model",)) for each in results.comparisons]
    answered, mostly = endings(compared(results, results.rows))
    rows: list[tuple[Cell, ...]] = [
        (model, *condition_cells(results, (model,), mean, changes), answered.get(model), mostly.get(model))
        for model in contenders(results)
    ]
    columns = (
        Column("model", "Model"),
        Column("episodes", "Episodes", Kind.COUNT),
        *condition_columns(results),
        *comparison_columns(results),
        Column("answered", "Answered", Kind.SHARE),
        Column("mostly", "Otherwise mostly"),
    )
    rows += mark_rows(results, columns)
    return Table("overview", f"Mean score, profile {results.profile}", columns, tuple(rows), notes(results))


def _answered(results: Results) -> list[str]:
    """How often the one model answered, where that is not always."""
    planned = compared(results, results.rows, every_subtask)
    answered, mostly = endings(planned)
    (share,) = answered.values()
    if share == 1:
        return []
    otherwise = "".join(f", otherwise mostly {ending}" for ending in mostly.values())
    return [f"Answered: {100 * share:.0f} % of {planned.height} rows{otherwise}."]
