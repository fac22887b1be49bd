"""Table 2 of the paper: the mean of each condition over all models, and what it changed on the same episodes."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.results import REFERENCE, Comparison, Results, pairs
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table
from finskillbench.reports.tables.common import difference, headline, means, notes

COLUMNS = (
    Column("condition", "Condition"),
    Column("episodes", "Episodes", Kind.COUNT),
    Column("mean", "Mean", Kind.SCORE),
    Column("difference", f"Difference from {REFERENCE}", Kind.DIFFERENCE, interval=True),
    Column("pairs", "Pairs", Kind.COUNT),
    Column("clusters", "Clusters", Kind.COUNT),
    Column("macro_mean", "Mean over subtasks", Kind.SCORE),
)


def pooled_table(results: Results) -> Table:
    """Means over all episodes of all language models that count towards the headline, a row for each condition."""
    episodes = headline(results.episodes)
    mean = means(episodes, "condition")
    rows: list[tuple[Cell, ...]] = []
    for condition in results.conditions:
        of_condition = episodes.filter(pl.col("condition") == condition)
        macro = means(of_condition, "sub_task").values()
        rows.append(
            (
                condition,
                of_condition.height,
                mean.get(condition),
                *_against_reference(results, condition),
                sum(macro) / len(macro) if macro else None,
            )
        )
    return Table("pooled", "Mean score of each condition over all models", COLUMNS, tuple(rows), notes(results))


def _against_reference(results: Results, condition: str) -> tuple[Estimate | None, int | None, int | None]:
    comparison = Comparison(condition, REFERENCE)
    if comparison not in results.comparisons:
        return None, None, None
    return difference(headline(pairs(results, comparison)))
