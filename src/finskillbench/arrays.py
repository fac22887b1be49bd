"""Array types and the vocabularies that arrays are ordered by, defined once."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Floats = NDArray[Any]
"""Arrays of doubles, or of indices and masks where the text says so."""

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
