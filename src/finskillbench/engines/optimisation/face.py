"""Reduced programs: lazily added second-order cones, and tie-breaking goals on an optimal face.

Certificates refer to the whole program, so these methods need no trust.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.polish import polish
from finskillbench.engines.optimisation.program import (
    Cone,
    ConicProgram,
    ConstraintBlock,
    Solution,
    solve_conic,
    subprogram,
)

_CLEAR = 1e-8
"""Minimum slack of a cone that cannot bind."""
_POSITIVE = 1e-7
"""Larger multipliers exceed the solver's noise: their rows are tight on the whole optimal face."""


def solve_by_cones(program: ConicProgram, first: Collection[str] = ()) -> Solution:
    """Solve with second-order cones added only when violated, except the blocks `first`.

    A linear program takes a third of the time of one with a dense covariance, and most tracking-error and concentration
    limits do not bind. Omitted cones get zero multipliers. Large programs in factor form include all cones from the
    start.
    """
    small = isinstance(program.matrix, np.ndarray)
    cones = [block for block in program.blocks if block.cone is Cone.SECOND_ORDER and small]
    left_out = [block for block in cones if block.label not in first]
    while left_out:
        parts = [(block.label, block.cone, _rows(block)) for block in program.blocks if block not in left_out]
        core, order = subprogram(program, parts)
        found = solve_conic(core)
        slack = program.rhs - program.matrix @ found.x
        broken = [block for block in left_out if not _keeps(slack[block.rows])]
        if not broken or "PrimalInfeasible" in found.status:
            z = np.zeros(len(program.rhs))
            z[order] = found.z
            return replace(found, z=z, s=slack)
        left_out = [block for block in left_out if block not in broken]
    return solve_conic(program)


def broken_cones(program: ConicProgram, x: Floats) -> list[str]:
    """Return the labels of the second-order blocks that the (N,) point violates or nearly violates."""
    slack = program.rhs - program.matrix @ x
    cones = [block for block in program.blocks if block.cone is Cone.SECOND_ORDER]
    return [block.label for block in cones if not _keeps(slack[block.rows])]


def _keeps(slack: Floats) -> bool:
    return float(np.linalg.norm(slack[1:])) < slack[0] - _CLEAR


def _rows(block: ConstraintBlock) -> Integers:
    return np.arange(block.start, block.stop)


def solve_on_face(program: ConicProgram, cap: str, earlier: Floats) -> tuple[Floats, Floats] | None:
    """Minimise over the optimal face of an earlier goal c'x, capped as c'x <= v by the block `cap`.

    `earlier` (rows,) are the multipliers that prove v minimal, 0 on the cap. Optima of the earlier goal are the points
    with tight rows for all positive multipliers. These rows become equations, which restores an interior. Since c + A'z
    = 0, adding k z, and k on the cap, to the face's multipliers keeps stationarity; k makes those of its rows
    nonnegative.

    Returns (x, z) of the whole program, or None if a cone binds the earlier goal, the program is too large to polish,
    or polishing fails.
    """
    if not isinstance(program.matrix, np.ndarray):
        return None
    equations: list[Integers] = []
    lifted: list[Integers] = []
    free: list[Integers] = []
    curved: list[tuple[str, Cone, Integers]] = []
    for block in program.blocks:
        rows = _rows(block)
        tight = earlier[block.rows] > _POSITIVE
        if block.cone is Cone.SECOND_ORDER:
            if tight[0]:
                return None
            curved.append((block.label, block.cone, rows))
        elif block.cone is Cone.ZERO:
            equations.append(rows)
        elif block.label != cap:
            lifted.append(rows[tight])
            free.append(rows[~tight])
    fixed = np.concatenate([*equations, *lifted])
    parts = [("face", Cone.ZERO, fixed), ("free", Cone.NONNEGATIVE, np.concatenate(free)), *curved]
    face, order = subprogram(program, parts)
    refined = polish(face, solve_by_cones(face))
    if refined is None:
        return None
    z = np.zeros(len(program.rhs))
    z[order] = refined[1]
    raised = np.concatenate(lifted)
    price = max(float((-z[raised] / earlier[raised]).max(initial=0.0)), 0.0)
    z += price * earlier
    z[next(block.start for block in program.blocks if block.label == cap)] = price
    return refined[0], z
