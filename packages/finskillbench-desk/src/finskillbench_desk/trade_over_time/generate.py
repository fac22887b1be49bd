"""Drawing a world: see `world` for what it consists of and `dials` for how hard it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.trade_over_time import world
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    SIGNALS,
    STYLES,
    VENDOR_OF,
    VENDORS,
    WEEKS,
    Book,
    Draws,
    News,
    Orderly,
    Plan,
    Risk,
    Signals,
    Tier,
    World,
)

_MARKET, _SECTOR, _STYLE = 0.020, 0.008, 0.007
"""Weekly standard deviations of the factors."""
_SPECIFIC = 0.025, 0.048
_CLIPS = 1.0, 0.4, 0.5
"""Sizes of a trade, in millions, that the table of impacts may be stated for; the first is what one takes it for."""


def draw(tickers: Sequence[str], sector_of: Sequence[str], tier: Tier, rng: np.random.Generator) -> World:
    """A world of a tier for named companies and their sectors."""
    sectors = tuple(sorted(set(sector_of)))
    places = np.array([sectors.index(sector) for sector in sector_of])
    risk = _risk(places, sectors, rng)
    book = _book(places, rng)
    plan = _plan(tier, rng)
    vendors = rng.permutation(len(VENDORS))
    late = rng.random() < 2 / 3
    signals = _signals(tier, vendors, late, rng)
    outage = int(rng.integers(2, DECISIONS - world.OUTAGE)) if rng.random() < 2 / 3 else None
    edges = _edges(tier, signals.decay, rng)
    news, calm = _news(edges, rng)
    free = [place for place in range(2, DECISIONS) if place not in plan.flows]
    withdrawn = (int(rng.choice(free)), _flow(rng)) if rng.random() < 1 / 3 else None
    orderly = Orderly(None if late else int(vendors[0]), withdrawn, calm)
    draws = _draws(risk, signals, edges, places, rng)
    return World(tier, tuple(tickers), sectors, places, risk, book, plan, signals, draws, news, outage, orderly)


def _risk(places: Integers, sectors: Sequence[str], rng: np.random.Generator) -> Risk:
    n = len(places)
    styles = rng.normal(size=(n, len(STYLES))).round(2)
    exposures = np.column_stack([rng.normal(1.0, 0.2, n).round(2), np.eye(len(sectors))[places], styles])
    levels = np.array([_MARKET, *[_SECTOR] * len(sectors), *[_STYLE] * len(STYLES)])
    volatility = (levels * rng.uniform(0.85, 1.15, len(levels))).round(5)
    return Risk(("market", *sectors, *STYLES), exposures, volatility, rng.uniform(*_SPECIFIC, n).round(5))


def _book(places: Integers, rng: np.random.Generator) -> Book:
    n, members = len(places), np.bincount(places)
    size = np.exp(rng.normal(0.0, 0.7, n))
    benchmark = (size / size.sum()).round(5)
    benchmark[benchmark.argmax()] += 1 - benchmark.sum()
    benchmark = benchmark.round(5)
    tilt = rng.normal(0.0, world.SECTOR_TILT, len(members))
    active = (tilt / members)[places] + rng.normal(0.0, world.NAME_TILT, n)
    holdings = (world.CAPITAL * benchmark + active - active.mean()).round(1)
    clip = float(rng.choice(_CLIPS))
    impact = world.IMPACT * clip / 5 * np.sqrt(1 / n / benchmark) * np.exp(rng.normal(0.0, 0.25, n))
    return Book(benchmark, holdings, impact.round(4), clip)


def _flow(rng: np.random.Generator) -> float:
    """Millions of a flow; redemptions are the more frequent."""
    sign = rng.choice([-1.0, -1.0, 1.0])
    return float(round(sign * rng.uniform(*world.FLOW) * world.CAPITAL, -1))


def _plan(tier: Tier, rng: np.random.Generator) -> Plan:
    limit_from = int(rng.integers(5, 8))
    capital = np.full(DECISIONS, world.CAPITAL)
    for first, last in ((2, limit_from), (limit_from + 1, DECISIONS - 1)):
        capital[int(rng.integers(first, last)) :] += _flow(rng)
    aversion = np.full(DECISIONS, world.AVERSION)
    aversion[limit_from:] *= tier.tightens
    return Plan(capital, aversion, limit_from)


def _signals(tier: Tier, vendors: Integers, late: bool, rng: np.random.Generator) -> Signals:
    """What the vendors sell: the first came late, the last resell what others make."""
    half_life = rng.choice(world.HALF_LIVES, size=len(SIGNALS))
    copied = np.full(len(SIGNALS), -1)
    for seller in range(tier.copies):
        at = np.flatnonzero(vendors[-1 - seller] == VENDOR_OF)
        copied[at] = np.flatnonzero(vendors[1 + seller] == VENDOR_OF)
        half_life[at] = half_life[copied[at]]
    live_from = np.zeros(len(SIGNALS), dtype=np.int64)
    if late:
        first, last = (round(share * WEEKS) for share in world.BACKFILL_WEEKS)
        live_from[vendors[0] == VENDOR_OF] = int(rng.integers(first, last))
    told = np.isin(VENDOR_OF, rng.permutation(len(VENDORS))[: tier.told])
    return Signals(half_life, told, live_from, copied)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The truth that nobody sees: `worth` (30,) of a signal of one while an edge holds, in units of the name's specific
    risk; `holds` (10,) whether a vendor's edge holds to this day, `end` (10,) the week with whose end it ended else.
    """

    worth: Floats
    holds: Booleans
    end: Integers

    def alive(self, weeks: int) -> Booleans:
        """(weeks, 30) whether the edge of a signal's vendor holds in a week, counted from 0."""
        return (self.holds | (np.arange(weeks)[:, None] < self.end))[:, VENDOR_OF]

    @property
    def today(self) -> Floats:
        """(30,) what signals are worth at the decisions."""
        return self.worth * self.holds[VENDOR_OF]


def _edges(tier: Tier, decay: Floats, rng: np.random.Generator) -> Edges:
    sound = rng.permutation(len(VENDORS))[: rng.choice(world.SOUND)]
    deviation = float(rng.choice(tier.strengths)) * np.sqrt(1 - decay)
    worth = rng.normal(0.0, deviation) * np.isin(VENDOR_OF, sound)
    return Edges(worth, rng.random(len(VENDORS)) < world.HOLDS, rng.choice(world.ENDS, len(VENDORS)))


def _news(edges: Edges, rng: np.random.Generator) -> tuple[News, int | None]:
    """What is said on the day, and where a tariff is spoken of that is not this book's."""
    audited = sorted(rng.permutation(len(VENDORS))[: world.AUDITED].tolist())
    verdicts = {vendor: bool(edges.today[vendor == VENDOR_OF].any()) for vendor in audited}
    audit, day = int(rng.integers(*world.AUDIT)), int(rng.integers(*world.TARIFF))
    changes = rng.random() < 2 / 3
    tariff = (day, float(rng.choice(world.TARIFFS))) if changes else None
    return News(audit, verdicts, tariff), None if changes else day


def _draws(risk: Risk, signals: Signals, edges: Edges, places: Integers, rng: np.random.Generator) -> Draws:
    weeks, n, count = WEEKS + DECISIONS, len(places), len(SIGNALS)
    common = rng.standard_normal((weeks, len(risk.factors), count), dtype=np.float32)[:, places]
    shocks = rng.standard_normal((weeks, n, count), dtype=np.float32)
    shocks *= np.sqrt(1 - world.SECTOR_SHARE)
    shocks += np.sqrt(world.SECTOR_SHARE) * common
    copies = np.flatnonzero(signals.copied >= 0)
    shocks[:, :, copies] *= np.sqrt(1 - world.COPY**2)
    shocks[:, :, copies] += world.COPY * shocks[:, :, signals.copied[copies]]
    decay = signals.decay
    shocks[1:] *= np.sqrt(1 - decay**2)
    stored = np.empty((weeks, n, count), dtype=np.int16)
    before = np.zeros((n, count))
    for week in range(weeks):
        before = np.rint(decay * before + world.SIGNAL_UNIT * shocks[week])
        stored[week] = before
    factors = rng.standard_normal((weeks, len(risk.factors))) * risk.volatility
    alive = edges.alive(weeks) & (np.arange(weeks)[:, None] >= signals.live_from)
    worth = edges.worth * alive / world.SIGNAL_UNIT
    specific = rng.standard_normal((weeks, n)) + np.matmul(stored, worth[:, :, None])[:, :, 0]
    moves = factors @ risk.exposures.T + specific * risk.specific
    returns = np.rint(world.RETURN_UNIT * moves).clip(-32_000, 32_000).astype(np.int16)
    _backfill(stored, returns, signals, risk, places, rng)
    return Draws(stored, returns)


def _backfill(
    stored: Integers, returns: Integers, signals: Signals, risk: Risk, places: Integers, rng: np.random.Generator
) -> None:
    """Write into what a vendor filled in afterwards what it knew by then: the returns that had followed.

    Without that it is a series that had no part in returns. What is added is a function of returns, so that given the
    returns nothing of this says anything of the coefficients.
    """
    late = np.flatnonzero(signals.live_from)
    if not len(late):
        return
    weeks = int(signals.live_from[late[0]])
    members = np.bincount(places)
    known = returns[:weeks] / world.RETURN_UNIT
    relative = (known - (known @ np.eye(len(members))[places] / members)[:, places]) / risk.specific
    share = rng.uniform(*world.BACKFILL, len(late)) * rng.choice([-1.0, 1.0], len(late))
    hints = np.rint(world.SIGNAL_UNIT * relative[:, :, None] * share)
    stored[:weeks, :, late] += hints.astype(stored.dtype)
