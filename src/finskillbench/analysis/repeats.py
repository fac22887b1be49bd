"""What repeats of an episode tell: how much of a score is luck, and how often an agent gets it right once or always."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finskillbench.analysis.results import EPISODE, Results
from finskillbench.errors import InputError

FULL = 1.0 - 1e-9
"""The score from which on a repeat has passed."""


def variances(results: Results, by: Sequence[str] = ("model", "harness", "condition")) -> pl.DataFrame:
    """Variance of scores within episodes and between them, by a one-way analysis of variance.

    Parameters
    ----------
    by : columns of `Results.episodes`, at least one.

    Returns
    -------
    The columns of `by`, then `episodes`, `repeats` (scored ones in all), `within` (null where no episode was scored
    twice), `between` (null also of one episode; 0 where episodes differ by no more than repeats do) and `alike`, the
    intra-class correlation: the share of the variance that lies between episodes, null where nothing varies.

    Source: Searle, Casella & McCulloch (1992), ch. 3.6, for unequal numbers of repeats.
    """
    keys = list(dict.fromkeys((*by, *EPISODE)))
    score, size = pl.col("score"), pl.col("size")
    episodes = (
        results.rows.filter(score.is_not_null())
        .group_by(keys, maintain_order=True)
        .agg(size=score.count().cast(pl.Float64), mean=score.mean(), squares=((score - score.mean()) ** 2).sum())
    )
    grand = (pl.col("mean") * size).sum() / size.sum()
    sums = episodes.group_by(by, maintain_order=True).agg(
        episodes=pl.len().cast(pl.Int64),
        repeats=size.sum().cast(pl.Int64),
        squares=pl.col("squares").sum(),
        apart=(size * (pl.col("mean") - grand) ** 2).sum(),
        usual=size.sum() - (size**2).sum() / size.sum(),
    )
    spare, others = pl.col("repeats") - pl.col("episodes"), pl.col("episodes") - 1
    found = (
        sums.with_columns(within=pl.when(spare > 0).then(pl.col("squares") / spare))
        .with_columns(
            between=pl.when(others > 0).then(
                ((pl.col("apart") - others * pl.col("within")) / pl.col("usual")).clip(lower_bound=0.0)
            )
        )
        .with_columns(total=pl.col("within") + pl.col("between"))
        .with_columns(alike=pl.when(pl.col("total") > 0).then(pl.col("between") / pl.col("total")))
    )
    return found.select(*by, "episodes", "repeats", "within", "between", "alike")


def passes(results: Results, k: int, least: float = FULL) -> pl.DataFrame:
    """The chance of each episode that at least one of k repeats passes, and that all of them do.

    Both are unbiased: the share of the k-subsets of the n scored repeats in which one, or every one of c, has passed:
    pass@k is 1 - C(n - c, k) / C(n, k) (Chen et al. 2021), pass^k is C(c, k) / C(n, k) (Yao et al. 2024).

    Parameters
    ----------
    k : how many repeats. least : the score from which on a repeat has passed.

    Returns
    -------
    The columns of `Results.episodes` with `pass_at` and `pass_hat`, null for episodes with fewer than k scored repeats;
    for `estimate`.

    Raises
    ------
    InputError : k is less than 1, or the episodes of some model and condition were all run fewer times.
    """
    if k < 1:
        raise InputError(f"pass@k: k is {k}; give 1 or more")
    runs = results.rows.group_by(EPISODE).len().group_by("model", "condition").agg(pl.col("len").max())
    fewer = runs.filter(pl.col("len") < k).sort("len", "model", "condition")
    if not fewer.is_empty():
        model, condition, most = fewer.row(0)
        raise InputError(
            f"pass@{k}: {model} under {condition} was run {most} times on an episode; run with --epochs {k} or more"
        )
    scored = pl.col("score").is_not_null()
    passed = results.rows.filter(scored).group_by(EPISODE).agg(passed=(pl.col("score") >= least).sum())
    joined = results.episodes.join(passed, on=EPISODE, how="left", maintain_order="left")
    size, right = pl.col("repeats").cast(pl.Float64), pl.col("passed").cast(pl.Float64)
    chances = joined.with_columns(
        pass_at=1.0 - _subsets(size - right, size, k),
        pass_hat=_subsets(right, size, k),
    )
    few = pl.col("repeats") < k
    return chances.with_columns(
        pl.when(few).then(None).otherwise(pl.col(name)).alias(name) for name in ("pass_at", "pass_hat")
    ).drop("passed")


def _subsets(chosen: pl.Expr, size: pl.Expr, k: int) -> pl.Expr:
    """C(chosen, k) / C(size, k): the share of the k-subsets that lie within the chosen ones."""
    share = pl.lit(1.0)
    for step in range(k):
        share *= (chosen - step).clip(lower_bound=0.0) / (size - step)
    return share
