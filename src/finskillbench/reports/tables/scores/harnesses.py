"""Table 7 of the paper: two conditions under each harness, over all, by domain and by model."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.intervals import Weighting
from finskillbench.analysis.results import CURATED, REFERENCE, Comparison, Results, distinct
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table
from finskillbench.reports.tables.common import Gap, compared, contenders, gaps_of, order_of
from finskillbench.reports.tables.notes import notes

APART = "†"
_EVERYTHING = "all"
_NOTE = (
    f"{APART}: the two 95 % intervals of the means do not overlap, as the paper marks it; that is stricter than the "
    "interval of the difference, by which a difference is judged. The two means may be over different episodes; the "
    "interval of their difference counts what both sides share."
)


def harnesses_table(results: Results) -> Table:
    """The means of two conditions with their intervals, and the difference of these means with its own.

    The conditions are curated and no_skill, or the first comparison of the rows where these are not both run.
    """
    comparison = _comparison(results)
    episodes = compared(results, results.episodes)
    rows: list[tuple[Cell, ...]] = []
    for harness in distinct(results.rows, "harness"):
        of_harness = episodes.filter(pl.col("harness") == harness)
        parts = [("overall", _EVERYTHING, of_harness)]
        for group, names in (("domain", order_of(results, "domain")), ("model", contenders(results))):
            parts += [(group, name, of_harness.filter(pl.col(group) == name)) for name in names]
        rows += [
            (harness, group, name, *_cells(part, comparison)) for group, name, part in parts if not part.is_empty()
        ]
    treated, reference = comparison
    columns = (
        Column("harness", "Harness"),
        Column("group", "Group"),
        Column("name", "Name"),
        Column("episodes_reference", f"N {reference}", Kind.COUNT),
        Column("mean_reference", reference, Kind.SCORE, interval=True),
        Column("episodes_treated", f"N {treated}", Kind.COUNT),
        Column("mean_treated", treated, Kind.SCORE, interval=True),
        Column("difference", f"{treated} - {reference}", Kind.DIFFERENCE, interval=True),
        Column("apart", "Apart"),
    )
    title = f"Mean score by harness, {treated} against {reference}"
    return Table("harnesses", title, columns, tuple(rows), (*notes(results, differences=False), _NOTE))


def _comparison(results: Results) -> Comparison:
    usual = Comparison(CURATED, REFERENCE)
    return usual if usual in results.comparisons else next(iter(results.comparisons), usual)


def _cells(episodes: pl.DataFrame, comparison: Comparison) -> list[Cell]:
    reference, treated = (episodes.filter(pl.col("condition") == name) for name in reversed(comparison))
    low, high = (gaps_of(side, value="score").get(()) for side in (reference, treated))
    change = mean_difference(treated, reference)
    return [
        reference.height,
        low.estimate if low else None,
        treated.height,
        high.estimate if high else None,
        change.estimate if change else None,
        APART if low and high and _apart(low.estimate, high.estimate) else "",
    ]


def mean_difference(treated: pl.DataFrame, reference: pl.DataFrame) -> Gap | None:
    """The difference of two means of `score`, over episodes that need not be the same, with its interval.

    It is the regression of the score on both conditions with CR2 (Imbens & Kolesar 2016): twice the score of either
    side with its sign, of which the unweighted mean over the two sides is the difference. Where both sides have the
    same episodes of one subtask it is that of the paired differences; subtasks are no strata, as either side may have
    but one episode of some. Where too little varies on either side, no interval is said.
    """
    if treated.is_empty() or reference.is_empty():
        return None
    sides = [
        side.select("cluster", sub_task=pl.lit(name), difference=factor * pl.col("score"))
        for side, name, factor in ((treated, "treated", 2.0), (reference, "reference", -2.0))
    ]
    return gaps_of(pl.concat(sides), weighting=Weighting.MACRO)[()]


def _apart(one: Estimate, other: Estimate) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low
