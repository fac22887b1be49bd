"""Ranks of models with their uncertainty, from paired differences.

Two models differ if their paired headline difference is significant after Holm's correction over all pairs, with
clustered intervals. The significantly better models bound a rank from above, the worse ones from below (Holm 1979;
Mogstad, Romano, Shaikh & Wilhelm 2024 for rank sets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from finskillbench.analysis.inference import Signs, adjust, cluster_signs, holm_weighted
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import Results

LEVEL = 0.05
"""Family-wise error rate of one table."""


@dataclass(frozen=True, slots=True)
class RankRange:
    """Best and worst possible rank of a model, from 1."""

    model: str
    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}-{self.worst}"


def paired_differences(
    results: Results, condition: str, models: Sequence[str], owners: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Estimate the headline difference of each pair of models.

    Parameters
    ----------
    models : `a` comes before `b` in this order.
    owners : owner of each model; None: all different. Each pair of owners has the same weight in the correction, split
        among the pairs of their models, so that many submissions affect only their owner.

    Returns
    -------
    The columns of `estimate_means` with `a`, `b` (difference: a less b), two-sided `p`, and `p_holm`. If differences
    vary too little for a t test, p is that of the sign test over clusters. It is 1 if these contradict the mean or none
    differs, so every pair is in the family.
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
    tested = adjust(estimate_means(frame, by=["a", "b"])).drop("p_holm", "p_fdr")
    signs = cluster_signs(frame, ["a", "b"])
    values = [
        p if p is not None else signs.get((a, b), Signs(0, 0)).p(mean)
        for a, b, mean, p in tested.select("a", "b", "mean", "p").iter_rows()
    ]
    owner_of = owners or {name: name for name in models}
    sides_of = [tuple(sorted((owner_of[a], owner_of[b]))) for a, b in tested.select("a", "b").iter_rows()]
    count = Counter(sides_of)
    adjusted = holm_weighted(values, [1 / count[each] for each in sides_of])
    return tested.with_columns(p=pl.Series(values, dtype=pl.Float64), p_holm=pl.Series(adjusted, dtype=pl.Float64))


def rank_ranges(models: Sequence[str], comparisons: pl.DataFrame) -> list[RankRange]:
    """Return rank ranges from the rows of `paired_differences`, in the order of the models."""
    better, worse = dict.fromkeys(models, 0), dict.fromkeys(models, 0)
    for a, b, mean, p in comparisons.select("a", "b", "mean", "p_holm").iter_rows():
        if p is None or p >= LEVEL:
            continue
        winner, loser = (a, b) if mean > 0 else (b, a)
        worse[winner] += 1
        better[loser] += 1
    return [RankRange(name, 1 + better[name], len(models) - worse[name]) for name in models]
