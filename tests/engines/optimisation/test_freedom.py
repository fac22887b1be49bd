"""The basis argument finds the freedom that a dense decomposition finds, and the directions it gives are free."""

import numpy as np
import pytest
from scipy import sparse
from tests.sampling import examples

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.freedom import moving_directions


def _free_by_svd(rows: Floats, weights: slice) -> bool:
    """Whether some direction of the null space moves a weight, by the singular vectors of the dense matrix."""
    _, singular, right = np.linalg.svd(rows, full_matrices=True)
    rank = int((singular > 1e-9 * max(rows.shape) * singular.max(initial=1.0)).sum())
    return bool(np.abs(right[rank:, weights]).max(initial=0.0) > 1e-9)


def _program(rng: np.random.Generator, names: int) -> Floats:
    """Rows as a tight face has them: bounds, trades beside their weights, coupling rows, some of them dependent."""
    size = 2 * names
    rows: list[Floats] = []
    for name in range(names):
        if rng.random() < 0.5:
            rows.append(np.eye(size)[name] * rng.choice([1.0, -1.0]))
        for sign in (1.0, -1.0):
            if rng.random() < 0.4:
                row = np.zeros(size)
                row[name], row[names + name] = sign, -1.0
                rows.append(row)
    for _ in range(int(rng.integers(0, names // 2 + 2))):
        row = np.zeros(size)
        members = rng.random(names) < 0.6
        row[:names][members] = np.round(rng.standard_normal(int(members.sum())), 1)
        rows.append(row * 10.0 ** rng.integers(-3, 3))
    rows.append(np.concatenate([np.ones(names), np.zeros(names)]))
    if rng.random() < 0.5:  # a row that follows from two others
        first, second = rng.integers(len(rows), size=2)
        rows.append(rows[first] - 2.0 * rows[second])
    return np.array(rows)


@pytest.mark.parametrize("seed", range(examples(150)))
def test_the_basis_agrees_with_the_singular_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = int(rng.integers(3, 12))
    rows, weights = _program(rng, names), slice(0, names)
    directions = moving_directions(sparse.csc_matrix(rows), weights, 1000)
    assert (directions.shape[1] > 0) is _free_by_svd(rows, weights)
    scale = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    assert np.abs((rows / np.where(scale > 0, scale, 1.0)) @ directions).max(initial=0.0) < 1e-8
    assert np.abs(directions[weights]).max(axis=0, initial=1.0).min(initial=1.0) > 1e-9


@pytest.mark.parametrize(
    ("rows", "moves"),
    [
        ([[1, 1, 0, 0], [1, -1, 0, 0]], False),
        ([[1, 1, 0, 0]], True),
        # The second row repeats the first in other units: the pair stays free.
        ([[1, 1, 0, 0], [1e-6, 1e-6, 0, 0]], True),
        # Weights that trades pin from both sides do not move, however the other variables do.
        ([[1, 0, -1, 0], [-1, 0, -1, 0], [0, 1, 0, -1], [0, -1, 0, -1]], False),
        # A circle of pairs that contradicts itself pins all in it, one that does not leaves it free.
        ([[1, -1, 0, 0], [0, 1, -2, 0], [-1, 0, 2.1, 0]], False),
        ([[1, -1, 0, 0], [0, 1, -2, 0], [-1, 0, 2, 0]], True),
        # What is free beside the weights alone is no second portfolio.
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], False),
        # Two names behind one coupling row that differs from the budget, and from it only by rounding.
        ([[1, 1, 0, 0], [1, 1.001, 0, 0]], False),
        ([[1, 1, 0, 0], [1, 1 + 1e-14, 0, 0]], True),
    ],
)
def test_planted_cases(rows: list[list[float]], *, moves: bool) -> None:
    directions = moving_directions(sparse.csr_matrix(np.array(rows, dtype=float)), slice(0, 2), 10)
    assert (directions.shape[1] > 0) is moves
    assert directions.shape[0] == 4


def test_no_rows_leave_everything_free() -> None:
    assert moving_directions(sparse.csr_matrix((0, 3)), slice(0, 3), 10).shape == (3, 3)
