"""What an interval needs of a group: how many episodes each cluster has in each part, and the sums of their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats, Integers


@dataclass(frozen=True, slots=True)
class Cells:
    """One group of episodes, told apart by part (a subtask, or all in one) and cluster.

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


def gather(part: Integers, cluster: Integers, counts: Floats, sums: Floats) -> Cells:
    """Lay out the sums of one group, in which all parts weigh alike.

    Parameters
    ----------
    part, cluster : (n,) codes; together they name a sum once. counts, sums : (n,) episodes behind it, and the sum.
    """
    parts, row = np.unique(part, return_inverse=True)
    clusters, column = np.unique(cluster, return_inverse=True)
    shape = (parts.size, clusters.size)
    laid = np.zeros((2, *shape))
    laid[0, row, column], laid[1, row, column] = counts, sums
    return Cells(laid[0], laid[1], np.full(parts.size, 1.0 / parts.size))
