"""Panel regressions under a known covariance, against dense conditioning and against densities."""

from __future__ import annotations

import numpy as np
import pytest

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError
from finskillbench_desk.engines.panel import Sums, group_variances, least_squares, posterior, sums

T, N, K = 9, 5, 4


def _panel(seed: int = 0) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, N)) + 2 * np.eye(N)
    signals = rng.normal(size=(T, N, K))
    worth = np.array([0.8, 0.0, -0.5, 0.0])
    returns = signals @ worth + rng.normal(size=(T, N)) @ root.T
    return signals, returns, root @ root.T


def _density(returns: Floats, covariance: Floats) -> float:
    return -float(returns @ np.linalg.solve(covariance, returns)) / 2 - float(np.linalg.slogdet(covariance)[1]) / 2


def test_least_squares_is_that_of_the_stacked_rows() -> None:
    signals, returns, covariance = _panel()
    weights = np.linalg.inv(np.kron(np.eye(T), covariance))
    design = signals.reshape(T * N, K)
    expected = np.linalg.solve(design.T @ weights @ design, design.T @ weights @ returns.ravel())
    found, spread = least_squares(sums(signals, returns, covariance))
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_allclose(spread, np.linalg.inv(design.T @ weights @ design), rtol=1e-10)


def test_the_posterior_is_one_dense_conditioning_of_all_returns() -> None:
    signals, returns, covariance = _panel()
    variances = np.array([0.5, 0.0, 2.0, 0.1])
    design, noise = signals.reshape(T * N, K), np.kron(np.eye(T), covariance)
    joint = design * variances @ design.T + noise
    mean, evidence = posterior(sums(signals, returns, covariance), variances)
    np.testing.assert_allclose(mean, variances * (design.T @ np.linalg.solve(joint, returns.ravel())), rtol=1e-10)
    expected = _density(returns.ravel(), joint) - _density(returns.ravel(), noise)
    assert evidence == pytest.approx(expected, rel=1e-10)
    assert mean[1] == 0


def test_week_by_week_says_the_same_as_all_at_once() -> None:
    signals, returns, covariance = _panel(1)
    total = sums(signals[:1], returns[:1], covariance)
    for week in range(1, T):
        total += sums(signals[week : week + 1], returns[week : week + 1], covariance)
    whole = sums(signals, returns, covariance)
    np.testing.assert_allclose(total.information, whole.information, rtol=1e-12)
    np.testing.assert_allclose(total.score, whole.score, rtol=1e-11, atol=1e-12)


def test_the_variances_of_groups_make_the_panel_likeliest() -> None:
    rng = np.random.default_rng(3)
    signals = rng.normal(size=(400, N, K))
    returns = signals @ np.array([0.6, -0.5, 0.0, 0.0]) + rng.normal(size=(400, N))
    of = sums(signals, returns, np.eye(N))
    found = group_variances(of, np.array([0.0, 0.0, 1.0, 1.0]))
    best = posterior(of, found)[1]
    assert found[0] == found[1] == pytest.approx((0.36 + 0.25) / 2, rel=0.15)
    assert found[2] < 0.002
    for place in (0, 2):
        for factor in (0.7, 1.4):
            other = found.copy()
            other[place : place + 2] *= factor
            assert posterior(of, other)[1] <= best + 0.01  # what the iteration leaves at a variance of next to 0


def test_shapes_and_risk_models_that_cannot_be_are_refused() -> None:
    signals, returns, covariance = _panel()
    with pytest.raises(DimensionError, match="do not fit"):
        sums(signals, returns[:3], covariance)
    with pytest.raises(InputError, match="not positive definite"):
        sums(signals, returns, -covariance)
    assert isinstance(sums(signals, returns, covariance), Sums)
