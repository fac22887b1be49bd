"""Means with intervals that know which episodes belong together: `estimate` gives a line for each group of a frame.

Means of groups of episodes with their intervals, a line for each group.

The percentile and the BCa interval of a bootstrap that draws clusters.

What an interval needs of a group: how many episodes each cluster has in each part, and the sums of their values.

The cluster-robust t interval that is exact enough for few clusters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri, stdtrit
from threadpoolctl import threadpool_limits

from finskillbench.arrays import Floats, Integers
from finskillbench.errors import InternalError


@dataclass(frozen=True, slots=True)
class Cells:
    """One group of episodes, told apart by part (a subtask, or several in one) and cluster.

    Attributes
    ----------
    counts : (K, C) episodes of each of the C clusters in each of the K parts.
    sums : (K, C) sums of their values.
    weights : (K,) what each part's mean counts for; they add up to 1.
    """

    counts: Floats
    sums: Floats
    weights: Floats

    @property
    def clusters(self) -> int:
        """How many clusters the group has."""
        return self.counts.shape[1]

    @property
    def means(self) -> Floats:
        """(K,) The mean of each part."""
        return self.sums.sum(axis=1) / self.counts.sum(axis=1)

    @property
    def mean(self) -> float:
        """The weighted mean of the parts."""
        return float(self.weights @ self.means)

    @property
    def deviations(self) -> Floats:
        """(K, C) Sums of the deviations from the mean of their part."""
        return self.sums - self.counts * self.means[:, None]

    @property
    def effective_clusters(self) -> float:
        """The number of clusters of one size that would say as much, were episodes of a cluster all alike.

        It is 1 / sum(share²) of the clusters' shares in the mean: (sum n)² / sum n² for a plain mean (Kish 1965), which
        is G / (1 + CV²) of the sizes (Carter, Schnepel & Steigerwald 2017, at a correlation of one).
        """
        shares = self.weights @ (self.counts / self.counts.sum(axis=1, keepdims=True))
        return float(1.0 / (shares**2).sum())


def gather(part: Integers, cluster: Integers, counts: Floats, sums: Floats, *, alike: bool) -> Cells:
    """Lay out the sums of one group.

    Parameters
    ----------
    part, cluster : (n,) codes; together they name a sum once.
    counts, sums : (n,) episodes behind it, and the sum.
    alike : whether all parts weigh alike; otherwise all episodes do.
    """
    parts, row = np.unique(part, return_inverse=True)
    clusters, column = np.unique(cluster, return_inverse=True)
    laid = np.zeros((2, parts.size, clusters.size))
    laid[0, row, column], laid[1, row, column] = counts, sums
    if alike:
        return Cells(laid[0], laid[1], np.full(parts.size, 1.0 / parts.size))
    laid = _joined(laid)
    return Cells(laid[0], laid[1], laid[0].sum(axis=1) / laid[0].sum())


def _joined(laid: Floats) -> Floats:
    """(2, K, C) counts and sums with the parts taken together that are one cluster alone.

    They say nothing of how far they may be off, each by itself; together they do, and that their means are unlike makes
    the interval wider than it need be. What is still one cluster alone joins the part of fewest clusters.
    """
    clusters = (laid[0] > 0).sum(axis=1)
    if (clusters > 1).all():
        return laid
    joined = laid[:, clusters == 1].sum(axis=1, keepdims=True)
    others, sizes = laid[:, clusters > 1], clusters[clusters > 1]
    if sizes.size and (joined[0] > 0).sum() == 1:
        fewest = int(sizes.argmin())
        joined += others[:, fewest : fewest + 1]
        others = np.delete(others, fewest, axis=1)
    return np.concatenate([others, joined], axis=1)


Interval: TypeAlias = tuple[float, float]
"""The lower and the upper end."""
LEVEL = 0.95
MIN_CLUSTERS = 3
"""With two clusters the interval has about one degree of freedom and spans every score there is."""
MIN_APART = 5
"""Clusters that differ from the rest, where most differ alike: fewer than five rare successes say too little for an
interval that is symmetric about their mean. At a rate of 0.02 in 150 it would cover the truth in 84 of 100 cases."""


class Spread(NamedTuple):
    """How sure a mean is: its standard error, and the degrees of freedom of t."""

    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        return float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * self.error


def tells_enough(cells: Cells) -> bool:
    """Whether an interval can be said, by whatever method: enough clusters, of which enough differ from the rest.

    A part that is one cluster alone says nothing of how far it may be off; see `MIN_CLUSTERS` and `MIN_APART`.
    """
    if cells.clusters < MIN_CLUSTERS or ((cells.counts > 0).sum(axis=1) < 2).any():
        return False
    if not ((cells.weights / cells.counts.sum(axis=1)) @ cells.deviations).round(9).any():
        return False
    apart = np.zeros(cells.clusters, dtype=bool)
    # Each part is held against itself: parts of unlike means make clusters differ in which nothing does.
    for counts, sums in zip(cells.counts, cells.sums, strict=True):
        held = np.flatnonzero(counts)
        means = (sums[held] / counts[held]).round(9) + 0.0
        _, first, often = np.unique(means, return_index=True, return_counts=True)
        # Among equally common ones that of the first cluster, so that the sign of the values decides nothing.
        apart[held] |= means != means[first[often == often.max()].min()]
    return 2 * int(apart.sum()) >= apart.size or int(apart.sum()) >= MIN_APART


def spread(cells: Cells) -> Spread:
    """The standard error of a group's mean and its degrees of freedom; only where `tells_enough`.

    The variance is CR2, and t has the degrees of freedom of Satterthwaite's approximation under independence (Bell &
    McCaffrey 2002; Imbens & Kolesar 2016), both for a regression on one constant for each part.
    """
    totals = cells.counts.sum(axis=1, keepdims=True)
    weights = cells.weights[:, None] / (totals * np.sqrt(1.0 - cells.counts / totals))
    variance = float(((weights * cells.deviations).sum(axis=0) ** 2).sum())
    # The clusters' weighted sums of deviations, were all episodes independent with variance 1, have the covariance
    # diag(alone) - shared' shared.
    alone = (cells.counts * weights**2).sum(axis=0)
    shared = cells.counts * weights / np.sqrt(totals)
    lost = (shared**2).sum(axis=0)
    trace = float((alone - lost).sum())
    squares = float((alone**2).sum() - 2.0 * (alone * lost).sum() + ((shared @ shared.T) ** 2).sum())
    return Spread(variance**0.5, trace**2 / squares)


TAILS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
MOST_LOST = 0.05
"""The share of resamples that may leave a part without an episode; they say no mean of the parts and are set aside."""
_CHUNK = 512
"""Resamples at a time: so many of a few hundred groups stay in a processor's cache."""
_EQUAL = 1e-12


def resample(groups: Sequence[Cells], resamples: int, seed: int) -> Floats:
    """Means of groups that have the same number of clusters.

    Returns
    -------
    (groups, resamples) means, each row in ascending order; NaN, at its end, where a part of the group was not drawn.
    """
    counts = np.concatenate([group.counts for group in groups])
    sums = np.concatenate([group.sums * group.weights[:, None] for group in groups])
    starts = np.cumsum([0, *(group.weights.size for group in groups[:-1])])
    means = np.empty((len(groups), resamples))
    done = 0
    # The products are small: on a busy machine BLAS threads would only wait for each other. 0 / 0: a part not drawn.
    with threadpool_limits(1), np.errstate(invalid="ignore"):
        for drawn in draws(groups[0].clusters, resamples, seed):
            of_parts = (sums @ drawn.T) / (counts @ drawn.T)
            means[:, done : done + len(drawn)] = np.add.reduceat(of_parts, starts, axis=0)
            done += len(drawn)
    means.sort(axis=1)
    return means


def percentile(resampled: Floats) -> Interval | None:
    """The 2.5 % and 97.5 % quantiles of a group's resampled means; None where too many say nothing."""
    kept = _kept(resampled)
    return None if kept is None else _between(kept, TAILS)


def bca(cells: Cells, resampled: Floats) -> Interval | None:
    """The bias-corrected and accelerated interval (Efron 1987), accelerated by leaving out one cluster at a time.

    None where too many resamples say nothing, all lie on one side of the mean, or a part hangs on one cluster.
    """
    kept, acceleration = _kept(resampled), _acceleration(cells)
    if kept is None or acceleration is None:
        return None
    mean = cells.mean
    ties = np.searchsorted(kept, mean - _EQUAL), np.searchsorted(kept, mean + _EQUAL, side="right")
    below = float(ties[0] + ties[1]) / (2 * kept.size)  # ties count half
    if not 0.0 < below < 1.0:
        return None
    bias = ndtri(below)
    shifted = bias + ndtri(TAILS)
    return _between(kept, ndtr(bias + shifted / (1.0 - acceleration * shifted)))


def draws(clusters: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each cluster is drawn in each resample: parts of a (resamples, clusters) array."""
    rng = np.random.default_rng([seed, clusters])
    for done in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - done)
        drawn = rng.integers(clusters, size=(rows, clusters)) + clusters * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.float64)


def _kept(resampled: Floats) -> Floats | None:
    """The resampled means that say something, None where too few do."""
    kept = resampled[: np.searchsorted(resampled, np.inf, side="right")]
    return kept if kept.size >= (1.0 - MOST_LOST) * resampled.size else None


def _between(ordered: Floats, levels: Floats) -> Interval:
    """Quantiles of ordered values, linear between neighbours."""
    places = levels * (ordered.size - 1)
    before = np.minimum(places.astype(int), ordered.size - 2)
    low, high = ordered[before] + (places - before) * (ordered[before + 1] - ordered[before])
    return float(low), float(high)


def _acceleration(cells: Cells) -> float | None:
    """A sixth of the skewness of the means that leave one cluster out."""
    counts = cells.counts.sum(axis=1, keepdims=True) - cells.counts
    if not counts.all():
        return None
    sums = cells.sums.sum(axis=1, keepdims=True) - cells.sums
    without = cells.weights @ (sums / counts)
    gaps = without.mean() - without
    return float((gaps**3).sum() / (6.0 * (gaps**2).sum() ** 1.5))


BOUNDS = {"difference": (-1.0, 1.0), **dict.fromkeys(("score", "treated", "reference"), (0.0, 1.0))}
"""What the means of the columns of `Results.episodes` and `pairs` can be; a t interval is cut off there."""
_SAID = {
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "error": pl.Float64,
    "freedom": pl.Float64,
    "pairs": pl.Int64,
    "clusters": pl.Int64,
    "effective_clusters": pl.Float64,
}
_BATCH = 256
"""Groups resampled at a time: 10,000 means of each are 20 MB."""


class Method(StrEnum):
    """How an interval is made; t is the default for its coverage.

    `benchmarks/intervals.py` measures how often a 95 % interval holds the truth, for clusters of one to nine episodes,
    intra-cluster correlations of 0 to 0.85, and normal noise: t 0.94 to 0.96 from 5 clusters on; percentile and BCa
    0.82 to 0.86 of 5, 0.89 to 0.90 of 12, 0.93 of 40, 0.94 to 0.95 of 150. Of noise as skewed as an exponential, t has
    0.89 to 0.95, and more than the others at every number. From a correlation of 0.3 on, an interval that takes
    episodes for independent has 0.54 to 0.80.
    """

    T = "t"
    PERCENTILE = "percentile"
    BCA = "bca"


class Weighting(StrEnum):
    """What a mean weighs: every episode alike, or every subtask."""

    MICRO = "micro"
    MACRO = "macro"


def estimate(
    frame: pl.DataFrame,
    value: str = "difference",
    by: Sequence[str] = (),
    method: str = Method.T,
    weighting: str = Weighting.MICRO,
    resamples: int = 10_000,
    seed: int = 0,
    bounds: Interval | None = None,
    part: str = "sub_task",
) -> pl.DataFrame:
    """The mean of a column in each group, with a 95 % interval that counts what episodes share once.

    How many episodes each subtask has is fixed beforehand, so that unlike means of subtasks are no chance: under either
    weighting the interval is that of a stratified mean, whose parts are the subtasks.

    Parameters
    ----------
    frame : as from `pairs` or `Results.episodes`; any frame with `sub_task`, `cluster` and the value will do. Nulls of
        the value are left out.
    value : what is averaged.
    by : what groups are told apart by; by nothing there is one group. They come in the order of the frame.
    method : "t" (CR2 with Satterthwaite's degrees of freedom), or "percentile" or "bca" of a bootstrap that draws
        clusters.
    weighting : "micro": every episode weighs alike; "macro": every subtask does.
    resamples, seed : of the bootstrap. A group's interval depends on no other group.
    bounds : what a mean can be, where the column's name does not tell (`BOUNDS`).
    part : the column of the strata, each of which has its own mean.

    Returns
    -------
    The columns of `by`, then `mean` (null where no episode has a value), `low` and `high` (null where no interval can
    be said: too few clusters, or too few that differ from the rest), `error` and `freedom` (the CR2 standard error of
    the mean and its degrees of freedom, whatever the method; null with the interval), `pairs` (the values behind the
    mean), `clusters` and `effective_clusters` (how many of one size would say as much; null without any).
    """
    method, weighting = Method(method), Weighting(weighting)
    taken = sorted({*by} & {*_SAID})
    if taken:
        raise InternalError(f"estimate: groups cannot be told apart by {taken[0]!r}: it is a column of the result")
    groups = frame.select(by).unique(maintain_order=True) if by else pl.DataFrame({"_": [0]})
    gathered = _gather(frame, value, list(by), groups, weighting, part)
    spreads = {place: spread(cells) for place, cells in gathered.items() if tells_enough(cells)}
    if method is Method.T:
        intervals = _t_intervals(gathered, spreads, bounds or BOUNDS.get(value, (-inf, inf)))
    else:
        intervals = _bootstrapped(gathered, sorted(spreads), method, resamples, seed)
    lines = [_line(gathered.get(place), spreads.get(place), intervals.get(place)) for place in range(groups.height)]
    said = pl.DataFrame(lines, schema=_SAID, orient="row")
    return pl.concat([groups, said], how="horizontal") if by else said


def _gather(
    frame: pl.DataFrame, value: str, by: list[str], groups: pl.DataFrame, weighting: Weighting, part: str
) -> dict[int, Cells]:
    """The cells of every group that has a value, by its place."""
    kept = frame.filter(pl.col(value).is_not_null()).select(
        *by,
        _cluster=pl.col("cluster").rank("dense"),
        _part=pl.col(part).rank("dense"),
        _value=pl.col(value).cast(pl.Float64),
    )
    places = groups.with_row_index("_place")
    kept = kept.join(places, on=by, how="left", nulls_equal=True) if by else kept.with_columns(_place=pl.lit(0))
    sums = (
        kept.group_by("_place", "_part", "_cluster")
        .agg(pl.col("_value").sum(), _count=pl.len().cast(pl.Float64))
        .sort("_place", "_part", "_cluster")
    )
    columns = [sums[name].to_numpy() for name in ("_part", "_cluster", "_count", "_value")]
    present, starts, sizes = np.unique(sums["_place"].to_numpy(), return_index=True, return_counts=True)
    alike = weighting is Weighting.MACRO
    return {
        int(place): gather(*(column[start : start + size] for column in columns), alike=alike)
        for place, start, size in zip(present, starts, sizes, strict=True)
    }


def _t_intervals(groups: dict[int, Cells], spreads: dict[int, Spread], bounds: Interval) -> dict[int, Interval]:
    low, high = bounds
    intervals: dict[int, Interval] = {}
    for place, each in spreads.items():
        mean, half = groups[place].mean, each.half_width
        # The published ranked list scores above 1: what a mean has passed is no bound of it.
        intervals[place] = (
            max(mean - half, low if low <= mean else -inf),
            min(mean + half, high if mean <= high else inf),
        )
    return intervals


def _bootstrapped(
    groups: dict[int, Cells], places: Sequence[int], method: Method, resamples: int, seed: int
) -> dict[int, Interval]:
    alike: defaultdict[int, list[int]] = defaultdict(list)
    for place in places:
        alike[groups[place].clusters].append(place)
    intervals: dict[int, Interval] = {}
    for members in alike.values():
        for start in range(0, len(members), _BATCH):
            batch = members[start : start + _BATCH]
            resampled = resample([groups[place] for place in batch], resamples, seed)
            for place, means in zip(batch, resampled, strict=True):
                found = percentile(means) if method is Method.PERCENTILE else bca(groups[place], means)
                if found is not None:
                    intervals[place] = found
    return intervals


def _line(cells: Cells | None, known: Spread | None, interval: Interval | None) -> tuple[float | None, ...]:
    if cells is None:
        return (None, None, None, None, None, 0, 0, None)
    low, high = interval or (None, None)
    error, freedom = known or (None, None)
    pairs = int(cells.counts.sum())
    return (cells.mean, low, high, error, freedom, pairs, cells.clusters, cells.effective_clusters)
