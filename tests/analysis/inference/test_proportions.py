"""Wilson intervals: published figures, effective trials, and shares of nothing and everything."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from finskillbench.analysis.inference import proportions, wilson


@pytest.mark.parametrize(("successes", "trials"), [(81, 263), (15, 148), (0, 20), (1, 29), (29, 29)])
def test_wilson_is_scipys_and_newcombes(successes, trials) -> None:
    """Of 81/263, 15/148, 0/20 and 1/29 Newcombe (1998, table I) prints the intervals too."""
    printed = {81: (0.2553, 0.3662), 15: (0.0624, 0.1605), 0: (0.0, 0.1611), 1: (0.0061, 0.1718)}
    found = wilson(successes / trials, trials)
    theirs = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert found == pytest.approx((theirs.low, theirs.high))
    assert found == pytest.approx(printed.get(successes, found), abs=5e-5)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share_and_mirrors_the_share_of_the_others(case) -> None:
    successes, trials = case
    low, high = wilson(successes / trials, trials) or (None, None)
    assert 0.0 <= low <= successes / trials <= high <= 1.0
    other = wilson(1 - successes / trials, trials) or (None, None)
    assert other == pytest.approx((1 - high, 1 - low))


def test_no_trial_has_no_interval() -> None:
    assert wilson(0.0, 0) is None
    line = proportions(pl.DataFrame({"cluster": ["a"], "was": [None]}, schema_overrides={"was": pl.Boolean}), "was")
    assert line.row(0) == (None, None, None, 0, 0, 0, None)


def test_episodes_of_one_cluster_that_agree_count_once_and_such_that_do_not_count_alone() -> None:
    together = pl.DataFrame(
        {"cluster": np.repeat(np.arange(20), 5), "was": np.repeat(np.arange(20) % 2 == 0, 5), "model": "m"}
    )
    line = proportions(together, "was", ["model"]).row(0, named=True)
    assert (line["share"], line["successes"], line["trials"], line["clusters"]) == (0.5, 50, 100, 20)
    assert line["effective_trials"] == pytest.approx(20.0)
    assert (line["low"], line["high"]) == pytest.approx(wilson(0.5, 20))
    mixed = together.with_columns(was=pl.Series(np.tile([True, False], 50)))
    assert proportions(mixed, "was")["effective_trials"].to_list() == [100.0]


@pytest.mark.parametrize("everything", [False, True])
def test_nothing_and_everything_are_shares_of_so_many_clusters(everything) -> None:
    data = pl.DataFrame({"cluster": list("aaabbc"), "was": everything})
    line = proportions(data, "was").row(0, named=True)
    assert line["effective_trials"] == pytest.approx(36 / 14)
    assert (line["low"], line["high"]) == pytest.approx(wilson(float(everything), 36 / 14))
    assert line["high"] - line["low"] > 0.5


def test_shares_of_clustered_episodes_are_covered() -> None:
    """400 draws of 12 clusters of 1 to 9 episodes that succeed or fail nearly together, at rates of 0.1 and 0.5."""
    rng = np.random.default_rng(2)
    for rate in (0.1, 0.5):
        chances = rng.beta(rate, 1 - rate, size=400 * 12)  # intra-cluster correlation of 1 / 2
        member = np.repeat(np.arange(chances.size), rng.integers(1, 10, size=chances.size))
        data = pl.DataFrame({"draw": member // 12, "cluster": member, "was": rng.random(member.size) < chances[member]})
        found = proportions(data, "was", ["draw"])
        held = found.select((pl.col("low") <= rate) & (pl.col("high") >= rate)).to_series().mean()
        alone = proportions(data.with_columns(cluster=pl.int_range(pl.len())), "was", ["draw"])
        missed = 1 - alone.select((pl.col("low") <= rate) & (pl.col("high") >= rate)).to_series().mean()
        assert 0.91 <= held <= 0.995, rate
        assert missed > 0.15
