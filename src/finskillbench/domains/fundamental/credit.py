"""How a number of an answer is judged: by its relative error, within what filings round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from finskillbench.scoring.measures import closeness

Unit = Literal["usd", "usd_per_share", "ratio", "score", "percent"]

FULL, ZERO = 0.001, 0.05
"""Relative errors up to which a number earns everything, and from which on it earns nothing."""

_FLOORS: Mapping[Unit, tuple[float, float]] = {
    "usd": (0.5, 5.0),
    "usd_per_share": (0.005, 0.02),
    "ratio": (5e-5, 5e-4),
    "score": (5e-4, 5e-3),
    "percent": (0.005, 0.05),
}
"""The same as absolute errors per unit, for numbers however small: half a dollar, half a cent, four decimals of a
ratio, three of a score, two of a percentage."""


def credit(given: float | None, expected: float, *, unit: Unit) -> float:
    """1 up to a relative error of 0.1 %, falling linearly to 0 at 5 %; 0 where absent.

    The errors are floored by the unit, so that what is rounded as filings round it is right; but who misses by all of a
    figure, as by giving 0 for it, has it right only where it is no more than that rounding.
    """
    full_floor, zero_floor = _FLOORS[unit]
    if expected:
        zero_floor = min(zero_floor, max(abs(expected), 2 * full_floor))
    return closeness(given, expected, full=FULL, full_floor=full_floor, zero=ZERO, zero_floor=zero_floor)


def left_null(given: Mapping[str, Any], name: str) -> bool:
    """Whether an answer says, as it must, that a figure cannot be determined: its key is there and null."""
    return name in given and given[name] is None
