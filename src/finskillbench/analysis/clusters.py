"""Clustered episodes: sums by cluster, cluster-robust t intervals, and a bootstrap over clusters.

Bootstrap groups with the same number of clusters share their draws, so that one matrix product resamples them all. The
draws depend on the seed and that number alone, so a group's interval does not depend on other groups.
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
    """One group of episodes, by part (one or several subtasks) and cluster.

    Attributes
    ----------
    counts, sums : (K, C) episodes, and sums of their values, of each of C clusters in each of K parts.
    weights : (K,) weights of the parts' means; they sum to 1.
    """

    counts: Floats
    sums: Floats
    weights: Floats

    @property
    def clusters(self) -> int:
        return self.counts.shape[1]

    @property
    def means(self) -> Floats:
        """(K,) Mean of each part."""
        return self.sums.sum(axis=1) / self.counts.sum(axis=1)

    @property
    def mean(self) -> float:
        return float(self.weights @ self.means)

    @property
    def deviations(self) -> Floats:
        """(K, C) Sums of deviations from the part's mean."""
        return self.sums - self.counts * self.means[:, None]

    @property
    def effective_clusters(self) -> float:
        """Number of clusters of equal size with the same information, if a cluster's episodes are all alike.

        Equals 1 / sum(share²) of the clusters' shares in the mean: (sum n)² / sum n² for a plain mean (Kish 1965),
        which is G / (1 + CV²) of the sizes (Carter, Schnepel & Steigerwald 2017, at a correlation of one).
        """
        shares = self.weights @ (self.counts / self.counts.sum(axis=1, keepdims=True))
        return float(1.0 / (shares**2).sum())


def gather_cells(part: Integers, cluster: Integers, counts: Floats, sums: Floats, *, alike: bool) -> Cells:
    """Arrange the sums of one group by part and cluster.

    Parameters
    ----------
    part, cluster : (n,) codes; each pair occurs once.
    counts, sums : (n,) episodes and sums of values.
    alike : weigh all parts alike; otherwise all episodes.
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
    """Merge the parts of (2, K, C) counts and sums that have a single cluster.

    Such a part has no variance estimate. The merged part has one, which is conservative if the means differ. If the
    merged part still has a single cluster, it joins the part with the fewest clusters.
    """
    clusters = (laid[0] > 0).sum(axis=1)
    if (clusters > 1).all():
        return laid
    joined = laid[:, clusters == 1].sum(axis=1, keepdims=True)
    several, sizes = laid[:, clusters > 1], clusters[clusters > 1]
    if sizes.size and (joined[0] > 0).sum() == 1:
        fewest = int(sizes.argmin())
        joined += several[:, fewest : fewest + 1]
        several = np.delete(several, fewest, axis=1)
    return np.concatenate([several, joined], axis=1)


Interval: TypeAlias = tuple[float, float]
"""Lower and upper end."""
LEVEL = 0.95
MIN_CLUSTERS = 3
"""With two clusters, t has about one degree of freedom and the interval spans all scores."""
MIN_APART = 5
"""Minimum differing clusters if most are alike; with fewer rare successes a symmetric interval fails.

At a rate of 0.02 in 150 it would cover the truth in 84 of 100 cases.
"""


class StandardError(NamedTuple):
    """Standard error of a mean, and the degrees of freedom of t."""

    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        return float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * self.error


def supports_interval(cells: Cells) -> bool:
    """Test for enough clusters, and enough that differ, for an interval; see `MIN_CLUSTERS` and `MIN_APART`."""
    if cells.clusters < MIN_CLUSTERS or ((cells.counts > 0).sum(axis=1) < 2).any():
        return False
    if not ((cells.weights / cells.counts.sum(axis=1)) @ cells.deviations).round(9).any():
        return False
    apart = np.zeros(cells.clusters, dtype=bool)
    # Compare clusters within their part: unequal part means would make identical clusters differ.
    for counts, sums in zip(cells.counts, cells.sums, strict=True):
        held = np.flatnonzero(counts)
        means = (sums[held] / counts[held]).round(9) + 0.0
        _, first, often = np.unique(means, return_index=True, return_counts=True)
        # Among equally common values take the first cluster's, so that signs do not matter.
        apart[held] |= means != means[first[often == often.max()].min()]
    return 2 * int(apart.sum()) >= apart.size or int(apart.sum()) >= MIN_APART


def standard_error(cells: Cells) -> StandardError:
    """Return the CR2 standard error of a group's mean; requires `supports_interval`.

    Degrees of freedom by Satterthwaite's approximation under independence (Bell & McCaffrey 2002; Imbens & Kolesar
    2016), for a regression on one constant per part.
    """
    totals = cells.counts.sum(axis=1, keepdims=True)
    weights = cells.weights[:, None] / (totals * np.sqrt(1.0 - cells.counts / totals))
    variance = float(((weights * cells.deviations).sum(axis=0) ** 2).sum())
    # If all episodes were independent with variance 1, the clusters' weighted sums of deviations would have the
    # covariance
    # diag(alone) - shared' shared.
    alone = (cells.counts * weights**2).sum(axis=0)
    shared = cells.counts * weights / np.sqrt(totals)
    lost = (shared**2).sum(axis=0)
    trace = float((alone - lost).sum())
    squares = float((alone**2).sum() - 2.0 * (alone * lost).sum() + ((shared @ shared.T) ** 2).sum())
    return StandardError(variance**0.5, trace**2 / squares)


TAILS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
MOST_LOST = 0.05
"""Maximum share of resamples that leave a part without episodes; these are dropped."""
_CHUNK = 512
"""Resamples per batch: a few hundred groups of this size fit into a processor's cache."""
_EQUAL = 1e-12


def resample(groups: Sequence[Cells], resamples: int, seed: int) -> Floats:
    """Return (groups, resamples) means of groups with equal numbers of clusters, ascending, NaN last."""
    counts = np.concatenate([group.counts for group in groups])
    sums = np.concatenate([group.sums * group.weights[:, None] for group in groups])
    starts = np.cumsum([0, *(group.weights.size for group in groups[:-1])])
    means = np.empty((len(groups), resamples))
    done = 0
    # Small products: BLAS threads would wait for each other on a busy machine. 0 / 0: a part was not drawn.
    with threadpool_limits(1), np.errstate(invalid="ignore"):
        for drawn in draws(groups[0].clusters, resamples, seed):
            of_parts = (sums @ drawn.T) / (counts @ drawn.T)
            means[:, done : done + len(drawn)] = np.add.reduceat(of_parts, starts, axis=0)
            done += len(drawn)
    means.sort(axis=1)
    return means


def percentile(resampled: Floats) -> Interval | None:
    """Return the 2.5 % and 97.5 % quantiles of the resampled means; None if too many are NaN."""
    kept = _kept(resampled)
    return None if kept is None else _between(kept, TAILS)


def bca(cells: Cells, resampled: Floats) -> Interval | None:
    """Return the BCa interval (Efron 1987) with a jackknife over clusters; None if undefined or too many NaN."""
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
    """Yield (batch, clusters) numbers of draws of each cluster, `resamples` rows in all."""
    rng = np.random.default_rng([seed, clusters])
    for done in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - done)
        drawn = rng.integers(clusters, size=(rows, clusters)) + clusters * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.float64)


def _kept(resampled: Floats) -> Floats | None:
    kept = resampled[: np.searchsorted(resampled, np.inf, side="right")]
    return kept if kept.size >= (1.0 - MOST_LOST) * resampled.size else None


def _between(ordered: Floats, levels: Floats) -> Interval:
    places = levels * (ordered.size - 1)
    before = np.minimum(places.astype(int), ordered.size - 2)
    low, high = ordered[before] + (places - before) * (ordered[before + 1] - ordered[before])
    return float(low), float(high)


def _acceleration(cells: Cells) -> float | None:
    """Sixth of the skewness of the jackknife means."""
    counts = cells.counts.sum(axis=1, keepdims=True) - cells.counts
    if not counts.all():
        return None
    sums = cells.sums.sum(axis=1, keepdims=True) - cells.sums
    without = cells.weights @ (sums / counts)
    gaps = without.mean() - without
    return float((gaps**3).sum() / (6.0 * (gaps**2).sum() ** 1.5))
