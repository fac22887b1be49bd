"""Means with their intervals, as figures take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.intervals import estimate
from finskillbench.reports.tables.base import Estimate


class Said(NamedTuple):
    """A mean with its interval, the episodes behind it and the clusters that those fall into."""

    mean: Estimate
    pairs: int
    clusters: int


def estimates(frame: pl.DataFrame, by: Sequence[str], value: str = "difference") -> dict[str, Said]:
    """The mean of a column in every group, by the names of the group joined by a line feed."""
    if frame.is_empty():
        return {}
    found: dict[str, Said] = {}
    for line in estimate(frame, value=value, by=by).iter_rows(named=True):
        if line["mean"] is not None:
            mean = Estimate(line["mean"], line["low"], line["high"])
            found["\n".join(str(line[name]) for name in by)] = Said(mean, line["pairs"], line["clusters"])
    return found
