"""How many episodes have a verdict, and what the others could change.

Rows of status `error` enter no mean. What they would have scored is not known, but it lies between 0 and 1, which
bounds every mean and every difference (Manski 1990).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finskillbench.analysis.results import EPISODE, Comparison, Results

LEAST = 0.95
"""The share of rows with a verdict below which a mean stands for too few."""


def coverage(
    results: Results, by: Sequence[str] = ("model", "harness", "condition"), least: float = LEAST
) -> pl.DataFrame:
    """The share of rows with a verdict in each group, and the bounds of its mean.

    Parameters
    ----------
    by : columns of `Results.rows`, at least one. least : the share from which on a group is covered.

    Returns
    -------
    The columns of `by`, then `rows`, `verdicts`, `share`, `mean` (over episodes that have a verdict; null of none),
    `worst` and `best` (over all episodes, had every row without a verdict scored 0, or 1), and `enough`.
    """
    keys = list(dict.fromkeys((*by, *EPISODE)))
    episodes = results.rows.group_by(keys, maintain_order=True).agg(
        *_bounds(), pl.col("score").mean(), rows=pl.len(), verdicts=pl.col("score").count()
    )
    totals = [pl.col(name).sum().cast(pl.Int64) for name in ("rows", "verdicts")]
    means = [pl.col("score").mean().alias("mean"), pl.col("worst").mean(), pl.col("best").mean()]
    share = (pl.col("verdicts").sum() / pl.col("rows").sum()).alias("share")
    found = episodes.group_by(by, maintain_order=True).agg(*totals, share, *means)
    return found.with_columns(enough=pl.col("share") >= least)


def difference_bounds(
    results: Results, comparison: Comparison, by: Sequence[str] = ("model", "harness")
) -> pl.DataFrame:
    """What the mean difference could be, over the episodes that were run under both conditions.

    Parameters
    ----------
    by : columns of `Results.rows`, at least one, that do not tell conditions apart.

    Returns
    -------
    The columns of `by`, then `episodes`, `missing` (those of which a side has a row without a verdict), `worst` and
    `best` mean difference for the treatment.
    """
    keys = list(dict.fromkeys((*by, "model", "harness", "episode")))
    sides = [
        results.rows.filter(pl.col("condition") == name)
        .group_by(keys, maintain_order=True)
        .agg(*_bounds(), pl.col("failed").any())
        for name in comparison
    ]
    both = sides[0].join(sides[1], on=keys, how="inner", suffix="_reference", maintain_order="left")
    return both.group_by(by, maintain_order=True).agg(
        episodes=pl.len().cast(pl.Int64),
        missing=(pl.col("failed") | pl.col("failed_reference")).sum().cast(pl.Int64),
        worst=(pl.col("worst") - pl.col("best_reference")).mean(),
        best=(pl.col("best") - pl.col("worst_reference")).mean(),
    )


def _bounds() -> tuple[pl.Expr, pl.Expr]:
    score = pl.col("score")
    return score.fill_null(0.0).mean().alias("worst"), score.fill_null(1.0).mean().alias("best")
