"""Shares, many comparisons and power against the textbook formulas of the oracle."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.sampling import examples

from finskillbench.analysis.inference import (
    adjust,
    benjamini_hochberg,
    clusters_needed,
    detectable,
    detectable_effect,
    holm,
    proportions,
    wilson,
)
from finskillbench.analysis.intervals import estimate_means

from . import clustered, textbook
from .test_intervals_agree import Draw, draws, frame, observed

pytestmark = pytest.mark.slow

PROBABILITIES = st.lists(st.one_of(st.none(), st.sampled_from((0.0, 0.01, 0.03, 0.03, 1.0)), st.floats(0, 1)))


@settings(max_examples=examples(100), deadline=None)
@given(values=PROBABILITIES)
def test_adjusted_p_values(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    for theirs, ours in ((holm, textbook.holm), (benjamini_hochberg, textbook.benjamini_hochberg)):
        found = theirs(values)
        assert [value is None for value in found] == [value is None for value in values]
        assert [value for value in found if value is not None] == pytest.approx(ours(known), abs=1e-12)


@settings(max_examples=examples(100), deadline=None)
@given(trials=st.integers(1, 400), share=st.floats(0, 1))
def test_wilson(trials: int, share: float) -> None:
    assert wilson(share, trials) == pytest.approx(textbook.wilson(share * trials, trials), abs=1e-9)


@settings(max_examples=examples(30), deadline=None)
@given(error=st.floats(0.001, 0.5), freedom=st.floats(1.2, 60))
def test_detectable_effects(error: float, freedom: float) -> None:
    assert detectable_effect(error, freedom) == pytest.approx(textbook.detectable(error, freedom), rel=1e-5)


@settings(max_examples=10, deadline=None)
@given(effect=st.floats(0.05, 1.0), error=st.floats(0.02, 0.3), clusters=st.integers(4, 30), lost=st.floats(0, 0.5))
def test_clusters_that_an_effect_takes(effect: float, error: float, clusters: int, lost: float) -> None:
    freedom = (clusters - 1) * (1 - lost)
    # Found one by one: hundreds of them take too long.
    assume(clusters * (error / effect) ** 2 < 10)
    wanted = textbook.needed(effect, error, freedom, clusters)
    assert clusters_needed(effect, error, freedom, clusters) == wanted
    assert clusters_needed(-effect, error, freedom, clusters) == wanted


@settings(max_examples=examples(25), deadline=None)
@given(parts=st.lists(draws(9), min_size=1, max_size=4))
def test_lines_of_estimates_with_their_p_values_and_effects(parts: list[Draw]) -> None:
    mixed = pl.concat([frame(observed(draw), str(i)) for i, draw in enumerate(parts)])
    lines = estimate_means(mixed, by=("group",))
    found = detectable(adjust(lines)).to_dicts()
    values: list[float] = []
    for draw, line in zip(parts, found, strict=True):
        if line["error"] is None:
            assert (line["p"], line["p_holm"], line["p_fdr"], line["detectable"]) == (None,) * 4
            continue
        known = clustered.cr2(observed(draw))
        values.append(2 * float(stats.t.sf(abs(known.mean) / known.error, known.freedom)))
        assert line["p"] == pytest.approx(values[-1], rel=1e-6, abs=1e-12)
        assert line["detectable"] == pytest.approx(textbook.detectable(known.error, known.freedom), rel=1e-5)
    said = [line for line in found if line["error"] is not None]
    assert [line["p_holm"] for line in said] == pytest.approx(textbook.holm(values), rel=1e-6, abs=1e-12)
    assert [line["p_fdr"] for line in said] == pytest.approx(textbook.benjamini_hochberg(values), rel=1e-6, abs=1e-12)


@settings(max_examples=examples(40), deadline=None)
@given(draw=draws(12), rate=st.sampled_from((0.0, 0.1, 0.5, 1.0)))
def test_shares_count_what_is_shared_once(draw: Draw, rate: float) -> None:
    """Korn & Graubard (1998): effective trials are p (1 - p) over the clustered variance, between clusters and all."""
    r = Random(draw.seed)
    alike = {f"c{g}": r.random() < 0.5 for g in range(len(draw.sizes))}
    observations = [
        (cluster, sub_task, float(r.random() < (0.9 if alike[cluster] else rate)))
        for cluster, sub_task, _ in observed(draw)
    ]
    values = pl.DataFrame([{"cluster": c, "sub_task": s, "held": v > 0} for c, s, v in observations])
    (line,) = proportions(values, "held").to_dicts()
    (plain,) = estimate_means(
        values.select("cluster", pl.col("held").cast(pl.Float64), sub_task=pl.lit("")), "held"
    ).to_dicts()
    whole = [(cluster, "", value) for cluster, _, value in observations]  # subtasks are no strata of shares
    n, share, kish = len(observations), clustered.pooled(observations), clustered.kish(observations)
    trials = kish
    if plain["error"] is not None:
        trials = min(n, max(kish, share * (1 - share) / clustered.cr2(whole).error ** 2))
    assert (line["successes"], line["trials"], line["clusters"]) == (round(share * n), n, len(draw.sizes))
    assert line["share"] == pytest.approx(share)
    assert line["effective_trials"] == pytest.approx(trials, rel=1e-6)
    assert (line["low"], line["high"]) == pytest.approx(textbook.wilson(share * trials, trials), abs=1e-6)
