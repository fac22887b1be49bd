"""Array types and the fixed orders of factors and sectors."""

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
"""Factor names: five factors and momentum, in the order of all arrays of betas and shocks."""
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
"""Sector names of the paper."""
