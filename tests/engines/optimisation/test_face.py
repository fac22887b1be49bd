"""Cones are added as they break, and ties settled on the optimal face, with proofs in the whole program."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engines.portfolio.cases import HARD, case

from finskillbench.engines.optimisation import certified
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.face import broken_cones, solve_by_cones, solve_on_face
from finskillbench.engines.optimisation.program import Cone, ConicProgram, ProgramBuilder, Solution, solve_conic
from finskillbench.engines.portfolio.formulation import PortfolioAim, formulate_portfolio
from finskillbench.engines.portfolio.problem import Objective


def _disc(radius: float, *, goal: bool = True) -> ConicProgram:
    """min x1 over x1 + x2 = 1 in a disc of this radius about 0, and |x| <= 1."""
    builder = ProgramBuilder()
    place = builder.variables(np.ones(2))
    builder.add_linear(place, np.array([1.0, 0.0]) if goal else np.zeros(2))
    builder.constrain("budget", Cone.ZERO, np.ones(1), (place, np.ones((1, 2))))
    builder.constrain("floor", Cone.NONNEGATIVE, np.zeros(2), (place, -np.ones(2)))
    builder.constrain("disc", Cone.SECOND_ORDER, np.array([radius, 0.0, 0.0]), (place, -np.eye(2), 1))
    return builder.build()


@pytest.mark.parametrize(("radius", "least"), [(2.0, 0.0), (0.8, (1 - np.sqrt(0.28)) / 2)])
def test_a_cone_counts_once_it_binds(radius: float, least: float) -> None:
    program = _disc(radius)
    solution = solve_by_cones(program)
    assert solution.x[0] == pytest.approx(least, abs=1e-7)
    assert prove_optimal(program, solution.x, solution.z).gap == pytest.approx(0.0, abs=1e-7)
    assert bool(solution.z[3] == 0.0) is (radius > 1)
    np.testing.assert_allclose(solution.s, program.rhs - program.matrix @ solution.x, atol=1e-8)


def test_a_cone_no_point_can_keep_is_found_infeasible() -> None:
    assert "PrimalInfeasible" in solve_by_cones(_disc(0.5)).status


def test_the_same_optimum_as_with_every_cone_from_the_start() -> None:
    program = formulate_portfolio(case(30, 2, Objective.MAX_SHARPE, HARD), PortfolioAim()).program
    whole, lazy = solve_conic(program), solve_by_cones(program)
    np.testing.assert_allclose(lazy.x, whole.x, atol=1e-6)


def test_what_cannot_be_proved_without_its_cones_is_solved_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = formulate_portfolio(case(30, 2, Objective.MAX_SHARPE, HARD), PortfolioAim())
    whole = certified.certify(problem)

    def astray(program: ConicProgram, first: object = ()) -> Solution:
        found = solve_by_cones(program)
        return replace(found, x=found.x + 0.01, z=np.zeros_like(found.z), s=np.ones_like(found.s))

    monkeypatch.setattr(certified, "solve_by_cones", astray)
    np.testing.assert_allclose(certified.certify(problem, cones=()).weights, whole.weights, atol=1e-9)


def test_a_point_names_the_cones_it_breaks() -> None:
    assert broken_cones(_disc(0.8), np.array([0.0, 1.0])) == ["disc"]
    assert broken_cones(_disc(0.8), np.array([0.5, 0.5])) == []


def _tie() -> tuple[ConicProgram, np.ndarray]:
    """min ||x − (3, 0, 0)||² among the maxima of x1 + x2 over x1 + x2 + x3 = 1, 0 <= x <= 0.8; with the multipliers."""
    builder = ProgramBuilder()
    place = builder.variables(np.ones(3))
    builder.add_quadratic(place, np.full(3, 2.0))
    builder.add_linear(place, np.array([-6.0, 0.0, 0.0]))
    builder.constant = 9.0
    builder.constrain("budget", Cone.ZERO, np.ones(1), (place, np.ones((1, 3))))
    builder.constrain("floor", Cone.NONNEGATIVE, np.zeros(3), (place, -np.ones(3)))
    builder.constrain("ceiling", Cone.NONNEGATIVE, np.full(3, 0.8), (place, np.ones(3)))
    builder.constrain("cap", Cone.NONNEGATIVE, -np.ones(1), (place, -np.array([[1.0, 1.0, 0.0]])))
    return builder.build(), np.array([1.0, 0, 0, 1.0, 0, 0, 0, 0])


def test_a_tie_is_settled_exactly_under_a_cap_without_interior() -> None:
    program, earlier = _tie()
    found = solve_on_face(program, "cap", earlier)
    assert found is not None
    np.testing.assert_allclose(found[0], [0.8, 0.2, 0.0], atol=1e-14)
    proof = prove_optimal(program, *found)
    assert abs(proof.gap) < 1e-13
    assert proof.violation < 1e-15
    assert (found[1][1:] >= -1e-15).all()
    assert found[1][-1] > 0  # the multiplier of x3's floor is negative on the face: the cap's price lifts it


def test_a_cone_that_binds_the_earlier_goal_is_declined() -> None:
    program = _disc(0.8, goal=False)
    earlier = np.array([0.0, 1.0, 0.0, 1.0, 0.0, -1.0])
    assert solve_on_face(program, "floor", earlier) is None
