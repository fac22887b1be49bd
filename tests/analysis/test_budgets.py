"""Scores within a budget: by hand, as integrals, at the ends of the curve, and where spending is not known."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.scenes import results, row
from tests.sampling import examples

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import POINTS, TOKEN_BUDGETS, SpendingMeasure, area_within, score_within


def spent(condition: str, task: str, score: float | None, tokens: int, **more):
    return row(condition, task, score, total_output_tokens=tokens, **more)


def test_the_curve_by_hand() -> None:
    scene = results(spent("curated", "a", 0.5, 4000), spent("curated", "b", 1.0, 9000), spent("curated", "c", None, 1))
    found = score_within(scene, SpendingMeasure.TOKENS, TOKEN_BUDGETS)
    assert found.columns[:5] == ["model", "harness", "condition", "budget", "mean"]
    assert found.select("budget", "mean", "pairs").rows() == [
        (4000.0, 0.25, 2),
        (8000.0, 0.25, 2),
        (16000.0, 0.75, 2),
        (32000.0, 0.75, 2),
    ]
    assert score_within(scene, SpendingMeasure.TOKENS, [3999.0])["mean"].to_list() == [0.0]


def test_repeats_of_an_episode_count_once() -> None:
    rows = [spent("curated", "a", 1.0, 10, run_idx=0), spent("curated", "a", 1.0, 30, run_idx=1)]
    scene = results(*rows, spent("curated", "b", 0.0, 10))
    assert score_within(scene, SpendingMeasure.TOKENS, [10.0, 30.0])["mean"].to_list() == [0.25, 0.5]
    assert area_within(scene, SpendingMeasure.TOKENS, 30.0)["mean"].to_list() == [pytest.approx((2 / 3 / 2 + 0.0) / 2)]


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50)), min_size=1, max_size=12), st.integers(1, 60))
def test_the_area_is_the_integral_of_the_curve(spending, most) -> None:
    scene = results(*(spent("curated", f"a{i}", score, tokens) for i, (score, tokens) in enumerate(spending)))
    steps = score_within(scene, SpendingMeasure.TOKENS, [float(step) for step in range(most)])["mean"]
    area = area_within(scene, SpendingMeasure.TOKENS, float(most))["mean"]
    assert area.to_list() == [pytest.approx(steps.sum() / most)]
    assert steps.is_sorted()


def test_the_default_curve_ends_at_the_mean_score_with_its_interval() -> None:
    rng = np.random.default_rng(0)
    arms = [(arm, f"{'abcdefgh'[i % 8]}{i}") for arm in ("no_skill", "curated") for i in range(30)]
    scene = results(*(spent(arm, task, float(rng.uniform()), int(rng.integers(100, 9000))) for arm, task in arms))
    found = score_within(scene, SpendingMeasure.TOKENS)
    assert found.height == 2 * POINTS
    ends = found.filter(pl.col("budget") == found["budget"].max())
    usual = estimate_means(scene.episodes, "score", ["model", "harness", "condition"])
    assert ends.drop("budget").rows() == [pytest.approx(line) for line in usual.rows()]
    assert found.filter(condition="curated")["budget"].is_sorted()
    assert found.filter(condition="curated")["mean"].is_sorted()


@pytest.mark.parametrize("measure", list(SpendingMeasure))
def test_each_measure_reads_its_column(measure) -> None:
    scene = results(row("curated", "a", 1.0, cost_usd=0.25), row("curated", "b", 0.5, cost_usd=0.25))
    at = {
        SpendingMeasure.TOKENS: 1000.0,
        SpendingMeasure.TURNS: 3.0,
        SpendingMeasure.SECONDS: 10.0,
        SpendingMeasure.DOLLARS: 0.25,
    }[measure]
    assert score_within(scene, measure, [at * 0.99, at])["mean"].to_list() == [0.0, 0.75]
    assert area_within(scene, measure, 2 * at)["mean"].to_list() == [pytest.approx(0.375)]


def test_a_price_that_is_not_known_leaves_the_curve_out() -> None:
    known = [row("no_skill", task, 0.5, cost_usd=0.1) for task in "ab"]
    partly = [row("curated", "a", 0.5, cost_usd=0.1), row("curated", "b", 0.5)]
    scene = results(*known, *partly)
    assert score_within(scene, SpendingMeasure.DOLLARS)["condition"].unique().to_list() == ["no_skill"]
    assert area_within(scene, SpendingMeasure.DOLLARS)["condition"].to_list() == ["no_skill"]
    none = results(*(row("curated", task, 0.5) for task in "ab"))
    assert score_within(none, SpendingMeasure.DOLLARS).is_empty()
    assert area_within(none, SpendingMeasure.DOLLARS).is_empty()


def test_an_error_without_a_price_does_not_hide_the_others() -> None:
    scene = results(row("curated", "a", 0.5, cost_usd=0.1), row("curated", "b", None))
    assert score_within(scene, SpendingMeasure.DOLLARS, [1.0])["mean"].to_list() == [0.5]


def test_programs_that_spend_nothing_have_their_score_at_once() -> None:
    scene = results(*(spent("curated", task, 0.5, 0) for task in "ab"))
    assert score_within(scene, SpendingMeasure.TOKENS, [0.0])["mean"].to_list() == [0.5]
    assert score_within(scene, SpendingMeasure.TOKENS).is_empty()
    assert area_within(scene, SpendingMeasure.TOKENS, 100.0)["mean"].to_list() == [0.5]
    assert area_within(scene, SpendingMeasure.TOKENS)["mean"].to_list() == []
