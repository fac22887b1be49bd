"""Paired differences between two conditions, with an interval that knows which episodes belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from finskillbench.arrays import Floats, Integers

LEVEL = 0.95
MIN_PAIRS = 2
MIN_CLUSTERS = 3
"""With two clusters the interval has about one degree of freedom and spans every score there is."""
MIN_APART = 5
"""Clusters that differ from the rest, where most differ alike: fewer than five rare successes say too little for an
interval that is symmetric about their mean. At a rate of 0.02 in 150 it would cover the truth in 84 of 100 cases."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean paired difference `treated - reference` over `pairs` episodes in `clusters`, and its 95 % interval.

    `interval` is None where none can be said: too few clusters, or too few that differ from the rest.
    """

    mean: float
    interval: tuple[float, float] | None
    pairs: int
    clusters: int


def paired_difference(
    treated: Mapping[str, float], reference: Mapping[str, float], cluster_of: Mapping[str, str]
) -> Difference | None:
    """Difference of two conditions over the episodes that both have.

    Parameters
    ----------
    treated, reference : score by task id; repeats of an episode are averaged beforehand, so that an episode counts
        once however often it was run.
    cluster_of : the cluster of each task: episodes that share a market date, a mandate or a company are no
        independent witnesses.

    Returns
    -------
    The difference, or None where fewer than two episodes are paired and nothing can be said.
    """
    shared = sorted(treated.keys() & reference.keys())
    if len(shared) < MIN_PAIRS:
        return None
    gaps = np.array([treated[task] - reference[task] for task in shared])
    names, member = np.unique([cluster_of[task] for task in shared], return_inverse=True)
    sizes = np.bincount(member)
    mean = float(gaps.mean())
    residuals = np.bincount(member, weights=gaps - mean).astype(np.float64)
    interval = None
    if len(names) >= MIN_CLUSTERS and np.ptp(gaps) > 1e-12 and _tell_enough(np.bincount(member, gaps) / sizes):
        half = _half_width(residuals, sizes)
        interval = (max(mean - half, -1.0), min(mean + half, 1.0))
    return Difference(mean, interval, len(shared), len(names))


def _tell_enough(means: Floats) -> bool:
    """Whether the mean differences of the clusters vary in enough of them; see `MIN_APART`."""
    _, counts = np.unique(means.round(9), return_counts=True)
    alike = int(counts.max())
    return alike <= means.size / 2 or means.size - alike >= MIN_APART


def _half_width(residuals: Floats, sizes: Integers) -> float:
    """Half the width of a cluster-robust interval of a mean that is exact enough for few clusters.

    The variance is CR2, and t has the degrees of freedom of Satterthwaite's approximation under independence (Bell &
    McCaffrey 2002; Imbens & Kolesar 2016), both for a regression on a constant.

    Parameters
    ----------
    residuals : (G,) sums of the deviations from the mean, by cluster. sizes : (G,) episodes of each cluster.
    """
    total = sizes.sum()
    shares = sizes / total
    weights = 1.0 / (total * np.sqrt(1.0 - shares))
    variance = float(((weights * residuals) ** 2).sum())
    # Covariance of the weighted residual sums if all episodes were independent with variance 1.
    spread = np.diag(sizes * weights**2) - np.outer(sizes * weights, sizes * weights) / total
    freedom = float(np.trace(spread) ** 2 / (spread**2).sum())
    return float(stdtrit(freedom, (1 + LEVEL) / 2)) * variance**0.5
