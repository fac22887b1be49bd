"""Conic programs over weights, built block by block and solved by Clarabel.

    minimise ½ x'Px + q'x + c   subject to   A x + s = b,   s in K

x starts with the n weights; auxiliary variables (factor exposures, absolute trades, holding indicators) follow. Each
variable has an implied bound |x_j| <= X_j, which turns approximate dual solutions into proofs (`certificate`).
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

clarabel: Any = _clarabel  # native module without types


class Cone(StrEnum):
    """Supported cones: equality, nonnegative slack, and ||s[1:]|| <= s[0]."""

    ZERO = "zero"
    NONNEGATIVE = "nonnegative"
    SECOND_ORDER = "second_order"


@dataclass(frozen=True, slots=True)
class ConstraintBlock:
    """A named range of rows of A in one cone."""

    label: str
    cone: Cone
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)


class SparseMatrix(Protocol):
    """Interface of SciPy's untyped compressed-column matrices."""

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
sparse: Any = _sparse  # SciPy's sparse matrices are untyped


@dataclass(frozen=True)
class ConicProgram:
    """The program in standard form; `bounds` (N,) with |x_j| <= bounds_j on the feasible set.

    Small programs have dense P and A: at 30 names, sparse bookkeeping took a third of the time.
    """

    quadratic: Matrix
    linear: Floats
    matrix: Matrix
    rhs: Floats
    blocks: tuple[ConstraintBlock, ...]
    bounds: Floats
    constant: float

    def objective(self, x: Floats) -> float:
        """Return ½ x'Px + q'x + c."""
        return float(0.5 * x @ (self.quadratic @ x) + self.linear @ x) + self.constant


Coefficients = tuple[slice, Floats] | tuple[slice, Floats, int]
"""Variables, coefficients M (one-dimensional: a diagonal), and optionally M's first row within the block."""

Piece = tuple[int, int, Floats]
"""Row and column of an added matrix, or of an added diagonal."""


@dataclass
class ProgramBuilder:
    """Collects variables, objective and constraint blocks; `build` returns the standard form."""

    size: int = 0
    constant: float = 0.0
    _bounds: list[Floats] = field(default_factory=list)
    _linear: list[tuple[slice, Floats]] = field(default_factory=list)
    _quadratic: list[Piece] = field(default_factory=list)
    _entries: list[Piece] = field(default_factory=list)
    _rhs: list[Floats] = field(default_factory=list)
    _blocks: list[ConstraintBlock] = field(default_factory=list)
    _rows: int = 0

    def variables(self, bounds: Floats) -> slice:
        """Add len(bounds) variables with |x_j| <= bounds_j; return their positions."""
        place = slice(self.size, self.size + len(bounds))
        self._bounds.append(bounds)
        self.size = place.stop
        return place

    def add_linear(self, place: slice, coefficients: Floats) -> None:
        self._linear.append((place, coefficients))

    def add_quadratic(self, place: slice, hessian: Floats) -> None:
        """Add ½ x'Hx; a one-dimensional `hessian` is a diagonal."""
        self._quadratic.append((place.start, place.start, hessian))

    def constrain(self, label: str, cone: Cone, rhs: Floats, *coefficients: Coefficients) -> None:
        """Add rows `rhs − Σ M x[place]` in `cone`; see `Coefficients`."""
        count = len(rhs)
        for place, matrix, *first in coefficients:
            self._entries.append((self._rows + (first[0] if first else 0), place.start, matrix))
        self._rhs.append(rhs)
        self._blocks.append(ConstraintBlock(label, cone, self._rows, self._rows + count))
        self._rows += count

    def build(self) -> ConicProgram:
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
    """Return the matrix as a dense array."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def subprogram(program: ConicProgram, parts: Sequence[tuple[str, Cone, Integers]]) -> tuple[ConicProgram, Integers]:
    """Return the program of selected rows, each part in its cone, and the row order."""
    order = np.concatenate([rows for _, _, rows in parts])
    stops = np.cumsum([len(rows) for _, _, rows in parts]).tolist()
    starts = [0, *stops[:-1]]
    blocks = tuple(
        ConstraintBlock(label, cone, a, b) for (label, cone, _), a, b in zip(parts, starts, stops, strict=True)
    )
    return replace(program, matrix=program.matrix[order], rhs=program.rhs[order], blocks=blocks), order


class _Columns(NamedTuple):
    """Compressed columns as lists, which Clarabel reads over twice as fast as a SciPy matrix."""

    data: list[float]
    indices: list[int]
    indptr: list[int]
    shape: tuple[int, int]
    nnz: int
    has_sorted_indices: bool = True
    has_canonical_format: bool = True


def _compressed(matrix: Matrix) -> Any:
    if not isinstance(matrix, np.ndarray):
        return matrix
    rows, columns = len(matrix), len(matrix.T)
    values = matrix.ravel(order="F")
    places = np.flatnonzero(values)
    starts = np.searchsorted(places, np.arange(columns + 1) * rows)
    indices = places % rows
    return _Columns(values[places].tolist(), indices.tolist(), starts.tolist(), (rows, columns), len(places))


def _upper(matrix: Matrix) -> Any:
    """Upper triangle in compressed columns; empty for linear programs."""
    if not isinstance(matrix, np.ndarray):
        return sparse.csc_matrix(sparse.triu(matrix))
    return _compressed(np.triu(matrix)) if matrix.any() else _Columns([], [], [0] * (len(matrix) + 1), matrix.shape, 0)


@dataclass(frozen=True)
class Solution:
    """Unproved solver output: Clarabel's `status`, primal x, dual z, slack s."""

    status: str
    x: Floats
    z: Floats
    s: Floats


_DENSE_ENTRIES = 100_000
"""Largest dense matrix; 30 names with turnover and name counts use under a third."""
_SUPERNODAL = 200_000
"""Entries of A from which supernodal factorisation is faster."""
_CONES = {
    Cone.ZERO: clarabel.ZeroConeT,
    Cone.NONNEGATIVE: clarabel.NonnegativeConeT,
    Cone.SECOND_ORDER: clarabel.SecondOrderConeT,
}


def solve_conic(program: ConicProgram, *, tolerance: float | None = None) -> Solution:
    """Solve with Clarabel, less tightly for small programs, which are polished; certificates judge the result."""
    if tolerance is None:
        tolerance = 1e-9 if isinstance(program.matrix, np.ndarray) else 1e-11
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.presolve_enable = False  # it only searches for infinite limits
    # Supernodal factorisation pays for large dense blocks only: 1.7 times faster at 1,500 names and 252 factors, half
    # as fast
    # at 500 names and 60.
    matrix = _compressed(program.matrix)
    settings.direct_solve_method = "faer" if matrix.nnz > _SUPERNODAL else "qdldl"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-9
    cones = [_CONES[block.cone](block.stop - block.start) for block in program.blocks]
    upper = _upper(program.quadratic)
    result = clarabel.DefaultSolver(upper, program.linear, matrix, program.rhs, cones, settings).solve()
    return Solution(str(result.status), np.asarray(result.x), np.asarray(result.z), np.asarray(result.s))
