"""Score of the desk suite: the share of the attainable gain that a decision earns."""

from __future__ import annotations

import math

ROUNDING = 1e-9
"""Smaller shares count as 0."""
LEAST_GAIN = 1e-12
"""Smallest gain that can be divided by; a case must offer more."""


def share_of_gain(merit: float, textbook: float, best: float) -> float:
    """Return `raw_share`, clipped to [0, 1]; 0 for a merit that is not finite."""
    earned = raw_share(merit, textbook, best)
    if not math.isfinite(merit):
        return 0.0
    return min(earned, 1.0) if earned > ROUNDING else 0.0


def raw_share(merit: float, textbook: float, best: float) -> float:
    """Return `(merit - textbook) / (best - textbook)`.

    Raises
    ------
    ValueError : the optimum is no better than the textbook answer.
    """
    if not best - textbook > LEAST_GAIN:
        raise ValueError(f"best {best} must exceed textbook {textbook} by more than {LEAST_GAIN:g}")
    return (merit - textbook) / (best - textbook)
