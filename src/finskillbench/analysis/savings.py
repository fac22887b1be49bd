"""Ratio of the budgets that two conditions need for the same score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from finskillbench.analysis.clusters import MIN_CLUSTERS, MOST_LOST, TAILS, draws
from finskillbench.analysis.repeats import SpendingMeasure, spending
from finskillbench.analysis.results import Comparison, Results
from finskillbench.arrays import Floats, Integers

NEARLY = 0.9
"""Target as a share of the reference's score: its last tenth depends on a few slow episodes."""
RESAMPLES = 1_000
_SCHEMA = {
    **dict.fromkeys(("target", "treated_budget", "reference_budget", "times", "low", "high"), pl.Float64),
    **dict.fromkeys(("pairs", "clusters"), pl.Int64),
}
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class _Arm:
    """Rows of a condition, sorted by spending.

    `spent` (n,), `parts` (n,) score over the repeats of the episode, `cluster` (n,) codes, `size` (C,) episodes per
    cluster.
    """

    spent: Floats
    parts: Floats
    cluster: Integers
    size: Floats

    def reached(self, drawn: Floats) -> Floats:
        """(B, n) Score within each row's spending, for (B, C) draws of the clusters."""
        return np.cumsum(drawn[:, self.cluster] * self.parts, axis=1) / (drawn @ self.size)[:, None]

    def budget(self, reached: Floats, target: Floats) -> Floats:
        """(B,) Least spending that reaches the target, or NaN."""
        there = reached >= target[:, None] - _EQUAL
        return np.where(there.any(axis=1), self.spent[there.argmax(axis=1)], np.nan)


def savings(
    results: Results,
    comparison: Comparison,
    measure: SpendingMeasure = SpendingMeasure.TOKENS,
    share: float = NEARLY,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> pl.DataFrame:
    """Estimate the ratio of the budgets for the same score, per model and harness.

    The target is a share of the reference's final score, over episodes of both conditions.

    Returns
    -------
    `model`, `harness`, `target`, `treated_budget` and `reference_budget` (null if not reached), `times` (their ratio;
    null if undefined), `low` and `high` (percentile bootstrap over clusters; null if over 5 % of resamples are
    undefined or nearly all agree), `pairs` and `clusters`. No row for unknown spending.
    """
    rows = spending(results, measure)
    keys = ["model", "harness", "episode"]
    sides = [rows.filter(pl.col("condition") == name) for name in comparison]
    paired = [mine.join(other, on=keys, how="semi") for mine, other in (sides, sides[::-1])]
    lines: list[tuple[object, ...]] = []
    groups = paired[0].select("model", "harness").unique(maintain_order=True)
    for model, harness in groups.iter_rows():
        chosen = (pl.col("model") == model, pl.col("harness") == harness)
        names = paired[0].filter(*chosen)["cluster"].unique().sort()
        treated, reference = (_arm(side.filter(*chosen), names) for side in paired)
        lines.append((model, harness, *_line(treated, reference, share, resamples, seed)))
    return pl.DataFrame(lines, schema={"model": pl.String, "harness": pl.String, **_SCHEMA}, orient="row")


def _arm(rows: pl.DataFrame, names: pl.Series) -> _Arm:
    codes = pl.DataFrame({"cluster": names}).with_row_index("code")
    ordered = (
        rows.with_columns(part=pl.col("score") / pl.len().over("episode"))
        .join(codes, on="cluster", how="left")
        .sort("spent", "episode")
    )
    of_episodes = ordered.unique("episode")["code"].to_numpy()
    size = np.bincount(of_episodes, minlength=names.len()).astype(np.float64)
    return _Arm(ordered["spent"].to_numpy(), ordered["part"].to_numpy(), ordered["code"].to_numpy(), size)


def _line(treated: _Arm, reference: _Arm, share: float, resamples: int, seed: int) -> tuple[float | None, ...]:
    clusters, pairs = treated.size.size, int(treated.size.sum())
    target, budgets = _budgets(treated, reference, share, np.ones((1, clusters)))
    if not target[0] > 0.0:
        return (None, None, None, None, None, None, pairs, clusters)
    mine, other = (None if np.isnan(budget[0]) else float(budget[0]) for budget in budgets)
    if mine is None or other is None or mine <= 0.0:
        return (float(target[0]), mine, other, None, None, None, pairs, clusters)
    low, high = _interval(treated, reference, share, resamples, seed) or (None, None)
    return (float(target[0]), mine, other, other / mine, low, high, pairs, clusters)


def _budgets(treated: _Arm, reference: _Arm, share: float, drawn: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    mine, other = treated.reached(drawn), reference.reached(drawn)
    target = share * other[:, -1]
    return target, (treated.budget(mine, target), reference.budget(other, target))


def _interval(treated: _Arm, reference: _Arm, share: float, resamples: int, seed: int) -> tuple[float, float] | None:
    clusters = treated.size.size
    if clusters < MIN_CLUSTERS:
        return None
    found: list[Floats] = []
    for drawn in draws(clusters, resamples, seed):
        target, (mine, other) = _budgets(treated, reference, share, drawn)
        defined = (target > 0.0) & (mine > 0.0)
        found.append(np.where(defined, other / np.where(defined, mine, 1.0), np.nan))
    times = np.concatenate(found)
    kept = times[~np.isnan(times)]
    if kept.size < (1.0 - MOST_LOST) * resamples:
        return None
    low, high = np.quantile(kept, TAILS)
    return (float(low), float(high)) if high - low > _EQUAL else None
