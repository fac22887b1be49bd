"""Clustered episodes: their sums by cluster, the cluster-robust t interval, and a bootstrap that draws clusters.

Bootstrap groups of the same number of clusters share their draws, so that one product of matrices resamples them all.
The draws come from the seed and that number alone: a group's interval does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit
from threadpoolctl import threadpool_limits

from finskillbench.arrays import Floats, Integers


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
