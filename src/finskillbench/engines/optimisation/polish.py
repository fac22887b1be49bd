"""Newton refinement of interior-point solutions on the active constraints.

An interior point stops inside of its bounds: a weight at a cap becomes 0.0599999998. Solving the stationarity system of
the active constraints puts it on the cap, to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg as _linalg

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.program import Cone, ConicProgram, ConstraintBlock, Solution, dense

_LARGEST_SYSTEM = 600
"""Maximum unknowns of a dense Newton system, whose cost is cubic."""
_REGULARISATION = 1e-11
_CORRECTIONS = 4
"""Active sets tried; the first is right unless a limit barely binds."""
_BROKEN = 1e-13
"""Slacks below minus this are violations, not rounding."""
_ROUNDING = 2e-16
"""Residuals of this size are rounding."""
_NEAR, _STALLED = 1e-12, 0.25
"""Below the first, stop if a step leaves more than the second of the residual."""

linalg: Any = _linalg  # SciPy is untyped
_LU = linalg.get_lapack_funcs(("getrf", "getrs"), dtype=np.float64)
_CHOLESKY = linalg.get_lapack_funcs(("potrf", "potrs"), dtype=np.float64)
"""LAPACK factorisation and substitution; SciPy's wrappers cost as much as the work at this size."""


def polish(program: ConicProgram, solution: Solution) -> tuple[Floats, Floats] | None:
    """Refine (x, z) for a comparison of certificates; None if the system is too large or diverges."""
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


def _corrected(program: ConicProgram, linear: Integers, x: Floats, z: Floats) -> Integers:
    """Drop active rows with negative multipliers and add violated rows, where the interior point is ambiguous."""
    slack = program.rhs - program.matrix @ x
    active = np.zeros(slack.size, dtype=bool)
    active[linear] = True
    for block in program.blocks:
        if block.cone is Cone.NONNEGATIVE:
            rows = block.rows
            active[rows] = (active[rows] & (z[rows] >= -_ROUNDING)) | (slack[rows] < -_BROKEN)
    return np.nonzero(active)[0]


def _newton(
    program: ConicProgram, solution: Solution, linear: Integers, steps: int = 4
) -> tuple[Floats, Floats] | None:
    """Apply Newton's method to stationarity and the tightness of the rows `linear` and the binding cones."""
    norm_cones = [block for block in program.blocks if block.cone is Cone.SECOND_ORDER]
    curved = [block for block in norm_cones if _is_active(block, solution)]
    if program.linear.size + linear.size + len(curved) > _LARGEST_SYSTEM:
        return None
    active, quadratic = dense(program.matrix[linear]), dense(program.quadratic)
    cones = [_Curve.of(dense(program.matrix[block.rows]), program.rhs[block.rows]) for block in curved]
    x = solution.x.copy()
    # Most active rows are bounds: eliminate their variables; stationarity gives their multipliers.
    lone, pinned = _pins(active)
    x[pinned] = program.rhs[linear[lone]] / active[lone, pinned]
    rest = np.delete(np.arange(len(linear)), lone)
    free = np.delete(np.arange(x.size), pinned)
    matrix, rhs, y = active[rest], program.rhs[linear[rest]], solution.z[linear[rest]]
    # Multiplier of ½(||s1||² − s0²) <= 0, from the cone's dual z = ν (s0, −s1).
    nu = np.array([solution.z[block.start] / solution.s[block.start] for block in curved])
    system: _Saddle | _Gram | None = None
    before = np.inf
    for _ in range(steps):
        gradients = np.array([cone.gradient(x) for cone in cones]).reshape(-1, x.size)
        stationarity = quadratic @ x + program.linear + matrix.T @ y + gradients.T @ nu
        residual = np.concatenate([stationarity[free], matrix @ x - rhs, [cone.value(x) for cone in cones]])
        error = float(np.abs(residual).max(initial=0.0))
        if error <= _ROUNDING or (error < _NEAR and error > _STALLED * before):
            break
        before = error
        if system is None or cones:  # without cones the system is constant
            hessian = quadratic + sum(n * cone.hessian for n, cone in zip(nu, cones, strict=True))
            kind = _Saddle if hessian.any() else _Gram
            system = kind.of(hessian[np.ix_(free, free)], np.vstack([matrix, gradients])[:, free])
        if system is None:
            return None
        step = system.solve(-residual)
        x[free] += step[: free.size]
        y += step[free.size : free.size + y.size]
        nu += step[free.size + y.size :]
    gradients = np.array([cone.gradient(x) for cone in cones]).reshape(-1, x.size)
    stationarity = quadratic @ x + program.linear + matrix.T @ y + gradients.T @ nu
    z = np.zeros_like(solution.z)
    z[linear[rest]] = y
    z[linear[lone]] = -stationarity[pinned] / active[lone, pinned]
    for block, cone, multiplier in zip(curved, cones, nu, strict=True):
        slack = cone.slack(x)
        z[block.rows] = multiplier * np.concatenate([slack[:1], -slack[1:]])
    return (x, z) if np.isfinite(x).all() and np.isfinite(z).all() else None


def _pins(rows: Floats) -> tuple[Integers, Integers]:
    """Return the rows with a single entry and its columns, each column once."""
    filled = rows != 0
    lone = np.flatnonzero(filled.sum(axis=1) == 1)
    pinned, first = np.unique(filled[lone].argmax(axis=1), return_index=True)
    return lone[first], pinned


def _is_active(block: ConstraintBlock, solution: Solution) -> bool:
    """Test complementarity: on the boundary z0 is of order one, in the interior it vanishes."""
    head, tail = solution.s[block.start], solution.s[block.start + 1 : block.stop]
    return solution.z[block.start] > head - float(np.linalg.norm(tail))


def _active_rows(program: ConicProgram, solution: Solution) -> Integers:
    rows = [
        np.arange(block.start, block.stop)
        if block.cone is Cone.ZERO
        else block.start + np.nonzero(solution.z[block.rows] > solution.s[block.rows])[0]
        for block in program.blocks
        if block.cone is not Cone.SECOND_ORDER
    ]
    return np.concatenate(rows)


class _Curve(NamedTuple):
    """½(||s1||² − s0²) of a cone's slack s = rhs − rows x."""

    rows: Floats
    rhs: Floats
    hessian: Floats

    @classmethod
    def of(cls, rows: Floats, rhs: Floats) -> _Curve:
        return cls(rows, rhs, rows[1:].T @ rows[1:] - np.outer(rows[0], rows[0]))

    def slack(self, x: Floats) -> Floats:
        return self.rhs - self.rows @ x

    def value(self, x: Floats) -> float:
        slack = self.slack(x)
        return float(0.5 * (slack[1:] @ slack[1:] - slack[0] ** 2))

    def gradient(self, x: Floats) -> Floats:
        slack = self.slack(x)
        return self.rows[0] * slack[0] - self.rows[1:].T @ slack[1:]


class _Saddle(NamedTuple):
    """[[H, J'], [J, 0]], regularised and refined since active rows may be dependent."""

    matrix: Floats
    factor: Floats
    pivots: Integers

    @classmethod
    def of(cls, hessian: Floats, jacobian: Floats) -> _Saddle | None:
        n, m = hessian.shape[0], jacobian.shape[0]
        matrix = np.zeros((n + m, n + m))
        matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = hessian, jacobian.T, jacobian
        regular = matrix.copy()
        regular[np.arange(n), np.arange(n)] += _REGULARISATION
        regular[np.arange(n, n + m), np.arange(n, n + m)] -= _REGULARISATION
        factor, pivots, fault = _LU[0](regular, overwrite_a=True)
        return None if fault else cls(matrix, factor, pivots)

    def solve(self, target: Floats) -> Floats:
        """Solve with two refinements."""
        substitute = _LU[1]
        step, _ = substitute(self.factor, self.pivots, target)
        for _ in range(2):
            step += substitute(self.factor, self.pivots, target - self.matrix @ step)[0]
        return step


class _Gram(NamedTuple):
    """[[0, J'], [J, 0]] of a linear program: least squares in JJ', a tenth of the work."""

    jacobian: Floats
    factor: Floats

    @classmethod
    def of(cls, hessian: Floats, jacobian: Floats) -> _Gram | None:
        regular = jacobian @ jacobian.T
        np.einsum("ii->i", regular)[:] += _REGULARISATION
        factor, fault = _CHOLESKY[0](regular, lower=True, overwrite_a=True)
        return None if fault else cls(jacobian, factor)

    def solve(self, target: Floats) -> Floats:
        """Return the least step in x and the multipliers nearest to stationarity, refined twice."""
        m, n = self.jacobian.shape
        step = np.zeros_like(target)
        for _ in range(3 if m else 0):  # without active rows there is nothing to solve
            x, y = step[:n], step[n:]
            left = np.stack([target[n:] - self.jacobian @ x, self.jacobian @ (target[:n] - self.jacobian.T @ y)], 1)
            found, _ = _CHOLESKY[1](self.factor, left, lower=True)
            x += self.jacobian.T @ found[:, 0]
            y += found[:, 1]
        return step
