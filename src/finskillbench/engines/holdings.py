"""Definition of a holding, and removal of smaller positions."""

from __future__ import annotations

import numpy as np

from finskillbench.arrays import Floats

HOLDING_THRESHOLD = 0.001
"""Minimum |weight| of a holding: 10 basis points of NAV."""
HOLDING = f"a holding is a name with |weight| >= {HOLDING_THRESHOLD} (a fraction of NAV)"
"""Definition shown in every task."""


def has_dust(weights: Floats) -> bool:
    """Test for a non-zero weight below the threshold."""
    sizes = np.abs(weights)
    return bool(((sizes > 0) & (sizes < HOLDING_THRESHOLD)).any())


def without_dust(weights: Floats) -> Floats:
    """Keep the most of long-only weights (n,) such that all are holdings (else the largest), scaled to 1."""
    order = np.argsort(-weights, kind="stable")
    ranked = weights[order]
    count = int((ranked >= (1 + 1e-9) * HOLDING_THRESHOLD * np.cumsum(ranked)).sum())
    kept = np.zeros_like(weights)
    kept[order[:count]] = ranked[:count] / ranked[:count].sum()
    return kept
