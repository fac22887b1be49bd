"""How a number of an answer is judged: by its relative error, within what filings round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from finskillbench.scoring.measures import closeness

Unit = Literal["usd", "usd_per_share", "ratio", "score", "percent"]

_FLOORS: Mapping[Unit, tuple[float, float]] = {
    "usd": (0.5, 5.0),
    "usd_per_share": (0.005, 0.01),
    "ratio": (1e-6, 1e-5),
    "score": (5e-4, 5e-3),
    "percent": (0.005, 0.05),
}
"""Per unit the absolute errors up to which a number earns everything, and from which on nothing, however small it is:
half a dollar, half a cent, six decimals, three decimals, two decimals of a percentage."""


def credit(given: float | None, expected: float, *, unit: Unit, zero: float = 0.01) -> float:
    """1 within a tenth of the relative error `zero`, falling linearly to 0 at it; 0 where absent.

    The errors are floored by the unit, so that what is rounded as filings round it is right.
    """
    full_floor, zero_floor = _FLOORS[unit]
    return closeness(given, expected, full=zero / 10, full_floor=full_floor, zero=zero, zero_floor=zero_floor)
