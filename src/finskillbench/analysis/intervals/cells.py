"""What an interval needs of a group: how many episodes each cluster has in each part, and the sums of their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
