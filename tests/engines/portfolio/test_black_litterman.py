"""Black-Litterman against the examples of He & Litterman (1999) and Idzorek (2005), and its own identities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import Oracle, case
from tests.sampling import examples

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.black_litterman import (
    AnalystView,
    Picks,
    Posterior,
    equilibrium,
    idzorek,
    optimal_weights,
    picks_of,
    posterior_returns,
    view_variances,
    without_shorts,
)
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
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
HALF = np.array([0.5])
"""As much doubt in the view as in the prior, Ω = τ p'Σp, as in the paper."""

# Idzorek (2005), tables 5 and 2: covariance and market weights of eight asset classes.
CLASSES = ("US bonds", "int'l bonds", "large growth", "large value", "small growth", "small value", "int'l", "emerging")
COVARIANCE = np.array(
    [
        [0.001005, 0.001328, -0.000579, -0.000675, 0.000121, 0.000128, -0.000445, -0.000437],
        [0.001328, 0.007277, -0.001307, -0.000610, -0.002237, -0.000989, 0.001442, -0.001535],
        [-0.000579, -0.001307, 0.059852, 0.027588, 0.063497, 0.023036, 0.032967, 0.048039],
        [-0.000675, -0.000610, 0.027588, 0.029609, 0.026572, 0.021465, 0.020697, 0.029854],
        [0.000121, -0.002237, 0.063497, 0.026572, 0.102488, 0.042744, 0.039943, 0.065994],
        [0.000128, -0.000989, 0.023036, 0.021465, 0.042744, 0.032056, 0.019881, 0.032235],
        [-0.000445, 0.001442, 0.032967, 0.020697, 0.039943, 0.019881, 0.028355, 0.035064],
        [-0.000437, -0.001535, 0.048039, 0.029854, 0.065994, 0.032235, 0.035064, 0.079958],
    ]
)
CAPITALISATION = np.array([0.1934, 0.2613, 0.1209, 0.1209, 0.0134, 0.0134, 0.2418, 0.0349])
AVERSION = 0.03 / float(CAPITALISATION @ COVARIANCE @ CAPITALISATION)
"""His risk premium of 3 % over the variance of the market, which he rounds to 3.07."""
HIS_VIEWS = (
    AnalystView("absolute", ("int'l",), 0.0525, 0.25),
    AnalystView("relative", ("int'l bonds",), 0.0025, 0.5, ("US bonds",)),
    AnalystView("relative", ("large growth", "small growth"), 0.02, 0.65, ("large value", "small value")),
)


def _posterior(
    risk: RiskModel,
    market: Floats,
    picks: Floats,
    expected: Floats,
    confidence: Floats,
    *,
    risk_aversion: float = 2.5,
    tau: float = 0.05,
) -> Posterior:
    views = Picks(picks, expected, confidence)
    uncertainty = idzorek(confidence, view_variances(risk, views, tau))
    return posterior_returns(risk, equilibrium(risk, market, risk_aversion), views, uncertainty, tau=tau)


def _countries() -> RiskModel:
    correlation = np.eye(7)
    for row, values in enumerate(_UPPER):
        correlation[row, row + 1 :] = correlation[row + 1 :, row] = values
    return RiskModel.from_matrix(correlation * np.outer(VOLATILITY, VOLATILITY))


def test_equilibrium_returns_are_those_published() -> None:
    """Table 2 of the paper, per cent with one decimal."""
    prior = equilibrium(_countries(), MARKET)
    np.testing.assert_array_equal((100 * prior).round(1), [3.9, 6.9, 8.4, 9.0, 4.3, 6.8, 7.6])


def test_posterior_returns_and_weights_are_those_published() -> None:
    """Table 4 of the paper: returns in per cent; weights (δΣ*)^-1 μ in per cent with Σ* = Σ + M."""
    risk = _countries()
    result = _posterior(risk, MARKET, GERMANY, np.array([0.05]), HALF)
    np.testing.assert_array_equal((100 * result.mean).round(1), [4.3, 7.6, 9.3, 11.0, 4.5, 7.0, 8.1])
    prior = 0.05 * risk.matrix
    omega = 0.05 * GERMANY @ risk.matrix @ GERMANY.T
    uncertainty = np.linalg.inv(np.linalg.inv(prior) + GERMANY.T @ np.linalg.inv(omega) @ GERMANY)
    np.testing.assert_allclose(result.standard_deviation, np.sqrt(np.diag(uncertainty)), rtol=1e-9)
    weights = 100 * np.linalg.solve(2.5 * (risk.matrix + uncertainty), result.mean)
    # The paper prints −4.0 for France from unrounded inputs; those it prints give −3.95.
    np.testing.assert_allclose(weights, [1.5, 2.1, -4.0, 35.4, 11.0, -9.5, 58.6], atol=0.06)


def test_idzorek_s_example_is_the_one_published() -> None:
    """Tables 1 and 6 of the paper in per cent: equilibrium, posterior returns and weights, all under Ω = τ p'Σp."""
    risk = RiskModel.from_matrix(COVARIANCE)
    picks = picks_of(CLASSES, HIS_VIEWS, CAPITALISATION, cash=0.0)
    prior = equilibrium(risk, CAPITALISATION, AVERSION)
    np.testing.assert_allclose(100 * prior, [0.08, 0.67, 6.41, 4.08, 7.43, 3.70, 4.80, 6.60], atol=0.011)
    mean = posterior_returns(risk, prior, picks, view_variances(risk, picks)).mean
    np.testing.assert_allclose(100 * mean, [0.07, 0.50, 6.50, 4.32, 7.59, 3.94, 4.93, 6.84], atol=0.0051)
    weights = 100 * np.linalg.solve(AVERSION * COVARIANCE, mean)
    np.testing.assert_allclose(weights, [29.88, 15.59, 9.35, 14.82, 1.04, 1.65, 27.81, 3.49], atol=0.011)


@pytest.mark.parametrize("view", HIS_VIEWS)
def test_a_confidence_is_the_share_of_the_tilt_of_a_certain_view(view: AnalystView) -> None:
    """Idzorek (2005), section 3.2: a view alone moves the weights by c of what it moves them without any doubt."""
    risk = RiskModel.from_matrix(COVARIANCE)
    picks, prior = picks_of(CLASSES, [view], CAPITALISATION, cash=0.0), equilibrium(risk, CAPITALISATION, AVERSION)
    certain = posterior_returns(risk, prior, picks, np.zeros(1)).mean
    assert picks.matrix @ certain == pytest.approx([view.expected], abs=1e-12)
    held = posterior_returns(risk, prior, picks, idzorek(picks.confidence, view_variances(risk, picks))).mean
    tilts = [np.linalg.solve(AVERSION * COVARIANCE, mean) - CAPITALISATION for mean in (held, certain)]
    np.testing.assert_allclose(tilts[0], view.confidence * tilts[1], atol=1e-12)


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
    result = _posterior(risk, market, picks, expected, confidence, risk_aversion=3.0, tau=0.1)
    omega = np.diag((1 - confidence) / confidence * np.diag(picks @ (0.1 * risk.matrix) @ picks.T))
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
    first = _posterior(RiskModel.from_factors(loadings, specific), market, picks, expected, confidence)
    second = _posterior(dense, market, picks, expected, confidence)
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-13)
    np.testing.assert_allclose(first.standard_deviation, second.standard_deviation, atol=1e-13)


def test_a_lone_view_moves_its_return_by_its_confidence() -> None:
    """From the equilibrium towards the view, whatever τ and the covariance."""
    risk, market, picks, expected, confidence = _random(2, 1)
    result = _posterior(risk, market, picks, expected, confidence)
    before = picks @ result.equilibrium
    np.testing.assert_allclose(picks @ result.mean, before + confidence * (expected - before), atol=1e-14)


def test_the_mean_does_not_depend_on_tau() -> None:
    """τ scales the prior's doubt and the views' alike."""
    risk, market, picks, expected, confidence = _random(3, 3)
    means = [_posterior(risk, market, picks, expected, confidence, tau=tau).mean for tau in (0.01, 0.05, 1.0)]
    np.testing.assert_allclose(means[0], means[1], atol=1e-14)
    np.testing.assert_allclose(means[1], means[2], atol=1e-14)


def test_a_view_that_says_what_the_market_says_changes_nothing_but_the_doubt() -> None:
    risk, market, picks, _, confidence = _random(4, 3)
    equilibrium = 2.5 * risk.times(market)
    result = _posterior(risk, market, picks, picks @ equilibrium, confidence)
    np.testing.assert_allclose(result.mean, equilibrium, atol=1e-14)
    assert (result.standard_deviation <= np.sqrt(0.05 * risk.variances) + 1e-15).all()


def test_without_views_the_market_is_optimal() -> None:
    """max μ'w − (δ/2) w'Σw at μ = δΣw_mkt is the market portfolio itself."""
    risk, market, *_ = _random(5, 1)
    result = _posterior(risk, market, np.zeros((0, 10)), np.zeros(0), np.zeros(0))
    tickers = tuple(map(str, range(10)))
    np.testing.assert_allclose(optimal_weights(tickers, risk, result.mean).weights, market, atol=1e-12)


def test_weights_equal_the_independent_solver() -> None:
    risk, market, picks, expected, confidence = _random(6, 4)
    mean = _posterior(risk, market, picks, expected, confidence, risk_aversion=4.0).mean
    result = optimal_weights(tuple(map(str, range(10))), risk, mean, risk_aversion=4.0)
    problem = PortfolioProblem(
        tuple(map(str, range(10))),
        risk,
        Objective.MAX_SHARPE,
        PortfolioLimits(),
        expected_returns=mean,
        risk_aversion=2.0,
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
    first = _posterior(risk, market, picks, expected, confidence)
    second = _posterior(shuffled, market[names], picks[np.ix_(rows, names)], expected[rows], confidence[rows])
    np.testing.assert_allclose(second.mean, first.mean[names], atol=1e-12)
    np.testing.assert_allclose(second.standard_deviation, first.standard_deviation[names], atol=1e-12)


def test_repeated_and_contradictory_views_still_have_a_posterior() -> None:
    risk, market, picks, *_ = _random(7, 1)
    twice = np.vstack([picks, picks])
    result = _posterior(risk, market, twice, np.array([0.1, -0.1]), np.array([0.5, 0.5]))
    assert (picks @ result.mean)[0] == pytest.approx((picks @ result.equilibrium)[0] / 3, abs=1e-12)


def test_optima_without_their_short_positions_are_those_of_the_formula() -> None:
    """With views of the market itself both are the market; a short position is cut off and the rest scaled up."""
    risk, market, *_ = _random(8, 1)
    for weights in without_shorts(risk, equilibrium(risk, market)):
        np.testing.assert_allclose(weights, market, atol=1e-12)
    short = market - 1.5 * market[0] * np.eye(10)[0]
    kept = np.maximum(short, 0.0) / np.maximum(short, 0.0).sum()
    np.testing.assert_allclose(without_shorts(risk, equilibrium(risk, short))[0], kept, atol=1e-12)
    invested = without_shorts(risk, equilibrium(risk, short / short.sum()))[1]
    np.testing.assert_allclose(invested, kept, atol=1e-12)


def test_picks_of_views() -> None:
    """Cash leaves absolute views only; a leg is shared out by market weight."""
    views = [
        AnalystView("absolute", ("B",), 0.05, 0.5),
        AnalystView("relative", ("C",), 0.02, 0.1, ("A",)),
        AnalystView("relative", ("A", "D"), 0.03, 0.2, ("B", "C")),
    ]
    picks = picks_of("ABCD", views, np.array([0.3, 0.4, 0.2, 0.1]), cash=0.01)
    np.testing.assert_allclose(picks.matrix, [[0, 1, 0, 0], [-1, 0, 1, 0], [0.75, -2 / 3, -1 / 3, 0.25]])
    np.testing.assert_allclose(picks.expected, [0.04, 0.02, 0.03])
    np.testing.assert_array_equal(picks.confidence, [0.5, 0.1, 0.2])


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (AnalystView("absolute", ("Z",), 0.1, 0.5), "Z is not among"),
        (AnalystView("absolute", ("A",), 0.1, 0.5, ("B",)), "names symbols alone"),
        (AnalystView("absolute", (), 0.1, 0.5), "names symbols alone"),
        (AnalystView("relative", ("A",), 0.1, 0.5), "names symbols and against"),
        (AnalystView("relative", ("A",), 0.1, 0.5, ("A",)), "must be different"),
        (AnalystView("relative", ("A",), 0.1, 0.5, ("B", "C")), "no market weights"),
        (AnalystView("absolute", ("A",), 0.1, 1.0), "above 0 and below 1"),
        (AnalystView("absolute", ("A",), 0.1, 0.0), "above 0 and below 1"),
        (AnalystView("absolute", ("A",), 0.1, float("nan")), "above 0 and below 1"),
    ],
)
def test_a_view_that_cannot_be_read_is_named(view: AnalystView, message: str) -> None:
    with pytest.raises(InputError, match=f"view 1: .*{message}"):
        picks_of("ABC", [AnalystView("absolute", ("A",), 0.1, 0.5), view], np.array([1.0, 0.0, 0.0]), cash=0.0)
