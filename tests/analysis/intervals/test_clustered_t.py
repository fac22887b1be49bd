"""The t interval: the usual one where nothing repeats, and rare successes that are covered or have none."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from finskillbench.analysis.intervals import estimate_means


def line(values, clusters) -> dict:
    data = pl.DataFrame({"sub_task": "s", "cluster": clusters, "difference": values})
    return estimate_means(data).row(0, named=True)


def test_the_interval_is_the_usual_one_where_every_episode_stands_alone() -> None:
    gaps = np.random.default_rng(1).normal(0.3, 0.2, size=40)
    found = line(gaps, np.arange(40))
    usual = stats.ttest_1samp(gaps, 0.0).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((usual.low, usual.high))
    assert (found["mean"], found["error"]) == pytest.approx((gaps.mean(), stats.sem(gaps)))
    assert (found["freedom"], found["clusters"]) == (pytest.approx(39.0), 40)


def test_the_interval_is_the_one_of_the_cluster_means_where_clusters_are_alike_in_size() -> None:
    means = np.random.default_rng(4).normal(0.1, 0.2, size=6)
    found = line(np.repeat(means, 5), np.repeat(np.arange(6), 5))
    usual = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((usual.low, usual.high))


@pytest.mark.parametrize("count", [10, 20, 40])
def test_rare_successes_are_covered_or_have_no_interval(count) -> None:
    """Every number of successes, weighed by its probability: a printed interval misses in at most 7.5 of 100 cases."""
    every = [line((np.arange(count) < successes).astype(float), np.arange(count)) for successes in range(count + 1)]
    intervals = [(each["low"], each["high"]) for each in every]
    assert intervals[:5] == [(None, None)] * 5
    assert intervals[count // 2] != (None, None)
    for rate in np.linspace(0.01, 0.5, 50):
        chances = stats.binom.pmf(np.arange(count + 1), count, rate)
        missed = [low is not None and not low <= rate <= high for low, high in intervals]
        assert chances[missed].sum() <= 0.075
