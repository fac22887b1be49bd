"""The world of a case: names and their risk, signals that decay, what trading costs, and what is to happen.

Nothing is said here: `words` tells an agent of it, `posterior` what can be inferred from what is told. Signals and
returns are whole numbers, exactly those that an agent sees: the next week's signal is the rounded sum of the decayed
signal and a shock, and the return that follows is made with the signals as stored, so that rounding is part of the
noise and nothing but what is visible moves a return.

What makes a case easy or hard, in one place: the sizes of the world and the tiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers

DECISIONS = 12
WEEKS = 375
"""Weeks of history: with 120 names and 30 signals some seven million characters, two million tokens and more."""
VENDORS = dict.fromkeys("ABCDEFGHIJ", 3)
"""How many signals each vendor sells."""
SOUND = (2, 3)
"""How many of the vendors may have had an edge, each number as likely as the other."""
ENDS = (75, 150, 225, 300)
"""Weeks of the history with whose end an edge may have ended, each as likely as the others."""
HOLDS = 0.4
"""Chance that the edge of a sound vendor holds to this day. It makes most of the uncertainty: regressions on the whole
history believe in edges that are gone, and those on the last years have too little to go by."""
AUDITED = 3
"""Vendors of which the house finds out, on the day of one decision, whether their edge holds."""
AUDIT = (3, 8)
"""First decision (counted from 0) at which that may be, and the first at which it may not."""
TARIFFS = (0.25, 0.3, 3.0, 4.0)
"""What trading may cost after a new tariff of the dealers, as a multiple of before."""
TARIFF = (2, 8)
"""First decision (counted from 0) at which a tariff may change, and the first at which it may not."""
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
SECTOR_TILT, NAME_TILT = 20.0, 2.0
"""Millions by which the first book differs from the benchmark, by sector and by name."""
SECTOR_SHARE = 0.25
"""Share of a signal's variance that the names of a sector have in common: what makes the limit on sectors bite."""
COPY = 0.7
"""Correlation of a resold signal with its original: so high that regressions on all signals hardly tell the two apart,
and so low that it costs to hold the one for the other."""
BACKFILL_WEEKS = (0.50, 0.65)
"""Share of the history that a late vendor filled in afterwards."""
BACKFILL = (0.030, 0.040)
"""How much of the return that followed, in standard deviations, got into what was filled in."""
LEAST_WORTH = 0.020
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
    copies : how many vendors resell signals of others, with noise.
    tightens : what the aversion to risk is multiplied by from the day of the limit on.
    """

    strengths: tuple[float, ...]
    told: int
    copies: int
    tightens: float


TIERS = {
    "easy": Tier((0.026,), 7, copies=3, tightens=1.0),
    "medium": Tier((0.025,), 5, copies=4, tightens=1.0),
    "hard": Tier((0.020, 0.025, 0.030), 3, copies=5, tightens=1.5),
}


STYLES = ("size", "value", "momentum")
SIGNALS = tuple(f"s{number:02d}" for number in range(1, sum(VENDORS.values()) + 1))
VENDOR_OF = np.repeat(np.arange(len(VENDORS)), tuple(VENDORS.values()))
"""(30,) which vendor sells a signal."""


@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """The risk model of weekly returns: `exposures` (n, f), standard deviations of factors (f,) and names (n,)."""

    factors: tuple[str, ...]
    exposures: Floats
    volatility: Floats
    specific: Floats

    def covariance(self) -> Floats:
        """(n, n) covariance of weekly returns."""
        scaled = self.exposures * self.volatility
        return scaled @ scaled.T + np.diag(self.specific**2)


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """What is traded: benchmark weights (n,), holdings (n,) in millions, and what trading costs.

    `impact` (n,) are basis points that a trade of `clip` millions loses on its whole amount; others in proportion.
    """

    benchmark: Floats
    holdings: Floats
    impact: Floats
    clip: float

    def curvature(self) -> Floats:
        """(n,) second derivatives of the cost of a trade of u millions, impact / clip * 1e-4 * u^2."""
        return 2e-4 * self.impact / self.clip


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is known to come: capital (12,) in millions, aversion (12,) per million, the first decision of the limit."""

    capital: Floats
    aversion: Floats
    limit_from: int

    @property
    def flows(self) -> dict[int, float]:
        """Decision to the millions that come in (or go out, below 0) before it."""
        changes = np.diff(self.capital).tolist()
        return {place: change for place, change in enumerate(changes, 1) if change}


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """What is on offer: half-lives (30,) in weeks, whether each is told (30,), the week of its first live value (30,).

    `copied` (30,) is the place of the signal that one is a copy of, or -1.
    """

    half_life: Integers
    told: Booleans
    live_from: Integers
    copied: Integers

    @property
    def decay(self) -> Floats:
        """(30,) share of a signal that is left after a week."""
        return 0.5 ** (1 / self.half_life)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Signals (weeks, n, 30) and the returns (weeks, n) that followed: the history, then the decisions."""

    signals: Integers
    returns: Integers

    @property
    def weeks(self) -> int:
        """Weeks of history."""
        return len(self.returns) - DECISIONS


@dataclass(frozen=True, slots=True, eq=False)
class News:
    """What is said on the day of a decision, and not before.

    Attributes
    ----------
    audit : decision from which on it is known of some vendors whether their edge holds.
    verdicts : vendor to whether it does.
    tariff : decision from which on trading costs another multiple of `impact`, and the multiple; None where it never
        does.
    """

    audit: int
    verdicts: Mapping[int, bool]
    tariff: tuple[int, float] | None

    def known(self, decision: int) -> Mapping[int, bool]:
        """The verdicts that are known at a decision."""
        return self.verdicts if decision >= self.audit else {}


@dataclass(frozen=True, slots=True, eq=False)
class Orderly:
    """What looks like a trap and is none: the controls of a case, each None where there is none of its kind.

    `escrow` is a vendor whose early values were deposited in time, `withdrawn` a flow that was announced and is not
    going to happen: the decision and the millions; `calm` a decision with a notice of a tariff that is not this book's.
    """

    escrow: int | None
    withdrawn: tuple[int, float] | None
    calm: int | None


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One case; `sector_of` (n,) numbers the sectors, `outage` is the first decision whose file is an old one."""

    tier: Tier
    tickers: tuple[str, ...]
    sectors: tuple[str, ...]
    sector_of: Integers
    risk: Risk
    book: Book
    plan: Plan
    signals: Signals
    draws: Draws
    news: News
    outage: int | None
    orderly: Orderly

    def delivered(self, decision: int) -> int:
        """The decision at which the newest signals (and all returns up to them) came that are known at a decision."""
        if self.outage is not None and self.outage <= decision < self.outage + OUTAGE:
            return self.outage - 1
        return decision
