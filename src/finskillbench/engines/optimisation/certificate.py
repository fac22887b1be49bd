"""Solver-independent proofs: optimality by weak duality, infeasibility by Farkas' lemma.

Each function checks a given point and multipliers with plain arithmetic, so that readers can repeat it from stored
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.program import Cone, ConicProgram


@dataclass(frozen=True, slots=True)
class Optimality:
    """Objective of a point, and a proved lower bound for all feasible points.

    `gap` = objective − lower_bound, `stationarity` = ||Px + q + A'z||_inf, `violation` = greatest distance of a row
    from its cone, `complementarity` = |s'z|.
    """

    objective: float
    lower_bound: float
    gap: float
    stationarity: float
    violation: float
    complementarity: float


@dataclass(frozen=True, slots=True)
class Infeasibility:
    """A Farkas ray z in K* with A'z close to 0 and b'z < 0.

    For every x with |x_j| <= X_j and Ax + s = b, s in K:  0 <= s'z = b'z − (A'z)'x <= b'z + |A'z|'X.
    So `margin` = −(b'z + |A'z|'X) > 0 proves that no such x exists; the ray is scaled to max |z| = 1.
    """

    margin: float
    residual: float


def project(program: ConicProgram, vector: Floats, *, dual: bool) -> Floats:
    """Project a row vector onto K, or onto K* (equality rows free)."""
    result = vector.copy()
    for block in program.blocks:
        part = vector[block.rows]
        if block.cone is Cone.ZERO:
            result[block.rows] = part if dual else 0.0
        elif block.cone is Cone.NONNEGATIVE:
            result[block.rows] = np.maximum(part, 0.0)
        else:
            result[block.rows] = _project_norm_cone(part)
    return result


def _project_norm_cone(part: Floats) -> Floats:
    head, length = part[0], float(np.linalg.norm(part[1:]))
    if length <= head:
        return part
    if length <= -head:
        return np.zeros_like(part)
    middle = (head + length) / 2
    return np.concatenate([[middle], part[1:] * (middle / length)])


def prove_optimal(program: ConicProgram, x: Floats, z: Floats) -> Optimality:
    """Bound the optimum from below by weak duality, for any x and z.

    With z projected onto K* and r = Px + q + A'z, every feasible y with |y_j| <= X_j has
    ½y'Py + q'y + c >= −½x'Px − b'z + r'y + c >= −½x'Px − b'z − |r|'X + c.
    """
    dual = project(program, z, dual=True)
    curvature = program.quadratic @ x
    residual = curvature + program.linear + program.matrix.T @ dual
    bound = program.constant - 0.5 * float(x @ curvature) - float(program.rhs @ dual)
    bound -= float(np.abs(residual) @ program.bounds)
    slack = program.rhs - program.matrix @ x
    objective = program.objective(x)
    return Optimality(
        objective=objective,
        lower_bound=bound,
        gap=objective - bound,
        stationarity=float(np.abs(residual).max(initial=0.0)),
        violation=float(np.abs(slack - project(program, slack, dual=False)).max(initial=0.0)),
        complementarity=abs(float(slack @ dual)),
    )


def prove_infeasible(program: ConicProgram, z: Floats) -> Infeasibility:
    """Check a Farkas ray; a positive `margin` proves infeasibility."""
    dual = project(program, z, dual=True)
    scale = float(np.abs(dual).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(dual).all():
        return Infeasibility(margin=-np.inf, residual=np.inf)
    dual = dual / scale
    residual = program.matrix.T @ dual
    margin = -(float(program.rhs @ dual) + float(np.abs(residual) @ program.bounds))
    return Infeasibility(margin=margin, residual=float(np.abs(residual).max(initial=0.0)))
