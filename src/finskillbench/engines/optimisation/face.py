"""Programs whose conic limits rarely bind, and goals that settle an earlier one's ties, solved in their small core.

The proofs are those of the whole program: nothing here needs to be trusted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.polish import polish
from finskillbench.engines.optimisation.program import Block, Cone, ConicProgram, Solution, part_of, solve

_CLEAR = 1e-8
"""A cone kept by less than this may bind."""
_POSITIVE = 1e-7
"""A multiplier above this is positive beyond the solver's noise: its row is tight on the whole optimal face."""


def solve_by_cones(program: ConicProgram, first: Collection[str] = ()) -> Solution:
    """As `solve`, with second-order cones added only as points break them, except the blocks `first`.

    A linear program takes a third of the time of one with a dense covariance in it, and of the limits on tracking
    error and concentration most do not bind. A cone left out has multipliers of zero. Large programs, whose covariance
    is in factors, have all of them from the beginning.
    """
    small = isinstance(program.matrix, np.ndarray)
    cones = [block for block in program.blocks if block.cone is Cone.SECOND_ORDER and small]
    left_out = [block for block in cones if block.label not in first]
    while left_out:
        parts = [(block.label, block.cone, _rows(block)) for block in program.blocks if block not in left_out]
        core, order = part_of(program, parts)
        found = solve(core)
        slack = program.rhs - program.matrix @ found.x
        broken = [block for block in left_out if not _keeps(slack[block.rows])]
        if not broken or "PrimalInfeasible" in found.status:
            z = np.zeros(len(program.rhs))
            z[order] = found.z
            return replace(found, z=z, s=slack)
        left_out = [block for block in left_out if block not in broken]
    return solve(program)


def broken_cones(program: ConicProgram, x: Floats) -> list[str]:
    """Labels of the second-order blocks that the (N,) point does not keep, or only just."""
    slack = program.rhs - program.matrix @ x
    cones = [block for block in program.blocks if block.cone is Cone.SECOND_ORDER]
    return [block.label for block in cones if not _keeps(slack[block.rows])]


def _keeps(slack: Floats) -> bool:
    return float(np.linalg.norm(slack[1:])) < slack[0] - _CLEAR


def _rows(block: Block) -> Integers:
    return np.arange(block.start, block.stop)


def solve_on_face(program: ConicProgram, cap: str, earlier: Floats) -> tuple[Floats, Floats] | None:
    """Minimise the program over the optimal face of an earlier goal c'x, whose cap c'x <= v is the block `cap`.

    `earlier` are the (rows,) multipliers that prove v the least c'x can be, 0 on the cap itself. Every optimum of the
    earlier goal keeps the rows with positive multipliers tight, and whatever keeps them tight is an optimum: so they
    become equations, and an interior is left where the cap leaves none. With c + A'z = 0, adding k z and k on the cap
    to the multipliers y of the face changes no stationarity; k is what makes those of its rows nonnegative again.

    Returns
    -------
    (x, z) of the whole program, or None where a cone binds the earlier goal, the program is too large to be polished,
    or nothing comes of it.
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
    face, order = part_of(program, parts)
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
