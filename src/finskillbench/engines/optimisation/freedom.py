"""Directions in which a system of rows leaves the weights free.

On an optimal face every tight row reads a'd = 0 for the difference d of two optima. The optimum is unique if every d
with M d = 0 leaves the weights unchanged. M has thousands of rows, but nearly all have one entry (a bound: d_j = 0) or
two (a trade and its weight: a d_i + b d_j = 0). Substitution removes these and leaves few coupling rows (budget,
sectors, factors): A with r rows and c columns.

QR with column pivoting gives a basis: A P = Q [R1 R2; 0 0] with R1 regular. Then A d = 0 means d_B = −Y d_N with Y =
R1⁻¹ R2: each nonbasic column j gives one direction, 1 in j and −Y_j in the basis. A weight moves if it follows j, or a
basic column with a non-zero entry in Y_j. Cost: O(r² c), linear in names; a full null space takes c² numbers.

Source: Golub & Van Loan (2013), Matrix Computations, 4th ed., section 5.4.2 (rank-revealing QR by column pivoting).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg as _linalg

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.program import sparse

linalg: Any = _linalg  # SciPy is untyped

_RANK = 1e-9
"""Pivots below this share of the first, times the larger dimension, are zero; rows have a largest entry of 1."""
_MOVES = 1e-9
"""Smallest weight change of a unit direction that counts."""
_BALANCED = 0.1
"""Minimum relative size of a substituted entry, which limits growth."""
_PINNED = -1


@dataclass
class _Reduction:
    """Remaining rows and columns; each variable follows a column (`_PINNED`: none) times a ratio."""

    rows: Any
    follows: Integers
    ratio: Floats


def moving_directions(matrix: Any, weights: slice, most: int) -> Floats:
    """(N, d <= most) Unit directions in the null space of a sparse (m, N) matrix that move a weight."""
    left = _reduced(sparse.csr_matrix(matrix))
    rows, columns = left.rows.shape
    size = len(left.follows)
    if columns == 0:
        return np.zeros((size, 0))
    has_weights = np.zeros(columns, dtype=bool)
    behind = left.follows[weights]
    has_weights[behind[behind != _PINNED]] = True
    basis, nonbasic, coupling = _basis(left.rows.toarray() if rows else np.zeros((0, columns)))
    length = np.sqrt(1.0 + np.square(coupling).sum(axis=0))
    moved = np.abs(coupling[has_weights[basis]]).max(axis=0, initial=0.0)
    moves = np.flatnonzero(has_weights[nonbasic] | (moved > _MOVES * length))[:most]
    directions = np.zeros((columns, len(moves)))
    directions[nonbasic[moves], np.arange(len(moves))] = 1.0
    directions[basis] = -coupling[:, moves]
    full = np.where(left.follows != _PINNED, left.ratio, 0.0)[:, None] * directions[left.follows]
    return full / np.linalg.norm(full, axis=0)


def _basis(rows: Floats) -> tuple[Integers, Integers, Floats]:
    """Return basic columns, nonbasic columns, and Y with A_nonbasic = A_basic Y."""
    count: int = rows.shape[1]
    if not rows.any():
        return np.zeros(0, dtype=np.intp), np.arange(count), np.zeros((0, count))
    upper, order = linalg.qr(rows, mode="r", pivoting=True)
    pivots = np.abs(np.diag(upper))
    rank = int((pivots > _RANK * max(rows.shape) * pivots[0]).sum())
    coupling: Floats = linalg.solve_triangular(upper[:rank, :rank], upper[:rank, rank:])
    return order[:rank], order[rank:], coupling


def _reduced(matrix: Any) -> _Reduction:
    """Eliminate rows with one or two entries repeatedly; rows are scaled to a largest entry of 1."""
    size: int = matrix.shape[1]
    left = _Reduction(_scaled(matrix), np.arange(size), np.ones(size))
    while True:
        left.rows.data[np.abs(left.rows.data) <= _RANK] = 0.0  # cancelled entries
        left.rows.eliminate_zeros()
        entries = np.diff(left.rows.indptr)
        left.rows = left.rows[np.flatnonzero(entries)]
        entries = entries[entries > 0]
        if (entries == 1).any():
            _pin(left, left.rows[np.flatnonzero(entries == 1)].indices)
        elif (entries == 2).any():
            _substitute(left, np.flatnonzero(entries == 2))
        else:
            break
    left.rows = _scaled(left.rows)
    return left


def _scaled(rows: Any) -> Any:
    rows = sparse.csr_matrix(rows)
    rows.eliminate_zeros()
    rows = rows[np.flatnonzero(np.diff(rows.indptr))]
    if not rows.shape[0]:
        return rows
    return sparse.csr_matrix(sparse.diags(1.0 / np.maximum.reduceat(np.abs(rows.data), rows.indptr[:-1])) @ rows)


def _pin(left: _Reduction, columns: Integers) -> None:
    """Fix columns and the variables that follow them."""
    count: int = left.rows.shape[1]
    kept = np.setdiff1d(np.arange(count), columns)
    place = np.full(count, _PINNED)
    place[kept] = np.arange(len(kept))
    left.rows = left.rows[:, kept]
    left.follows = np.where(left.follows == _PINNED, _PINNED, place[left.follows])


def _substitute(left: _Reduction, pairs: Integers) -> None:
    """Replace d_i by d_j for a d_i + b d_j = 0: one row per variable, and no follower leads another."""
    count: int = left.rows.shape[1]
    of_pairs = left.rows[pairs]
    columns, values = of_pairs.indices.reshape(-1, 2), of_pairs.data.reshape(-1, 2)
    used = np.bincount(left.rows.indices, minlength=count)
    # The variable in fewer rows follows, unless its entry is much smaller.
    size = np.abs(values)
    use_right = (used[columns[:, 1]] < used[columns[:, 0]]) & (size[:, 1] >= _BALANCED * size[:, 0])
    use_right |= size[:, 0] < _BALANCED * size[:, 1]
    at = use_right.astype(np.intp)
    row = np.arange(len(pairs))
    follower, leader = columns[row, at], columns[row, 1 - at]
    ratio = -values[row, 1 - at] / values[row, at]
    _, first = np.unique(follower, return_index=True)
    free = ~np.isin(leader[first], follower[first])
    first = first[free] if free.any() else first[:1]
    follower, leader, ratio = follower[first], leader[first], ratio[first]
    kept = np.setdiff1d(np.arange(count), follower)
    place = np.zeros(count, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    place[follower] = place[leader]
    times = np.ones(count)
    times[follower] = ratio
    fold = sparse.csr_matrix((times, (np.arange(count), place)), shape=(count, len(kept)))
    left.rows = sparse.csr_matrix(left.rows @ fold)
    known = left.follows != _PINNED
    left.ratio = np.where(known, left.ratio * times[left.follows], 0.0)
    left.follows = np.where(known, place[left.follows], _PINNED)
