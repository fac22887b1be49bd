"""Trading net of costs: closed forms where no limit binds, and a price at which breaking limits never pays."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finskillbench.arrays import Floats
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError
from finskillbench_desk.engines.trading.net_of_costs import (
    TradingProblem,
    formulate_trades,
    greatest_multiplier,
    optimum,
)


def problem(seed: int, n: int = 12, *, turnover: float = 0.2, band: float = 0.1) -> TradingProblem:
    rng = np.random.default_rng(seed)
    held = rng.dirichlet(np.full(n, 4.0))
    groups = np.arange(n) * 3 // n
    inside = np.array([held[groups == g].sum() for g in range(3)])
    root = rng.normal(0.0, 0.05, (2, n))
    return TradingProblem(
        expected=rng.normal(0.02, 0.02, n),
        risk=RiskModel.from_matrix(root.T @ root + np.diag(rng.uniform(0.004, 0.01, n))),
        risk_aversion=4.0,
        held=held,
        linear=rng.uniform(0.0, 0.002, n),
        quadratic=rng.uniform(0.05, 0.2, n),
        caps=np.full(n, 0.3),
        groups=groups,
        least=inside - band,
        most=inside + band,
        turnover=turnover,
    )


def test_two_names_trade_until_the_marginal_gain_is_the_marginal_cost() -> None:
    # Moving x from the second name to the first gains d − (4/2)(2·v·2x) − 2·k − 2·2·q·x at the margin; held equally.
    gain, variance, linear, quadratic = 0.03, 0.01, 0.002, 0.1
    two = TradingProblem(
        np.array([gain, 0.0]), RiskModel.from_matrix(variance * np.eye(2)), 4.0, np.array([0.5, 0.5]),
        np.full(2, linear), np.full(2, quadratic), np.ones(2), np.zeros(2, dtype=int), np.zeros(1), np.ones(1), 1.0,
    )  # fmt: skip
    moved = (gain - 2 * linear) / (4 * variance * 2 + 4 * quadratic)
    found = optimum(two)
    assert found.weights == pytest.approx([0.5 + moved, 0.5 - moved], abs=1e-9)
    assert -found.value == pytest.approx(two.utility(found.weights), abs=1e-12)


def test_a_gain_below_the_costs_is_not_traded() -> None:
    start = problem(1)
    dear = replace(start, linear=np.full(12, 1.0))
    assert optimum(dear).weights == pytest.approx(start.held, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_keeps_every_limit_and_is_the_only_one(seed: int) -> None:
    case = problem(seed)
    found = optimum(case)
    assert max(case.excesses(found.weights).values()) < 1e-9
    assert found.optimality.gap < 1e-9
    assert found.uniqueness.outcome.proved


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 20), spread=st.floats(1e-4, 1.0), noise=st.integers(0, 10_000))
def test_at_the_price_of_the_multipliers_no_portfolio_earns_more_by_breaking_limits(
    seed: int, spread: float, noise: int
) -> None:
    case = problem(seed, turnover=0.1, band=0.02)
    found = optimum(case)
    price = greatest_multiplier(formulate_trades(case), found.multipliers)
    weights: Floats = found.weights + spread * np.random.default_rng(noise).normal(size=12)
    assert case.penalised(weights, price) <= -found.value + 1e-9


def test_below_that_price_breaking_a_limit_pays() -> None:
    case = problem(3, turnover=0.02)
    found = optimum(case)
    free = optimum(replace(case, turnover=1.0)).weights
    assert case.penalised(found.weights + 0.01 * (free - found.weights), 0.0) > -found.value


def test_each_limit_that_is_broken_is_measured_in_units_of_nav() -> None:
    case = problem(5)
    weights = case.held.copy()
    weights[0] += 0.4
    broken = case.excesses(weights)
    assert broken["fully_invested"] == pytest.approx(0.4)
    assert broken["upper_bound"] == pytest.approx(weights[0] - 0.3)
    assert broken["group_above"] == pytest.approx(0.3)
    assert broken["max_turnover"] == pytest.approx(0.0)
    weights[1] = -0.1
    assert case.excesses(weights)["lower_bound"] == pytest.approx(0.1)
    assert set(case.excesses(case.held).values()) == {0.0} or max(case.excesses(case.held).values()) < 1e-15


def test_arrays_of_other_lengths_are_refused() -> None:
    with pytest.raises(DimensionError, match="caps has shape"):
        replace(problem(1), caps=np.ones(3))
