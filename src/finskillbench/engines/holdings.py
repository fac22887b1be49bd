"""What every mandate counts as a holding, and portfolios without positions that are none."""

from __future__ import annotations

import numpy as np

from finskillbench.arrays import Floats

HOLDING_THRESHOLD = 0.001
"""Smallest |weight| that counts as a holding: 10 basis points of NAV."""
HOLDING = f"a holding is a name with |weight| >= {HOLDING_THRESHOLD} (a fraction of NAV)"
"""The definition that every task prints."""


def has_dust(weights: Floats) -> bool:
    """Whether a weight other than 0 is no holding."""
    sizes = np.abs(weights)
    return bool(((sizes > 0) & (sizes < HOLDING_THRESHOLD)).any())


def without_dust(weights: Floats) -> Floats:
    """Return the largest of long-only weights (n,), scaled to 1: the most names that are all holdings.

    In a universe of thousands of names all weights may be less than a holding; then the largest ones are kept.
    """
    order = np.argsort(-weights, kind="stable")
    ranked = weights[order]
    count = int((ranked >= (1 + 1e-9) * HOLDING_THRESHOLD * np.cumsum(ranked)).sum())
    kept = np.zeros_like(weights)
    kept[order[:count]] = ranked[:count] / ranked[:count].sum()
    return kept
