"""What makes a case of `allocate` hard, in one place: sizes, strengths of effects, shares of nothing, limits and costs.

All returns, volatilities and costs are of one quarter, as decimals.
"""

from __future__ import annotations

from dataclasses import dataclass

QUARTERS = 44
HALVES = QUARTERS // 2
"""Half-years of two quarters; regimes change at their beginning."""
GROUPS = 12
GROUP_SIZE = 10
NAMES = GROUPS * GROUP_SIZE
VENDORS = 30
PER_VENDOR = 5
SIGNALS = VENDORS * PER_VENDOR
ANALYSTS = 40
SOURCES = SIGNALS + ANALYSTS
FACTORS = ("market", "size", "value", "quality", "momentum")

UNIT_FACTOR = 10
"""A column in the wrong unit is so many times too large."""
RETURN_UNIT = 1e-4
"""Returns are stored as integers of one basis point."""


@dataclass(frozen=True, slots=True)
class Tier:
    """The dials that differ by tier.

    Attributes
    ----------
    nothing : chance that no source moves an industry in a regime.
    strength : mean of a signal's effect, return per quarter for one score.
    change : chance that a new regime begins with a half-year.
    copies : how many of the signals are another source with noise.
    places : how many places a trap could be, at most.
    """

    nothing: float
    strength: float
    change: float
    copies: int
    places: int


TIERS = {
    "easy": Tier(nothing=0.05, strength=0.024, change=0.12, copies=40, places=3),
    "medium": Tier(nothing=0.08, strength=0.024, change=0.14, copies=50, places=3),
    "hard": Tier(nothing=0.10, strength=0.024, change=0.16, copies=60, places=3),
}

ANALYST_SHARE = 0.4
"""Chance that a live effect is an analyst's."""
ANALYST_MEAN, DEVIATION = 0.9, 0.25
"""Mean of an analyst's effect, and standard deviation of any effect, in units of the tier's strength.

Effects are of one size, give or take a quarter: where sizes vary freely, the few large ones have t-values of 6 to 13,
carry the score, and are found by whoever looks for the largest t.
"""

RISK_AVERSION = 4.0
MAX_WEIGHT = 0.035
BAND = 0.03
TURNOVER = 0.30
PENALTY = 0.2
"""Utility charged for each unit of NAV by which a limit is broken."""
LEAST_GAIN = 0.001
"""Least attainable gain over the textbook answer that a case must offer."""
FIRST_COST, PLANTED_COST = 0.3, 0.15
"""Shares of the attainable gain that a mistake at the first place, and at a further one, must cost when planted."""
LEAST_COST = 0.10
"""Least share of the attainable gain that a trap must cost whoever falls for it alone and errs nowhere else."""
