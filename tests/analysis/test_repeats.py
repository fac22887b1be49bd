"""Variance over repeats, pass@k and pass^k: by hand, by enumeration, by the moments of what was simulated."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.analysis.scenes import results, row
from tests.sampling import examples

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import passes, variances
from finskillbench.errors import InputError


def repeated(**scores: list[float | None]):
    return results(
        *(row("curated", task, one, run_idx=i) for task, all_of in scores.items() for i, one in enumerate(all_of))
    )


def test_variances_by_hand() -> None:
    line = variances(repeated(a=[0.0, 0.5], b=[0.5, 1.0])).row(0, named=True)
    # Within: two sums of squares of 0.125 over two degrees. Between: means 0.25 and 0.75, MSB 0.25; (0.25 - 0.125) / 2.
    assert (line["episodes"], line["repeats"]) == (2, 4)
    assert (line["within"], line["between"], line["alike"]) == (0.125, 0.0625, pytest.approx(1 / 3))


def test_variances_of_unequal_repeats_agree_with_the_analysis_of_variance() -> None:
    groups = {"a": [0.1, 0.4, 0.2], "b": [0.7, 0.9], "c": [0.3, 0.5, 0.6, 0.2]}
    line = variances(repeated(**groups)).row(0, named=True)
    sizes = np.array([3, 2, 4])
    usual = (9 - (sizes**2).sum() / 9) / 2
    ratio = stats.f_oneway(*groups.values()).statistic  # (within + usual between) / within
    assert (line["within"] + usual * line["between"]) / line["within"] == pytest.approx(ratio)


def test_variances_that_cannot_be_said() -> None:
    once = variances(repeated(a=[0.1], b=[0.5])).row(0, named=True)
    assert (once["within"], once["between"], once["alike"]) == (None, None, None)
    alone = variances(repeated(a=[0.0, 1.0])).row(0, named=True)
    assert (alone["within"], alone["between"], alone["alike"]) == (0.5, None, None)
    never = variances(repeated(a=[0.5, 0.5], b=[0.5, 0.5])).row(0, named=True)
    assert (never["within"], never["between"], never["alike"]) == (0.0, 0.0, None)
    lost = variances(repeated(a=[0.25, None, 0.75], b=[0.5, 0.5, None])).row(0, named=True)
    assert (lost["repeats"], lost["within"]) == (4, 0.0625)


@settings(max_examples=examples(40))
@given(st.lists(st.booleans(), min_size=1, max_size=7).flatmap(lambda p: st.tuples(st.just(p), st.integers(1, len(p)))))
def test_chances_are_shares_of_subsets(case) -> None:
    passed, k = case
    line = passes(repeated(a=[1.0 if one else 0.9 for one in passed]), k).row(0, named=True)
    subsets = list(combinations(passed, k))
    assert line["pass_at"] == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-12)
    assert line["pass_hat"] == pytest.approx(sum(map(all, subsets)) / len(subsets), abs=1e-12)
    assert line["pass_hat"] == pytest.approx(comb(sum(passed), k) / comb(len(passed), k))


def test_once_is_the_share_of_repeats_and_the_threshold_is_the_callers() -> None:
    scores = [0.2, 0.6, 1.0, 0.4]
    line = passes(repeated(a=scores), 1, least=0.5).row(0, named=True)
    assert line["pass_at"] == line["pass_hat"] == 0.5
    assert passes(repeated(a=scores), 2)["pass_hat"].to_list() == [0.0]
    assert passes(repeated(a=scores), 2)["pass_at"].to_list() == [0.5]


def test_repeats_that_were_lost_to_errors_leave_an_episode_out() -> None:
    found = passes(repeated(a=[1.0, None], b=[1.0, 1.0]), 2)
    assert found["pass_hat"].to_list() == [None, 1.0]
    assert estimate_means(found, "pass_hat")["pairs"].to_list() == [1]


def test_more_repeats_than_were_run_are_refused() -> None:
    with pytest.raises(InputError, match=r"pass@3: m under curated has only 2 runs per episode; .* --epochs 3"):
        passes(repeated(a=[1.0, 1.0]), 3)
    with pytest.raises(InputError, match="k is 0"):
        passes(repeated(a=[1.0, 1.0]), 0)


def test_pass_intervals_are_those_of_any_mean() -> None:
    scores = {name: [1.0, float(place % 2)] for place, name in enumerate("abcdefghij")}
    line = estimate_means(passes(repeated(**scores), 2), "pass_hat", ["condition"]).row(0, named=True)
    assert line["mean"] == 0.5
    usual = stats.ttest_1samp([float(place % 2) for place in range(10)], 0).confidence_interval()
    assert (line["low"], line["high"]) == pytest.approx((usual.low, usual.high))
