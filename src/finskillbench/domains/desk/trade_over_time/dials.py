"""What makes a case easy or hard, in one place: the sizes of the world and the tiers."""

from __future__ import annotations

from dataclasses import dataclass

DECISIONS = 12
WEEKS = 375
"""Weeks of history: with 120 names and 30 signals some seven million characters, two million tokens and more."""
VENDORS = dict.fromkeys("ABCDEFGHIJ", 3)
"""How many signals each vendor sells."""
SOUND = (2, 3, 4)
"""How many of the vendors may be sound, each number as likely as the other."""
HALF_LIVES = (1, 2, 4, 8, 16, 32)
"""Weeks. They lie so far apart that the history of one signal says without doubt which one it has."""
SIGNAL_UNIT = 100
"""A signal of 1.23 standard deviations is stored as 123."""
RETURN_UNIT = 100_000
"""A return of 1 % is stored as 1000: tenths of a basis point."""

CAPITAL = 10_000.0
"""Millions on the first day."""
FLOW = (0.015, 0.030)
"""Size of a subscription or redemption, as a share of the capital of the first day."""
AVERSION = 0.02
"""Per million and week."""
IMPACT = 7.0
"""Basis points that a trade of five millions loses in a name of average size; more in smaller ones."""
SECTOR_TILT, NAME_TILT = 30.0, 3.0
"""Millions by which the first book differs from the benchmark, by sector and by name."""
SECTOR_SHARE = 0.25
"""Share of a signal's variance that the names of a sector have in common: what makes the limit on sectors bite."""
COPY = 0.9
"""Correlation of a resold signal with its original."""
BACKFILL_WEEKS = (0.25, 0.40)
"""Share of the history that a late vendor filled in afterwards."""
BACKFILL = (0.020, 0.030)
"""How much of the return that followed, in standard deviations, got into what was filled in."""
LEAST_WORTH = 0.030
"""Least length of the posterior mean of all strengths (coefficients over sqrt(1 - decay)) at the first decision, which
is visible by then: a world in which next to nothing can be known asks nothing, and is drawn again."""
OUTAGE = 3
"""Decisions at which the file of signals is an old one."""
TOLERANCE = 2.0
"""Millions by which the trades of an order may miss the limit of a sector; the dealers settle the rest."""
LARGEST_TRADE = 2_000.0
"""Millions in one name: beyond this an order is refused as a typing error."""


@dataclass(frozen=True, slots=True)
class Tier:
    """The dials of one tier.

    Attributes
    ----------
    strengths : how good a sound vendor's signals may be, equally likely; which one holds is told where there is one.
        An information coefficient has mean 0 and standard deviation `strength * sqrt(1 - decay)`, decay being what is
        left of the signal after a week: fast signals are stronger, else nobody would trade them.
    told : of how many vendors the half-lives are told.
    copies : whether one vendor resells signals of another.
    tightens : what the aversion to risk is multiplied by from the day of the limit on.
    """

    strengths: tuple[float, ...]
    told: int
    copies: bool
    tightens: float


TIERS = {
    "easy": Tier((0.021,), 7, copies=False, tightens=1.0),
    "medium": Tier((0.019,), 5, copies=True, tightens=1.0),
    "hard": Tier((0.016, 0.020, 0.0255), 3, copies=True, tightens=1.5),
}
