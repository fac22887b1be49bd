"""Clustered means and intervals by group, and factorial contrasts of conditions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

import numpy as np
import polars as pl

from finskillbench.analysis.clusters import (
    Cells,
    Interval,
    StandardError,
    bca,
    gather_cells,
    percentile,
    resample,
    standard_error,
    supports_interval,
)
from finskillbench.analysis.results import Results
from finskillbench.errors import InternalError
from finskillbench.harness.conditions import Condition

BOUNDS = {"difference": (-1.0, 1.0), **dict.fromkeys(("score", "treated", "reference"), (0.0, 1.0))}
"""Possible means of the columns of `Results.episodes` and `pairs`; t intervals are clipped to them."""
_SCHEMA = {
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "error": pl.Float64,
    "freedom": pl.Float64,
    "pairs": pl.Int64,
    "clusters": pl.Int64,
    "effective_clusters": pl.Float64,
}
_BATCH = 256
"""Groups per resampling batch: 10,000 means of each take 20 MB."""


class Method(StrEnum):
    """Interval method; t is the default for its coverage.

    Coverage of 95 % intervals in `benchmarks/intervals.py`, for clusters of one to nine episodes, intra-cluster
    correlations of 0 to 0.85, and normal noise: t 0.94 to 0.96 from 5 clusters on. Percentile and BCa have 0.82 to 0.86
    at 5 clusters, 0.89 to 0.90 at 12, 0.93 at 40, 0.94 to 0.95 at 150. With exponential noise t has 0.89 to 0.95, and
    exceeds the others at every number. Intervals for independent episodes have 0.54 to 0.80 from a correlation of 0.3
    on.
    """

    T = "t"
    PERCENTILE = "percentile"
    BCA = "bca"


class Weighting(StrEnum):
    """Equal weights for episodes (micro) or for subtasks (macro)."""

    MICRO = "micro"
    MACRO = "macro"


def estimate_means(
    frame: pl.DataFrame,
    value: str = "difference",
    by: Sequence[str] = (),
    method: str = Method.T,
    weighting: str = Weighting.MICRO,
    resamples: int = 10_000,
    seed: int = 0,
    bounds: Interval | None = None,
    part: str = "sub_task",
) -> pl.DataFrame:
    """Estimate the mean of a column by group, with a clustered 95 % interval.

    The number of episodes per subtask is fixed in advance, so differences between subtask means are not sampling error.
    The interval is that of a mean stratified by subtask, under either weighting.

    Parameters
    ----------
    frame : with `sub_task`, `cluster` and the value, such as `pairs` or `Results.episodes`; null values are dropped.
    value : the column to average.
    by : grouping columns; none gives one group. Groups keep the order of the frame.
    method : "t" (CR2 with Satterthwaite's degrees of freedom), or "percentile" or "bca" of a bootstrap over clusters.
    weighting : "micro" weighs episodes equally, "macro" subtasks.
    resamples, seed : of the bootstrap; groups are independent of each other.
    bounds : range of the mean, if `BOUNDS` does not define it.
    part : the column of strata.

    Returns
    -------
    The columns of `by`, then `mean` (null without values), `low` and `high` (null with too few clusters, or too few
    that differ), `error` and `freedom` (CR2 standard error and degrees of freedom, null with the interval), `pairs`
    (number of values), `clusters` and `effective_clusters` (null without values).
    """
    method, weighting = Method(method), Weighting(weighting)
    taken = sorted({*by} & {*_SCHEMA})
    if taken:
        raise InternalError(f"estimate_means: cannot group by {taken[0]!r}: it is a column of the result")
    groups = frame.select(by).unique(maintain_order=True) if by else pl.DataFrame({"_": [0]})
    gathered = _gather(frame, value, list(by), groups, weighting, part)
    spreads = {place: standard_error(cells) for place, cells in gathered.items() if supports_interval(cells)}
    if method is Method.T:
        intervals = _t_intervals(gathered, spreads, bounds or BOUNDS.get(value, (-inf, inf)))
    else:
        intervals = _bootstrapped(gathered, sorted(spreads), method, resamples, seed)
    lines = [_line(gathered.get(place), spreads.get(place), intervals.get(place)) for place in range(groups.height)]
    table = pl.DataFrame(lines, schema=_SCHEMA, orient="row")
    return pl.concat([groups, table], how="horizontal") if by else table


def _gather(
    frame: pl.DataFrame, value: str, by: list[str], groups: pl.DataFrame, weighting: Weighting, part: str
) -> dict[int, Cells]:
    """Return the cells of each group that has values, by its index."""
    kept = frame.filter(pl.col(value).is_not_null()).select(
        *by,
        _cluster=pl.col("cluster").rank("dense"),
        _part=pl.col(part).rank("dense"),
        _value=pl.col(value).cast(pl.Float64),
    )
    places = groups.with_row_index("_place")
    kept = kept.join(places, on=by, how="left", nulls_equal=True) if by else kept.with_columns(_place=pl.lit(0))
    sums = (
        kept.group_by("_place", "_part", "_cluster")
        .agg(pl.col("_value").sum(), _count=pl.len().cast(pl.Float64))
        .sort("_place", "_part", "_cluster")
    )
    columns = [sums[name].to_numpy() for name in ("_part", "_cluster", "_count", "_value")]
    present, starts, sizes = np.unique(sums["_place"].to_numpy(), return_index=True, return_counts=True)
    alike = weighting is Weighting.MACRO
    return {
        int(place): gather_cells(*(column[start : start + size] for column in columns), alike=alike)
        for place, start, size in zip(present, starts, sizes, strict=True)
    }


def _t_intervals(groups: dict[int, Cells], spreads: dict[int, StandardError], bounds: Interval) -> dict[int, Interval]:
    low, high = bounds
    intervals: dict[int, Interval] = {}
    for place, each in spreads.items():
        mean, half = groups[place].mean, each.half_width
        # The paper's ranked list allows scores above 1: a bound that the mean exceeds does not apply.
        least, most = (low if low <= mean else -inf), (high if mean <= high else inf)
        intervals[place] = (max(mean - half, least), min(mean + half, most))
    return intervals


def _bootstrapped(
    groups: dict[int, Cells], places: Sequence[int], method: Method, resamples: int, seed: int
) -> dict[int, Interval]:
    alike: defaultdict[int, list[int]] = defaultdict(list)
    for place in places:
        alike[groups[place].clusters].append(place)
    intervals: dict[int, Interval] = {}
    for members in alike.values():
        for start in range(0, len(members), _BATCH):
            batch = members[start : start + _BATCH]
            resampled = resample([groups[place] for place in batch], resamples, seed)
            for place, means in zip(batch, resampled, strict=True):
                found = percentile(means) if method is Method.PERCENTILE else bca(groups[place], means)
                if found is not None:
                    intervals[place] = found
    return intervals


def _line(cells: Cells | None, known: StandardError | None, interval: Interval | None) -> tuple[float | None, ...]:
    if cells is None:
        return (None, None, None, None, None, 0, 0, None)
    low, high = interval or (None, None)
    error, freedom = known or (None, None)
    pairs = int(cells.counts.sum())
    return (cells.mean, low, high, error, freedom, pairs, cells.clusters, cells.effective_clusters)


INTERACTION = "interaction"
TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class Factorial:
    """Two factors and the four conditions: neither, the first, the second, both."""

    factor_a: str
    factor_b: str
    conditions: tuple[Condition, Condition, Condition, Condition]

    @property
    def contrasts(self) -> dict[str, tuple[float, float, float, float]]:
        """Return contrast weights of the four conditions, by effect name.

        The main effect of a factor is the mean of its effects without and with the other factor. The interaction is the
        effect of both beyond the sum of the single effects (not halved, unlike Montgomery, ch. 5).
        """
        return {
            self.factor_a: (-0.5, 0.5, -0.5, 0.5),
            self.factor_b: (-0.5, -0.5, 0.5, 0.5),
            INTERACTION: (1.0, -1.0, -1.0, 1.0),
            f"{self.factor_a} alone": (-1.0, 1.0, 0.0, 0.0),
            f"{self.factor_b} alone": (-1.0, 0.0, 1.0, 0.0),
            f"{self.factor_a} given {self.factor_b}": (0.0, 0.0, -1.0, 1.0),
            f"{self.factor_b} given {self.factor_a}": (0.0, -1.0, 0.0, 1.0),
            TOGETHER: (-1.0, 0.0, 0.0, 1.0),
        }


DOCUMENTS_AND_SCRIPTS = Factorial(
    "documents", "scripts", (Condition.NO_SKILL, Condition.DOCS_ONLY, Condition.SCRIPTS_ONLY, Condition.CURATED)
)
SKILLS_AND_CODE = Factorial(
    "skills", "code", (Condition.NO_SKILL, Condition.CURATED, Condition.CODE, Condition.CODE_CURATED)
)
_KEYS = ["model", "harness", "episode"]


def crossed(results: Results, factorial: Factorial) -> pl.DataFrame:
    """Return the episodes scored under all four conditions, with one column per contrast instead of scores."""
    neither, *treated = (results.episodes.filter(pl.col("condition") == name.value) for name in factorial.conditions)
    joined = neither.drop("condition", "repeats").rename({"score": "_0"})
    for place, arm in enumerate(treated, 1):
        scores = arm.select(*_KEYS, pl.col("score").alias(f"_{place}"))
        joined = joined.join(scores, on=_KEYS, how="inner", maintain_order="left")
    contrasts = {
        name: pl.sum_horizontal(weight * pl.col(f"_{place}") for place, weight in enumerate(weights))
        for name, weights in factorial.contrasts.items()
    }
    return joined.with_columns(**contrasts).drop("_0", "_1", "_2", "_3")


def effects(
    results: Results,
    factorial: Factorial,
    by: Sequence[str] = ("model", "harness"),
    method: Method = Method.T,
    weighting: Weighting = Weighting.MICRO,
) -> pl.DataFrame:
    """Estimate all contrasts of a factorial design.

    Returns the columns of `by`, `effect` (a key of `Factorial.contrasts`), and those of `estimate_means`. No row
    without an episode under all four conditions.

    Parameters
    ----------
    by : at least one column of `Results.episodes`, without `condition`. method, weighting : as in `estimate_means`.
    """
    episodes = crossed(results, factorial)
    found: list[pl.DataFrame] = []
    for name, weights in factorial.contrasts.items():
        most = math.fsum(weight for weight in weights if weight > 0)
        lines = estimate_means(episodes, name, by, method, weighting, bounds=(-most, most))
        found.append(lines.select(*by, pl.lit(name).alias("effect"), pl.exclude(*by)))
    return pl.concat(found)
