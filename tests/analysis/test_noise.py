"""Noise between identical runs, sample sizes and always-valid intervals: by hand, by identity, by simulation."""

from __future__ import annotations

from itertools import pairwise
from math import log

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.scenes import results, row
from tests.sampling import examples

from finskillbench.analysis.inference import clusters_needed
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.noise import (
    BETS,
    DifferenceNoise,
    always_valid_interval,
    difference_noise,
    log_wealth,
    repeat_noise,
    sample_sizes,
)

LIMIT = log(40.0)


def noise_of(scores: dict[str, list[float | None]], condition: str = "curated"):
    rows = (row(condition, task, one, run_idx=i) for task, each in scores.items() for i, one in enumerate(each))
    return repeat_noise(results(*rows).rows)


def test_noise_by_hand() -> None:
    found = noise_of({"a": [0.0, 1.0], "b": [1.0, 1.0], "c": [0.5, 0.9], "d": [0.3, None], "e": [0.7]})
    assert found is not None
    assert (found.episodes, found.repeats, found.units, found.varying) == (3, 2.0, 3, 2)
    assert (found.verdicts.value, found.scores) == pytest.approx((1 / 3, 2 / 3))
    # Variances within: 0.5, 0 and 0.08, over the squared number of episodes, then over the number of repeats.
    assert (found.once, found.variance) == pytest.approx((0.58 / 9, 0.29 / 9))
    assert found.freedom == pytest.approx(0.58**2 / (0.5**2 + 0.08**2))
    assert noise_of({"a": [0.0], "b": [1.0]}) is None


def test_pairs_of_three_repeats() -> None:
    found = noise_of({"a": [0.0, 1.0, 1.0], "b": [1.0, 1.0, 1.0]})
    assert found is not None
    assert found.verdicts.value == pytest.approx(2 / 6)
    assert found.variance == pytest.approx(found.once / 3)


def test_episodes_under_a_condition_with_memory_vary_together() -> None:
    scores = {"a": [0.0, 1.0], "b": [0.0, 1.0]}
    alone, together = noise_of(scores), noise_of(scores, "self_generated_persistent")
    assert alone is not None
    assert together is not None
    assert (alone.units, together.units) == (2, 1)
    assert (alone.once, together.once) == pytest.approx((0.25, 0.5))  # two runs differ by 0 or 1 as a whole


def test_no_range_where_few_episodes_vary() -> None:
    still = {f"s{i}": [1.0, 1.0] for i in range(20)}
    four, five = (noise_of(still | {f"v{i}": [0.0, 1.0] for i in range(count)}) for count in (4, 5))
    assert four is not None
    assert five is not None
    assert four.half_width is None
    assert five.half_width == pytest.approx(2.571 * (2 * 5 * 0.25) ** 0.5 / 25, rel=1e-3)  # t of 5 degrees


def test_a_side_without_repeats_has_the_noise_of_the_other_with_one() -> None:
    noise = noise_of({"a": [0.0, 1.0, 0.0], "b": [1.0, 0.5, 1.0]})
    assert noise is not None
    both, one = difference_noise(noise, noise), difference_noise(None, noise)
    assert both is not None
    assert one is not None
    assert (both.variance, both.once) == pytest.approx((2 * noise.variance, 2 * noise.once))
    assert (one.variance, one.once) == pytest.approx((noise.variance + noise.once, 2 * noise.once))
    assert difference_noise(None, None) is None


def identical(rng: np.random.Generator, episodes: int = 60, repeats: int = 2) -> tuple[np.ndarray, list[pl.DataFrame]]:
    """Chances, and the rows of two identical runs: a fifth of episodes always scores 0, a fifth 1."""
    chance = rng.choice([0.0, 1.0, 0.3, 0.6], episodes, p=[0.2, 0.2, 0.3, 0.3])
    keys = {"model": "m", "harness": "h", "condition": "c", "sub_task": "s"}
    place = np.repeat(np.arange(episodes), repeats)
    frames = [
        pl.DataFrame(
            {
                "episode": place,
                "cluster": place // 3,
                "run_idx": np.tile(np.arange(repeats), episodes),
                "score": (rng.random(place.size) < chance[place]).astype(float),
            }
        ).with_columns(**{name: pl.lit(value) for name, value in keys.items()})
        for _ in range(2)
    ]
    return chance, frames


def test_identical_runs_are_within_their_noise_in_95_of_100() -> None:
    """A few draws of what benchmarks/noise.py does in full."""
    rng = np.random.default_rng(1)
    within: list[bool] = []
    intervals: list[bool] = []
    for _ in range(200):
        chance, (a, b) = identical(rng)
        noise = difference_noise(repeat_noise(a), repeat_noise(b))
        assert noise is not None
        assert noise.half_width is not None
        further = [rng.binomial(2, chance).mean() / 2 for _ in range(2)]
        within.append(abs(further[0] - further[1]) <= noise.half_width)
        means = [side.group_by("episode", "cluster", maintain_order=True).agg(pl.mean("score")) for side in (a, b)]
        pairs = means[0].with_columns(difference=means[1]["score"] - pl.col("score"), sub_task=pl.lit("s"))
        low, high = estimate_means(pairs).select("low", "high").row(0)
        intervals.append(low <= 0.0 <= high)
    assert 0.90 <= np.mean(within) <= 0.985
    assert 0.90 <= np.mean(intervals) <= 0.985


def pairs_of(clusters: int = 30) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    change = rng.normal(0.1, 0.3, clusters).repeat(2)
    return pl.DataFrame({"sub_task": "s", "cluster": np.arange(clusters).repeat(2), "difference": change})


def test_sample_sizes_split_noise_from_the_rest() -> None:
    paired = pairs_of()
    error, freedom, clusters = estimate_means(paired).select("error", "freedom", "clusters").row(0)
    half_noise = DifferenceNoise(None, error**2 / 2, error**2)  # two repeats, half of the squared error is noise
    sizes = {size.repeats: size for size in sample_sizes(paired, 0.05, half_noise)}
    assert sizes[2].clusters == clusters_needed(0.05, error, freedom, clusters)
    assert sizes[1].clusters == clusters_needed(0.05, error * 1.5**0.5, freedom, clusters)
    assert sizes[1].episodes == 2 * (sizes[1].clusters or 0)
    needed = [size.episodes or 0 for size in sizes.values()]
    assert all(more > fewer > more / 2 for more, fewer in pairwise(needed))
    (known,) = sample_sizes(paired, 0.05, None)
    assert (known.repeats, known.clusters) == (1, sizes[2].clusters)
    assert sample_sizes(paired.with_columns(difference=0.0), 0.05, None) == []


def test_wealth_by_hand() -> None:
    first, second = log_wealth(np.array([0.5, -0.2]), 0.1)
    stakes = 1.0 + BETS * 0.4 / 1.1
    assert first == pytest.approx(log(stakes.mean()))
    assert second == pytest.approx(log((stakes * (1.0 - BETS * 0.3 / 1.1)).mean()))


VALUES = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=40)


@settings(max_examples=examples(60))
@given(VALUES, st.randoms(use_true_random=False))
def test_the_interval_has_the_mean_and_no_order(values: list[float], random) -> None:
    low, high = always_valid_interval(pl.Series(values))
    assert low >= -1.0
    assert low - 1e-9 <= np.mean(values) <= high + 1e-9
    random.shuffle(values)
    assert always_valid_interval(pl.Series(values)) == pytest.approx((low, high), abs=1e-9)
    flipped = always_valid_interval(-pl.Series(values))
    assert flipped == pytest.approx((-high, -low), abs=1e-9)
    if low > -1.0:
        assert log_wealth(np.array(values), low)[-1] == pytest.approx(LIMIT, abs=1e-3)


def test_nothing_excludes_nothing_and_much_excludes_0() -> None:
    assert always_valid_interval(pl.Series([], dtype=pl.Float64)) == (-1.0, 1.0)
    assert always_valid_interval(pl.Series([0.9] * 3))[0] < 0.0 < always_valid_interval(pl.Series([0.9] * 12))[0]
    assert always_valid_interval(pl.Series([3.0] * 12)) == always_valid_interval(pl.Series([1.0] * 12))


@pytest.mark.parametrize("values", [(-1.0, 1.0), (-1.0, *[1 / 19] * 19)])
def test_looking_after_each_cluster_errs_in_fewer_than_5_of_100(values: tuple[float, ...]) -> None:
    """A few nulls of what benchmarks/noise.py does 10,000 times."""
    rng = np.random.default_rng(3)
    draws = rng.choice(values, (1_000, 150))
    stopped = [max(log_wealth(each).max(), log_wealth(-each).max()) >= LIMIT for each in draws]
    assert np.mean(stopped) <= 0.05
