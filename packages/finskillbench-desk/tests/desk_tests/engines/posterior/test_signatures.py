"""Innovations and evidence of signatures against quadrature, simulation and identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from finskillbench_desk.engines.posterior.signatures import Innovations, innovations, mixed_evidence, signature_evidence

NONE = np.full(40, -1)


def simulated(seed: int, n: int = 40, periods: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    persistence, deviation = np.array([0.5, 0.8]), np.array([0.05, 0.02])
    volatility = np.exp(rng.normal(0.0, 0.4, n))
    y = np.zeros((n, periods, 2))
    for quarter in range(1, periods):
        shock = volatility[:, None] * deviation * rng.standard_normal((n, 2))
        y[:, quarter] = persistence * y[:, quarter - 1] + shock
    return y + rng.normal(0.0, 1.0, (n, 1, 2)), deviation, volatility


def test_scales_and_volatilities_are_recovered() -> None:
    y, deviation, volatility = simulated(1)
    found = innovations(y, np.array([0.5, 0.8]), 12, NONE, 0.0)
    np.testing.assert_allclose(found.deviation, deviation * np.median(volatility), rtol=0.15)
    np.testing.assert_allclose(
        found.volatility / np.median(found.volatility), volatility / np.median(volatility), rtol=0.2
    )
    assert abs(found.correlation[0, 1]) < 0.1
    stated = innovations(y, np.array([0.5, 0.8]), 12, NONE, 0.0, deviation)
    np.testing.assert_allclose(stated.volatility, volatility, rtol=0.15)
    assert (stated.standardised[:, :-12] ** 2).mean() == pytest.approx(1.0, abs=0.03)


def test_many_degrees_of_freedom_make_all_companies_usual() -> None:
    y, deviation, _ = simulated(2)
    found = innovations(y, np.array([0.5, 0.8]), 12, NONE, 1e9, deviation)
    np.testing.assert_allclose(found.volatility, 1.0, atol=1e-4)


def test_a_change_of_level_leaves_no_trace_where_it_is_stated() -> None:
    y, deviation, _ = simulated(3)
    moved = y.copy()
    moved[5, 120:] += 1.0
    breaks = NONE.copy()
    breaks[5] = 120
    persistence = np.array([0.5, 0.8])
    quiet = innovations(moved, persistence, 12, breaks, 0.0, deviation)
    loud = innovations(moved, persistence, 12, NONE, 0.0, deviation)
    assert not quiet.usable[5, 119]
    assert quiet.usable.sum() == quiet.usable.size - 1
    assert quiet.volatility[5] < 0.7 * loud.volatility[5]


def test_evidence_is_the_integral_over_sizes() -> None:
    rng = np.random.default_rng(4)
    quarters, starts = 30, 4
    correlation = np.array([[1.0, 0.3], [0.3, 1.0]])
    shocks = rng.standard_normal((1, quarters, 2))
    volatility = np.array([1.3])
    found = Innovations(shocks, np.ones(2), correlation, volatility, np.ones((1, quarters), dtype=bool))
    shift, profile = np.array([0.9, -0.4]), np.array([1.0, 0.5, -0.5])
    evidence = signature_evidence(found, shift, profile, 1.0, 0.4, starts)
    density = multivariate_normal(np.zeros(2), correlation)
    for start in range(starts):
        first = quarters - starts + start

        def likelihood(size: float, first: int = first) -> float:
            moved = shocks[0].copy()
            for place, weight in enumerate(profile[: quarters - first]):
                moved[first + place] -= size * weight * shift / volatility[0]
            prior = np.exp(-(((size - 1.0) / 0.4) ** 2) / 2) / (0.4 * np.sqrt(2 * np.pi))
            return float(np.exp(density.logpdf(moved).sum() - density.logpdf(shocks[0]).sum()) * prior)

        expected = quad(likelihood, -3.0, 5.0, epsabs=1e-12)[0]
        assert evidence[0, start] == pytest.approx(np.log(expected), abs=1e-8)


def test_evidence_of_shifts_that_differ_by_ratio_is_a_ratio_of_normal_densities() -> None:
    rng = np.random.default_rng(6)
    quarters, starts, scatter = 9, 3, 0.5
    correlation = np.array([[1.0, 0.3], [0.3, 1.0]])
    shocks, volatility = rng.standard_normal((1, quarters, 2)), 1.4
    usable = np.ones((1, quarters), dtype=bool)
    found = Innovations(shocks, np.ones(2), correlation, np.array([volatility]), usable)
    shift, profile = np.array([0.9, -0.4]), np.array([1.0, 0.5, -0.5])
    evidence = signature_evidence(found, shift, profile, 0.8, 0.4, starts, scatter)
    null = np.kron(np.eye(quarters), correlation)
    between = 0.4**2 * np.outer(shift, shift) / volatility**2 + scatter**2 * np.eye(2)
    for start in range(starts):
        weights = np.zeros(quarters)
        place = quarters - starts + start
        weights[place:] = profile[: quarters - place]
        mean = np.kron(weights, 0.8 * shift / volatility)
        managed = multivariate_normal(mean, null + np.kron(np.outer(weights, weights), between))
        expected = managed.logpdf(shocks.reshape(-1)) - multivariate_normal(cov=null).logpdf(shocks.reshape(-1))
        assert evidence[0, start] == pytest.approx(expected, abs=1e-9)
    nearly = signature_evidence(found, shift, profile, 0.8, 0.4, starts, 1e-9)
    assert nearly == pytest.approx(signature_evidence(found, shift, profile, 0.8, 0.4, starts), abs=1e-9)


def test_evidence_is_right_on_average_only_of_what_is_there() -> None:
    """Bayes factors against the truth average one (Good's theorem: the mean of a wrong hypothesis's odds)."""
    rng = np.random.default_rng(5)
    n, quarters = 20_000, 12
    found = Innovations(
        rng.standard_normal((n, quarters, 2)), np.ones(2), np.eye(2), np.ones(n), np.ones((n, quarters), dtype=bool)
    )
    evidence = signature_evidence(found, np.array([0.4, 0.2]), np.ones(3), 1.0, 0.3, 4)
    mixed = mixed_evidence(evidence[:, None], np.ones(1))
    assert np.exp(mixed).mean() == pytest.approx(1.0, abs=0.03)


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=6), st.floats(0.05, 0.95))
def test_a_mixture_lies_between_its_parts(logs: list[float], weight: float) -> None:
    half = np.array(logs)[None, None, :]
    parts = np.concatenate([half, half + 1.0], axis=1)
    mixed = float(mixed_evidence(parts, np.array([weight, 1.0 - weight]))[0])
    alone = [float(mixed_evidence(parts[:, [place]], np.ones(1))[0]) for place in (0, 1)]
    assert alone[0] - 1e-9 <= mixed <= alone[1] + 1e-9
    assert alone[1] - alone[0] == pytest.approx(1.0)
