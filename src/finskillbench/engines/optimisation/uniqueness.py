"""Uniqueness of an optimum: proof by curvature or rank, or a second optimum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.freedom import moving_directions
from finskillbench.engines.optimisation.program import Cone, ConstraintBlock, dense, sparse

_POSITIVE = 1e-7
"""Larger multipliers exceed the solver's noise (objectives are of order 0.01 to 1)."""
_RESOLVED = 1e4
"""A positive multiplier z keeps its slack under gap/z at every optimum; z over this many gaps keeps it under 1e-4.

The slack of a cone with multiplier z and head s is within √(2 s gap/z) of the optimum's ray.
"""
_AS_GOOD = 1e-9
"""Objective tolerance of another optimum."""
_DISTINCT = 1e-6
"""Minimum weight difference of distinct optima."""
_MOST_TRIED = 200
"""Maximum directions of a large program tried for a second optimum."""


class Uniqueness(StrEnum):
    """Outcome of the uniqueness check."""

    CURVATURE = "unique: the Lagrangian is strictly convex in the weights"
    RANK = "unique: the constraints with positive multipliers determine the weights"
    BRANCHES = "unique: alone in its branch of the name counts, and no other branch comes as near"
    MULTIPLE = "not unique: another optimum is known"
    UNDECIDED = "undecided"
    NOT_CHECKED = "not asked: the value alone is the answer"

    @property
    def proved(self) -> bool:
        return self in (Uniqueness.CURVATURE, Uniqueness.RANK, Uniqueness.BRANCHES)


@dataclass(frozen=True)
class UniquenessProof:
    """By curvature, every feasible w has f(w) >= f* + (modulus/2)||w − w*||²; `witness` is a second optimum."""

    outcome: Uniqueness
    modulus: float = 0.0
    witness: Floats | None = None


def prove_unique(formulation: Formulation, x: Floats, z: Floats) -> UniquenessProof:
    """Check uniqueness of the weights at an optimal pair (x, z).

    Curvature: with quadratic multipliers ν of the second-order blocks, another optimum w would give L(w) <= f* = L(w*),
    although L is strongly convex with modulus m > 0. Rank: on the optimal face, rows with positive multipliers are
    tight. The slack of a cone with positive multiplier (z0, z1) is on the orthogonal ray (z0, −z1). If no direction of
    the weights remains, the optimum is unique.
    """
    program = formulation.program
    slack = program.rhs - program.matrix @ x
    gap = abs(float(slack @ z))
    modulus = formulation.objective_curvature
    curved_blocks: list[ConstraintBlock] = []
    for block in program.blocks:
        if block.cone is Cone.SECOND_ORDER and z[block.start] > _POSITIVE:
            curved_blocks.append(block)
            if slack[block.start] > 0:  # a zero limit has no multiplier of the quadratic form
                modulus += z[block.start] / slack[block.start] * formulation.curvature[block.label]
    if modulus > _POSITIVE:
        return UniquenessProof(Uniqueness.CURVATURE, modulus=float(modulus))
    positive = max(_POSITIVE, _RESOLVED * gap)
    tight = np.concatenate(
        [
            np.arange(block.start, block.stop)
            if block.cone is Cone.ZERO
            else block.start + np.nonzero(z[block.rows] > positive)[0]
            for block in program.blocks
            if block.cone is not Cone.SECOND_ORDER
        ]
    )
    # Optima of a convex quadratic differ by a direction in its null space, so its rows constrain the face too.
    rows, curved = program.matrix[tight], program.quadratic
    if isinstance(rows, np.ndarray) and isinstance(curved, np.ndarray):
        rays = [
            _off_ray(dense(program.matrix[block.rows]), z[block.rows])
            for block in curved_blocks
            if z[block.start] > 2 * slack[block.start] * gap * _RESOLVED**2
        ]
        directions = _null_space(np.vstack([rows, curved, *rays]))
    elif curved_blocks:
        return UniquenessProof(Uniqueness.UNDECIDED)
    else:
        directions = moving_directions(sparse.vstack([rows, curved]), formulation.weights, _MOST_TRIED)
    moves = directions[formulation.weights]
    if moves.size == 0 or np.abs(moves).max() < 1e-9:
        return UniquenessProof(Uniqueness.RANK)
    if curved_blocks:
        return UniquenessProof(Uniqueness.UNDECIDED)
    return _other_optimum(formulation, x, slack, directions)


def _off_ray(rows: Floats, multiplier: Floats) -> Floats:
    """Remove the component of a cone's rows along the ray orthogonal to its multiplier."""
    ray = np.concatenate([multiplier[:1], -multiplier[1:]]) / np.linalg.norm(multiplier)
    return rows - np.outer(ray, ray @ rows)


def _null_space(matrix: Floats) -> Floats:
    """(N, d) Null space of a dense matrix; rows with a single entry fix their variable and are eliminated first."""
    pattern = (matrix != 0).astype(float)
    rows, free = np.ones(matrix.shape[0], dtype=bool), np.ones(matrix.shape[1], dtype=bool)
    while (lone := rows & (pattern @ free.astype(float) == 1)).any():
        free[(pattern.T @ lone.astype(float) > 0) & free] = False
        rows &= ~lone
    kept = np.nonzero(free)[0]
    rest = dense(matrix[np.nonzero(rows)[0]][:, kept])
    rest = rest[rest.any(axis=1)]
    _, singular, right = np.linalg.svd(rest, full_matrices=rest.shape[0] < rest.shape[1])
    rank = int((singular > 1e-9 * max(rest.shape) * singular.max(initial=1.0)).sum())
    directions = np.zeros((len(free), len(kept) - rank))
    directions[kept] = right[rank:].T
    return directions


def _other_optimum(formulation: Formulation, x: Floats, slack: Floats, directions: Floats) -> UniquenessProof:
    """Search along each direction of the optimal face, within the slacks, for a second optimum."""
    program = formulation.program
    inequality = np.concatenate(
        [np.arange(block.start, block.stop) for block in program.blocks if block.cone is Cone.NONNEGATIVE]
    )
    best = program.objective(x)
    for direction in np.hstack([directions, -directions]).T:
        rate = (program.matrix @ direction)[inequality]
        falling = rate > 1e-12
        step = max(float(np.min(slack[inequality][falling] / rate[falling], initial=1.0)), 0.0)
        while step * float(np.abs(direction[formulation.weights]).max()) > 2 * _DISTINCT:
            step /= 2  # half way to the nearest bound, less if a cone ends sooner
            other = x + step * direction
            if _in_cones(formulation, other) and program.objective(other) <= best + _AS_GOOD:
                return UniquenessProof(Uniqueness.MULTIPLE, witness=other[formulation.weights])
    return UniquenessProof(Uniqueness.UNDECIDED)


def _in_cones(formulation: Formulation, x: Floats) -> bool:
    program = formulation.program
    slack = program.rhs - program.matrix @ x
    curved = [slack[block.rows] for block in program.blocks if block.cone is Cone.SECOND_ORDER]
    return all(float(np.linalg.norm(part[1:])) <= part[0] for part in curved)
