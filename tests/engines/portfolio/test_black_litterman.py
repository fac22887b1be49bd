"""Black-Litterman against the published example of He & Litterman (1999) and against its own identities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import Oracle, case
from tests.sampling import examples

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.black_litterman import View, optimal_weights, pick_matrix, posterior
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

# He & Litterman (1999), tables 1 and 2: correlations, volatilities, market weights of seven countries.
COUNTRIES = ("AUL", "CAN", "FRA", "GER", "JAP", "UKG", "USA")
_UPPER = [
    [0.488, 0.478, 0.515, 0.439, 0.512, 0.491],
    [0.664, 0.655, 0.310, 0.608, 0.779],
    [0.861, 0.355, 0.783, 0.668],
    [0.354, 0.777, 0.653],
    [0.405, 0.306],
    [0.652],
]
VOLATILITY = np.array([0.160, 0.203, 0.248, 0.271, 0.210, 0.200, 0.187])
MARKET = np.array([0.016, 0.022, 0.052, 0.055, 0.116, 0.124, 0.615])
# Their first view: Germany beats the other European markets, weighted by size, by 5 % a year.
GERMANY = np.array([[0.0, 0.0, -0.295, 1.0, 0.0, -0.705, 0.0]])
ONE = np.array([0.0])
"""No confidence beyond the prior's own: Ω = τ p'Σp, as in the paper."""


def _countries() -> RiskModel:
    correlation = np.eye(7)
    for row, values in enumerate(_UPPER):
        correlation[row, row + 1 :] = correlation[row + 1 :, row] = values
    return RiskModel.from_matrix(correlation * np.outer(VOLATILITY, VOLATILITY))


def test_equilibrium_returns_are_those_published() -> None:
    """Table 2 of the paper, per cent with one decimal."""
    result = posterior(_countries(), MARKET, np.zeros((0, 7)), np.zeros(0), np.zeros(0))
    np.testing.assert_array_equal((100 * result.equilibrium).round(1), [3.9, 6.9, 8.4, 9.0, 4.3, 6.8, 7.6])


def test_posterior_returns_and_weights_are_those_published() -> None:
    """Table 4 of the paper: returns in per cent; weights (δΣ*)^-1 μ in per cent with Σ* = Σ + M."""
    risk = _countries()
    result = posterior(risk, MARKET, GERMANY, np.array([0.05]), ONE)
    np.testing.assert_array_equal((100 * result.mean).round(1), [4.3, 7.6, 9.3, 11.0, 4.5, 7.0, 8.1])
    prior = 0.05 * risk.matrix
    omega = 0.05 * GERMANY @ risk.matrix @ GERMANY.T
    uncertainty = np.linalg.inv(np.linalg.inv(prior) + GERMANY.T @ np.linalg.inv(omega) @ GERMANY)
    np.testing.assert_allclose(result.standard_deviation, np.sqrt(np.diag(uncertainty)), rtol=1e-9)
    weights = 100 * np.linalg.solve(2.5 * (risk.matrix + uncertainty), result.mean)
    # The paper prints −4.0 for France from unrounded inputs; those it prints give −3.95.
    np.testing.assert_allclose(weights, [1.5, 2.1, -4.0, 35.4, 11.0, -9.5, 58.6], atol=0.06)


def _random(seed: int, views: int) -> tuple[RiskModel, Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    problem = case(10, seed, Objective.MIN_VARIANCE)
    picks = np.zeros((views, 10))
    for row in range(views):
        first, second = rng.choice(10, 2, replace=False)
        picks[row, first], picks[row, second] = 1.0, -float(rng.integers(0, 2))
    assert problem.benchmark is not None
    return problem.risk, problem.benchmark, picks, rng.normal(0.05, 0.05, views), rng.uniform(0.05, 0.95, views)


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_both_forms_of_the_posterior_agree(seed: int, views: int) -> None:
    """[(τΣ)^-1 + P'Ω^-1P]^-1 [(τΣ)^-1 π + P'Ω^-1 Q], the form of the paper, and its covariance."""
    risk, market, picks, expected, confidence = _random(seed, views)
    result = posterior(risk, market, picks, expected, confidence, risk_aversion=3.0, tau=0.1)
    omega = np.diag((1 - confidence) * np.diag(picks @ (0.1 * risk.matrix) @ picks.T))
    precision = np.linalg.inv(0.1 * risk.matrix)
    covariance = np.linalg.inv(precision + picks.T @ np.linalg.inv(omega) @ picks)
    equilibrium = 3.0 * risk.matrix @ market
    mean = covariance @ (precision @ equilibrium + picks.T @ np.linalg.inv(omega) @ expected)
    np.testing.assert_allclose(result.equilibrium, equilibrium, rtol=1e-12)
    np.testing.assert_allclose(result.mean, mean, atol=1e-10)
    np.testing.assert_allclose(result.standard_deviation, np.sqrt(np.diag(covariance)), rtol=1e-8)


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_factor_form_and_dense_form_agree(seed: int) -> None:
    _, market, picks, expected, confidence = _random(seed, 3)
    rng = np.random.default_rng(seed)
    loadings, specific = rng.normal(0, 0.1, (3, 10)), rng.uniform(0.01, 0.05, 10)
    dense = RiskModel.from_matrix(loadings.T @ loadings + np.diag(specific))
    first = posterior(RiskModel.from_factors(loadings, specific), market, picks, expected, confidence)
    second = posterior(dense, market, picks, expected, confidence)
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-13)
    np.testing.assert_allclose(first.standard_deviation, second.standard_deviation, atol=1e-13)


def test_a_certain_view_comes_true() -> None:
    """As c → 1 the posterior return of the view's portfolio is the view."""
    risk, market, picks, expected, _ = _random(1, 2)
    result = posterior(risk, market, picks, expected, np.full(2, 1 - 1e-12))
    np.testing.assert_allclose(picks @ result.mean, expected, atol=1e-10)


def test_a_view_without_confidence_meets_the_equilibrium_half_way() -> None:
    """c = 0 gives Ω = τ p'Σp: as much doubt as the prior has."""
    risk, market, picks, expected, _ = _random(2, 1)
    result = posterior(risk, market, picks, expected, ONE)
    np.testing.assert_allclose(picks @ result.mean, (expected + picks @ result.equilibrium) / 2, atol=1e-14)


def test_the_mean_does_not_depend_on_tau() -> None:
    """τ scales the prior's doubt and the views' alike."""
    risk, market, picks, expected, confidence = _random(3, 3)
    means = [posterior(risk, market, picks, expected, confidence, tau=tau).mean for tau in (0.01, 0.05, 1.0)]
    np.testing.assert_allclose(means[0], means[1], atol=1e-14)
    np.testing.assert_allclose(means[1], means[2], atol=1e-14)


def test_a_view_that_says_what_the_market_says_changes_nothing_but_the_doubt() -> None:
    risk, market, picks, _, confidence = _random(4, 3)
    equilibrium = 2.5 * risk.times(market)
    result = posterior(risk, market, picks, picks @ equilibrium, confidence)
    np.testing.assert_allclose(result.mean, equilibrium, atol=1e-14)
    assert (result.standard_deviation <= np.sqrt(0.05 * risk.variances) + 1e-15).all()


def test_without_views_the_market_is_optimal() -> None:
    """max μ'w − (δ/2) w'Σw at μ = δΣw_mkt is the market portfolio itself."""
    risk, market, *_ = _random(5, 1)
    result = posterior(risk, market, np.zeros((0, 10)), np.zeros(0), np.zeros(0))
    tickers = tuple(map(str, range(10)))
    np.testing.assert_allclose(optimal_weights(tickers, risk, result.mean).weights, market, atol=1e-12)


def test_weights_equal_the_independent_solver() -> None:
    risk, market, picks, expected, confidence = _random(6, 4)
    mean = posterior(risk, market, picks, expected, confidence, risk_aversion=4.0).mean
    result = optimal_weights(tuple(map(str, range(10))), risk, mean, risk_aversion=4.0)
    problem = PortfolioProblem(
        tuple(map(str, range(10))), risk, Objective.MAX_SHARPE, Limits(), expected_returns=mean, risk_aversion=2.0
    )
    assert result.value == pytest.approx(Oracle(replace(problem)).solve(), rel=1e-6)
    assert result.uniqueness.outcome.proved


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_order_of_names_and_of_views_does_not_matter(seed: int) -> None:
    risk, market, picks, expected, confidence = _random(seed, 4)
    rng = np.random.default_rng(seed)
    names, rows = rng.permutation(10), rng.permutation(4)
    shuffled = RiskModel.from_matrix(risk.matrix[np.ix_(names, names)])
    first = posterior(risk, market, picks, expected, confidence)
    second = posterior(shuffled, market[names], picks[np.ix_(rows, names)], expected[rows], confidence[rows])
    np.testing.assert_allclose(second.mean, first.mean[names], atol=1e-12)
    np.testing.assert_allclose(second.standard_deviation, first.standard_deviation[names], atol=1e-12)


def test_repeated_and_contradictory_views_still_have_a_posterior() -> None:
    risk, market, picks, *_ = _random(7, 1)
    twice = np.vstack([picks, picks])
    result = posterior(risk, market, twice, np.array([0.1, -0.1]), np.array([0.5, 0.5]))
    assert (picks @ result.mean)[0] == pytest.approx((picks @ result.equilibrium)[0] / 5, abs=1e-12)


def test_picks_of_views() -> None:
    views = [View("absolute", ("B",), 0.05, 0.5), View("relative", ("C", "A"), 0.02, 0.0)]
    picks, expected, confidence = pick_matrix("ABC", views)
    np.testing.assert_array_equal(picks, [[0, 1, 0], [-1, 0, 1]])
    np.testing.assert_array_equal(expected, [0.05, 0.02])
    np.testing.assert_array_equal(confidence, [0.5, 0.0])


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (View("absolute", ("Z",), 0.1, 0.5), "Z is not among"),
        (View("absolute", ("A", "B"), 0.1, 0.5), "names 1 symbols, not 2"),
        (View("relative", ("A",), 0.1, 0.5), "names 2 symbols, not 1"),
        (View("relative", ("A", "A"), 0.1, 0.5), "two different symbols"),
        (View("absolute", ("A",), 0.1, 1.0), r"outside \[0, 1\)"),
        (View("absolute", ("A",), 0.1, float("nan")), r"outside \[0, 1\)"),
    ],
)
def test_a_view_that_cannot_be_read_is_named(view: View, message: str) -> None:
    with pytest.raises(InputError, match=f"view 1: .*{message}"):
        pick_matrix("ABC", [View("absolute", ("A",), 0.1, 0.5), view])
