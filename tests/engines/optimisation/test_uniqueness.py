"""Unique optima are proved, others refuted by a witness, and the modulus keeps its promise."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import TIERS, Oracle, case, random_portfolios
from tests.sampling import examples

from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.optimisation.uniqueness import Uniqueness
from finskillbench.engines.portfolio.formulation import PortfolioGoal
from finskillbench.engines.portfolio.measures import violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel


def _returns(mean: list[float], limits: PortfolioLimits) -> PortfolioProblem:
    n = len(mean)
    return PortfolioProblem(
        tickers=tuple(map(str, range(n))),
        risk=RiskModel.from_matrix(0.04 * np.eye(n)),
        objective=Objective.MAX_RETURN,
        limits=limits,
        expected_returns=np.array(mean),
        sectors=tuple("AABBC"[:n]),
        current=np.full(n, 1 / n),
    )


@pytest.mark.parametrize(
    ("mean", "limits"),
    [
        ([0.10, 0.10, 0.02, 0.01], PortfolioLimits()),
        ([0.10, 0.08, 0.08, 0.01], PortfolioLimits(max_weight=0.4)),
        ([0.05, 0.05, 0.05, 0.05], PortfolioLimits(max_weight=0.5)),
        ([0.10, 0.09, 0.08, 0.08, 0.08], PortfolioLimits(max_weight=0.5, sector_limits={"A": 0.6, "B": 0.3})),
        ([0.07, 0.07, 0.01, 0.01], PortfolioLimits(max_turnover=0.2)),
    ],
)
def test_tied_returns_are_refuted_by_another_optimum(mean: list[float], limits: PortfolioLimits) -> None:
    problem = _returns(mean, limits)
    result = optimise(problem)
    assert result.uniqueness.outcome is Uniqueness.MULTIPLE
    witness = result.uniqueness.witness
    assert witness is not None
    assert violations(problem, witness, 1e-9) == []
    assert problem.value(witness) == pytest.approx(result.value, abs=1e-10)
    assert np.abs(witness - result.weights).max() > 1e-6


@pytest.mark.parametrize(
    ("mean", "limits"),
    [
        ([0.10, 0.09, 0.02, 0.01], PortfolioLimits()),
        ([0.10, 0.08, 0.07, 0.01], PortfolioLimits(max_weight=0.4)),
        ([0.10, 0.09, 0.08, 0.02, 0.01], PortfolioLimits(max_weight=0.5, sector_limits={"A": 0.6, "B": 0.3})),
        ([0.07, 0.06, 0.02, 0.01], PortfolioLimits(max_turnover=0.2)),
        # A tie between names that are full or empty whatever the order does no harm.
        ([0.10, 0.10, 0.02, 0.02], PortfolioLimits(max_weight=0.5)),
    ],
)
def test_a_unique_vertex_is_proved(mean: list[float], limits: PortfolioLimits) -> None:
    problem = _returns(mean, limits)
    result = optimise(problem)
    assert result.uniqueness.outcome is Uniqueness.RANK
    # Independent of duals: push each weight both ways among the optima, nothing moves.
    for name in range(problem.size):
        for sign in (1.0, -1.0):
            pushed = _furthest(problem, result.value, name, sign)
            assert pushed == pytest.approx(result.weights[name], abs=1e-6)


def _furthest(problem: PortfolioProblem, best: float, name: int, sign: float) -> float:
    """The largest (smallest) weight of a name over all portfolios as good as `best`, by the independent solver."""
    oracle = Oracle(problem)
    near_best = oracle.stated.objective.expr <= best + 1e-10
    push = cp.Problem(cp.Maximize(sign * oracle.weights[name]), [*oracle.stated.constraints, near_best])
    push.solve(solver=cp.CLARABEL)
    return float(oracle.weights.value[name])


def test_identical_names_share_freely_in_minimum_turnover() -> None:
    """Ten per cent over the cap may go to any of the other names at the same turnover."""
    current = np.array([0.5, 0.2, 0.2, 0.1])
    problem = replace(_returns([0.0] * 4, PortfolioLimits(max_weight=0.4)), current=current)
    result = optimise(problem, PortfolioGoal.TURNOVER)
    assert result.value == pytest.approx(0.1, abs=1e-12)
    assert result.uniqueness.outcome is Uniqueness.MULTIPLE
    witness = result.uniqueness.witness
    assert witness is not None
    assert np.abs(witness - current).sum() / 2 == pytest.approx(0.1, abs=1e-9)
    assert violations(problem, witness, 1e-9) == []


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000), st.sampled_from(list(Objective)), st.sampled_from(list(TIERS)))
def test_the_modulus_bounds_every_portfolio(seed: int, objective: Objective, tier: str) -> None:
    """f(w) >= f* + (m/2)||w − w*||², for portfolios far and near."""
    problem = case(30, seed, objective, TIERS[tier])
    try:
        result = optimise(problem)
        others = random_portfolios(problem, seed, 40)
    except InfeasibleError:
        return
    modulus = result.uniqueness.modulus
    near = result.weights + 0.01 * (others - result.weights)
    for weights in (*others, *near):
        distance = weights - result.weights
        # Not every mixture keeps the name counts, which only makes the set larger.
        assert problem.value(weights) >= result.value + modulus / 2 * distance @ distance - 1e-10


def test_the_modulus_is_that_of_the_objective_where_no_cone_binds() -> None:
    matrix = np.diag([0.04, 0.09, 0.16])
    problem = case(3, 0, Objective.MAX_SHARPE, risk=RiskModel.from_matrix(matrix), risk_aversion=2.5)
    assert optimise(problem).uniqueness.modulus == pytest.approx(2 * 2.5 * 0.04, rel=1e-9)
    risk = RiskModel.from_matrix(matrix)
    assert optimise(case(3, 0, Objective.RISK_PARITY, risk=risk)).uniqueness.modulus == pytest.approx(2.04, rel=1e-9)


def test_a_binding_tracking_error_makes_maximum_return_unique() -> None:
    limits = PortfolioLimits(max_tracking_error=0.02)
    problem = case(8, 0, Objective.MAX_RETURN, limits, expected_returns=np.array([0.1, 0.1, 0.1] + [0.02] * 5))
    assert optimise(problem).uniqueness.outcome is Uniqueness.CURVATURE
    assert optimise(replace(problem, limits=PortfolioLimits())).uniqueness.outcome is Uniqueness.MULTIPLE


def test_a_singular_covariance_gives_no_false_witness() -> None:
    """Two names without specific variance: Σ has rank one, yet only one mix hedges, so the optimum is unique."""
    risk = RiskModel.from_factors(np.array([[0.2, -0.1, 0.3]]), np.array([0.0, 0.0, 1e-9]))
    problem = PortfolioProblem(tuple("ABC"), risk, Objective.MIN_VARIANCE, PortfolioLimits(max_weight=0.7))
    result = optimise(problem)
    np.testing.assert_allclose(result.weights, [1 / 3, 2 / 3, 0.0], atol=1e-3)
    assert result.uniqueness.outcome is not Uniqueness.CURVATURE
    if result.uniqueness.witness is not None:
        assert problem.value(result.uniqueness.witness) == pytest.approx(result.value, abs=1e-9)


def test_a_witness_of_a_quadratic_is_as_good() -> None:
    """Directions that the limits leave free, but the quadratic sees, are no witness (they once were)."""
    risk = RiskModel.from_factors(np.array([[0.3, 0.1, 0.2, 0.25]]), np.array([0.0, 0.04, 0.04, 0.04]))
    problem = PortfolioProblem(tuple("ABCD"), risk, Objective.MIN_VARIANCE, PortfolioLimits())
    result = optimise(problem)
    assert result.uniqueness.outcome.proved
    twins = RiskModel.from_factors(np.array([[0.2, 0.2, 0.3, 0.4]]), np.array([0.0, 0.0, 0.04, 0.04]))
    problem = replace(problem, risk=twins)
    result = optimise(problem)
    assert result.uniqueness.outcome is Uniqueness.MULTIPLE
    assert result.uniqueness.witness is not None
    assert problem.value(result.uniqueness.witness) == pytest.approx(result.value, abs=1e-10)


def test_a_witness_stays_inside_a_cone_that_does_not_bind() -> None:
    """Half way to the bound would break the tracking error; a shorter step is still another optimum."""
    problem = replace(
        _returns([0.1, 0.1, 0.0, 0.0], PortfolioLimits(max_tracking_error=0.05)),
        benchmark=np.array([0.5, 0.5, 0.0, 0.0]),
    )
    result = optimise(problem)
    assert result.uniqueness.outcome is Uniqueness.MULTIPLE
    assert result.uniqueness.witness is not None
    assert violations(problem, result.uniqueness.witness, 1e-9) == []
    assert problem.value(result.uniqueness.witness) == pytest.approx(result.value, abs=1e-9)


@pytest.mark.parametrize("objective", [Objective.MAX_SHARPE, Objective.MIN_VARIANCE, Objective.RISK_PARITY])
def test_the_modulus_under_an_objective_cap_bounds_every_portfolio(objective: Objective) -> None:
    """The curvature that a binding cone lends to a linear goal, here turnover."""
    problem = case(12, 4, objective, PortfolioLimits(max_weight=0.3))
    least = optimise(problem).value
    cap = least + 1e-3 * abs(least)
    result = optimise(problem, PortfolioGoal.TURNOVER, objective_cap=cap)
    assert result.uniqueness.outcome is Uniqueness.CURVATURE
    rng = np.random.default_rng(0)
    tightest = np.inf
    for _ in range(60):
        anchor = result.weights + 0.02 * rng.normal(size=12)
        other = optimise(problem, PortfolioGoal.DISTANCE, objective_cap=cap, anchor=anchor).weights
        distance = other - result.weights
        margin = np.abs(other - problem.current).sum() / 2 - result.value
        bound = result.uniqueness.modulus / 2 * distance @ distance
        assert margin >= bound - 1e-10
        tightest = min(tightest, margin / bound)
    assert tightest < 60, "the modulus should be of the right order"


def test_no_modulus_is_promised_across_sets_of_holdings() -> None:
    """The best pair of four nearly equal names beats another pair by little, though it lies far away."""
    risk = RiskModel.from_matrix(np.diag([0.04, 0.0401, 0.0402, 0.0403]))
    problem = PortfolioProblem(tuple("ABCD"), risk, Objective.MIN_VARIANCE, PortfolioLimits(max_names=2))
    result = optimise(problem)
    assert result.uniqueness.outcome is Uniqueness.BRANCHES
    other = result.weights[[2, 3, 0, 1]]
    distance = other - result.weights
    assert distance @ distance > 0.9
    assert problem.value(other) >= result.value + result.uniqueness.modulus / 2 * distance @ distance


@pytest.mark.parametrize("seed", [200, 201, 224])
def test_names_held_only_to_make_up_the_count_are_unique(seed: int) -> None:
    """Their multipliers are a thousandth of a return's size: 1e-6, and still positive."""
    assert optimise(case(30, seed, Objective.MAX_RETURN, TIERS["easy"])).uniqueness.outcome.proved
