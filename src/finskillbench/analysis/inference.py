"""What figures can bear: proportions, many comparisons at once, and how small an effect would have been seen.

`detectable` and `adjust` add columns to the lines of `finskillbench.analysis.intervals`.

Many comparisons at once: with twelve subtasks, one in two tables would show an effect where there is none.

How small an effect would have been seen, and how many clusters a given one takes.

Intervals of shares, which stay within 0 and 1 and can be said even where nothing or everything counts.

The exact sign test over clusters: evidence where differences vary too little for a t test.
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
from finskillbench.analysis.intervals import estimate
from finskillbench.arrays import Floats
from finskillbench.errors import InputError

_P = "p"


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted so that 5 % is the chance of any false finding (Holm 1979); an absent one stays absent."""
    return _adjusted(values, _holm)


def holm_weighted(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The same where tests share the chance of a false finding unevenly, by positive weights (Holm 1979, section 4)."""
    order = sorted(range(len(values)), key=lambda place: values[place] / weights[place])
    adjusted, least, left = [0.0] * len(values), 0.0, math.fsum(weights)
    for place in order:
        least = max(least, min(1.0, values[place] * left / weights[place]))
        adjusted[place] = least
        left -= weights[place]
    return adjusted


def benjamini_hochberg(values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted so that of the findings below 5 %, 5 % are expected to be false (Benjamini & Hochberg 1995).

    An absent one stays absent.
    """
    return _adjusted(values, _benjamini_hochberg)


def adjust(lines: pl.DataFrame, family: Sequence[str] = ()) -> pl.DataFrame:
    """The lines of `estimate` with the two-sided `p` of the clustered t test against 0, `p_holm` and `p_fdr`.

    Parameters
    ----------
    lines : as `estimate` returns them; p is null where a line has no standard error, and counts in no family.
    family : the columns that tell families of comparisons apart, such as `model`; by default all lines are one.
    """
    told = lines.select("mean", "error", "freedom").iter_rows()
    tested = [None if error is None else _two_sided(mean, error, freedom) for mean, error, freedom in told]
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
"""The chance with which an effect should be found."""
_MOST_CLUSTERS = 1_000_000


def detectable_effect(error: float, freedom: float) -> float:
    """The least true effect that the clustered t test finds in 80 of 100 runs, in the unit of the error.

    From the non-central t distribution; the chance to find an effect of the wrong sign, below 1 in 10,000, is left out.

    Parameters
    ----------
    error, freedom : the standard error of a mean and its degrees of freedom, as `estimate` gives them.
    """
    return error * _multiple(freedom)


def clusters_needed(effect: float, error: float, freedom: float, clusters: int) -> int | None:
    """The least number of clusters with which a true effect would be found in 80 of 100 runs.

    The clusters are taken to be like those that were run: the squared error falls with their number, and the degrees of
    freedom, of which clusters of one size have one less than there are, rise in proportion but for that one.

    Parameters
    ----------
    effect : in the unit of the error, of any sign. error, freedom, clusters : as `estimate` gives them.

    Returns
    -------
    The number; None where a million clusters would not do.

    Raises
    ------
    InputError : the effect is 0.
    """
    if effect == 0.0:
        raise InputError("effect: no number of episodes finds an effect of 0; give the least one that matters")

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
    """The lines of `estimate` with the column `detectable`: the least true effect that would have been found.

    Where an effect is given, also `clusters_needed`, and `pairs_needed` at as many pairs for each cluster as were run.
    All are null where the line has no standard error.
    """
    found: list[tuple[float | None, int | None, int | None]] = []
    for error, freedom, clusters, pairs in lines.select("error", "freedom", "clusters", "pairs").iter_rows():
        if error is None:
            found.append((None, None, None))
            continue
        needed = None if effect is None else clusters_needed(effect, error, freedom, clusters)
        episodes = None if needed is None else -(-needed * pairs // clusters)
        found.append((detectable_effect(error, freedom), needed, episodes))
    schema = {"detectable": pl.Float64, "clusters_needed": pl.Int64, "pairs_needed": pl.Int64}
    beside = pl.DataFrame(found, schema=schema, orient="row")
    return pl.concat([lines, beside if effect is not None else beside.select("detectable")], how="horizontal")


def _multiple(freedom: float) -> float:
    """The detectable effect in standard errors."""
    return float(nctdtrinc(freedom, 1.0 - POWER, stdtrit(freedom, (1 + LEVEL) / 2)))


_Z = float(ndtri((1 + LEVEL) / 2))


def wilson(share: float, trials: float) -> Interval | None:
    """Wilson's 95 % interval (1927) of a share of `trials` independent episodes; None of no trial.

    Parameters
    ----------
    share : successes over trials. trials : a fraction where it is an effective number.
    """
    if trials <= 0:
        return None
    spread = _Z**2 / trials
    half = _Z * sqrt(share * (1.0 - share) / trials + spread / (4.0 * trials))
    low, high = (share + spread / 2.0 - half) / (1.0 + spread), (share + spread / 2.0 + half) / (1.0 + spread)
    return (0.0 if share <= 0.0 else max(low, 0.0), 1.0 if share >= 1.0 else min(high, 1.0))


def proportions(frame: pl.DataFrame, value: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """Shares of episodes in groups, with Wilson intervals that count what episodes share once.

    The trials are the effective ones: as many independent episodes as would have the clustered standard error (Korn &
    Graubard 1998), at most all and at least the effective clusters; these where the error is not known, as where
    nothing or everything counts.

    Parameters
    ----------
    frame : with `cluster` and a Boolean column `value`; nulls are left out. by : what groups are told apart by.

    Returns
    -------
    The columns of `by`, then `share`, `low`, `high` (null of no episode), `successes`, `trials`, `clusters` and
    `effective_trials`.
    """
    # Subtasks are no strata here: most shares are near 0 or 1 in some of them, and their errors not known.
    whole = frame if "sub_task" in by else frame.with_columns(sub_task=pl.lit(""))
    columns = list(dict.fromkeys((*by, "cluster", "sub_task")))
    lines = estimate(whole.select(*columns, _counts=pl.col(value).cast(pl.Float64)), "_counts", by)
    found: list[tuple[float | None, ...]] = []
    told = lines.select("mean", "error", "pairs", "clusters", "effective_clusters")
    for share, error, pairs, clusters, effective in told.iter_rows():
        if share is None:
            found.append((None, None, None, 0, 0, 0, None))
            continue
        trials = min(max(share * (1.0 - share) / error**2, effective), pairs) if error else effective
        low, high = wilson(share, trials) or (None, None)
        found.append((share, low, high, round(share * pairs), pairs, clusters, trials))
    shares = dict.fromkeys(("share", "low", "high"), pl.Float64)
    counts = dict.fromkeys(("successes", "trials", "clusters"), pl.Int64)
    said = pl.DataFrame(found, schema={**shares, **counts, "effective_trials": pl.Float64}, orient="row")
    return pl.concat([lines.select(by), said], how="horizontal") if by else said


_LEAST = 1e-9
"""A cluster that differs by less does not differ."""


class Signs(NamedTuple):
    """Clusters with a mean difference above 0 (`more`) and below 0 (`less`)."""

    more: int
    less: int

    def p(self, mean: float | None) -> float:
        """Return the two-sided p-value; 1 where the mean is 0, unknown, or opposite to most clusters.

        Clusters count once in the test and by their episodes in the mean, so that the two can disagree.
        """
        if mean is None or mean * (self.more - self.less) <= 0:
            return 1.0
        return min(1.0, 2 * float(bdtrc(max(self) - 1, sum(self), 0.5)))


def cluster_signs(frame: pl.DataFrame, by: Sequence[str], margin: float = 0.0) -> dict[tuple[object, ...], Signs]:
    """Count the clusters of each group whose mean `difference` lies above and below `-margin`."""
    change = pl.col("difference") + margin
    means = frame.group_by(*by, "cluster").agg(change.mean().alias("_change"))
    counts = means.group_by(by).agg(_more=(pl.col("_change") > _LEAST).sum(), _less=(pl.col("_change") < -_LEAST).sum())
    return {tuple(row[:-2]): Signs(*row[-2:]) for row in counts.iter_rows()}
