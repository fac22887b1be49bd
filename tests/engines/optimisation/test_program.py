"""The builder puts coefficients where it is told; the solver's raw answers on known programs."""

import numpy as np
import pytest

from finskillbench.engines.optimisation.program import Cone, ProgramBuilder, dense, solve_conic


def test_terms_land_in_their_rows_and_columns() -> None:
    builder = ProgramBuilder()
    first = builder.variables(np.ones(2))
    second = builder.variables(np.full(3, 2.0))
    builder.add_linear(first, np.array([1.0, 2.0]))
    builder.add_linear(first, np.array([10.0, 0.0]))
    builder.add_quadratic(first, np.array([[2.0, 1.0], [1.0, 4.0]]))
    builder.add_quadratic(second, np.array([5.0, 6.0, 7.0]))
    builder.constrain("budget", Cone.ZERO, np.ones(1), (first, np.ones((1, 2))))
    builder.constrain("late", Cone.SECOND_ORDER, np.arange(5.0), (second, np.full(3, -1.0), 1), (first, np.eye(2), 3))
    builder.constrain("twice", Cone.NONNEGATIVE, np.zeros(2), (first, np.ones(2)), (first, np.ones(2)))
    program = builder.build()
    np.testing.assert_array_equal(program.linear, [11, 2, 0, 0, 0])
    np.testing.assert_array_equal(program.bounds, [1, 1, 2, 2, 2])
    np.testing.assert_array_equal(
        dense(program.quadratic), [[2, 1, 0, 0, 0], [1, 4, 0, 0, 0], [0, 0, 5, 0, 0], [0, 0, 0, 6, 0], [0, 0, 0, 0, 7]]
    )
    np.testing.assert_array_equal(
        dense(program.matrix),
        [
            [1, 1, 0, 0, 0],
            [0, 0, 0, 0, 0],
            [0, 0, -1, 0, 0],
            [0, 0, 0, -1, 0],
            [1, 0, 0, 0, -1],
            [0, 1, 0, 0, 0],
            [2, 0, 0, 0, 0],
            [0, 2, 0, 0, 0],
        ],
    )
    np.testing.assert_array_equal(program.rhs, [1, 0, 1, 2, 3, 4, 0, 0])
    assert [(block.label, block.start, block.stop) for block in program.blocks] == [
        ("budget", 0, 1),
        ("late", 1, 6),
        ("twice", 6, 8),
    ]


def test_objective_counts_its_constant() -> None:
    builder = ProgramBuilder(constant=3.0)
    place = builder.variables(np.ones(2))
    builder.add_quadratic(place, np.array([2.0, 4.0]))
    builder.add_linear(place, np.array([1.0, -1.0]))
    builder.constrain("any", Cone.NONNEGATIVE, np.ones(2), (place, np.ones(2)))
    assert builder.build().objective(np.array([1.0, 2.0])) == pytest.approx(1 + 8 + 1 - 2 + 3)


def test_a_point_on_a_cone() -> None:
    """min −x1 − x2 over ||x|| <= 1 is −√2 at (1, 1)/√2, with multiplier z0 = √2."""
    builder = ProgramBuilder()
    place = builder.variables(np.ones(2))
    builder.add_linear(place, -np.ones(2))
    builder.constrain("disc", Cone.SECOND_ORDER, np.array([1.0, 0.0, 0.0]), (place, -np.eye(2), 1))
    solution = solve_conic(builder.build())
    assert solution.status == "Solved"
    np.testing.assert_allclose(solution.x, np.full(2, np.sqrt(0.5)), atol=1e-9)
    np.testing.assert_allclose(solution.z, [np.sqrt(2), -1, -1], atol=1e-8)
