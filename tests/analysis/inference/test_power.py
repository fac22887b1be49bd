"""Detectable effects: Bloom's multiples, the power of scipy's non-central t, and numbers of clusters."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from finskillbench.analysis.inference import clusters_needed, detectable, detectable_effect
from finskillbench.errors import InputError


def test_blooms_multiple_of_many_clusters() -> None:
    """Bloom (1995): 2.8 standard errors at 80 % power, two-sided 5 %."""
    assert detectable_effect(1.0, 100_000.0) == pytest.approx(2.8016, abs=1e-3)
    assert detectable_effect(0.05, 29.0) == pytest.approx(0.05 * 2.899, abs=1e-4)


@given(st.floats(2, 500), st.floats(0.001, 1))
def test_the_effect_is_found_in_eighty_of_a_hundred_runs(freedom, error) -> None:
    effect = detectable_effect(error, freedom)
    bound = stats.t.ppf(0.975, freedom)
    assert stats.nct.sf(bound, freedom, effect / error) == pytest.approx(0.8, abs=1e-5)
    assert stats.nct.cdf(-bound, freedom, effect / error) < 1e-4


@given(st.floats(0.01, 0.5), st.integers(3, 200), st.floats(0.05, 2.0))
def test_the_number_of_clusters_is_the_least_that_will_do(error, clusters, effect) -> None:
    freedom = clusters - 1.0
    needed = clusters_needed(effect, error, freedom, clusters)
    assert needed is not None

    def seen(count: int) -> float:
        return detectable_effect(error * (clusters / count) ** 0.5, count - 1.0)

    assert seen(needed) <= effect
    assert needed == 3 or seen(needed - 1) > effect
    assert clusters_needed(-effect, error, freedom, clusters) == needed


def test_the_detectable_effect_needs_the_clusters_that_were_run() -> None:
    assert clusters_needed(detectable_effect(0.1, 11.0) + 1e-9, 0.1, 11.0, 12) == 12


def test_what_cannot_be_found() -> None:
    assert clusters_needed(0.015625, 0.5, 97.0, 98) == pytest.approx(
        787_651, abs=5
    )  # beyond the last doubling below a million
    assert clusters_needed(1e-9, 0.1, 11.0, 12) is None
    with pytest.raises(InputError, match="effect: must not be 0"):
        clusters_needed(0.0, 0.1, 11.0, 12)


def test_lines_get_their_columns() -> None:
    lines = pl.DataFrame({"error": [0.1, None], "freedom": [11.0, None], "clusters": [12, 2], "pairs": [40, 4]})
    assert detectable(lines).columns == [*lines.columns, "detectable"]
    first, second = detectable(lines, 0.2).iter_rows(named=True)
    assert first["detectable"] == detectable_effect(0.1, 11.0)
    assert first["clusters_needed"] == clusters_needed(0.2, 0.1, 11.0, 12) == 26
    assert first["pairs_needed"] == 87  # 26 clusters of 40 / 12 pairs: 86.7
    assert (second["detectable"], second["clusters_needed"], second["pairs_needed"]) == (None, None, None)
