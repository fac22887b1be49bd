"""What the desk's scores are made of: the share of the attainable gain that a decision earns."""

from __future__ import annotations

import math

ROUNDING = 1e-9
"""A share as small as this is nothing, however it was rounded."""
LEAST_GAIN = 1e-12
"""A gain as small as this cannot be divided by: a case that offers no more is none."""


def share(merit: float, textbook: float, best: float) -> float:
    """`(merit - textbook) / (best - textbook)`, at least 0 and at most 1.

    Parameters
    ----------
    merit, textbook, best : expected merits of the answer, of the textbook's answer and of the proved optimum, in one
        unit. A merit that is not finite earns 0; one above the optimum by rounding earns 1.

    Raises
    ------
    ValueError : the optimum is no better than the textbook's answer.
    """
    if not best - textbook > LEAST_GAIN:
        raise ValueError(f"the optimum's merit {best} is not above the textbook's {textbook}")
    if not math.isfinite(merit):
        return 0.0
    earned = (merit - textbook) / (best - textbook)
    return min(earned, 1.0) if earned > ROUNDING else 0.0
