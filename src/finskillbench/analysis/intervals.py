"""Means of groups of episodes with their clustered intervals: `estimate` gives a line for each group of a frame.

What two ingredients are worth, alone, beside each other and together: documents and scripts, skills and code.
"""

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
    Spread,
    bca,
    gather,
    percentile,
    resample,
    spread,
    tells_enough,
)
from finskillbench.analysis.results import Results
from finskillbench.errors import InternalError
from finskillbench.harness.conditions import Condition

BOUNDS = {"difference": (-1.0, 1.0), **dict.fromkeys(("score", "treated", "reference"), (0.0, 1.0))}
"""What the means of the columns of `Results.episodes` and `pairs` can be; a t interval is cut off there."""
_SAID = {
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
"""Groups resampled at a time: 10,000 means of each are 20 MB."""


class Method(StrEnum):
    """How an interval is made; t is the default for its coverage.

    `benchmarks/intervals.py` measures how often a 95 % interval holds the truth, for clusters of one to nine episodes,
    intra-cluster correlations of 0 to 0.85, and normal noise: t 0.94 to 0.96 from 5 clusters on; percentile and BCa
    0.82 to 0.86 of 5, 0.89 to 0.90 of 12, 0.93 of 40, 0.94 to 0.95 of 150. Of noise as skewed as an exponential, t has
    0.89 to 0.95, and more than the others at every number. From a correlation of 0.3 on, an interval that takes
    episodes for independent has 0.54 to 0.80.
    """

    T = "t"
    PERCENTILE = "percentile"
    BCA = "bca"


class Weighting(StrEnum):
    """What a mean weighs: every episode alike, or every subtask."""

    MICRO = "micro"
    MACRO = "macro"


def estimate(
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
    """The mean of a column in each group, with a 95 % interval that counts what episodes share once.

    How many episodes each subtask has is fixed beforehand, so that unlike means of subtasks are no chance: under either
    weighting the interval is that of a stratified mean, whose parts are the subtasks.

    Parameters
    ----------
    frame : as from `pairs` or `Results.episodes`; any frame with `sub_task`, `cluster` and the value will do. Nulls of
        the value are left out.
    value : what is averaged.
    by : what groups are told apart by; by nothing there is one group. They come in the order of the frame.
    method : "t" (CR2 with Satterthwaite's degrees of freedom), or "percentile" or "bca" of a bootstrap that draws
        clusters.
    weighting : "micro": every episode weighs alike; "macro": every subtask does.
    resamples, seed : of the bootstrap. A group's interval depends on no other group.
    bounds : what a mean can be, where the column's name does not tell (`BOUNDS`).
    part : the column of the strata, each of which has its own mean.

    Returns
    -------
    The columns of `by`, then `mean` (null where no episode has a value), `low` and `high` (null where no interval can
    be said: too few clusters, or too few that differ from the rest), `error` and `freedom` (the CR2 standard error of
    the mean and its degrees of freedom, whatever the method; null with the interval), `pairs` (the values behind the
    mean), `clusters` and `effective_clusters` (how many of one size would say as much; null without any).
    """
    method, weighting = Method(method), Weighting(weighting)
    taken = sorted({*by} & {*_SAID})
    if taken:
        raise InternalError(f"estimate: groups cannot be told apart by {taken[0]!r}: it is a column of the result")
    groups = frame.select(by).unique(maintain_order=True) if by else pl.DataFrame({"_": [0]})
    gathered = _gather(frame, value, list(by), groups, weighting, part)
    spreads = {place: spread(cells) for place, cells in gathered.items() if tells_enough(cells)}
    if method is Method.T:
        intervals = _t_intervals(gathered, spreads, bounds or BOUNDS.get(value, (-inf, inf)))
    else:
        intervals = _bootstrapped(gathered, sorted(spreads), method, resamples, seed)
    lines = [_line(gathered.get(place), spreads.get(place), intervals.get(place)) for place in range(groups.height)]
    said = pl.DataFrame(lines, schema=_SAID, orient="row")
    return pl.concat([groups, said], how="horizontal") if by else said


def _gather(
    frame: pl.DataFrame, value: str, by: list[str], groups: pl.DataFrame, weighting: Weighting, part: str
) -> dict[int, Cells]:
    """The cells of every group that has a value, by its place."""
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
        int(place): gather(*(column[start : start + size] for column in columns), alike=alike)
        for place, start, size in zip(present, starts, sizes, strict=True)
    }


def _t_intervals(groups: dict[int, Cells], spreads: dict[int, Spread], bounds: Interval) -> dict[int, Interval]:
    low, high = bounds
    intervals: dict[int, Interval] = {}
    for place, each in spreads.items():
        mean, half = groups[place].mean, each.half_width
        # The published ranked list scores above 1: what a mean has passed is no bound of it.
        intervals[place] = (
            max(mean - half, low if low <= mean else -inf),
            min(mean + half, high if mean <= high else inf),
        )
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


def _line(cells: Cells | None, known: Spread | None, interval: Interval | None) -> tuple[float | None, ...]:
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
    """Two ingredients and the four conditions that have neither, the first, the second, and both."""

    first: str
    second: str
    conditions: tuple[Condition, Condition, Condition, Condition]

    @property
    def contrasts(self) -> dict[str, tuple[float, float, float, float]]:
        """Weights of the four conditions' scores, in their order.

        An ingredient's main effect, by its name, is the mean of what it adds alone and beside the other; the
        interaction is what both bring beyond the sum of what each brings alone (not halved, as in Montgomery, ch. 5).
        """
        return {
            self.first: (-0.5, 0.5, -0.5, 0.5),
            self.second: (-0.5, -0.5, 0.5, 0.5),
            INTERACTION: (1.0, -1.0, -1.0, 1.0),
            f"{self.first} alone": (-1.0, 1.0, 0.0, 0.0),
            f"{self.second} alone": (-1.0, 0.0, 1.0, 0.0),
            f"{self.first} beside {self.second}": (0.0, 0.0, -1.0, 1.0),
            f"{self.second} beside {self.first}": (0.0, -1.0, 0.0, 1.0),
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
    """The episodes that have a score under all four conditions, with a column for each contrast.

    The columns are those of `pairs` without its scores; no line where a condition was not run.
    """
    neither, *others = (results.episodes.filter(pl.col("condition") == name.value) for name in factorial.conditions)
    joined = neither.drop("condition", "repeats").rename({"score": "_0"})
    for place, arm in enumerate(others, 1):
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
    """Every contrast of the four conditions with its clustered interval.

    Parameters
    ----------
    by : columns of `Results.episodes`, at least one, but `condition`. method, weighting : as in `estimate`.

    Returns
    -------
    The columns of `by`, `effect` (the names of `Factorial.contrasts`), and those of `estimate`. No line where no
    episode has all four conditions.
    """
    episodes = crossed(results, factorial)
    found: list[pl.DataFrame] = []
    for name, weights in factorial.contrasts.items():
        most = math.fsum(weight for weight in weights if weight > 0)
        lines = estimate(episodes, name, by, method, weighting, bounds=(-most, most))
        found.append(lines.select(*by, pl.lit(name).alias("effect"), pl.exclude(*by)))
    return pl.concat(found)
