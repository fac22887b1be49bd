"""From an interior-point solution to the exact one: Newton on the active constraints.

An interior point stops a little inside its bounds, so a weight at a cap comes out as 0.0599999998. Solving the
stationarity system of the constraints found active puts it on the cap, to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from finskillbench.engines.portfolio.program import Block, Cone, ConicProgram, Solution, dense
from finskillbench.engines.portfolio.risk_model import Array

_LARGEST_SYSTEM = 600
"""Dense Newton systems above this many unknowns are not worth their cubic cost; the interior point stands."""
_REGULARISATION = 1e-11
_CORRECTIONS = 4
"""Sets of active rows tried; the first is right unless a limit only just binds."""
_BROKEN = 1e-13
"""A slack below minus this is a broken row, not rounding."""
_ROUNDING = 2e-16
"""Residuals of this size are rounding; no step improves on them."""
_NEAR, _STALLED = 1e-12, 0.25
"""Below the first, a step that leaves more than the second of a residual has met the rounding of the system."""

_LU: tuple[Any, Any] = tuple(get_lapack_funcs(("getrf", "getrs"), dtype=np.float64))
"""LAPACK's factorisation and substitution; the wrappers of SciPy cost as much as the work at this size."""


def polish(program: ConicProgram, solution: Solution) -> tuple[Array, Array] | None:
    """Refine (x, z); None where the system is too large or the iteration leaves the finite numbers.

    The caller compares certificates before and after and keeps the better: nothing here needs to be trusted.
    """
    linear, refined = _active_rows(program, solution), None
    for _ in range(_CORRECTIONS):
        refined = _newton(program, solution, linear)
        if refined is None:
            return None
        corrected = _corrected(program, linear, *refined)
        if np.array_equal(corrected, linear):
            break
        linear = corrected
    return refined


def _corrected(program: ConicProgram, linear: Array, x: Array, z: Array) -> Array:
    """Active rows without those whose multiplier came out negative, and with those the point breaks.

    Where a multiplier and its slack both nearly vanish, the interior point cannot tell which of the two is zero.
    """
    slack = program.rhs - program.matrix @ x
    active = np.zeros(slack.size, dtype=bool)
    active[linear] = True
    for block in program.blocks:
        if block.cone is Cone.NONNEGATIVE:
            rows = block.rows
            active[rows] = (active[rows] & (z[rows] >= -_ROUNDING)) | (slack[rows] < -_BROKEN)
    return np.nonzero(active)[0]


def _newton(program: ConicProgram, solution: Solution, linear: Array, steps: int = 4) -> tuple[Array, Array] | None:
    """Newton's method on the stationarity and the tightness of the rows `linear` and of the cones that bind."""
    curved = [block for block in _second_order(program) if _is_active(block, solution)]
    if program.linear.size + linear.size + len(curved) > _LARGEST_SYSTEM:
        return None
    matrix, quadratic = dense(program.matrix[linear]), dense(program.quadratic)
    cones = [(dense(program.matrix[block.rows]), program.rhs[block.rows]) for block in curved]
    x, y = solution.x.copy(), solution.z[linear].copy()
    # Multiplier of ½(||s1||² − s0²) <= 0, from the cone's dual z = ν (s0, −s1).
    nu = np.array([solution.z[block.start] / solution.s[block.start] for block in curved])
    system: _Saddle | None = None
    before = np.inf
    for _ in range(steps):
        gradients, values, hessian = _curved_terms(cones, nu, x, quadratic)
        stationarity = quadratic @ x + program.linear + matrix.T @ y + gradients.T @ nu
        residual = np.concatenate([stationarity, matrix @ x - program.rhs[linear], values])
        error = float(np.abs(residual).max(initial=0.0))
        if error <= _ROUNDING or (error < _NEAR and error > _STALLED * before):
            break
        before = error
        if system is None or cones:  # without cones nothing in it changes
            system = _Saddle.of(hessian, np.vstack([matrix, gradients]))
        if system is None:
            return None
        step = system.solve(-residual)
        x += step[: x.size]
        y += step[x.size : x.size + y.size]
        nu += step[x.size + y.size :]
    z = np.zeros_like(solution.z)
    z[linear] = y
    for block, (rows, rhs), multiplier in zip(curved, cones, nu, strict=True):
        slack = rhs - rows @ x
        z[block.rows] = multiplier * np.concatenate([slack[:1], -slack[1:]])
    return (x, z) if np.isfinite(x).all() and np.isfinite(z).all() else None


def _second_order(program: ConicProgram) -> list[Block]:
    return [block for block in program.blocks if block.cone is Cone.SECOND_ORDER]


def _is_active(block: Block, solution: Solution) -> bool:
    """Complementarity decides: on the boundary z0 is of order one, in the interior it vanishes."""
    head, tail = solution.s[block.start], solution.s[block.start + 1 : block.stop]
    return solution.z[block.start] > head - float(np.linalg.norm(tail))


def _active_rows(program: ConicProgram, solution: Solution) -> Array:
    rows = [
        np.arange(block.start, block.stop)
        if block.cone is Cone.ZERO
        else block.start + np.nonzero(solution.z[block.rows] > solution.s[block.rows])[0]
        for block in program.blocks
        if block.cone is not Cone.SECOND_ORDER
    ]
    return np.concatenate(rows)


def _curved_terms(
    cones: list[tuple[Array, Array]], nu: Array, x: Array, quadratic: Array
) -> tuple[Array, Array, Array]:
    """Gradients and values of ½(||s1||² − s0²) and the Hessian of the Lagrangian."""
    gradients, values, hessian = np.zeros((len(cones), x.size)), np.zeros(len(cones)), quadratic.copy()
    for index, (rows, rhs) in enumerate(cones):
        slack = rhs - rows @ x
        gradients[index] = rows[0] * slack[0] - rows[1:].T @ slack[1:]
        values[index] = 0.5 * (slack[1:] @ slack[1:] - slack[0] ** 2)
        hessian += nu[index] * (rows[1:].T @ rows[1:] - np.outer(rows[0], rows[0]))
    return gradients, values, hessian


class _Saddle(NamedTuple):
    """[[H, J'], [J, 0]] with its factors; active rows may be dependent, hence regularised and refined."""

    matrix: Array
    factor: Array
    pivots: Array

    @classmethod
    def of(cls, hessian: Array, jacobian: Array) -> _Saddle | None:
        """Factorise; None where that fails."""
        n, m = hessian.shape[0], jacobian.shape[0]
        matrix = np.zeros((n + m, n + m))
        matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = hessian, jacobian.T, jacobian
        regular = matrix.copy()
        regular[np.arange(n), np.arange(n)] += _REGULARISATION
        regular[np.arange(n, n + m), np.arange(n, n + m)] -= _REGULARISATION
        factor, pivots, fault = _LU[0](regular, overwrite_a=True)
        return None if fault else cls(matrix, factor, pivots)

    def solve(self, target: Array) -> Array:
        """The solution, twice refined."""
        substitute = _LU[1]
        step, _ = substitute(self.factor, self.pivots, target)
        for _ in range(2):
            step += substitute(self.factor, self.pivots, target - self.matrix @ step)[0]
        return step
