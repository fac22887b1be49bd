"""Laws by which signals and returns of a trading case are connected: form, place and course of the effects.

A law is drawn for each case from one of six structures with wide ranges of parameters. Agents are not given the law. A
candidate is a signal, or a pair of signals of a vendor; its feature has variance 1. The effect of a candidate in a
place is a size times its feature times specific volatility, for every name of the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from scipy.special import ndtr

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.trade_over_time.world import SIGNALS, VENDOR_OF

Place = Literal["market", "block", "size", "volatility"]
Form = Literal["level", "spread", "delayed", "trend", "gate", "product"]
Course = Literal["ends", "break", "fading", "intermittent"]
Costs = Literal["name", "size", "volatility"]

BLOCK = 3
"""Number of sectors in a block."""
CLASSES = 3
"""Number of classes of names by benchmark weight or by specific volatility."""
DATES = tuple(range(75, 351, 25))
"""Possible weeks (from 0) from which an edge has ended, fades or is replaced, equally likely."""
_PAIRED = ("spread", "gate", "product")


@dataclass(frozen=True, slots=True)
class Law:
    """Law of one case.

    Attributes
    ----------
    place : names that share an effect: the market, a block of three sectors, or a class by weight or volatility.
    form : feature of a candidate: its `level`, its level `delay` weeks ago (`delayed`), its change over `delay` weeks
        (`trend`); or, for two signals of a vendor, their `spread`, the first where the second is positive (`gate`), or
        their `product`.
    effects : number of effects in a place at the same time, 1; or 2, with a `break` and normal residuals only.
    course : `ends`, each effect for itself with probability `change`; `break`, once for all places with probability
        `change`; `fading`, with probability `change` from a date on, when sizes begin to halve every `life` weeks;
        `intermittent`, turned on or off before each week with probability `change`. Dates are `DATES`.
    nothing : probability that a place has no effect.
    strength, spread : mean size, and standard deviation of sizes as a fraction of it.
    either_sign : sizes are negative with probability 1/2.
    tail : degrees of freedom of Student's t of the residual returns, infinite for normal ones.
    backfill : weight of the returns that followed in backfilled values; 0 if no vendor is late.
    copies, likeness : number of vendors that resell signals, and their correlation with the originals.
    costs, power : how costs differ: by name; by benchmark weight to the power `-power`; or by volatility to `power`.
    """

    place: Place
    form: Form
    effects: int
    course: Course
    nothing: float
    strength: float
    change: float
    delay: int = 0
    spread: float = 0.25
    either_sign: bool = False
    tail: float = np.inf
    life: float = np.inf
    backfill: float = 0.0
    copies: int = 4
    likeness: float = 0.7
    costs: Costs = "name"
    power: float = 0.0

    @property
    def paired(self) -> bool:
        """True if a feature combines two signals of a vendor."""
        return self.form in _PAIRED


def law_json(law: Law) -> dict[str, Any]:
    """Return a law as JSON, with null for infinity."""
    return {name: None if value == np.inf else value for name, value in asdict(law).items()}


def law_from_json(stored: Any) -> Law:
    """Restore the law of `law_json`; `msgspec.ValidationError` names an invalid field."""
    fields = msgspec.convert(stored, dict[str, Any])
    return msgspec.convert({name: np.inf if value is None else value for name, value in fields.items()}, Law)


@dataclass(frozen=True, slots=True)
class _Structure:
    """Structure of laws; pairs are ranges of parameters, drawn uniformly."""

    place: Place
    form: Form
    effects: int
    course: Course
    strength: tuple[float, float]
    change: tuple[float, float]
    costs: Costs
    either_sign: bool = False
    tails: tuple[float, ...] = (np.inf,)
    delay: tuple[int, int] | None = None
    life: tuple[float, float] | None = None
    backfilled: bool = False


STRUCTURES: Mapping[str, _Structure] = {
    "market_level_break": _Structure(
        "market", "level", 2, "break", (0.024, 0.036), (0.5, 0.95), "name", True, backfilled=True
    ),
    "block_spread_break": _Structure("block", "spread", 1, "break", (0.04, 0.06), (0.5, 0.95), "size", True),
    "size_delayed_fading": _Structure(
        "size", "delayed", 1, "fading", (0.045, 0.07), (0.6, 0.95), "size", delay=(3, 8), life=(50.0, 120.0)
    ),
    "volatility_gate_intermittent": _Structure(
        "volatility", "gate", 1, "intermittent", (0.065, 0.095), (0.015, 0.04), "volatility", tails=(5.0, 8.0)
    ),
    "block_product_ends": _Structure(
        "block", "product", 1, "ends", (0.04, 0.06), (0.3, 0.7), "name", True, (5.0, 8.0), backfilled=True
    ),
    "volatility_trend_ends": _Structure(
        "volatility", "trend", 1, "ends", (0.04, 0.06), (0.4, 0.8), "volatility", delay=(4, 10), backfilled=True
    ),
}


def draw_law(rng: np.random.Generator, structure: str) -> Law:
    """Draw the parameters of a structure."""
    ranges = STRUCTURES[structure]
    return Law(
        place=ranges.place,
        form=ranges.form,
        effects=ranges.effects,
        course=ranges.course,
        nothing=round(float(rng.uniform(0.15, 0.5)), 2) if ranges.place != "market" else 0.05,
        strength=round(float(rng.uniform(*ranges.strength)), 4),
        change=round(float(rng.uniform(*ranges.change)), 3),
        delay=0 if ranges.delay is None else int(rng.integers(ranges.delay[0], ranges.delay[1] + 1)),
        spread=round(float(rng.uniform(0.15, 0.35)), 2),
        either_sign=ranges.either_sign,
        tail=float(rng.choice(ranges.tails)),
        life=np.inf if ranges.life is None else round(float(rng.uniform(*ranges.life)), 0),
        backfill=round(float(rng.uniform(0.05, 0.12)), 3) if ranges.backfilled else 0.0,
        copies=int(rng.integers(2, 6)),
        likeness=round(float(rng.uniform(0.5, 0.8)), 2),
        costs=ranges.costs,
        power=0.0 if ranges.costs == "name" else round(float(rng.uniform(0.3, 1.0)), 2),
    )


def places(law: Law, sector_of: Integers, benchmark: Floats, specific: Floats) -> Integers:
    """Return the (n,) place of each name."""
    if law.place == "market":
        return np.zeros(len(benchmark), dtype=np.int64)
    if law.place == "block":
        return sector_of // BLOCK
    sizes_of = benchmark if law.place == "size" else specific
    rank = np.argsort(np.argsort(-sizes_of, kind="stable"), kind="stable")
    return rank * CLASSES // len(sizes_of)


def candidates(law: Law) -> Integers:
    """Return the (C, 2) signals of each candidate, the same signal twice for a feature of one."""
    if not law.paired:
        return np.repeat(np.arange(len(SIGNALS))[:, None], 2, axis=1)
    first, partner = np.meshgrid(np.arange(len(SIGNALS)), np.arange(len(SIGNALS)), indexing="ij")
    chosen = (VENDOR_OF[first] == VENDOR_OF[partner]) & (
        (first != partner) if law.form == "gate" else (first < partner)
    )
    return np.argwhere(chosen)


def features(law: Law, signals: Floats, decay: Floats, start: Integers) -> Floats:
    """Return features (T, n, C) of signals (T, n, S) in standard deviations, 0 before weeks `start` (S,) + delay."""
    first, partner = candidates(law).T
    one = signals[:, :, first]
    if law.form == "level":
        found = one
    elif law.form == "delayed":
        found = _earlier(one, law.delay)
    elif law.form == "trend":
        found = (one - _earlier(one, law.delay)) / np.sqrt(2.0 - 2.0 * decay[first] ** law.delay)
    else:
        found = _combined(law, one, signals[:, :, partner])
    valid = np.arange(len(signals))[:, None] >= np.maximum(start[first], start[partner]) + law.delay
    return np.where(valid[:, None, :], found, 0.0)


def expected_features(law: Law, signals: Floats, decay: Floats, ahead: int) -> Floats:
    """Return (n, C) expected features, `ahead` weeks after the last week of signals (T, n, S).

    Signals are stationary normal AR(1) with variance 1; shocks of a vendor's signals are independent.
    """
    first, partner = candidates(law).T
    known, left = signals[-1], decay**ahead
    one, other = known[:, first] * left[first], known[:, partner] * left[partner]
    if law.form == "level":
        return one
    if law.form in ("delayed", "trend"):
        back = ahead - law.delay
        before = known[:, first] * decay[first] ** back if back > 0 else signals[back - 1][:, first]
        if law.form == "delayed":
            return before
        return (one - before) / np.sqrt(2.0 - 2.0 * decay[first] ** law.delay)
    if law.form == "gate" and ahead:
        return np.sqrt(2.0) * one * ndtr(other / np.sqrt(1.0 - left[partner] ** 2))
    return _combined(law, one, other)


def _combined(law: Law, one: Floats, other: Floats) -> Floats:
    if law.form == "spread":
        return (one - other) / np.sqrt(2.0)
    return one * (other > 0.0) * np.sqrt(2.0) if law.form == "gate" else one * other


def _earlier(values: Floats, weeks: int) -> Floats:
    """Return values some weeks earlier along the first axis, 0 before the first."""
    return np.concatenate([np.zeros_like(values[:weeks]), values[: len(values) - weeks]])


def last_on(law: Law, dates: Floats, weeks: int) -> Floats:
    """Return (D, weeks) shares of the size in force in each week, for a change at each date, infinite for none."""
    after = np.arange(weeks) - dates[:, None]
    if law.course == "fading":
        return 0.5 ** (np.maximum(after, 0.0) / law.life)
    return (after < 0.0).astype(float)


def draw_effects(rng: np.random.Generator, law: Law, place_of: Integers, found: Floats) -> Floats:
    """Draw effects (T, n) in units of specific volatility, given the features (T, n, C)."""
    weeks, effects = len(found), np.zeros(found.shape[:2])
    common = float(rng.choice(DATES)) if rng.random() < law.change else np.inf
    for place in range(int(place_of.max()) + 1):
        names = np.flatnonzero(place_of == place)
        spans = [np.arange(weeks) < common, np.arange(weeks) >= common] if law.course == "break" else [np.ones(weeks)]
        for span in spans:
            if rng.random() < law.nothing:
                continue
            for candidate in rng.choice(found.shape[2], law.effects, replace=False):
                size = rng.normal(law.strength, law.spread * law.strength)
                size *= rng.choice([-1.0, 1.0]) if law.either_sign else 1.0
                weight = size * span * _course(rng, law, weeks)
                effects[:, names] += weight[:, None] * found[:, names, candidate]
    return effects


def _course(rng: np.random.Generator, law: Law, weeks: int) -> Floats:
    """Draw the (weeks,) share of an effect's size that is in force."""
    if law.course == "break":
        return np.ones(weeks)
    if law.course == "intermittent":
        turned = np.concatenate([[rng.random() < 0.5], rng.random(weeks - 1) < law.change])
        return (np.cumsum(turned) % 2).astype(float)
    date = float(rng.choice(DATES)) if rng.random() < law.change else np.inf
    return last_on(law, np.array([date]), weeks)[0]
