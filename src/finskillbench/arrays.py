"""Array types and the vocabularies that arrays are ordered by, defined once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.integer[Any]]
"""Counts, codes, and positions in another array, of any width."""
Booleans: TypeAlias = NDArray[np.bool_]
"""Masks."""

FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
"""The one factor vocabulary: five factors and momentum, in the order of every array of betas and shocks."""
SECTORS = (
    "Technology",
    "Financial Services",
    "Industrials",
    "Healthcare",
    "Consumer Cyclical",
    "Consumer Defensive",
    "Energy",
    "Real Estate",
    "Basic Materials",
    "Utilities",
    "Communication Services",
)
"""The one sector vocabulary (the paper's)."""
