"""Optimisation against brute force, an independent solver, closed forms and properties."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import EASY, FACTORS, MEDIUM, SECTORS, TIERS, Oracle, case
from tests.sampling import examples

from finskillbench.engines.optimisation import certified as module
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.optimisation.program import ConicProgram, Solution, solve_conic
from finskillbench.engines.optimisation.uniqueness import Uniqueness
from finskillbench.engines.portfolio.formulation import PortfolioGoal
from finskillbench.engines.portfolio.measures import name_count, one_way_turnover, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError, InputError

OBJECTIVES = list(Objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("least", "most"), [(1, 3), (4, 5), (5, 6)])
def test_name_counts_equal_every_set_of_holdings_tried(objective: Objective, least: int, most: int) -> None:
    problem = case(6, 10 * least + most, objective, PortfolioLimits(max_weight=0.6, min_names=least, max_names=most))
    result = optimise(problem)
    assert result.value == pytest.approx(Oracle(problem).solve_counted(least, most), abs=1e-8)
    assert least <= name_count(result.weights) <= most
    assert violations(problem, result.weights, 1e-9) == []
    assert result.uniqueness.outcome.proved


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("least", "most"), [(1, 3), (5, 6), (1, 6)])
def test_a_least_position_equals_every_set_of_holdings_tried(objective: Objective, least: int, most: int) -> None:
    limits = PortfolioLimits(max_weight=0.6, min_position=0.12, min_names=least, max_names=most)
    problem = case(6, 10 * least + most, objective, limits)
    result = optimise(problem)
    assert result.value == pytest.approx(Oracle(problem).solve_counted(least, most, 0.12), abs=1e-8)
    assert violations(problem, result.weights, 1e-9) == []
    assert result.uniqueness.outcome.proved


def test_name_counts_with_turnover_and_sectors_equal_every_set_of_holdings_tried() -> None:
    caps = {f"S{i}": 0.45 for i in range(SECTORS)}
    limits = PortfolioLimits(max_weight=0.45, sector_limits=caps, min_names=3, max_names=4, max_turnover=0.45)
    problem = case(6, 3, Objective.MAX_SHARPE, limits, sectors=("S0", "S0", "S1", "S1", "S2", "S2"))
    problem = replace(problem, limits=replace(limits, sector_limits={"S0": 0.5, "S1": 0.45, "S2": 0.45}))
    assert optimise(problem).value == pytest.approx(Oracle(problem).solve_counted(3, 4), abs=1e-8)


def test_counted_names_keep_ceilings_of_their_own() -> None:
    """Ceilings name by name survive the branching (they were once replaced by it)."""
    ceilings = np.array([0.0, 0.3, 0.3, 0.5, 0.5, 0.5])
    problem = case(6, 1, Objective.MIN_VARIANCE, PortfolioLimits(max_names=3), ceilings=ceilings)
    oracle = Oracle(problem)
    oracle.high.value = ceilings
    result = optimise(problem)
    assert (result.weights <= ceilings + 1e-9).all()
    assert result.value == pytest.approx(oracle.solve_counted(1, 3), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("tier", list(TIERS))
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", [1, 2])
def test_thirty_names_equal_the_independent_solver(tier: str, objective: Objective, seed: int) -> None:
    problem = case(30, seed, objective, TIERS[tier])
    result = optimise(problem)
    oracle = Oracle(problem)
    value = oracle.solve()
    if name_count(result.weights) > TIERS[tier].min_names or result.nodes == 1:
        assert result.value == pytest.approx(value, rel=1e-6)
        assert np.linalg.norm(result.weights - oracle.weights.value) < 1e-4
    else:
        assert result.value > value
    assert result.uniqueness.outcome.proved
    assert result.optimality.gap < 1e-9
    assert violations(problem, result.weights, 1e-9) == []


@pytest.mark.parametrize("tier", list(TIERS))
def test_least_turnover_equals_the_independent_solver(tier: str) -> None:
    legacy = np.zeros(30)
    legacy[:12] = 1 / 12
    problem = case(30, 5, Objective.MIN_VARIANCE, TIERS[tier], current=legacy)
    result = optimise(problem, PortfolioGoal.TURNOVER)
    free = replace(problem, limits=replace(problem.limits, max_turnover=None))
    assert result.value == pytest.approx(Oracle(free, "turnover").solve(), rel=1e-6)
    assert result.value == pytest.approx(one_way_turnover(result.weights, legacy), abs=1e-9)
    assert violations(free, result.weights, 1e-9) == []


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_short_sales_equal_the_independent_solver(objective: Objective) -> None:
    problem = case(8, 6, objective, PortfolioLimits(long_only=False, max_weight=0.5))
    assert optimise(problem).value == pytest.approx(Oracle(problem).solve(), rel=1e-6)


def test_minimum_variance_of_uncorrelated_names_is_inverse_variance() -> None:
    variances = np.array([0.04, 0.09, 0.01, 0.16])
    problem = case(4, 0, Objective.MIN_VARIANCE, risk=RiskModel.from_matrix(np.diag(variances)))
    np.testing.assert_allclose(optimise(problem).weights, (1 / variances) / (1 / variances).sum(), atol=1e-13)


def test_minimum_variance_of_two_names_by_its_formula() -> None:
    matrix = np.array([[0.04, 0.01], [0.01, 0.09]])
    problem = case(2, 0, Objective.MIN_VARIANCE, risk=RiskModel.from_matrix(matrix))
    first = (0.09 - 0.01) / (0.04 + 0.09 - 2 * 0.01)
    np.testing.assert_allclose(optimise(problem).weights, [first, 1 - first], atol=1e-13)


def test_mean_variance_of_two_names_by_its_formula() -> None:
    """λ w'Σw − μ'w on the line w2 = 1 − w1: w1 = (σ2² − σ12 + (μ1 − μ2)/2λ) / (σ1² + σ2² − 2σ12)."""
    matrix, mean = np.array([[0.04, 0.01], [0.01, 0.09]]), np.array([0.05, 0.06])
    problem = case(2, 0, Objective.MAX_SHARPE, risk=RiskModel.from_matrix(matrix), expected_returns=mean)
    problem = replace(problem, risk_aversion=3.0)
    first = (0.09 - 0.01 + (0.05 - 0.06) / 6) / 0.11
    np.testing.assert_allclose(optimise(problem).weights, [first, 1 - first], atol=1e-13)


def test_maximum_return_is_the_name_of_the_highest() -> None:
    problem = case(9, 3, Objective.MAX_RETURN)
    best = np.argmax(problem.mean)
    np.testing.assert_allclose(optimise(problem).weights, np.eye(9)[best], atol=1e-13)


def test_risk_parity_of_equal_variances_is_equal_weights() -> None:
    """Anchor and least variance agree on equal weights when every pair is alike."""
    matrix = 0.02 + 0.03 * np.eye(5)
    problem = case(5, 0, Objective.RISK_PARITY, risk=RiskModel.from_matrix(matrix))
    np.testing.assert_allclose(optimise(problem).weights, np.full(5, 0.2), atol=1e-13)


def test_risk_parity_of_uncorrelated_names_by_its_formula() -> None:
    """Stationarity of ||w − a||² + ½w'Dw: w_i = (2a_i + ν)/(2 + d_i), ν from the budget."""
    d = np.array([0.04, 0.09, 0.02])
    anchor = (1 / d) / (1 / d).sum()
    nu = (1 - (2 * anchor / (2 + d)).sum()) / (1 / (2 + d)).sum()
    problem = case(3, 0, Objective.RISK_PARITY, risk=RiskModel.from_matrix(np.diag(d)))
    np.testing.assert_allclose(optimise(problem).weights, (2 * anchor + nu) / (2 + d), atol=1e-13)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES), st.sampled_from(["easy", "medium", "hard"]))
def test_order_of_names_does_not_matter(seed: int, objective: Objective, tier: str) -> None:
    problem = case(30, seed, objective, TIERS[tier])
    order = np.random.default_rng(seed).permutation(30)
    exposures = problem.exposures
    shuffled = replace(
        problem,
        tickers=tuple(problem.tickers[i] for i in order),
        sectors=tuple(problem.sectors[i] for i in order),
        risk=RiskModel.from_matrix(problem.risk.matrix[np.ix_(order, order)]),
        expected_returns=problem.mean[order],
        benchmark=problem.benchmark[order],
        current=problem.current[order],
        exposures=None if exposures is None else exposures[order],
    )
    try:
        result = optimise(problem)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            optimise(shuffled)
        return
    np.testing.assert_allclose(optimise(shuffled).weights, result.weights[order], atol=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.floats(0.1, 10), st.sampled_from([Objective.MAX_SHARPE, Objective.MIN_VARIANCE]))
def test_a_change_of_unit_does_not_matter(seed: int, scale: float, objective: Objective) -> None:
    """(μ, Σ) times s is the same problem with its value times s, and a tracking error times √s."""
    problem = case(30, seed, objective, replace(EASY, max_tracking_error=0.03))
    limits = replace(problem.limits, max_tracking_error=0.03 * np.sqrt(scale))
    risk = RiskModel.from_matrix(scale * problem.risk.matrix)
    scaled = replace(problem, risk=risk, expected_returns=scale * problem.mean, limits=limits)
    first, second = optimise(problem), optimise(scaled)
    np.testing.assert_allclose(second.weights, first.weights, atol=1e-7)
    assert second.value == pytest.approx(scale * first.value, rel=1e-8)


@settings(max_examples=examples(25))
@given(
    st.integers(0, 10_000),
    st.sampled_from(OBJECTIVES),
    st.sampled_from(["max_weight", "max_turnover", "max_tracking_error", "neutral_factors", "sector_limits"]),
)
def test_relaxing_a_limit_never_worsens_the_optimum(seed: int, objective: Objective, field: str) -> None:
    problem = case(30, seed, objective, TIERS["hard"])
    looser = {
        "max_weight": 0.1,
        "max_turnover": None,
        "max_tracking_error": 0.04,
        "neutral_factors": FACTORS[:1],
        "sector_limits": {},
    }[field]
    limits = replace(problem.limits, **{field: looser})
    exposures = problem.exposures[:, :1] if field == "neutral_factors" else problem.exposures
    relaxed = replace(problem, limits=limits, exposures=exposures)
    try:
        tight = optimise(problem)
    except InfeasibleError:
        return
    assert optimise(relaxed).value <= tight.value + 1e-11


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES), st.sampled_from(list(TIERS)))
def test_optima_keep_every_limit_and_sit_on_their_caps(seed: int, objective: Objective, tier: str) -> None:
    problem = case(30, seed, objective, TIERS[tier])
    try:
        result = optimise(problem)
    except InfeasibleError:
        return
    assert violations(problem, result.weights, 1e-9) == []
    cap = TIERS[tier].max_weight
    near_cap = result.weights[result.weights > cap - 1e-7]
    np.testing.assert_allclose(near_cap, cap, rtol=0, atol=1e-12)
    near_zero = result.weights[result.weights < 1e-7]
    np.testing.assert_allclose(near_zero, 0.0, rtol=0, atol=1e-12)


def test_conflicting_limits_are_named() -> None:
    problem = case(30, 1, Objective.MIN_VARIANCE, replace(EASY, max_weight=0.03))
    with pytest.raises(InfeasibleError) as error:
        optimise(problem)
    assert error.value.proof.margin > 0
    largest = sorted(error.value.multipliers, key=error.value.multipliers.__getitem__)[-2:]
    assert set(largest) == {"fully_invested", "upper_bound"}


def test_more_names_than_there_are_is_infeasible() -> None:
    with pytest.raises(InfeasibleError):
        optimise(case(6, 1, Objective.MIN_VARIANCE, PortfolioLimits(min_names=7)))


@pytest.mark.parametrize("change", [{"benchmark": None}, {"current": None}, {"expected_returns": None}])
def test_a_missing_array_is_an_error_not_a_missing_limit(change: dict[str, None]) -> None:
    problem = case(30, 1, Objective.MAX_SHARPE, MEDIUM, **change)
    with pytest.raises(DimensionError):
        optimise(problem)


def test_a_negative_risk_aversion_is_refused() -> None:
    with pytest.raises(InputError, match="risk_aversion"):
        case(4, 1, Objective.MAX_SHARPE, risk_aversion=-1.0)


def test_ties_of_whole_holdings_are_not_called_unique() -> None:
    """Four names alike, two of them allowed: six equally good pairs."""
    problem = PortfolioProblem(
        tickers=tuple("ABCD"),
        risk=RiskModel.from_matrix(0.04 * np.eye(4)),
        objective=Objective.MIN_VARIANCE,
        limits=PortfolioLimits(max_names=2),
    )
    result = optimise(problem)
    # The stub weights of names that do not count lower the variance a little below 0.04 / 2.
    assert 0.0195 < result.value < 0.02
    assert result.uniqueness.outcome is Uniqueness.UNDECIDED


def test_an_answer_that_proves_too_little_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that stops early, and no polishing: the certificate, not the status, decides."""
    problem = case(30, 1, Objective.MAX_SHARPE, MEDIUM)
    monkeypatch.setattr(module, "solve_conic", lambda program: solve_conic(program, tolerance=1e-3))
    assert optimise(problem).optimality.gap < 1e-9, "polishing mends a coarse answer"
    monkeypatch.setattr(module, "polish", lambda program, solution: None)
    with pytest.raises(UndecidedError, match="gap"):
        optimise(problem)


@pytest.mark.parametrize("field", ["x", "z"])
def test_a_solver_that_returns_no_numbers_is_refused(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = case(30, 1, Objective.MAX_SHARPE, MEDIUM)

    def broken(program: ConicProgram) -> Solution:
        solution = solve_conic(program)
        return replace(solution, **{field: np.full_like(getattr(solution, field), np.nan)})

    monkeypatch.setattr(module, "solve_conic", broken)
    with pytest.raises(UndecidedError):
        optimise(problem)
