"""Every mean and every difference of a run in one long frame, for those who make their own tables and figures."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.results import Results, pairs
from finskillbench.reports.tables.common import Gap, Group, gaps_of, with_headline

_KEYS = ("model", "harness", "sub_task")
_SCHEMA = {
    **dict.fromkeys((*_KEYS, "condition", "reference"), pl.String),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    **dict.fromkeys(("episodes", "clusters"), pl.Int64),
    "effective_clusters": pl.Float64,
    "errors": pl.Int64,
}


def tidy(results: Results) -> pl.DataFrame:
    """One row for each model, harness, subtask (and `headline`) and condition, and one for each comparison of two.

    `reference` is null in the rows of conditions; in those of comparisons `mean` is the paired difference and
    `episodes` the pairs behind it. `low` and `high` are the 95 % interval, null where none can be said; `mean` is null
    where every row ended in an error. Programs are models here.
    """
    records: list[tuple[object, ...]] = []
    for condition in results.conditions:
        chosen = pl.col("condition") == condition
        found = _by_subtask(results.episodes.filter(chosen), "score")
        rows = with_headline(results.rows.filter(chosen))
        errors = rows.group_by(_KEYS, maintain_order=True).agg(pl.col("failed").sum())
        records += [
            (*group, condition, None, *_figures(found.get(tuple(group))), failed)
            for *group, failed in errors.iter_rows()
        ]
    for comparison in results.comparisons:
        found = _by_subtask(pairs(results, comparison), "difference")
        records += [(*group, *comparison, *_figures(gap), None) for group, gap in found.items()]
    return pl.DataFrame(records, schema=_SCHEMA, orient="row")


def _by_subtask(frame: pl.DataFrame, value: str) -> dict[Group, Gap]:
    return gaps_of(with_headline(frame), _KEYS, value=value)


def _figures(gap: Gap | None) -> tuple[float | None, ...]:
    if gap is None:
        return (None, None, None, 0, 0, None)
    return (*gap.estimate, gap.pairs, gap.clusters, gap.effective_clusters)
