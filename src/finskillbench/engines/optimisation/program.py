"""A conic program over weights, built block by block and solved by Clarabel.

    minimise ½ x'Px + q'x + c   subject to   A x + s = b,   s in K

x starts with the n weights; auxiliary variables (factor exposures, absolute trades, holding indicators) follow.
Each variable carries a bound |x_j| <= X_j implied by the constraints, which turns approximate dual solutions into
proofs (see `certificate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

import clarabel as _clarabel
import numpy as np
import scipy.sparse as _sparse

from finskillbench.arrays import Floats, Integers

clarabel: Any = _clarabel  # a native module without type information


class Cone(StrEnum):
    """The cones in use: equality, nonnegative slack, and ||s[1:]|| <= s[0]."""

    ZERO = "zero"
    NONNEGATIVE = "nonnegative"
    SECOND_ORDER = "second_order"


@dataclass(frozen=True, slots=True)
class Block:
    """A named run of rows of A that lies in one cone."""

    label: str
    cone: Cone
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """The rows of the block."""
        return slice(self.start, self.stop)


class SparseMatrix(Protocol):
    """What is used of a SciPy matrix in compressed columns, which comes without types."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def T(self) -> SparseMatrix: ...  # noqa: N802 - NumPy's and SciPy's name
    def __matmul__(self, vector: Floats, /) -> Floats: ...
    def __getitem__(self, rows: slice | Integers, /) -> SparseMatrix: ...
    def toarray(self) -> Floats: ...


Matrix: TypeAlias = Floats | SparseMatrix
sparse: Any = _sparse  # SciPy's sparse matrices have no type information


@dataclass(frozen=True)
class ConicProgram:
    """The program in standard form; `bounds` is (N,) with |x_j| <= bounds_j on the feasible set.

    P and A are dense arrays where the program is small: at 30 names a third of the time went into sparse bookkeeping.
    """

    quadratic: Matrix
    linear: Floats
    matrix: Matrix
    rhs: Floats
    blocks: tuple[Block, ...]
    bounds: Floats
    constant: float

    def objective(self, x: Floats) -> float:
        """½ x'Px + q'x + c."""
        return float(0.5 * x @ (self.quadratic @ x) + self.linear @ x) + self.constant


Term = tuple[slice, Floats] | tuple[slice, Floats, int]
"""Variables, their coefficients M (one-dimensional: a diagonal), and the block's row where M starts (0 if left out)."""

Piece = tuple[int, int, Floats]
"""Row and column where a matrix, or the diagonal of one, is added."""


@dataclass
class ProgramBuilder:
    """Collects variables, objective terms and constraint blocks; `build` returns the standard form."""

    size: int = 0
    constant: float = 0.0
    _bounds: list[Floats] = field(default_factory=list)
    _linear: list[tuple[slice, Floats]] = field(default_factory=list)
    _quadratic: list[Piece] = field(default_factory=list)
    _entries: list[Piece] = field(default_factory=list)
    _rhs: list[Floats] = field(default_factory=list)
    _blocks: list[Block] = field(default_factory=list)
    _rows: int = 0

    def variables(self, bounds: Floats) -> slice:
        """Add len(bounds) variables with |x_j| <= bounds_j; returns their positions."""
        place = slice(self.size, self.size + len(bounds))
        self._bounds.append(bounds)
        self.size = place.stop
        return place

    def add_linear(self, place: slice, coefficients: Floats) -> None:
        """Add q'x terms."""
        self._linear.append((place, coefficients))

    def add_quadratic(self, place: slice, hessian: Floats) -> None:
        """Add ½ x'Hx terms; a one-dimensional `hessian` is a diagonal."""
        self._quadratic.append((place.start, place.start, hessian))

    def constrain(self, label: str, cone: Cone, rhs: Floats, *terms: Term) -> None:
        """Add rows `rhs − Σ M x[place]` in `cone`; see `Term`."""
        count = len(rhs)
        for place, matrix, *first in terms:
            self._entries.append((self._rows + (first[0] if first else 0), place.start, matrix))
        self._rhs.append(rhs)
        self._blocks.append(Block(label, cone, self._rows, self._rows + count))
        self._rows += count

    def build(self) -> ConicProgram:
        """Assemble the matrices, dense or sparse by their size."""
        linear = np.zeros(self.size)
        for place, coefficients in self._linear:
            linear[place] += coefficients
        return ConicProgram(
            quadratic=_assembled(self._quadratic, (self.size, self.size)),
            linear=linear,
            matrix=_assembled(self._entries, (self._rows, self.size)),
            rhs=np.concatenate(self._rhs),
            blocks=tuple(self._blocks),
            bounds=np.concatenate(self._bounds),
            constant=self.constant,
        )


def _assembled(pieces: list[Piece], shape: tuple[int, int]) -> Matrix:
    """The sum of the pieces; several may fall on one place."""
    if shape[0] * shape[1] <= _DENSE_ENTRIES:
        result = np.zeros(shape)
        for top, left, matrix in pieces:
            target = result[top : top + len(matrix), left : left + matrix.shape[-1]]
            if matrix.ndim == 1:
                np.einsum("ii->i", target)[:] += matrix
            else:
                target += matrix
        return result
    if not pieces:
        return sparse.csc_matrix(shape)
    rows, columns, values = (np.concatenate(part) for part in zip(*map(_entries_of, pieces), strict=True))
    return sparse.csc_matrix((values, (rows, columns)), shape=shape)


def _entries_of(piece: Piece) -> tuple[Integers, Integers, Floats]:
    top, left, matrix = piece
    if matrix.ndim == 1:
        index = np.arange(len(matrix))
        return index + top, index + left, matrix
    rows, columns = np.nonzero(matrix)
    return rows + top, columns + left, matrix[rows, columns]


def dense(matrix: Matrix) -> Floats:
    """The matrix as an array, whichever way it is kept."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def part_of(program: ConicProgram, parts: Sequence[tuple[str, Cone, Integers]]) -> tuple[ConicProgram, Integers]:
    """The program with these rows only, each part of them in its own cone; and the rows in their new order."""
    order = np.concatenate([rows for _, _, rows in parts])
    stops = np.cumsum([len(rows) for _, _, rows in parts]).tolist()
    starts = [0, *stops[:-1]]
    blocks = tuple(Block(label, cone, a, b) for (label, cone, _), a, b in zip(parts, starts, stops, strict=True))
    return replace(program, matrix=program.matrix[order], rhs=program.rhs[order], blocks=blocks), order


class _Columns(NamedTuple):
    """What Clarabel reads of a SciPy matrix in compressed columns; as lists, which it takes over twice as fast."""

    data: list[float]
    indices: list[int]
    indptr: list[int]
    shape: tuple[int, int]
    nnz: int
    has_sorted_indices: bool = True
    has_canonical_format: bool = True


def _compressed(matrix: Matrix) -> Any:
    """The matrix in compressed columns, as Clarabel wants it."""
    if not isinstance(matrix, np.ndarray):
        return matrix
    rows, columns = len(matrix), len(matrix.T)
    values = matrix.ravel(order="F")
    places = np.flatnonzero(values)
    starts = np.searchsorted(places, np.arange(columns + 1) * rows)
    indices = places % rows
    return _Columns(values[places].tolist(), indices.tolist(), starts.tolist(), (rows, columns), len(places))


def _upper(matrix: Matrix) -> Any:
    """The upper triangle in compressed columns; a linear program's is empty."""
    if not isinstance(matrix, np.ndarray):
        return sparse.csc_matrix(sparse.triu(matrix))
    return _compressed(np.triu(matrix)) if matrix.any() else _Columns([], [], [0] * (len(matrix) + 1), matrix.shape, 0)


@dataclass(frozen=True)
class Solution:
    """What the solver returned: `status` in its own words, primal x, dual z, slack s. Nothing here is proved yet."""

    status: str
    x: Floats
    z: Floats
    s: Floats


_DENSE_ENTRIES = 100_000
"""Matrices up to this size are kept as arrays; 30 names with turnover and name counts stay below a third of it."""
_SUPERNODAL = 200_000
"""Entries of A from which the supernodal factorisation is the faster one."""
_CONES = {
    Cone.ZERO: clarabel.ZeroConeT,
    Cone.NONNEGATIVE: clarabel.NonnegativeConeT,
    Cone.SECOND_ORDER: clarabel.SecondOrderConeT,
}


def solve(program: ConicProgram, *, tolerance: float | None = None) -> Solution:
    """Solve by Clarabel at a tolerance far below the ones scores use; certificates judge the result.

    By default what is small enough to be polished afterwards stops a little earlier than the rest.
    """
    if tolerance is None:
        tolerance = 1e-9 if isinstance(program.matrix, np.ndarray) else 1e-11
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.presolve_enable = False  # it looks for infinite limits, and there are none
    # The supernodal factorisation pays for large dense blocks only (1.7 times faster at 1,500 names and 252 factors,
    # half as fast at 500 names and 60).
    matrix = _compressed(program.matrix)
    settings.direct_solve_method = "faer" if matrix.nnz > _SUPERNODAL else "qdldl"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-9
    cones = [_CONES[block.cone](block.stop - block.start) for block in program.blocks]
    upper = _upper(program.quadratic)
    result = clarabel.DefaultSolver(upper, program.linear, matrix, program.rhs, cones, settings).solve()
    return Solution(str(result.status), np.asarray(result.x), np.asarray(result.z), np.asarray(result.s))
