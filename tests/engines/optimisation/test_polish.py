"""Polishing puts an interior point on its constraints, and declines where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engines.portfolio.cases import EASY, HARD, case

from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.polish import polish
from finskillbench.engines.optimisation.program import solve_conic
from finskillbench.engines.portfolio.formulation import PortfolioAim, formulate_portfolio
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("limits", [EASY, HARD])
def test_a_coarse_solution_becomes_exact(objective: Objective, limits: object) -> None:
    """From a solution good to 1e-5, the true optimum to rounding."""
    problem = case(30, 2, objective, limits)
    program = formulate_portfolio(problem, PortfolioAim()).program
    exact = polish(program, solve_conic(program))
    assert exact is not None
    coarse = solve_conic(program, tolerance=1e-6)
    before = prove_optimal(program, coarse.x, coarse.z)
    refined = polish(program, coarse)
    assert refined is not None
    after = prove_optimal(program, *refined)
    assert max(abs(after.gap), after.violation) < 1e-12 < max(abs(before.gap), before.violation)
    np.testing.assert_allclose(refined[0], exact[0], atol=1e-10)


def test_a_program_too_large_is_left_alone() -> None:
    problem = case(400, 2, Objective.MIN_VARIANCE, replace(EASY, max_turnover=0.2))
    program = formulate_portfolio(problem, PortfolioAim()).program
    assert polish(program, solve_conic(program)) is None


def test_a_solution_of_nonsense_is_no_harm() -> None:
    """Whatever comes out is judged by its certificate: never better than the truth."""
    program = formulate_portfolio(case(30, 2, Objective.MAX_SHARPE, HARD), PortfolioAim()).program
    good = solve_conic(program)
    rng = np.random.default_rng(0)
    nonsense = replace(good, x=rng.normal(size=good.x.size), z=rng.normal(size=good.z.size))
    refined = polish(program, nonsense)
    if refined is not None:
        proof = prove_optimal(program, *refined)
        assert proof.lower_bound <= program.objective(good.x) + 1e-9


def test_a_cap_that_only_just_binds_is_met_exactly() -> None:
    """Weight 0.0599996 under a cap of 0.06, multiplier 1e-6: the interior point alone cannot tell which is zero."""
    problem = case(30, 1307, Objective.MIN_VARIANCE, replace(EASY, max_tracking_error=0.03))
    weights = optimise(problem).weights
    on_cap = np.abs(weights - 0.06) < 1e-5
    assert on_cap.sum() >= 2
    assert np.abs(weights[on_cap] - 0.06).max() < 1e-12
    assert np.abs(weights[weights < 1e-6]).max(initial=0.0) < 1e-12
