"""Noise between identical runs, sample sizes, and intervals that remain valid if a run stops early.

Two identical runs play the same episodes, so their mean scores differ only by the variance within episodes. That
variance comes from repeats. The interval of `estimate_means` is wider: it also has the variance between episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.analysis.clusters import LEVEL, MIN_APART, MIN_CLUSTERS, Interval, StandardError
from finskillbench.analysis.inference import clusters_needed, proportions
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import FULL
from finskillbench.analysis.results import EPISODE
from finskillbench.arrays import Floats
from finskillbench.harness.conditions import ARMS

LEAST_CHANGE = 1e-9
"""Smaller changes of a score count as none."""
REPEATS = (1, 2, 4, 8)
"""Numbers of repeats for which sample sizes are computed."""
_KEPT = [name for name, arm in ARMS.items() if arm.kept]


class Share(NamedTuple):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RepeatNoise:
    """Differences between the repeats of one condition.

    episodes, repeats : episodes with at least two scored repeats, and their mean number of these.
    verdicts, scores : shares of pairs of repeats with one pass only, and with different scores.
    once : variance of the mean score over these episodes with one repeat of each.
    variance, freedom : variance with all repeats, and its degrees of freedom (infinite without any variance).
    units, varying : independent units, and those whose repeats differ.
    """

    episodes: int
    repeats: float
    verdicts: Share
    scores: float
    once: float
    variance: float
    freedom: float
    units: int
    varying: int

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % range of the difference between two runs like this one; see `_half_width`."""
        return _half_width(2.0 * self.variance, self.freedom, self.units, self.varying)


@dataclass(frozen=True, slots=True)
class DifferenceNoise:
    """Noise of the difference between two sides.

    half_width : of the 95 % range of the difference if the sides are identical; see `_half_width`.
    variance, once : variance of the difference due to noise, with all repeats and with one on each side.
    """

    half_width: float | None
    variance: float
    once: float


def _half_width(variance: float, freedom: float, units: int, varying: int) -> float | None:
    """Return None if too few units vary, as `supports_interval` does: the variance is then not known well enough."""
    if units < MIN_CLUSTERS or (2 * varying < units and varying < MIN_APART):
        return None
    return StandardError(variance**0.5, freedom).half_width


@dataclass(frozen=True, slots=True)
class SampleSize:
    """Episodes and clusters that detect a gain with `repeats` repeats on both sides; None beyond a million clusters."""

    repeats: int
    episodes: int | None
    clusters: int | None


def repeat_noise(rows: pl.DataFrame) -> RepeatNoise | None:
    """Measure how far repeats of the same episodes differ; None without two scored repeats of any episode.

    The independent unit is an episode. Under a condition with memory, whose episodes depend on earlier ones of their
    subtask, it is a subtask.

    Parameters
    ----------
    rows : as in `Results.rows`.
    """
    keys = list(EPISODE)
    scored = rows.filter(pl.col("score").is_not_null()).filter(pl.len().over(keys) > 1)
    if scored.is_empty():
        return None
    pairs = scored.join(scored.select(*keys, "run_idx", "score"), on=keys, suffix="_2")
    pairs = pairs.filter(pl.col("run_idx") < pl.col("run_idx_2"))
    passed, passed_2 = (pl.col(name) >= FULL for name in ("score", "score_2"))
    moved = (pl.col("score") - pl.col("score_2")).abs() > LEAST_CHANGE
    pairs = pairs.with_columns(verdicts=passed != passed_2)
    verdicts = Share(*proportions(pairs, "verdicts").select("share", "low", "high").row(0))

    episodes = scored.select(keys).n_unique()
    group, unit = keys[:3], pl.when(pl.col("condition").is_in(_KEPT)).then("sub_task").otherwise("episode")
    away = pl.col("score") - pl.col("score").mean().over(keys)
    units = (
        scored.with_columns(_unit=unit, _away=away)
        .group_by(*group, "_unit", "run_idx", maintain_order=True)
        .agg(pl.col("_away").sum())
        .group_by(*group, "_unit", maintain_order=True)
        .agg(squares=(pl.col("_away") ** 2).sum(), size=pl.len().cast(pl.Float64))
    )
    size = units["size"].to_numpy()
    once = units["squares"].to_numpy() / (size - 1.0) / episodes**2
    variances = once / size
    variance, quartic = float(variances.sum()), float((variances**2 / (size - 1.0)).sum())
    freedom = variance**2 / quartic if quartic else inf  # Satterthwaite (1946)
    varying = int((units["squares"] > LEAST_CHANGE**2).sum())
    spread = (float(once.sum()), variance, freedom, once.size, varying)
    scores = float(pairs.select(moved.mean()).item())
    return RepeatNoise(episodes, scored.height / episodes, verdicts, scores, *spread)


def difference_noise(a: RepeatNoise | None, b: RepeatNoise | None) -> DifferenceNoise | None:
    """Combine the noise of two sides; a side without repeats takes that of the other, with one repeat."""
    if a is None or b is None:
        known = a or b
        if known is None:
            return None
        variance = known.variance + known.once
        half_width = _half_width(variance, known.freedom, known.units, known.varying)
        return DifferenceNoise(half_width, variance, 2.0 * known.once)
    variance = a.variance + b.variance
    quartic = a.variance**2 / a.freedom + b.variance**2 / b.freedom
    freedom = variance**2 / quartic if quartic else inf
    half_width = _half_width(variance, freedom, a.units + b.units, a.varying + b.varying)
    return DifferenceNoise(half_width, variance, a.once + b.once)


def sample_sizes(paired: pl.DataFrame, gain: float, noise: DifferenceNoise | None) -> list[SampleSize]:
    """Compute the sample sizes that detect a mean difference with a power of 80 % at the 5 % level.

    Splits the squared clustered error of the difference into noise, which repeats reduce, and the rest, which only more
    clusters reduce. Without `noise`, only the size with one repeat is known; without an interval, none.

    Parameters
    ----------
    paired : with `difference`, `sub_task` and `cluster`. gain : not 0. noise : of the same episodes.
    """
    error, freedom, clusters, pairs = estimate_means(paired).select("error", "freedom", "clusters", "pairs").row(0)
    if error is None:
        return []
    found: list[SampleSize] = []
    for repeats in REPEATS if noise else REPEATS[:1]:
        lasting, once = (max(error**2 - noise.variance, 0.0), noise.once) if noise else (error**2, 0.0)
        needed = clusters_needed(gain, (lasting + once / repeats) ** 0.5, freedom, clusters)
        found.append(SampleSize(repeats, None if needed is None else -(-needed * pairs // clusters), needed))
    return found


BETS = 0.98 * 0.5 ** np.arange(5.0)
"""Mixture of constant bets: shares of the wealth that a cluster with a mean of -1 loses."""
_LOG_THRESHOLD = log(2.0 / (1.0 - LEVEL))
"""Log wealth that rejects a mean on one side."""
_HALVINGS = 40


def log_wealth(clusters: Floats, mean: float = 0.0) -> Floats:
    """Return the log wealth, after each cluster, of bets that the mean difference exceeds `mean`.

    If it does not, the wealth is a non-negative supermartingale that starts at 1, so the chance that it ever reaches w
    is at most 1 / w (Ville). It depends on the clusters but not on their order. Source: Waudby-Smith & Ramdas (2024),
    section 4; Orabona & Jun (2024) for the mixture over constant bets.

    Parameters
    ----------
    clusters : (n,) mean differences of independent clusters, within [-1, 1]. mean : above -1.
    """
    wealth = np.log1p(BETS[:, None] * (clusters - mean) / (1.0 + mean)).cumsum(axis=1)
    return np.logaddexp.reduce(wealth, axis=0) - log(BETS.size)


def cluster_means(paired: pl.DataFrame) -> pl.DataFrame:
    """Average `treated`, `reference` and `difference` by cluster, so that each cluster counts once."""
    return paired.group_by("cluster", maintain_order=True).agg(pl.mean("treated", "reference", "difference"))


def always_valid_interval(differences: pl.Series) -> Interval:
    """Return a 95 % interval of the mean over clusters that holds at all times, so that a run may stop at any.

    Clusters are independent draws in an order that does not depend on results. Their differences are clipped to
    [-1, 1]; nothing else is assumed of the distribution. Clusters count alike, regardless of their size: if episodes
    did, the largest cluster would bound all bets.
    """
    clusters = differences.clip(-1.0, 1.0).to_numpy()
    return _least(clusters), -_least(-clusters)


def _least(clusters: Floats) -> float:
    """Return the least mean that the bets do not reject; their wealth falls with the mean."""
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        rejected = clusters.size and log_wealth(clusters, middle)[-1] >= _LOG_THRESHOLD
        low, high = (middle, high) if rejected else (low, middle)
    return low
