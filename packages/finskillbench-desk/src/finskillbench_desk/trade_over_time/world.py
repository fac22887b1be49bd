"""The world of a case: names and their risk, signals that decay, what trading costs, and what is to happen.

Nothing is said here: `words` tells an agent of it, `posterior` what can be inferred from what is told. Signals and
returns are whole numbers, exactly those that an agent sees: the next week's signal is the rounded sum of the decayed
signal and a shock, and the return that follows is made with the signals as stored, so that rounding is part of the
noise and nothing but what is visible moves a return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.trade_over_time.dials import DECISIONS, OUTAGE, VENDORS, Tier

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
