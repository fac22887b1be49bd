"""VaR and CVaR against the literature, scipy's quadrature and lists that can be counted by hand."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from finskillbench.engines.statistics.value_at_risk import (
    cornish_fisher,
    value_at_risk,
)
from finskillbench.errors import DimensionError, InputError

Z, TAIL = -1.6448536269514722, 2.0627128075074275
"""The 5 % quantile of the normal distribution, and the mean loss beyond it in standard deviations (Jorion 2007)."""


def test_historical_counts_the_thirteen_worst_of_252() -> None:
    returns = np.arange(-20, 232) / 1000  # losses 20, 19, ..., 8 permille are the thirteen worst
    found = value_at_risk(np.random.default_rng(0).permutation(returns))
    assert found.var_historical == pytest.approx(0.008, abs=1e-15)
    assert found.cvar_historical == pytest.approx(0.014, abs=1e-15)


@pytest.mark.parametrize(("sessions", "count"), [(2, 1), (20, 1), (21, 2), (100, 5), (260, 13), (261, 14)])
def test_historical_rounds_the_tail_up(sessions: int, count: int) -> None:
    returns = -np.arange(sessions, 0, -1.0) / sessions
    found = value_at_risk(returns)
    assert found.var_historical == pytest.approx((sessions - count + 1) / sessions, abs=1e-12)
    assert found.cvar_historical == pytest.approx((sessions - (count - 1) / 2) / sessions, abs=1e-12)


def _standardised(shape: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    """The shape with a given sample mean and standard deviation (ddof 1)."""
    return mean + deviation * (shape - shape.mean()) / shape.std(ddof=1)


def test_parametric_is_the_normal_distribution() -> None:
    returns = _standardised(np.random.default_rng(1).standard_normal(252), 0.001, 0.02)
    found = value_at_risk(returns)
    assert found.var_parametric == pytest.approx(1.6449 * 0.02 - 0.001, abs=1e-6)
    assert found.cvar_parametric == pytest.approx(2.0627 * 0.02 - 0.001, abs=1e-6)
    assert found.var_parametric == pytest.approx(-Z * 0.02 - 0.001, abs=1e-15)
    assert found.cvar_parametric == pytest.approx(TAIL * 0.02 - 0.001, abs=1e-15)


def test_cornish_fisher_without_skewness_and_kurtosis_is_normal() -> None:
    modified, beyond = cornish_fisher(Z, TAIL, 0.0, 0.0)
    assert modified == Z
    assert beyond == TAIL


def test_cornish_fisher_formula_with_known_moments() -> None:
    """Skewness -0.5 and excess kurtosis 1 at 95 %: term by term, z = -1.644854, z² = 2.705543, z³ = -4.450223."""
    modified, _ = cornish_fisher(Z, TAIL, -0.5, 1.0)
    by_hand = -1.644854 + 1.705543 * -0.5 / 6 + (-4.450223 + 4.934561) / 24 - (-8.900446 + 8.224268) * 0.25 / 36
    assert modified == pytest.approx(by_hand, abs=1e-6)
    assert modified == pytest.approx(-1.762106, abs=1e-6)


@pytest.mark.parametrize(("skew", "kurtosis"), [(0.0, 1.0), (-0.5, 1.0), (0.4, 0.5), (-0.8, 2.0)])
def test_cornish_fisher_shortfall_is_the_integral_of_the_quantile(skew: float, kurtosis: float) -> None:
    def weighted(z: float) -> float:
        return float(cornish_fisher(z, 1.0, skew, kurtosis)[0] * stats.norm.pdf(z))

    mean = integrate.quad(weighted, -15, Z, epsabs=1e-13)[0] / 0.05
    assert cornish_fisher(Z, TAIL, skew, kurtosis)[1] == pytest.approx(-mean, abs=1e-10)


def test_cornish_fisher_takes_the_moments_of_the_sample() -> None:
    returns = np.random.default_rng(2).standard_t(6, 252) * 0.01
    found = value_at_risk(returns)
    skew, kurtosis = stats.skew(returns), stats.kurtosis(returns)
    modified, beyond = cornish_fisher(Z, TAIL, skew, kurtosis)
    assert abs(modified - Z) > 0.01  # the correction is there to be seen
    assert found.var_cornish_fisher == pytest.approx(-modified * returns.std(ddof=1) - returns.mean(), abs=1e-14)
    assert found.cvar_cornish_fisher == pytest.approx(beyond * returns.std(ddof=1) - returns.mean(), abs=1e-14)


@settings(max_examples=100, deadline=None)
@given(
    returns=st.lists(st.floats(-0.5, 0.5).map(lambda x: round(x, 6)), min_size=2, max_size=60),
    shift=st.floats(-0.1, 0.1),
    scale=st.floats(0.1, 10),
)
def test_moves_with_returns_and_never_below_the_quantile(returns: list[float], shift: float, scale: float) -> None:
    series = np.array(returns)
    found, moved = value_at_risk(series), value_at_risk(scale * series + shift)
    if np.ptp(series) > 1e-5:
        np.testing.assert_allclose(astuple(moved), np.array(astuple(found)) * scale - shift, atol=1e-9)
    assert found.cvar_historical >= found.var_historical - 1e-15
    assert found.cvar_parametric >= found.var_parametric
    np.testing.assert_allclose(astuple(value_at_risk(series[::-1])), astuple(found), atol=1e-12)


def test_a_constant_return_is_its_own_risk() -> None:
    np.testing.assert_allclose(astuple(value_at_risk(np.full(252, 0.1))), -0.1, atol=1e-15)


def test_refuses_what_is_no_series() -> None:
    with pytest.raises(DimensionError, match="one series"):
        value_at_risk(np.zeros((3, 2)))
    with pytest.raises(DimensionError, match="at least two"):
        value_at_risk(np.zeros(1))
    with pytest.raises(InputError, match="not a finite"):
        value_at_risk(np.array([0.1, np.nan]))
