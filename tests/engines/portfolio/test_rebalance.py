"""Two-stage rebalancing against the independent solver, its ties, and what it promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import SECTORS, Oracle, case
from tests.sampling import examples

from finskillbench.engines.optimisation.certified import ACCEPTED_VIOLATION, UndecidedError
from finskillbench.engines.portfolio.measures import turnover, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem
from finskillbench.engines.portfolio.rebalance import OBJECTIVE_TOLERANCE, rebalance
from finskillbench.engines.statistics.risk_model import RiskModel

CAPS = Limits(max_weight=0.066, sector_limits={f"S{i}": 0.2 for i in range(SECTORS)})
OBJECTIVES = list(Objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equals_the_independent_solver_in_both_stages(objective: Objective, seed: int) -> None:
    problem = case(30, seed, objective, CAPS)
    result = rebalance(problem)
    best = Oracle(problem).solve()
    assert result.target.value == pytest.approx(best, rel=1e-6)
    second = Oracle(problem, "turnover", objective_cap=best + OBJECTIVE_TOLERANCE * abs(best))
    assert result.turnover == pytest.approx(second.solve(), abs=1e-5)
    assert np.linalg.norm(result.weights - second.weights.value) < 1e-3
    assert result.least_trading.uniqueness.outcome.proved


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES))
@example(3204, Objective.MAX_RETURN)  # whose second stage is left as the interior point has it
def test_trades_are_fewer_and_the_objective_is_kept(seed: int, objective: Objective) -> None:
    problem = case(30, seed, objective, CAPS)
    try:
        result = rebalance(problem)
    except UndecidedError:
        reject()  # what the solver leaves open is refused, and becomes no task
    assert result.turnover <= turnover(result.target.weights, problem.current) + 1e-9
    assert (
        problem.value(result.weights)
        <= result.target.value * (1 + np.sign(result.target.value) * OBJECTIVE_TOLERANCE) + 1e-10
    )
    assert violations(problem, result.weights, 1e-9) == []
    # A polished portfolio spends its budget to the rounding; one that cannot be polished is accepted up to this.
    assert result.trades.sum() == pytest.approx(0.0, abs=ACCEPTED_VIOLATION)
    np.testing.assert_allclose(problem.current + result.trades, result.weights, atol=1e-15)
    assert result.turnover == pytest.approx(turnover(result.weights, problem.current), abs=1e-15)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_an_optimal_portfolio_is_left_alone(objective: Objective) -> None:
    problem = case(30, 7, objective, CAPS)
    best = optimise(problem).weights
    result = rebalance(replace(problem, current=best))
    assert result.turnover < 1e-9
    np.testing.assert_allclose(result.weights, best, atol=1e-9)


def test_more_tolerance_never_trades_more() -> None:
    problem = case(30, 8, Objective.MAX_SHARPE, CAPS)
    turnovers = [rebalance(problem, tolerance).turnover for tolerance in (1e-4, 1e-3, 1e-2, 1e-1)]
    assert turnovers == sorted(turnovers, reverse=True)


def _tied(current: list[float], mean: list[float], cap: float) -> PortfolioProblem:
    n = len(current)
    return PortfolioProblem(
        tickers=tuple(map(str, range(n))),
        risk=RiskModel.from_matrix(0.04 * np.eye(n)),
        objective=Objective.MAX_RETURN,
        limits=Limits(max_weight=cap),
        expected_returns=np.array(mean),
        current=np.array(current),
    )


def test_equal_trades_are_settled_by_the_least_squares() -> None:
    """The proceeds of the worst name may go to any of three equal ones; least squares spreads them evenly."""
    result = rebalance(_tied([0.3, 0.3, 0.3, 0.1], [0.1, 0.1, 0.1, 0.0], 0.5))
    sold = -result.trades[3]
    # f* = −0.1 and a ten-thousandth of it stays invested in the worst name.
    assert sold == pytest.approx(0.1 - 1e-4, abs=1e-7)
    np.testing.assert_allclose(result.trades[:3], sold / 3, atol=1e-6)
    assert result.least_trading.uniqueness.outcome.proved


def test_equal_trades_are_settled_by_the_least_squares_within_caps() -> None:
    """One of the three has room for 0.01 only; the other two share the rest."""
    result = rebalance(_tied([0.33, 0.29, 0.28, 0.1], [0.1, 0.1, 0.1, 0.0], 0.34))
    sold = -result.trades[3]
    np.testing.assert_allclose(result.trades[:3], [0.01, (sold - 0.01) / 2, (sold - 0.01) / 2], atol=1e-6)


def test_ties_equal_the_independent_third_stage() -> None:
    rng = np.random.default_rng(5)
    mean = np.repeat([0.12, 0.08, 0.03], 4)
    current = rng.dirichlet(np.full(12, 2.0))
    problem = _tied(list(current), list(mean), 0.2)
    result = rebalance(problem)
    cap = result.target.value + OBJECTIVE_TOLERANCE * abs(result.target.value)
    least = Oracle(problem, "turnover", objective_cap=cap).solve()
    tied = replace(problem, limits=replace(problem.limits, max_turnover=least + 1e-9))
    nearest = Oracle(tied, "distance", objective_cap=cap)
    nearest.solve()
    np.testing.assert_allclose(result.weights, nearest.weights.value, atol=1e-4)
    assert result.turnover == pytest.approx(least, abs=1e-8)


def test_stage_two_keeps_name_counts() -> None:
    limits = Limits(max_weight=0.3, min_names=8, max_names=10)
    problem = case(12, 3, Objective.MAX_RETURN, limits, current=np.eye(12)[0])
    result = rebalance(problem)
    assert violations(problem, result.weights, 1e-9) == []
