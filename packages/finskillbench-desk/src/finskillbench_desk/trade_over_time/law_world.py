"""Drawing of trading cases under a law: signals, backfill, copies, returns and costs on the books of `generate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.trade_over_time.generate import draw_trading_world
from finskillbench_desk.trade_over_time.laws import Law, draw_effects, features, places
from finskillbench_desk.trade_over_time.world import (
    BACKFILL_WEEKS,
    DECISIONS,
    RETURN_UNIT,
    SECTOR_SHARE,
    SIGNAL_UNIT,
    SIGNALS,
    TIERS,
    VENDOR_OF,
    VENDORS,
    WEEKS,
    Draws,
    News,
    Signals,
    TradingControls,
    TradingWorld,
)

HALF_LIFE_RANGE = (3.0, 26.0)
"""Range of half-lives in weeks, uniform in logarithms."""


@dataclass(frozen=True, slots=True, eq=False)
class LawWorld:
    """World with its law.

    Attributes
    ----------
    factor_returns : (T, f) returns of the factors, history and decisions.
    effects : (T, n) hidden expected returns, in units of specific volatility.
    """

    law: Law
    world: TradingWorld
    factor_returns: Floats
    effects: Floats

    @property
    def signals(self) -> Floats:
        """(T, n, S) stored signals in standard deviations."""
        return self.world.draws.signals / SIGNAL_UNIT

    @property
    def residuals(self) -> Floats:
        """(T, n) returns less those of the factors, in units of specific volatility."""
        risk = self.world.risk
        return (self.world.draws.returns / RETURN_UNIT - self.factor_returns @ risk.exposures.T) / risk.specific

    @property
    def places(self) -> Integers:
        """(n,) place of each name under the law."""
        return places(self.law, self.world.sector_of, self.world.book.benchmark, self.world.risk.specific)


def draw_law_world(
    tickers: Sequence[str], sector_of: Sequence[str], law: Law, rng: np.random.Generator, tier: str = "easy"
) -> LawWorld:
    """Draw a world under a law; the tier sets only how much the aversion to risk rises."""
    base = draw_trading_world(tickers, sector_of, TIERS[tier], rng)
    vendors = rng.permutation(len(VENDORS))
    signals = _offers(law, vendors, rng)
    weeks, risk = WEEKS + DECISIONS, base.risk
    stored = _signals(law, signals, base.sector_of, rng)
    found = features(law, stored / SIGNAL_UNIT, signals.decay, signals.live_from)
    place_of = places(law, base.sector_of, base.book.benchmark, risk.specific)
    effects = draw_effects(rng, law, place_of, found)
    factors = (rng.standard_normal((weeks, len(risk.factors))) * risk.volatility).round(6)
    moves = factors @ risk.exposures.T + (effects + _residuals(law, effects.shape, rng)) * risk.specific
    returns = np.rint(RETURN_UNIT * moves).clip(-32_000, 32_000).astype(np.int16)
    _backfill(law, stored, returns / RETURN_UNIT - factors @ risk.exposures.T, risk.specific, signals)
    world = replace(
        base,
        signals=signals,
        book=replace(base.book, impact=_impact(law, base, rng)),
        draws=Draws(stored, returns),
        news=News(0, {}, base.news.tariff),
        controls=TradingControls(None, None, base.controls.calm),
    )
    return LawWorld(law, world, factors, effects)


def _offers(law: Law, vendors: Integers, rng: np.random.Generator) -> Signals:
    """Draw half-lives, copies (sold by the last vendors) and the live start of a late vendor, the first."""
    half_life = np.rint(
        np.exp(rng.uniform(math.log(HALF_LIFE_RANGE[0]), math.log(HALF_LIFE_RANGE[1]), len(SIGNALS)))
    ).astype(np.int64)
    copied = np.full(len(SIGNALS), -1)
    for seller in range(law.copies):
        at = np.flatnonzero(vendors[-1 - seller] == VENDOR_OF)
        copied[at] = np.flatnonzero(vendors[seller] == VENDOR_OF)
        half_life[at] = half_life[copied[at]]
    live_from = np.zeros(len(SIGNALS), dtype=np.int64)
    if law.backfill:
        first, last = (round(share * WEEKS) for share in BACKFILL_WEEKS)
        live_from[vendors[law.copies] == VENDOR_OF] = int(rng.integers(first, last))
    return Signals(half_life, np.zeros(len(SIGNALS), dtype=bool), live_from, copied)


def _signals(law: Law, signals: Signals, sector_of: Integers, rng: np.random.Generator) -> Integers:
    weeks, n, count = WEEKS + DECISIONS, len(sector_of), len(SIGNALS)
    common = rng.standard_normal((weeks, int(sector_of.max()) + 1, count), dtype=np.float32)[:, sector_of]
    shocks = rng.standard_normal((weeks, n, count), dtype=np.float32)
    shocks = np.sqrt(1 - SECTOR_SHARE) * shocks + np.sqrt(SECTOR_SHARE) * common
    copies = np.flatnonzero(signals.copied >= 0)
    shocks[:, :, copies] *= np.sqrt(1 - law.likeness**2)
    shocks[:, :, copies] += law.likeness * shocks[:, :, signals.copied[copies]]
    decay = signals.decay
    shocks[1:] *= np.sqrt(1 - decay**2)
    stored, before = np.empty((weeks, n, count), dtype=np.int16), np.zeros((n, count))
    for week in range(weeks):
        before = np.rint(decay * before + SIGNAL_UNIT * shocks[week])
        stored[week] = before
    return stored


def _residuals(law: Law, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if np.isinf(law.tail):
        return rng.standard_normal(shape)
    return rng.standard_t(law.tail, shape) * np.sqrt((law.tail - 2.0) / law.tail)


def _backfill(law: Law, stored: Integers, residuals: Floats, specific: Floats, signals: Signals) -> None:
    """Add part of the returns that followed to backfilled values, in place; the addition depends on returns only."""
    for column in np.flatnonzero(signals.live_from):
        weeks = int(signals.live_from[column])
        hints = SIGNAL_UNIT * law.backfill * residuals[:weeks] / specific
        stored[:weeks, :, column] += np.rint(hints).astype(stored.dtype)


def _impact(law: Law, base: TradingWorld, rng: np.random.Generator) -> Floats:
    """Draw (n,) basis points lost by a trade of one clip, which differ between names as the law states."""
    weight, specific = base.book.benchmark, base.risk.specific
    differs = {
        "name": np.exp(rng.normal(0.0, 0.5, len(weight))),
        "size": (weight * len(weight)) ** -law.power,
        "volatility": (specific / specific.mean()) ** (2.0 * law.power),
    }[law.costs]
    return (base.book.impact.mean() * differs / differs.mean()).round(4)
