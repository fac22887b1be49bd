"""Bounds must bound, and a spoiled proof must fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import HARD, MEDIUM, TIERS, case, random_portfolios
from tests.sampling import examples

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certificate import project, prove_infeasible, prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, InfeasibleError
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.program import Cone, dense, solve_conic
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal, formulate_portfolio
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel

OBJECTIVES = list(Objective)
TIER_NAMES = list(TIERS)


def _solved(problem: PortfolioProblem) -> tuple[Formulation, Floats, Floats]:
    formulation = formulate_portfolio(problem, PortfolioAim())
    solution = solve_conic(formulation.program)
    return formulation, solution.x, solution.z


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES), st.sampled_from(TIER_NAMES))
def test_no_portfolio_that_keeps_the_limits_beats_the_bound(seed: int, objective: Objective, tier: str) -> None:
    problem = case(30, seed, objective, TIERS[tier])
    try:
        formulation, x, z = _solved(problem)
        others = random_portfolios(problem, seed, 50)
    except InfeasibleError:
        return
    bound = prove_optimal(formulation.program, x, z).lower_bound
    assert min(problem.value(weights) for weights in others) >= bound


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES), st.floats(1e-6, 10.0))
def test_the_bound_holds_whatever_the_multipliers(seed: int, objective: Objective, size: float) -> None:
    """Weak duality: a spoiled pair (x, z) may only loosen the bound, never lift it over a real portfolio's value."""
    problem = case(12, seed, objective, PortfolioLimits(max_weight=0.3, max_tracking_error=0.1, max_turnover=0.3))
    best = optimise(problem).value
    formulation, x, z = _solved(problem)
    rng = np.random.default_rng(seed)
    spoiled = prove_optimal(formulation.program, x + size * rng.normal(size=x.size), z + size * rng.normal(size=z.size))
    assert spoiled.lower_bound <= best + 1e-9


@pytest.mark.parametrize("specific", [0.05, 0.5])
def test_the_bound_holds_with_short_sales_in_factor_form(specific: float) -> None:
    """Short sales make factor exposures larger than the largest loading (a bound of twice that was once assumed)."""
    rng = np.random.default_rng(0)
    n = 40
    loadings = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[None, :]
    problem = PortfolioProblem(
        tickers=tuple(map(str, range(n))),
        risk=RiskModel.from_factors(loadings, np.full(n, specific)),
        objective=Objective.MAX_RETURN,
        limits=PortfolioLimits(long_only=False),
        expected_returns=loadings[0] * 0.1 + rng.normal(0, 0.001, n),
    )
    formulation = formulate_portfolio(problem, PortfolioAim())
    weights = optimise(problem).weights
    point = np.concatenate([weights, problem.risk.root @ weights])
    assert np.abs(point[n:]).max() > 2 * np.abs(loadings).max(), "the case must go beyond twice the largest loading"
    assert (np.abs(point) <= formulation.program.bounds + 1e-9).all()


@pytest.mark.parametrize("tier", TIER_NAMES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_stored_multipliers_prove_the_optimum_again_with_plain_arithmetic(tier: str, objective: Objective) -> None:
    """The check a reader would write: dual cone, stationarity, bound; no code of this package but the matrices."""
    limits = TIERS[tier]
    problem = case(30, 2, objective, limits)
    result = optimise(problem)
    if result.nodes > 1:
        return  # with name counts the multipliers belong to the last convex program
    program = formulate_portfolio(problem, PortfolioAim()).program
    a, p = dense(program.matrix), dense(program.quadratic)
    z = result.multipliers
    for block in program.blocks:
        if block.cone is Cone.NONNEGATIVE:
            assert z[block.rows].min() > -1e-12
        elif block.cone is Cone.SECOND_ORDER:
            assert np.linalg.norm(z[block.rows][1:]) <= z[block.start] + 1e-12
    x = np.zeros(program.linear.size)
    x[: problem.size] = result.weights
    if limits.max_turnover is not None:
        x[problem.size :] = np.abs(result.weights - problem.current)
    residual = p @ x + program.linear + a.T @ z
    assert np.abs(residual).max() < 1e-12
    bound = program.constant - 0.5 * x @ p @ x - program.rhs @ z
    assert problem.value(result.weights) == pytest.approx(bound, abs=1e-12)


def _spoil(x: Floats, z: Floats, formulation: Formulation, how: str) -> tuple[Floats, Floats]:
    x, z = x.copy(), z.copy()
    budget = next(block for block in formulation.program.blocks if block.label == "fully_invested")
    if how == "shifted multiplier":
        z[budget.start] += 1e-3
    elif how == "flipped multiplier":
        z[budget.start] *= -1
    elif how == "all multipliers flipped":
        z = -z
    elif how == "no multipliers":
        z[:] = 0.0
    elif how == "moved weights":
        order = np.argsort(x[formulation.weights])
        x[order[0]] += 0.01
        x[order[-1]] -= 0.01
    elif how == "weights that do not add up":
        x[formulation.weights] *= 1.001
    return x, z


@pytest.mark.parametrize("objective", [Objective.MAX_SHARPE, Objective.MIN_VARIANCE, Objective.RISK_PARITY])
@pytest.mark.parametrize(
    "how",
    [
        "shifted multiplier",
        "flipped multiplier",
        "all multipliers flipped",
        "no multipliers",
        "moved weights",
        "weights that do not add up",
    ],
)
def test_a_spoiled_proof_of_optimality_fails(objective: Objective, how: str) -> None:
    formulation, x, z = _solved(case(30, 3, objective, MEDIUM))
    good = prove_optimal(formulation.program, x, z)
    assert abs(good.gap) < ACCEPTED_GAP
    assert good.violation < 1e-9
    spoiled = prove_optimal(formulation.program, *_spoil(x, z, formulation, how))
    assert spoiled.gap > ACCEPTED_GAP or spoiled.violation > 1e-9


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000), st.sampled_from(TIER_NAMES), st.floats(0.0, 1.0), st.booleans())
def test_no_ray_refutes_a_problem_that_has_a_portfolio(seed: int, tier: str, mix: float, sparse: bool) -> None:
    """Rays of every kind: random, projected, mixed with true multipliers."""
    limits = TIERS[tier]
    problem = case(30, seed % 5, Objective.MIN_VARIANCE, limits)
    formulation, _, z = _solved(problem)
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=z.size) * (rng.random(z.size) < (0.1 if sparse else 1.0))
    for ray in (noise, mix * noise + (1 - mix) * z, project(formulation.program, noise, dual=True)):
        assert prove_infeasible(formulation.program, ray).margin <= 0


def _refuted() -> tuple[Formulation, InfeasibleError]:
    problem = case(30, 4, Objective.MIN_VARIANCE, HARD, current=np.eye(30)[0])
    with pytest.raises(InfeasibleError) as error:
        optimise(problem)
    return formulate_portfolio(problem, PortfolioAim()), error.value


def test_a_ray_refutes_again_from_its_numbers() -> None:
    """For feasible (x, s): 0 <= s'z = b'z − (A'z)'x; a negative right-hand side for every |x| <= X contradicts it."""
    formulation, error = _refuted()
    program, ray = formulation.program, error.ray / np.abs(error.ray).max()
    np.testing.assert_allclose(project(program, ray, dual=True), ray, atol=1e-12)
    largest = program.rhs @ ray + np.abs(program.matrix.T @ ray) @ program.bounds
    assert largest < 0
    assert error.proof.margin == pytest.approx(-largest, rel=1e-6)
    assert prove_infeasible(program, 1e6 * error.ray).margin == pytest.approx(error.proof.margin, rel=1e-9)


@pytest.mark.parametrize("factor", [-1.0, 0.0, np.nan])
def test_a_wrong_ray_refutes_nothing(factor: float) -> None:
    formulation, error = _refuted()
    assert not prove_infeasible(formulation.program, factor * error.ray).margin > 0


def test_a_perturbed_ray_refutes_nothing() -> None:
    formulation, error = _refuted()
    noise = np.random.default_rng(0).normal(size=error.ray.size) * np.abs(error.ray).max()
    assert not prove_infeasible(formulation.program, error.ray + noise).margin > 0


def test_the_bounds_on_variables_hold_for_every_portfolio() -> None:
    """A current portfolio far outside [0, 1] makes trades of more than 3 (once the assumed bound)."""
    current = np.array([5.0, -4.0, 0.0, 0.0])
    problem = case(4, 1, Objective.MIN_VARIANCE, PortfolioLimits(), current=current)
    result = optimise(problem, PortfolioGoal.TURNOVER)
    # 5 must fall to 1 at most and −4 must rise to 0 at least: eight of trades, four one-way.
    assert result.value == pytest.approx(4.0, abs=1e-9)
    assert result.optimality.lower_bound == pytest.approx(4.0, abs=1e-7)
    point = np.concatenate([result.weights, np.abs(result.weights - current)])
    assert point.max() > 3
    assert (np.abs(point) <= formulate_portfolio(problem, PortfolioAim(PortfolioGoal.TURNOVER)).program.bounds).all()
