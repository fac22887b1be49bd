"""World of a trading case: sizes, tiers, risk, decaying signals, trading costs and planned changes.

Signals and returns are whole numbers, as stored. Next week's signal is the rounded sum of the decayed signal and a
shock; returns follow from stored signals, so rounding is part of the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers

DECISIONS = 12
WEEKS = 375
"""Weeks of history; with 120 names and 30 signals more than two million tokens."""
VENDORS = dict.fromkeys("ABCDEFGHIJ", 3)
"""Number of signals of each vendor."""
SOUND = (2, 3)
"""Possible numbers of vendors with an edge, equally likely."""
ENDS = (75, 150, 225, 300)
"""Possible last weeks of an edge that ended, equally likely."""
HOLDS = 0.4
"""Probability that a sound vendor's edge holds; it makes both full-sample and recent regressions unreliable."""
AUDITED = 3
"""Number of vendors whose edges are examined during the episode."""
AUDIT = (3, 8)
"""Range of the decision (from 0) at which findings are published, end excluded."""
TARIFFS = (0.25, 0.3, 3.0, 4.0)
"""Possible multiples of trading costs after a tariff change."""
TARIFF = (2, 8)
"""Range of the decision (from 0) at which a tariff may change, end excluded."""
HALF_LIVES = (1, 2, 4, 8, 16, 32)
"""Weeks; so far apart that a signal's history identifies its half-life."""
SIGNAL_UNIT = 100
"""A signal of 1.23 standard deviations is stored as 123."""
RETURN_UNIT = 100_000
"""A return of 1 % is stored as 1000."""
FACTOR_UNIT = 1_000_000
"""A factor return of 1 % is stored as 10,000."""

CAPITAL = 10_000.0
"""Millions on the first day."""
FLOW = (0.015, 0.030)
"""Size of a flow as a share of the first day's capital."""
AVERSION = 0.02
"""Per million and week."""
IMPACT = 7.0
"""Basis points that a trade of five millions loses in a name of average size."""
SECTOR_TILT, NAME_TILT = 20.0, 2.0
"""Deviations of the first book from the benchmark in millions, by sector and by name."""
SECTOR_SHARE = 0.25
"""Share of a signal's variance common to the names of a sector; it makes the sector limit bind."""
COPY = 0.7
"""Correlation of a resold signal with its original: hard to separate by regression, yet costly to confuse."""
BACKFILL_WEEKS = (0.50, 0.65)
"""Range of a late vendor's backfilled share of the history."""
BACKFILL = (0.030, 0.040)
"""Weight of the returns that followed, in standard deviations, in backfilled values."""
LEAST_WORTH = 0.020
"""Least norm of the posterior mean of coefficients over sqrt(1 - decay) at the first decision.

Worlds in which almost nothing can be known are drawn again.
"""
OUTAGE = 3
"""Number of decisions with an old signal file."""
TOLERANCE = 2.0
"""Millions by which an order may miss a sector limit; dealers settle the rest."""
LARGEST_TRADE = 2_000.0
"""Millions in one name; larger orders are rejected as typing errors."""


@dataclass(frozen=True, slots=True)
class TradingTier:
    """Difficulty settings of a tier.

    `strengths` are equally likely; a coefficient has mean 0 and standard deviation `strength * sqrt(1 - decay)`.
    `disclosed` is the number of vendors with disclosed half-lives, `tightens` the risk aversion's multiple from the
    limit on.
    """

    strengths: tuple[float, ...]
    disclosed: int
    copies: int
    tightens: float


TIERS = {
    "easy": TradingTier((0.026,), 7, copies=3, tightens=1.0),
    "medium": TradingTier((0.025,), 5, copies=4, tightens=1.0),
    "hard": TradingTier((0.020, 0.025, 0.030), 3, copies=5, tightens=1.5),
}


STYLES = ("size", "value", "momentum")
SIGNALS = tuple(f"s{number:02d}" for number in range(1, sum(VENDORS.values()) + 1))
VENDOR_OF = np.repeat(np.arange(len(VENDORS)), tuple(VENDORS.values()))
"""(30,) vendor index of each signal."""


@dataclass(frozen=True, slots=True, eq=False)
class WeeklyRiskModel:
    """Risk model of weekly returns: `exposures` (n, f), standard deviations of factors (f,) and names (n,)."""

    factors: tuple[str, ...]
    exposures: Floats
    volatility: Floats
    specific: Floats

    def covariance(self) -> Floats:
        scaled = self.exposures * self.volatility
        return scaled @ scaled.T + np.diag(self.specific**2)


@dataclass(frozen=True, slots=True, eq=False)
class TradingBook:
    """Benchmark weights (n,), holdings (n,) in millions, and trading costs.

    A trade of `clip` millions loses `impact` (n,) basis points of its amount; other sizes in proportion.
    """

    benchmark: Floats
    holdings: Floats
    impact: Floats
    clip: float

    def curvature(self) -> Floats:
        """Return (n,) second derivatives of the cost of a trade of u millions, impact / clip * 1e-4 * u^2."""
        return 2e-4 * self.impact / self.clip


@dataclass(frozen=True, slots=True, eq=False)
class TradingPlan:
    """Planned capital (12,) in millions, aversion (12,) per million, and the first decision with the limit."""

    capital: Floats
    aversion: Floats
    limit_from: int

    @property
    def flows(self) -> dict[int, float]:
        """Millions of each flow by decision, negative for redemptions."""
        changes = np.diff(self.capital).tolist()
        return {place: change for place, change in enumerate(changes, 1) if change}


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """Offered signals, (30,) each: half-lives in weeks, disclosure, first live week, and original or -1."""

    half_life: Integers
    disclosed: Booleans
    live_from: Integers
    copied: Integers

    @property
    def decay(self) -> Floats:
        """(30,) share of a signal left after a week."""
        return 0.5 ** (1 / self.half_life)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Signals (weeks, n, 30) and the returns (weeks, n) that followed: the history, then the decisions."""

    signals: Integers
    returns: Integers

    @property
    def weeks(self) -> int:
        return len(self.returns) - DECISIONS


@dataclass(frozen=True, slots=True, eq=False)
class News:
    """News published at a decision.

    `verdicts` maps vendors to whether their edges hold, from decision `audit` on. `tariff` is the first decision with
    other costs and their multiple of `impact`, None if unchanged.
    """

    audit: int
    verdicts: Mapping[int, bool]
    tariff: tuple[int, float] | None

    def known(self, decision: int) -> Mapping[int, bool]:
        """Return the findings known at a decision."""
        return self.verdicts if decision >= self.audit else {}


@dataclass(frozen=True, slots=True, eq=False)
class TradingControls:
    """Controls that only look like traps, each None if absent.

    `escrow` is a vendor with deposited history, `withdrawn` the decision and millions of a cancelled flow, `calm` the
    decision of a notice about another tariff.
    """

    escrow: int | None
    withdrawn: tuple[int, float] | None
    calm: int | None


@dataclass(frozen=True, slots=True, eq=False)
class TradingWorld:
    """One case; `sector_of` (n,) are sector indices, `outage` is the first decision with an old file."""

    tier: TradingTier
    tickers: tuple[str, ...]
    sectors: tuple[str, ...]
    sector_of: Integers
    risk: WeeklyRiskModel
    book: TradingBook
    plan: TradingPlan
    signals: Signals
    draws: Draws
    news: News
    outage: int | None
    controls: TradingControls

    def delivered(self, decision: int) -> int:
        """Return the decision of the newest signals and returns known at a decision."""
        if self.outage is not None and self.outage <= decision < self.outage + OUTAGE:
            return self.outage - 1
        return decision
