"""Tables of mean scores by group and condition (2, 3, 4 and 7 of the paper), and a tidy frame of all means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from finskillbench.analysis.intervals import Weighting
from finskillbench.analysis.results import CURATED, REFERENCE, Comparison, Results, distinct_values, pairs
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of

REMARKS = Column("remarks", "Remarks")
"""Remarks on a row: incomplete means, errors."""


def domains_table(results: Results) -> Table:
    """Tabulate scores by domain (table 3)."""
    return _grouped(results, Column("domain", "Domain"), "domains", "Mean score by domain")


def difficulty_table(results: Results) -> Table:
    """Tabulate scores by difficulty."""
    return _grouped(results, Column("difficulty", "Difficulty"), "difficulty", "Mean score by difficulty")


def subtasks_table(results: Results) -> Table:
    """Tabulate scores by subtask (table 4), the largest gain first, also outside of the headline."""
    table = _grouped(results, Column("sub_task", "Subtask"), "subtasks", "Mean score by subtask", common.every_subtask)
    home = dict(results.rows.select("sub_task", "domain").unique().iter_rows())
    rows = [(row[0], home[str(row[0])], *row[1:]) for row in table.rows]
    if results.comparisons:
        first = 3 + len(results.conditions)
        rows.sort(key=lambda row: common.descending_key(row[first]))
    columns = (table.columns[0], Column("domain", "Domain"), *table.columns[1:])
    return Table(table.name, table.title, columns, tuple(rows), table.notes)


def headline_table(results: Results, title: str) -> Table:
    """Tabulate scores by subtask in domain order, the headline last."""
    return _grouped(results, Column("sub_task", "Subtask"), "overview", title, common.with_headline)


def condition_cells(
    results: Results,
    group: common.Group,
    mean: Mapping[common.Group, common.Mean],
    changes: Sequence[Mapping[common.Group, common.Gap]],
) -> list[Cell]:
    """Return the episode count, the mean of each condition, and each difference."""
    found = [mean.get((*group, condition)) for condition in results.conditions]
    return [
        max((each.episodes for each in found if each), default=0),
        *(each.value if each else None for each in found),
        *(each[group].estimate if group in each else None for each in changes),
    ]


def remarks(
    results: Results, planned: pl.DataFrame, by: str, mean: Mapping[common.Group, common.Mean]
) -> dict[str, str]:
    """Describe means over fewer episodes and rows in error, by group.

    `planned` are all rows, also without a score; `mean` is by group and condition.
    """
    failed = {
        (group, condition): count
        for group, condition, count in planned.filter("failed").group_by(by, "condition").len().iter_rows()
    }
    by_group: dict[str, str] = {}
    for group in planned[by].unique(maintain_order=True).to_list():
        found = {name: mean.get((group, name)) for name in results.conditions}
        most = max((each.episodes for each in found.values() if each), default=0)
        parts = [f"{name} {each.episodes} of {most}" for name, each in found.items() if each and each.episodes < most]
        parts += [f"{name} {failed[group, name]} err" for name in found if (group, name) in failed]
        if parts:
            by_group[group] = ", ".join(parts)
    return by_group


def _grouped(
    results: Results, first: Column, name: str, title: str, scope: common.Scope = common.headline_only
) -> Table:
    """Make a table with a row for each value of the column `first`."""
    by = first.name
    planned = common.compared(results, results.rows, scope)
    mean = common.means(common.compared(results, results.episodes, scope), (by, "condition"))
    changes = [common.gaps(results, each, (by,), scope=scope) for each in results.comparisons]
    run = common.available_marks(results)
    marks = [common.mark_means(results, each, (by,), scope) for each in run]
    group_remarks = remarks(results, planned, by, mean)
    there = set(planned[by])
    rows: list[tuple[Cell, ...]] = [
        (
            group,
            *condition_cells(results, (group,), mean, changes),
            *(each.get((group,)) for each in marks),
            *([group_remarks.get(group, "")] if group_remarks else []),
        )
        for group in dict.fromkeys([*common.order_of(results, by), *common.headlines(results)])
        if group in there
    ]
    columns = (
        first,
        Column("episodes", "Episodes", Kind.COUNT),
        *common.condition_columns(results),
        *common.comparison_columns(results),
        *common.mark_columns(run),
        *([REMARKS] if group_remarks else []),
    )
    return Table(name, title, columns, tuple(rows), common.notes(results))


APART = "†"
_EVERYTHING = "all"
_FOOTNOTE = (
    f"{APART}: the 95 % intervals of the two means do not overlap, the paper's mark; this is stricter than the "
    "interval of the difference, which decides. The two means may be over different episodes; the interval of their "
    "difference is clustered by what both sides share."
)


def harnesses_table(results: Results) -> Table:
    """Tabulate means of two conditions by harness, with intervals and the difference of means.

    The conditions are curated and no_skill, or the first comparison of the rows if these were not both run.
    """
    comparison = _comparison(results)
    episodes = common.compared(results, results.episodes)
    rows: list[tuple[Cell, ...]] = []
    for harness in distinct_values(results.rows, "harness"):
        of_harness = episodes.filter(pl.col("harness") == harness)
        parts = [("overall", _EVERYTHING, of_harness)]
        for group, names in (("domain", common.order_of(results, "domain")), ("model", common.hosted_models(results))):
            parts += [(group, name, of_harness.filter(pl.col(group) == name)) for name in names]
        rows += [
            (harness, group, name, *_cells(part, comparison)) for group, name, part in parts if not part.is_empty()
        ]
    treated, reference = comparison
    columns = (
        *columns_of(Kind.TEXT, harness="Harness", group="Group", name="Name"),
        Column("episodes_reference", f"N {reference}", Kind.COUNT),
        Column("mean_reference", reference, Kind.SCORE, interval=True),
        Column("episodes_treated", f"N {treated}", Kind.COUNT),
        Column("mean_treated", treated, Kind.SCORE, interval=True),
        Column("difference", f"{treated} - {reference}", Kind.DIFFERENCE, interval=True),
        Column("apart", "Apart"),
    )
    title = f"Mean score by harness, {treated} against {reference}"
    return Table("harnesses", title, columns, tuple(rows), (*common.notes(results, differences=False), _FOOTNOTE))


def _comparison(results: Results) -> Comparison:
    usual = Comparison(CURATED, REFERENCE)
    return usual if usual in results.comparisons else next(iter(results.comparisons), usual)


def _cells(episodes: pl.DataFrame, comparison: Comparison) -> list[Cell]:
    reference, treated = (episodes.filter(pl.col("condition") == name) for name in reversed(comparison))
    low, high = (common.gaps_of(side, value="score").get(()) for side in (reference, treated))
    change = mean_difference(treated, reference)
    return [
        reference.height,
        low.estimate if low else None,
        treated.height,
        high.estimate if high else None,
        change.estimate if change else None,
        APART if low and high and _apart(low.estimate, high.estimate) else "",
    ]


def mean_difference(treated: pl.DataFrame, reference: pl.DataFrame) -> common.Gap | None:
    """Return the difference of two means of `score` over possibly different episodes, with its interval.

    It is the regression of the score on both conditions with CR2 (Imbens & Kolesar 2016): the unweighted mean of twice
    each side's signed scores. With the same episodes of one subtask on both sides it equals the paired difference.
    Subtasks
    are no strata, as a side may have only one episode of some. Without enough variation there is no interval.
    """
    if treated.is_empty() or reference.is_empty():
        return None
    sides = [
        side.select("cluster", sub_task=pl.lit(name), difference=factor * pl.col("score"))
        for side, name, factor in ((treated, "treated", 2.0), (reference, "reference", -2.0))
    ]
    return common.gaps_of(pl.concat(sides), weighting=Weighting.MACRO)[()]


def _apart(one: Estimate, other: Estimate) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


COLUMNS = (
    *columns_of(Kind.TEXT, condition="Condition", against="Against"),
    Column("episodes", "Episodes", Kind.COUNT),
    Column("mean", "Mean", Kind.SCORE),
    Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
    *columns_of(Kind.COUNT, pairs="Pairs", clusters="Clusters"),
    Column("effective_clusters", "Effective clusters", Kind.NUMBER, digits=1),
    Column("macro_mean", "Mean over subtasks", Kind.SCORE),
    Column("macro_difference", "Difference over subtasks", Kind.DIFFERENCE, interval=True),
)
_WEIGHED = (
    "Means weight episodes equally, as in the paper; means over subtasks weight subtasks equally, since a few subtasks "
    "have most episodes. Effective clusters: the number of equal clusters with the same information."
)


def pooled_table(results: Results) -> Table:
    """Tabulate headline means over all episodes and models: a row per condition and reference."""
    episodes = common.compared(results, results.episodes)
    mean, macro = common.means(episodes, ("condition",)), common.macro_means(episodes, ("condition",))
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
    return Table("pooled", title, COLUMNS, tuple(rows), (*common.notes(results), _WEIGHED))


def _changes(results: Results, comparison: Comparison | None) -> tuple[tuple[Cell, ...], Cell]:
    """Return the difference with its counts, and the difference with equal subtask weights."""
    gap = common.gaps(results, comparison).get(()) if comparison else None
    if comparison is None or gap is None:
        return (None, None, None, None), None
    macro = common.gaps(results, comparison, weighting=Weighting.MACRO)[()]
    return (gap.estimate, gap.pairs, gap.clusters, gap.effective_clusters), macro.estimate


_KEYS = ("model", "harness", "sub_task")
_SCHEMA = {
    **dict.fromkeys((*_KEYS, "condition", "reference"), pl.String),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    **dict.fromkeys(("episodes", "clusters"), pl.Int64),
    "effective_clusters": pl.Float64,
    "errors": pl.Int64,
}


def tidy(results: Results) -> pl.DataFrame:
    """Return one row for each model, harness, subtask (and `headline`) and condition, and for each comparison.

    `reference` is null in rows of conditions; in rows of comparisons `mean` is the paired difference and `episodes` the
    number of pairs. `low` and `high` are the 95 % interval, null if unavailable; `mean` is null if every row ended in
    an error. Programs count as models.
    """
    records: list[tuple[object, ...]] = []
    for condition in results.conditions:
        chosen = pl.col("condition") == condition
        found = _by_subtask(results.episodes.filter(chosen), "score")
        rows = common.with_headline(results.rows.filter(chosen))
        errors = rows.group_by(_KEYS, maintain_order=True).agg(pl.col("failed").sum())
        records += [
            (*group, condition, None, *_figures(found.get(tuple(group))), failed)
            for *group, failed in errors.iter_rows()
        ]
    for comparison in results.comparisons:
        found = _by_subtask(pairs(results, comparison), "difference")
        records += [(*group, *comparison, *_figures(gap), None) for group, gap in found.items()]
    return pl.DataFrame(records, schema=_SCHEMA, orient="row")


def _by_subtask(frame: pl.DataFrame, value: str) -> dict[common.Group, common.Gap]:
    return common.gaps_of(common.with_headline(frame), _KEYS, value=value)


def _figures(gap: common.Gap | None) -> tuple[float | None, ...]:
    if gap is None:
        return (None, None, None, 0, 0, None)
    return (*gap.estimate, gap.pairs, gap.clusters, gap.effective_clusters)
