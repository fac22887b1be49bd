"""The cluster-robust t interval that is exact enough for few clusters."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtrit

from finskillbench.analysis.intervals.cells import Cells

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
