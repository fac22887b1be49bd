"""Adjusted p-values: worked examples, scipy, absences, families, and the clustered t they come from."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from finskillbench.analysis.inference import adjust, benjamini_hochberg, holm
from finskillbench.analysis.intervals import estimate_means

# Benjamini & Hochberg (1995), section 3.2: fifteen p-values, of which four are findings at 5 %, and Holm finds three.
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
PUBLISHED += [0.4262, 0.5719, 0.6528, 0.7590, 1.0000]


def test_the_example_of_benjamini_and_hochberg() -> None:
    assert [value <= 0.05 for value in benjamini_hochberg(PUBLISHED)] == [True] * 4 + [False] * 11
    assert [value <= 0.05 for value in holm(PUBLISHED)] == [True] * 3 + [False] * 12


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_false_discovery_rate_is_scipys(values) -> None:
    assert benjamini_hochberg(values) == pytest.approx(stats.false_discovery_control(values))


@given(st.lists(st.floats(0, 1) | st.none(), max_size=20))
def test_absent_values_stay_absent_and_count_in_no_family(values) -> None:
    there = [value for value in values if value is not None]
    for correct in (holm, benjamini_hochberg):
        adjusted = correct(values)
        assert [value is None for value in adjusted] == [value is None for value in values]
        assert [value for value in adjusted if value is not None] == correct(there)
        assert all(old <= new + 1e-15 for old, new in zip(there, correct(there), strict=True))


def test_p_is_that_of_the_t_test_of_single_episodes_and_families_are_apart() -> None:
    rng = np.random.default_rng(3)
    data = pl.DataFrame(
        {
            "model": np.repeat(["m0", "m1"], 60),
            "sub_task": np.tile(np.repeat(["a", "b", "c"], 20), 2),
            "cluster": np.arange(120),
            "difference": rng.normal(0.1, 0.3, 120),
        }
    )
    lines = adjust(estimate_means(data, by=["model", "sub_task"]), ["model"])
    for line in lines.iter_rows(named=True):
        here = data.filter(pl.col("model") == line["model"], pl.col("sub_task") == line["sub_task"])
        assert line["p"] == pytest.approx(stats.ttest_1samp(here["difference"], 0.0).pvalue)
    for model in ("m0", "m1"):
        family = lines.filter(pl.col("model") == model)
        assert family["p_holm"].to_list() == holm(family["p"].to_list())
        assert family["p_fdr"].to_list() == benjamini_hochberg(family["p"].to_list())
    every = adjust(lines.select(estimate_means(data, by=["model", "sub_task"]).columns))
    assert every["p_holm"].to_list() == holm(every["p"].to_list())


def test_a_line_without_an_error_has_no_p() -> None:
    lines = pl.DataFrame({"mean": [0.5, 0.5], "error": [None, 0.1], "freedom": [None, 8.0]})
    found = adjust(lines)
    assert found.select("p", "p_holm", "p_fdr").row(0) == (None, None, None)
    assert found["p_holm"][1] == found["p"][1]
