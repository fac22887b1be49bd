"""Means with their intervals, as figures take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.inference.signs import cluster_signs
from finskillbench.analysis.intervals import estimate
from finskillbench.reports.tables.base import Estimate


class Said(NamedTuple):
    """A mean with its interval, the episodes behind it and the clusters that those fall into.

    `p` is that of the exact sign test over clusters, for a difference without an interval; else None.
    """

    mean: Estimate
    pairs: int
    clusters: int
    p: float | None = None


def estimates(frame: pl.DataFrame, by: Sequence[str], value: str = "difference") -> dict[str, Said]:
    """The mean of a column in every group, by the names of the group joined by a line feed."""
    if frame.is_empty():
        return {}
    found: dict[str, Said] = {}
    signs = cluster_signs(frame, by) if value == "difference" else {}
    for line in estimate(frame, value=value, by=by).iter_rows(named=True):
        if line["mean"] is not None:
            mean = Estimate(line["mean"], line["low"], line["high"])
            group = tuple(line[name] for name in by)
            p = signs[group].p(mean.value) if group in signs and mean.low is None else None
            found["\n".join(map(str, group))] = Said(mean, line["pairs"], line["clusters"], p)
    return found
