"""The factor form and Ledoit-Wolf against scikit-learn and by identities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf as Oracle
from tests.sampling import examples

from finskillbench.engines.statistics.covariance import Covariance, ledoit_wolf
from finskillbench.errors import DimensionError, InputError


def _returns(seed: int, periods: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    market = rng.standard_normal((periods, 1)) * 0.01
    return market * rng.uniform(0.5, 1.5, n) + rng.standard_normal((periods, n)) * rng.uniform(0.005, 0.02, n) + 4e-4


def _names(n: int) -> tuple[str, ...]:
    return tuple(f"S{i:04d}" for i in range(n))


@pytest.mark.slow
@pytest.mark.parametrize(("periods", "n"), [(252, 30), (252, 2), (252, 1), (60, 200), (2, 5), (252, 1100)])
def test_equals_scikit_learn(periods: int, n: int) -> None:
    returns = _returns(n, periods, n)
    oracle = Oracle().fit(returns)
    shrinkage, covariance = ledoit_wolf(returns, _names(n), periods_per_year=1)
    assert shrinkage == pytest.approx(oracle.shrinkage_, rel=1e-12, abs=1e-15)
    scale = np.abs(oracle.covariance_).max()
    assert np.abs(covariance.matrix() - oracle.covariance_).max() <= 1e-14 * scale
    yearly = ledoit_wolf(returns, _names(n)).covariance
    np.testing.assert_allclose(yearly.matrix(), 252 * oracle.covariance_, rtol=1e-12, atol=1e-15 * 252 * scale)


@pytest.mark.slow
def test_thousands_of_names_need_no_square_matrix() -> None:
    """n = 20,000 would need 3 GB as a matrix."""
    returns = _returns(3, 20, 20_000)
    _, covariance = ledoit_wolf(returns, _names(20_000))
    w = np.zeros(20_000)
    w[[5, 77]] = 0.5
    part = Covariance(_names(2), covariance.loadings[:, [5, 77]], covariance.specific[[5, 77]])
    assert w @ covariance.times(w) == pytest.approx(np.full(2, 0.5) @ part.matrix() @ np.full(2, 0.5), rel=1e-12)


@settings(max_examples=examples(50))
@given(seed=st.integers(0, 10**6), factors=st.integers(1, 12), n=st.integers(1, 25))
def test_fewer_factors_keep_the_variances_and_the_best_of_the_covariances(seed: int, factors: int, n: int) -> None:
    """Against the eigenvectors of the systematic part: no other matrix of that rank comes closer (Eckart-Young)."""
    _, covariance = ledoit_wolf(_returns(seed, 30, n), _names(n))
    reduced = covariance.reduced(factors)
    assert len(reduced.loadings) == min(factors, n)
    np.testing.assert_allclose(reduced.variances(), covariance.variances(), rtol=1e-12)
    assert reduced.least_eigenvalue_bound() >= covariance.least_eigenvalue_bound()
    systematic = covariance.loadings.T @ covariance.loadings
    values, vectors = np.linalg.eigh(systematic)
    lead = vectors[:, -factors:] * values[-factors:] @ vectors[:, -factors:].T
    np.testing.assert_allclose(
        reduced.loadings.T @ reduced.loadings, lead, atol=1e-10 * max(np.abs(systematic).max(), 1e-12)
    )


def test_a_covariance_of_few_factors_is_left_alone() -> None:
    _, covariance = ledoit_wolf(_returns(1, 10, 5), _names(5))
    assert covariance.reduced(10) is covariance


@settings(max_examples=examples(50))
@given(seed=st.integers(0, 10**6), periods=st.integers(2, 40), n=st.integers(1, 25))
def test_identities(seed: int, periods: int, n: int) -> None:
    shrinkage, covariance = ledoit_wolf(_returns(seed, periods, n), _names(n))
    dense = covariance.matrix()
    w = np.random.default_rng(seed).standard_normal(n)
    assert 0 <= shrinkage <= 1
    assert (dense == dense.T).all()
    exposure = covariance.loadings @ w
    assert w @ covariance.times(w) == pytest.approx(exposure @ exposure + covariance.specific @ w**2, rel=1e-9)
    np.testing.assert_allclose(covariance.times(w), dense @ w, rtol=1e-9, atol=1e-12 * np.abs(dense).max())
    np.testing.assert_allclose(covariance.times(np.eye(n)), dense, atol=1e-13 * np.abs(dense).max())
    np.testing.assert_allclose(covariance.variances(), np.diag(dense), rtol=1e-12)
    least = np.linalg.eigvalsh(dense)[0]
    assert least >= covariance.least_eigenvalue_bound() - 1e-13 * np.abs(dense).max()
    # Shrinking towards the mean variance keeps the trace.
    sample = np.var(_returns(seed, periods, n), axis=0) * 252
    assert np.trace(dense) == pytest.approx(sample.sum(), rel=1e-10)


def test_refusals_name_the_trouble() -> None:
    returns = _returns(1, 10, 3)
    with pytest.raises(DimensionError, match=r"\(T, 2\)"):
        ledoit_wolf(returns, _names(2))
    returns[4, 1] = np.nan
    with pytest.raises(InputError, match="S0001 in row 4"):
        ledoit_wolf(returns, _names(3))
    with pytest.raises(InputError, match="two periods"):
        ledoit_wolf(returns[:1], _names(3))
    with pytest.raises(InputError, match="variance of B is negative"):
        Covariance(("A", "B"), np.ones((1, 2)), np.array([0.1, -0.1]))
    with pytest.raises(InputError, match="twice"):
        Covariance(("A", "A"), np.ones((1, 2)), np.ones(2))
    with pytest.raises(DimensionError, match="weights have shape"):
        Covariance(("A", "B"), np.ones((1, 2)), np.ones(2)).times(np.ones(3))
