"""Universes of more names than an index: name counts that settle at once, and factor models that cvxpy agrees with."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from tests.engines.portfolio.cases import MEDIUM, TIERS, Oracle, case
from tests.sampling import thorough

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP
from finskillbench.engines.optimisation.uniqueness import Uniqueness
from finskillbench.engines.portfolio.formulation import PortfolioGoal
from finskillbench.engines.portfolio.measures import name_count, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel


def _concentrated(n: int, names: int) -> Floats:
    weights = np.zeros(n)
    weights[:names] = 1.0 / names
    return weights


def test_a_least_turnover_with_a_name_count_stops_where_its_value_is_attained() -> None:
    # Of 120 names only ten are held, and the interior point spreads what is bought over all of them: fewer than 18
    # count, although 18 can be held at the same turnover. Which ones is not asked.
    limits = replace(MEDIUM, min_position=0.005, max_names=120, max_turnover=None, max_tracking_error=None)
    problem = case(120, 1, Objective.MIN_VARIANCE, limits, current=_concentrated(120, 10))
    result = optimise(problem, PortfolioGoal.TURNOVER, unique=False)
    assert 2 <= result.nodes <= 10
    assert (result.weights > 0).sum() == name_count(result.weights, slack=1e-9) >= 18
    assert violations(problem, result.weights, 1e-8) == []
    free = replace(problem, limits=replace(limits, min_position=None, min_names=None))
    without = optimise(free, PortfolioGoal.TURNOVER, unique=False)
    assert result.value == pytest.approx(without.value, abs=1e-7)
    assert result.optimality.lower_bound <= result.value <= result.optimality.lower_bound + ACCEPTED_GAP


def _in_factors(problem: PortfolioProblem, k: int = 20) -> PortfolioProblem:
    """The problem with the leading principal components of its covariance, and the rest of each variance apart."""
    values, vectors = np.linalg.eigh(problem.risk.matrix)
    loadings = (vectors[:, -k:] * np.sqrt(values[-k:])).T
    left = np.maximum(problem.risk.variances - np.einsum("kn,kn->n", loadings, loadings), 1e-3)
    return replace(problem, risk=RiskModel.from_factors(loadings, left))


@pytest.mark.parametrize("mean", [np.linspace(0.1, 0.0, 300), np.repeat(np.linspace(0.1, 0.0, 100), 3)])
def test_a_linear_goal_over_hundreds_of_names_is_unique_or_refuted(mean: Floats) -> None:
    # Of 300 names at a cap of 5 % twenty are held; where three are alike at the edge of the list, others are as good.
    limits = PortfolioLimits(max_weight=0.05)
    problem = _in_factors(case(300, 2, Objective.MAX_RETURN, limits, expected_returns=mean))
    result = optimise(problem)
    tied = mean[19] == mean[20]
    assert result.uniqueness.outcome is (Uniqueness.MULTIPLE if tied else Uniqueness.RANK)
    if tied:
        witness = result.uniqueness.witness
        assert witness is not None
        assert problem.value(witness) == pytest.approx(result.value, abs=1e-8)
        assert np.abs(witness - result.weights).max() > 1e-6
    else:
        assert np.sort(result.weights)[-20:] == pytest.approx(np.full(20, 0.05), abs=1e-7)


@thorough
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("objective", Objective)
def test_five_hundred_names_agree_with_cvxpy(objective: Objective, tier: str) -> None:
    limits = replace(TIERS[tier], min_names=None, max_names=None)
    problem = _in_factors(case(500, 3, objective, limits))
    result = optimise(problem)
    oracle = Oracle(problem)
    assert result.value == pytest.approx(oracle.solve(), abs=2e-7)
    assert violations(problem, result.weights, 1e-8) == []
    if result.uniqueness.outcome is Uniqueness.CURVATURE:
        assert np.asarray(oracle.weights.value) == pytest.approx(result.weights, abs=2e-4)
    assert oracle.stated.status == cp.OPTIMAL
