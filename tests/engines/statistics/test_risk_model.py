"""The factor form must be indistinguishable from the dense matrix, in arithmetic and in every optimum."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import HARD, MEDIUM, case
from tests.sampling import examples

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.formulation import PortfolioGoal
from finskillbench.engines.portfolio.measures import tracking_error
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.engines.portfolio.rebalance import RebalancingRules, rebalance
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError, InputError


def _factors(seed: int, k: int, n: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0, 0.06, (k, n))
    loadings[0] = rng.normal(0.17, 0.05, n)
    return loadings, rng.uniform(0.02, 0.08, n)


@settings(max_examples=examples(30))
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 12))
def test_arithmetic_equals_the_dense_matrix(seed: int, k: int, n: int) -> None:
    loadings, specific = _factors(seed, k, n)
    dense = loadings.T @ loadings + np.diag(specific)
    model = RiskModel.from_factors(loadings, specific)
    vector = np.random.default_rng(seed).normal(size=n)
    assert model.size == n
    assert model.is_dense == (k >= n)
    np.testing.assert_allclose(model.matrix, dense, atol=1e-14)
    np.testing.assert_allclose(model.variances, np.diag(dense), atol=1e-14)
    np.testing.assert_allclose(model.times(vector), dense @ vector, atol=1e-13)
    assert model.variance(vector) == pytest.approx(vector @ dense @ vector, rel=1e-12)
    assert model.smallest_eigenvalue <= np.linalg.eigvalsh(dense)[0] + 1e-15


def _pair(objective: Objective, **changes: Any) -> tuple[PortfolioProblem, PortfolioProblem]:
    """The same problem with six factors for thirty names, in factor form and dense."""
    loadings, specific = _factors(3, 6, 30)
    factor = RiskModel.from_factors(loadings, specific)
    assert not factor.is_dense
    problem = case(30, 3, objective, HARD, risk=factor, **changes)
    return problem, replace(problem, risk=RiskModel.from_matrix(factor.matrix))


@pytest.mark.parametrize("objective", list(Objective))
def test_both_forms_have_the_same_optimum(objective: Objective) -> None:
    results = [optimise(problem) for problem in _pair(objective)]
    assert results[0].value == pytest.approx(results[1].value, rel=1e-9)
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-9)
    assert all(result.uniqueness.outcome.proved for result in results)
    # The factor form knows min d, the dense one the smallest eigenvalue: the first is the weaker promise.
    assert results[0].uniqueness.modulus <= results[1].uniqueness.modulus * (1 + 1e-6)


@pytest.mark.parametrize("objective", list(Objective))
def test_both_forms_have_the_same_least_turnover_under_an_objective_cap(objective: Objective) -> None:
    problems = _pair(objective)
    cap = optimise(problems[0]).value
    cap += 0.01 * abs(cap)
    results = [optimise(problem, PortfolioGoal.TURNOVER, objective_cap=cap) for problem in problems]
    assert results[0].value == pytest.approx(results[1].value, abs=1e-9)
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-7)
    assert problems[1].value(results[0].weights) <= cap + 1e-9


@pytest.mark.parametrize("objective", list(Objective))
def test_both_forms_rebalance_alike(objective: Objective) -> None:
    plain = replace(MEDIUM, max_tracking_error=None, max_turnover=None, min_names=None, max_names=None)
    terms = RebalancingRules(np.linspace(5.0, 40.0, 30), 0.01, 0.8)
    results = [rebalance(replace(problem, limits=plain, exposures=None), terms) for problem in _pair(objective)]
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-6)


def test_a_tracking_error_binds_alike() -> None:
    problems = _pair(Objective.MAX_RETURN)
    for problem in problems:
        weights = optimise(problem).weights
        assert tracking_error(weights, problem.benchmark, problems[1].risk) == pytest.approx(0.02, abs=1e-9)


def test_more_names_than_a_dense_system_would_take() -> None:
    """400 names, 10 factors: the interior point's own answer, unpolished, still proves itself."""
    loadings, specific = _factors(5, 10, 400)
    risk = RiskModel.from_factors(loadings, specific)
    limits = replace(HARD, max_weight=0.02, min_names=None, max_names=None, max_tracking_error=0.03)
    result = optimise(case(400, 5, Objective.MAX_SHARPE, limits, risk=risk))
    assert result.uniqueness.outcome.proved
    assert result.optimality.gap < 1e-9
    assert result.optimality.violation < 1e-10


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "shape"),
        (np.ones(4), "shape"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (np.ones((2, 2)) - 1.0, "positive definite"),
    ],
)
def test_a_matrix_that_is_no_covariance_is_refused(matrix: Floats, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RiskModel.from_matrix(matrix)


@pytest.mark.parametrize(
    ("loadings", "specific", "error"),
    [
        (np.ones(3), np.ones(3), DimensionError),
        (np.ones((1, 3)), np.ones(2), DimensionError),
        (np.full((1, 3), np.inf), np.ones(3), InputError),
        (np.ones((1, 3)), np.array([0.1, np.nan, 0.1]), InputError),
        (np.ones((1, 3)), np.array([0.1, -0.1, 0.1]), InputError),
    ],
)
def test_factors_that_make_no_covariance_are_refused(
    loadings: Floats, specific: Floats, error: type[Exception]
) -> None:
    with pytest.raises(error):
        RiskModel.from_factors(loadings, specific)
