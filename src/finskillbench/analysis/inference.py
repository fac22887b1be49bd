"""Inference on estimates: multiple comparisons, detectable effects, proportions and sign tests.

`detectable` and `adjust` add columns to the result of `finskillbench.analysis.intervals.estimate_means`. Wilson
intervals of shares stay within [0, 1] and exist at rates of 0 and 1. The exact sign test over clusters replaces a t
test if differences vary too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import bdtrc, nctdtrinc, ndtri, stdtr, stdtrit

from finskillbench.analysis.clusters import LEVEL, MIN_CLUSTERS, Interval
from finskillbench.analysis.intervals import estimate_means
from finskillbench.arrays import Floats
from finskillbench.errors import InputError

_P = "p"


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for a family-wise error rate of 5 % (Holm 1979); None stays None."""
    return _adjusted(values, _holm)


def holm_weighted(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method with positive weights (Holm 1979, section 4)."""
    order = sorted(range(len(values)), key=lambda place: values[place] / weights[place])
    adjusted, least, left = [0.0] * len(values), 0.0, math.fsum(weights)
    for place in order:
        least = max(least, min(1.0, values[place] * left / weights[place]))
        adjusted[place] = least
        left -= weights[place]
    return adjusted


def benjamini_hochberg(values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for a false discovery rate of 5 % (Benjamini & Hochberg 1995); None stays None."""
    return _adjusted(values, _benjamini_hochberg)


def adjust(lines: pl.DataFrame, family: Sequence[str] = ()) -> pl.DataFrame:
    """Add `p` (two-sided clustered t test against 0), `p_holm` and `p_fdr` to estimates.

    Parameters
    ----------
    lines : as from `estimate_means`; p is null without a standard error, and then in no family.
    family : columns that separate families of comparisons, such as `model`; by default all rows are one family.
    """
    estimates = lines.select("mean", "error", "freedom").iter_rows()
    tested = [None if error is None else _two_sided(mean, error, freedom) for mean, error, freedom in estimates]
    lines = lines.with_columns(pl.Series(_P, tested, pl.Float64))

    def over(correct: Callable[[Sequence[float | None]], list[float | None]]) -> pl.Expr:
        def adjusted(series: pl.Series) -> pl.Series:
            return pl.Series(correct(series.to_list()), dtype=pl.Float64)

        expression = pl.col(_P).map_batches(adjusted, return_dtype=pl.Float64)
        return expression.over(family) if family else expression

    return lines.with_columns(p_holm=over(holm), p_fdr=over(benjamini_hochberg))


def _two_sided(mean: float, error: float, freedom: float) -> float:
    return 2.0 * float(stdtr(freedom, -abs(mean) / error))


def _adjusted(values: Sequence[float | None], correct: Callable[[Floats], Floats]) -> list[float | None]:
    there = [place for place, value in enumerate(values) if value is not None]
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    order = np.argsort(known, kind="stable")
    adjusted: list[float | None] = [None] * len(values)
    for place, value in zip(order, np.minimum(correct(known[order]), 1.0), strict=True):
        adjusted[there[place]] = float(value)
    return adjusted


def _holm(ascending: Floats) -> Floats:
    return np.maximum.accumulate(ascending * np.arange(ascending.size, 0, -1)) if ascending.size else ascending


def _benjamini_hochberg(ascending: Floats) -> Floats:
    steps = ascending * ascending.size / np.arange(1, ascending.size + 1)
    return np.minimum.accumulate(steps[::-1])[::-1] if ascending.size else ascending


POWER = 0.8
_MOST_CLUSTERS = 1_000_000


def detectable_effect(error: float, freedom: float) -> float:
    """Return the smallest true effect that the clustered t test finds with a power of 80 %.

    Uses the non-central t distribution, without the chance of the wrong sign, which is below 1 in 10,000.

    Parameters
    ----------
    error, freedom : standard error of a mean and its degrees of freedom; the result has the unit of the error.
    """
    return error * _multiple(freedom)


def clusters_needed(effect: float, error: float, freedom: float, clusters: int) -> int | None:
    """Return the number of clusters that detects an effect with a power of 80 %.

    Assumes further clusters like the present ones: the squared error falls with their number. Degrees of freedom plus
    one grow in proportion. Returns the number; None if it exceeds a million. Raises `InputError` for an effect of 0.

    Parameters
    ----------
    effect : in the unit of the error, of any sign. error, freedom, clusters : as from `estimate_means`.
    """
    if effect == 0.0:
        raise InputError("effect: must not be 0; give the smallest effect of interest")

    def enough(count: int) -> bool:
        left = (freedom + 1.0) * count / clusters - 1.0
        return left > 0.0 and error * (clusters / count) ** 0.5 * _multiple(left) <= abs(effect)

    low, high = MIN_CLUSTERS, MIN_CLUSTERS
    while not enough(high):
        if high == _MOST_CLUSTERS:
            return None
        low, high = high, min(2 * high, _MOST_CLUSTERS)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def detectable(lines: pl.DataFrame, effect: float | None = None) -> pl.DataFrame:
    """Add the smallest detectable effect, and for `effect` the clusters and pairs needed, to estimates."""
    found: list[tuple[float | None, int | None, int | None]] = []
    for error, freedom, clusters, pairs in lines.select("error", "freedom", "clusters", "pairs").iter_rows():
        if error is None:
            found.append((None, None, None))
            continue
        needed = None if effect is None else clusters_needed(effect, error, freedom, clusters)
        episodes = None if needed is None else -(-needed * pairs // clusters)
        found.append((detectable_effect(error, freedom), needed, episodes))
    schema = {"detectable": pl.Float64, "clusters_needed": pl.Int64, "pairs_needed": pl.Int64}
    columns = pl.DataFrame(found, schema=schema, orient="row")
    return pl.concat([lines, columns if effect is not None else columns.select("detectable")], how="horizontal")


def _multiple(freedom: float) -> float:
    return float(nctdtrinc(freedom, 1.0 - POWER, stdtrit(freedom, (1 + LEVEL) / 2)))


_Z = float(ndtri((1 + LEVEL) / 2))


def wilson(share: float, trials: float) -> Interval | None:
    """Return Wilson's 95 % interval (1927) of `share` over `trials` (possibly fractional); None without trials."""
    if trials <= 0:
        return None
    spread = _Z**2 / trials
    half = _Z * sqrt(share * (1.0 - share) / trials + spread / (4.0 * trials))
    low, high = (share + spread / 2.0 - half) / (1.0 + spread), (share + spread / 2.0 + half) / (1.0 + spread)
    return (0.0 if share <= 0.0 else max(low, 0.0), 1.0 if share >= 1.0 else min(high, 1.0))


def proportions(frame: pl.DataFrame, value: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """Estimate shares by group, with Wilson intervals that account for clusters.

    Trials are effective: the number of independent episodes with the same clustered standard error (Korn & Graubard
    1998). They are limited to the effective clusters from below and all episodes from above. Without a standard error,
    as at rates of 0 and 1, they are the effective clusters.

    Parameters
    ----------
    frame : with `cluster` and a Boolean column `value`; nulls are dropped. by : grouping columns.

    Returns
    -------
    The columns of `by`, `share`, `low`, `high` (null without episodes), `successes`, `trials` (rows),
    `clusters` and `effective_trials`.
    """
    # No strata by subtask: most shares are near 0 or 1 in some of them, without a known error.
    whole = frame if "sub_task" in by else frame.with_columns(sub_task=pl.lit(""))
    columns = list(dict.fromkeys((*by, "cluster", "sub_task")))
    lines = estimate_means(whole.select(*columns, _counts=pl.col(value).cast(pl.Float64)), "_counts", by)
    found: list[tuple[float | None, ...]] = []
    estimates = lines.select("mean", "error", "pairs", "clusters", "effective_clusters")
    for share, error, pairs, clusters, effective in estimates.iter_rows():
        if share is None:
            found.append((None, None, None, 0, 0, 0, None))
            continue
        trials = min(max(share * (1.0 - share) / error**2, effective), pairs) if error else effective
        low, high = wilson(share, trials) or (None, None)
        found.append((share, low, high, round(share * pairs), pairs, clusters, trials))
    shares = dict.fromkeys(("share", "low", "high"), pl.Float64)
    counts = dict.fromkeys(("successes", "trials", "clusters"), pl.Int64)
    columns = pl.DataFrame(found, schema={**shares, **counts, "effective_trials": pl.Float64}, orient="row")
    return pl.concat([lines.select(by), columns], how="horizontal") if by else columns


_LEAST = 1e-9
"""Smaller differences count as 0."""


class Signs(NamedTuple):
    """Number of clusters with a mean difference above 0 (`more`) and below 0 (`less`)."""

    more: int
    less: int

    def p(self, mean: float | None) -> float:
        """Return the two-sided p-value; 1 if the mean, by episodes, is 0, unknown, or opposite to most clusters."""
        if mean is None or mean * (self.more - self.less) <= 0:
            return 1.0
        return min(1.0, 2 * float(bdtrc(max(self) - 1, sum(self), 0.5)))


def cluster_signs(frame: pl.DataFrame, by: Sequence[str], margin: float = 0.0) -> dict[tuple[object, ...], Signs]:
    """Count the clusters of each group whose mean `difference` is above and below `-margin`."""
    change = pl.col("difference") + margin
    means = frame.group_by(*by, "cluster").agg(change.mean().alias("_change"))
    counts = means.group_by(by).agg(_more=(pl.col("_change") > _LEAST).sum(), _less=(pl.col("_change") < -_LEAST).sum())
    return {tuple(row[:-2]): Signs(*row[-2:]) for row in counts.iter_rows()}
