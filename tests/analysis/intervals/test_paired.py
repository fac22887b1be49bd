"""The difference of two arms by task: the usual interval where nothing repeats, and one that covers where it does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from finskillbench.analysis.intervals import paired_difference

SCORED = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1), max_size=8)


def test_the_interval_is_the_usual_one_where_every_episode_stands_alone() -> None:
    gaps = np.random.default_rng(1).normal(0.3, 0.2, size=40)
    tasks = [f"t{i}" for i in range(gaps.size)]
    change = paired_difference(dict(zip(tasks, gaps, strict=True)), dict.fromkeys(tasks, 0.0), {t: t for t in tasks})
    assert change is not None
    usual = stats.ttest_1samp(gaps, 0.0).confidence_interval(0.95)
    assert change.interval == pytest.approx((usual.low, usual.high))
    assert (change.mean, change.clusters) == (pytest.approx(gaps.mean()), 40)


def test_the_interval_is_the_one_of_the_cluster_means_where_clusters_are_alike_in_size() -> None:
    means = np.random.default_rng(4).normal(0.1, 0.2, size=6)
    gaps = {f"{cluster}{i}": float(means[cluster]) for cluster in range(6) for i in range(5)}
    change = paired_difference(gaps, dict.fromkeys(gaps, 0.0), {task: task[0] for task in gaps})
    assert change is not None
    usual = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert change.interval == pytest.approx((usual.low, usual.high))


def test_the_interval_covers_where_clusters_repeat_and_differ_in_size() -> None:
    """95 % of 1,500 draws: clusters of 1 to 9 episodes that share half of the variance; alone they would not do."""
    rng = np.random.default_rng(5)
    sizes = [1, 2, 2, 3, 3, 4, 5, 6, 7, 9]
    member = {f"t{i}": str(c) for i, c in enumerate(np.repeat(np.arange(len(sizes)), sizes))}
    alone = {task: task for task in member}
    held = {"clustered": 0, "alone": 0}
    for _ in range(1_500):
        shared = rng.normal(0, 0.1, size=len(sizes))
        gaps = {task: float(0.2 + shared[int(c)] + rng.normal(0, 0.1)) for task, c in member.items()}
        for name, clusters in (("clustered", member), ("alone", alone)):
            change = paired_difference(gaps, dict.fromkeys(gaps, 0.0), clusters)
            assert change is not None
            assert change.interval is not None
            held[name] += change.interval[0] <= 0.2 <= change.interval[1]
    assert 0.93 <= held["clustered"] / 1_500 <= 0.97
    assert held["alone"] / 1_500 < 0.85


@pytest.mark.parametrize("count", [10, 20, 40])
def test_rare_successes_are_covered_or_have_no_interval(count) -> None:
    """Every number of successes, weighed by its probability: a printed interval misses in at most 7.5 of 100 cases."""
    tasks = [f"t{i}" for i in range(count)]
    alone, nothing = {task: task for task in tasks}, dict.fromkeys(tasks, 0.0)
    intervals = []
    for successes in range(count + 1):
        change = paired_difference({t: float(i < successes) for i, t in enumerate(tasks)}, nothing, alone)
        assert change is not None
        intervals.append(change.interval)
    assert intervals[:5] == [None] * 5
    assert intervals[count // 2] is not None
    for rate in np.linspace(0.01, 0.5, 50):
        chances = stats.binom.pmf(np.arange(count + 1), count, rate)
        missed = [one is not None and not one[0] <= rate <= one[1] for one in intervals]
        assert chances[missed].sum() <= 0.075


@settings(max_examples=50)
@given(SCORED, SCORED)
def test_a_difference_is_antisymmetric_and_lies_in_its_interval(one, other) -> None:
    clusters = {task: str("abcdefgh".index(task) // 2) for task in "abcdefgh"}
    forth, back = paired_difference(one, other, clusters), paired_difference(other, one, clusters)
    if forth is None:
        assert len(one.keys() & other.keys()) < 2
        assert back is None
        return
    assert back is not None
    assert forth.mean == pytest.approx(-back.mean)
    if forth.interval is None:
        assert back.interval is None
        return
    assert forth.interval == pytest.approx((-back.interval[1], -back.interval[0]))
    assert -1.0 <= forth.interval[0] <= forth.mean + 1e-12
    assert forth.mean - 1e-12 <= forth.interval[1] <= 1.0


def test_too_few_clusters_give_no_interval() -> None:
    gaps = {"a1": 0.1, "a2": 0.3, "b1": 0.5}
    change = paired_difference(gaps, dict.fromkeys(gaps, 0.0), {task: task[0] for task in gaps})
    assert change is not None
    assert (change.interval, change.clusters) == (None, 2)
