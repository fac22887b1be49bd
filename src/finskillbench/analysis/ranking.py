"""Who is better than whom, as far as the episodes can tell: places with their uncertainty, from paired differences.

Two entries are told apart where the paired difference of their headline scores, with intervals that count what episodes
share once, is significant after Holm's correction over all pairs of the table. An entry's place is bounded from above
by those that are told to be better, and from below by those that are told to be worse (Holm 1979; Mogstad, Romano,
Shaikh & Wilhelm 2024 for places as sets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from finskillbench.analysis.inference import Signs, adjust, cluster_signs, holm_weighted
from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.results import Results

LEVEL = 0.05
"""The chance of any false difference in one table."""


@dataclass(frozen=True, slots=True)
class Place:
    """An entry with the best and the worst place that it may have, counted from 1."""

    model: str
    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}-{self.worst}"


def differences(
    results: Results, condition: str, models: Sequence[str], owners: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """The paired difference of every two entries on the headline.

    Parameters
    ----------
    models : the entries; `a` comes before `b` in this order.
    owners : whose each entry is; None: each is somebody else's. Every two owners weigh the same in the correction, and
        share their weight among the pairs of their entries, so that who sends many makes it harder for none but them.

    Returns
    -------
    The lines of `estimate` with `a`, `b` (the difference is a less b), the two-sided `p` and `p_holm`. Where the
    differences vary too little over clusters for a t test, p is that of the sign test over the clusters that differ,
    and 1 where most of these point another way than the mean, or none differs. So every pair counts in the family.
    """
    scored = results.episodes.filter("headline", pl.col("condition") == condition)
    sides = {name: scored.filter(pl.col("model") == name) for name in models}
    pairs = [
        sides[a]
        .join(sides[b].select("episode", other="score"), on="episode", how="inner", maintain_order="left")
        .select("sub_task", "cluster", a=pl.lit(a), b=pl.lit(b), difference=pl.col("score") - pl.col("other"))
        for a, b in combinations(models, 2)
    ]
    if not pairs:
        return pl.DataFrame(schema={"a": pl.String, "b": pl.String, "mean": pl.Float64, "p_holm": pl.Float64})
    frame = pl.concat(pairs)
    tested = adjust(estimate(frame, by=["a", "b"])).drop("p_holm", "p_fdr")
    signs = cluster_signs(frame, ["a", "b"])
    values = [
        p if p is not None else signs.get((a, b), Signs(0, 0)).p(mean)
        for a, b, mean, p in tested.select("a", "b", "mean", "p").iter_rows()
    ]
    whose = owners or {name: name for name in models}
    sides_of = [tuple(sorted((whose[a], whose[b]))) for a, b in tested.select("a", "b").iter_rows()]
    count = Counter(sides_of)
    adjusted = holm_weighted(values, [1 / count[each] for each in sides_of])
    return tested.with_columns(p=pl.Series(values, dtype=pl.Float64), p_holm=pl.Series(adjusted, dtype=pl.Float64))


def places(models: Sequence[str], told: pl.DataFrame) -> list[Place]:
    """The places of some entries by the lines of `differences`, in the order of the entries."""
    better, worse = dict.fromkeys(models, 0), dict.fromkeys(models, 0)
    for a, b, mean, p in told.select("a", "b", "mean", "p_holm").iter_rows():
        if p is None or p >= LEVEL:
            continue
        first, second = (a, b) if mean > 0 else (b, a)
        worse[first] += 1
        better[second] += 1
    return [Place(name, 1 + better[name], len(models) - worse[name]) for name in models]
