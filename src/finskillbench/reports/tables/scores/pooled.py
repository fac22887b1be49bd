"""Table 2 of the paper: the mean of each condition over all models, and what it changed on the same episodes."""

from __future__ import annotations

from finskillbench.analysis.intervals import Weighting
from finskillbench.analysis.results import Comparison, Results
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import compared, gaps, macro_means, means
from finskillbench.reports.tables.notes import notes

COLUMNS = (
    Column("condition", "Condition"),
    Column("against", "Against"),
    Column("episodes", "Episodes", Kind.COUNT),
    Column("mean", "Mean", Kind.SCORE),
    Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
    Column("pairs", "Pairs", Kind.COUNT),
    Column("clusters", "Clusters", Kind.COUNT),
    Column("effective_clusters", "Effective clusters", Kind.NUMBER, digits=1),
    Column("macro_mean", "Mean over subtasks", Kind.SCORE),
    Column("macro_difference", "Difference over subtasks", Kind.DIFFERENCE, interval=True),
)
_WEIGHED = (
    "Means weigh every episode alike, as the paper does; means over subtasks weigh every subtask alike, since most "
    "episodes are of few subtasks. Effective clusters: how many of one size would say as much."
)


def pooled_table(results: Results) -> Table:
    """Means over all episodes of all models that count towards the headline: a row for each condition, and another for
    each that is measured against more than one.
    """
    episodes = compared(results, results.episodes)
    mean, macro = means(episodes, ("condition",)), macro_means(episodes, ("condition",))
    rows: list[tuple[Cell, ...]] = []
    for condition in results.conditions:
        against = [each for each in results.comparisons if each.treated == condition]
        found, over = mean.get((condition,)), macro.get((condition,))
        for comparison in against or [None]:
            micro_change, macro_change = _changes(results, comparison)
            rows.append(
                (
                    condition,
                    comparison.reference if comparison else None,
                    found.episodes if found else 0,
                    found.value if found else None,
                    *micro_change,
                    over.value if over else None,
                    macro_change,
                )
            )
    title = "Mean score of each condition over all models"
    return Table("pooled", title, COLUMNS, tuple(rows), (*notes(results), _WEIGHED))


def _changes(results: Results, comparison: Comparison | None) -> tuple[tuple[Cell, ...], Cell]:
    """The difference with what is behind it, and the one that weighs subtasks alike."""
    gap = gaps(results, comparison).get(()) if comparison else None
    if comparison is None or gap is None:
        return (None, None, None, None), None
    macro = gaps(results, comparison, weighting=Weighting.MACRO)[()]
    return (gap.estimate, gap.pairs, gap.clusters, gap.effective_clusters), macro.estimate
