"""The exact sign test over clusters: evidence where differences vary too little for a t test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from scipy.special import bdtrc

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
