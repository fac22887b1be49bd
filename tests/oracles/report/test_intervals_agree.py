"""Means and intervals of `estimate_means` against the dense formulas and the exact bootstrap of the oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.sampling import examples

from finskillbench.analysis.intervals import estimate_means

from . import clustered
from .clustered import Observation

pytestmark = pytest.mark.slow

RESAMPLES = 40_000
STATISTICS = {"micro": clustered.pooled, "macro": clustered.by_subtask}


@dataclass(frozen=True)
class Draw:
    """Clustered differences: cluster effects, ties by rounding, clusters within subtasks or across them."""

    seed: int
    sizes: tuple[int, ...]
    subtasks: int
    digits: int
    nested: bool
    skewed: bool = False


def draws(most: int) -> st.SearchStrategy[Draw]:
    return st.builds(
        Draw,
        seed=st.integers(0, 2**32),
        sizes=st.lists(st.integers(1, 5), min_size=1, max_size=most).map(tuple),
        subtasks=st.integers(1, 3),
        digits=st.sampled_from((15, 15, 1, 0)),
        nested=st.booleans(),
        skewed=st.booleans(),
    )


def observed(draw: Draw) -> list[Observation]:
    r = Random(draw.seed)
    found = []
    for g, size in enumerate(draw.sizes):
        level = r.gauss(0.1, 0.3) if not draw.skewed else min(0.9, 0.02 * r.expovariate(1.0) ** 3)
        for i in range(size):
            sub_task = g % draw.subtasks if draw.nested else (g + i) % draw.subtasks
            value = round(max(-1.0, min(1.0, level + r.gauss(0, 0.02 if draw.skewed else 0.2))), draw.digits)
            found.append((f"c{g}", f"s{sub_task}", value))
    r.shuffle(found)
    return found


def frame(observations: list[Observation], group: str = "only") -> pl.DataFrame:
    return pl.DataFrame([{"group": group, "cluster": c, "sub_task": s, "difference": v} for c, s, v in observations])


def clipped(value: float) -> float:
    return max(-1.0, min(1.0, value))


@settings(max_examples=examples(150), deadline=None)
@given(draw=draws(14), weighting=st.sampled_from(("micro", "macro")))
def test_means_and_t_intervals_are_those_of_dense_cr2(draw: Draw, weighting: str) -> None:
    observations = observed(draw)
    (line,) = estimate_means(frame(observations), weighting=weighting).to_dicts()
    known = clustered.cr2(observations, weighting)
    assert line["mean"] == pytest.approx(STATISTICS[weighting](observations), abs=1e-12)
    assert (line["pairs"], line["clusters"]) == (len(observations), len(draw.sizes))
    assert line["effective_clusters"] == pytest.approx(clustered.kish(observations, weighting), rel=1e-9)
    said = [line[name] is not None for name in ("low", "high", "error", "freedom")]
    assert all(said) or not any(said)
    if all(said):
        assert known.low is not None, "an interval where nothing can be said"
        assert known.high is not None
        assert line["error"] == pytest.approx(known.error, rel=1e-7)
        assert line["freedom"] == pytest.approx(known.freedom, rel=1e-7)
        assert (line["low"], line["high"]) == pytest.approx((clipped(known.low), clipped(known.high)), abs=1e-7)
    elif known.low is not None:
        # Few clusters, or few that differ: whoever stays silent must have such a reason.
        levels = {sum(v for c, _, v in observations if c == name) for name, _, _ in observations}
        assert min(len(draw.sizes), len(levels)) < 10


@settings(max_examples=examples(40), deadline=None)
@given(draw=draws(14), weighting=st.sampled_from(("micro", "macro")), one=st.booleans())
def test_one_cluster_that_differs_is_no_interval(draw: Draw, weighting: str, one: bool) -> None:
    """Neither no spread at all nor that of one cluster tells how far a mean may be off, however it is weighed."""
    levels = {"s0": 0.5, "s1": 0.0, "s2": -0.25}
    observations = [(c, s, levels[s] + 0.25 * (one and c == "c0")) for c, s, _ in observed(draw)]
    assume(len(draw.sizes) > 2)
    # Where a part holds two clusters, nobody can say which of them differs.
    home = clustered.home_of(observations, weighting)
    parts = [{c for c, s, _ in observations if home[s] == part} for part in set(home.values())]
    assume(not (one and any(len(part) == 2 for part in parts)))
    (line,) = estimate_means(frame(observations), weighting=weighting).to_dicts()
    if weighting == "macro" or len(set(clustered.strata(observations).values())) == draw.subtasks:
        assert (line["low"], line["high"], line["error"], line["freedom"]) == (None,) * 4


@settings(max_examples=examples(60), deadline=None)
@given(draw=draws(6), method=st.sampled_from(("percentile", "bca")), weighting=st.sampled_from(("micro", "macro")))
def test_bootstrap_intervals_are_quantiles_of_the_exact_distribution(draw: Draw, method: str, weighting: str) -> None:
    observations = observed(draw)
    (line,) = estimate_means(frame(observations), weighting=weighting, method=method, resamples=RESAMPLES).to_dicts()
    assume(line["low"] is not None)
    statistic = clustered.statistic_of(observations, weighting)
    known = clustered.distribution(observations, statistic, whole=clustered.home_of(observations, weighting))
    levels, slack = (0.025, 0.975), (0.0, 0.0)
    if method == "bca":
        # The bias is estimated by counting, so that the levels have an error of their own.
        a = clustered.acceleration(clustered.jackknife(observations, statistic))
        levels = clustered.bca_levels(clustered.bias(known, statistic(observations)), a)
        slack = tuple(12 / math.sqrt(RESAMPLES) * stats.norm.pdf(stats.norm.ppf(level)) for level in levels)
    for bound, level, lost in zip((line["low"], line["high"]), levels, slack, strict=True):
        error = 5 * math.sqrt(level * (1 - level) / RESAMPLES) + lost
        assert clustered.below(known, bound) <= level + error, (line, level)
        assert clustered.at_most(known, bound) >= level - error, (line, level)


def test_scores_above_one_have_an_interval_about_their_mean() -> None:
    """The published ranked list pays repeats, up to 1.11: a bound of 1 below the mean would turn the interval round."""
    scores = [("c" + str(g), "risk_identification", 1.0 + 0.01 * g) for g in range(12)]
    values = pl.DataFrame([{"cluster": c, "sub_task": s, "score": v} for c, s, v in scores])
    (line,) = estimate_means(values, "score").to_dicts()
    known = clustered.cr2(scores)
    assert (line["low"], line["high"]) == pytest.approx((known.low, known.high))


@settings(max_examples=examples(25), deadline=None)
@given(first=draws(8), second=draws(8), method=st.sampled_from(("t", "percentile", "bca")))
def test_a_group_stands_for_itself(first: Draw, second: Draw, method: str) -> None:
    one, other = frame(observed(first), "one"), frame(observed(second), "other")
    mixed = pl.concat([one, other]).sample(fraction=1.0, shuffle=True, seed=1)
    together = estimate_means(mixed, by=("group",), method=method, resamples=400).sort("group").to_dicts()
    for line, alone in zip(together, (one, other), strict=True):
        (wanted,) = estimate_means(alone, method=method, resamples=400).to_dicts()
        for name, value in wanted.items():
            assert line[name] == value if value is None else line[name] == pytest.approx(value, rel=1e-9)
