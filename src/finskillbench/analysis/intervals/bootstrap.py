"""The percentile and the BCa interval of a bootstrap that draws clusters.

Groups of the same number of clusters share their draws, so that one product of matrices resamples them all. The draws
come from the seed and that number alone: a group's interval does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import ndtr, ndtri
from threadpoolctl import threadpool_limits

from finskillbench.analysis.intervals.cells import Cells
from finskillbench.analysis.intervals.clustered_t import LEVEL, Interval
from finskillbench.arrays import Floats

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
