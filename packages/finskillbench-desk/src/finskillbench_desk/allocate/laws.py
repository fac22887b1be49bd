"""Laws by which sources and returns of a case are connected: where, in what form and for how long sources have effects.

A law is drawn for each case from one of ten structures with wide ranges of parameters, and agents are not given it; or
it has the form of `disclosed_law`, and the memo states it.
A source's value enters as a feature; the effect of a source in a place is a size times its feature, for every name of
the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.allocate.sources import (
    ANALYST_MEAN,
    ANALYST_SHARE,
    ANALYSTS,
    DEVIATION,
    HALVES,
    IS_ANALYST,
    NAMES,
    QUARTERS,
    SIGNALS,
    SOURCES,
    VENDORS,
    AllocationBook,
    columns_of_vendor,
)

Place = Literal["industry", "block", "size", "market"]
Form = Literal["level", "change", "rank", "sign", "extreme", "gate", "product"]
Course = Literal["renewed", "break", "fading", "intermittent"]

PER_HALF = QUARTERS // HALVES
BLOCK = 3
"""Number of industries in a block."""
SIZES = 3
"""Number of classes of names by benchmark weight."""
EXTREME = 1.5
"""Least absolute score that the form `extreme` counts."""
_EXTREME_SCALE = 1.35
"""Factor that gives an extreme feature a variance near 1."""
EARLIEST = 2
"""First half-year in which a common break may fall."""


@dataclass(frozen=True, slots=True)
class Law:
    """Law of one case.

    Attributes
    ----------
    place : names that share an effect: an industry, a block of three, a size class, or the market.
    form : feature of a source's score: its level, its change since the last quarter, its rank over all names, its sign,
        its value beyond `EXTREME`; or, for two sources of a vendor, the score where the other is positive (`gate`) or
        the product of both scores.
    both : a signal and an analyst have effects in a place at the same time, instead of one source.
    course : `renewed`, each half-year with probability `change`, place by place; `break`, once, for all places, with
        probability `change`; `fading`, renewed likewise, with sizes that halve every `life` quarters; `intermittent`,
        one effect that is turned on or off each half-year with probability `change`.
    nothing : probability that a place has no effect.
    strength, spread : mean size, and standard deviation of sizes as a fraction of it.
    either_sign : sizes are negative with probability 1/2.
    tail : degrees of freedom of Student's t of the residual returns, infinite for normal ones.
    """

    place: Place
    form: Form
    both: bool
    course: Course
    nothing: float
    strength: float
    change: float
    spread: float
    either_sign: bool = False
    tail: float = np.inf
    life: float = np.inf

    @property
    def paired(self) -> bool:
        """True if a feature combines two sources of a vendor."""
        return self.form in ("gate", "product")


@dataclass(frozen=True, slots=True)
class _Structure:
    """Structure of laws; pairs are ranges of parameters, drawn uniformly."""

    place: Place
    form: Form
    both: bool
    course: Course
    strength: tuple[float, float]
    change: tuple[float, float]
    either_sign: bool = False
    tails: tuple[float, ...] = (np.inf,)
    life: tuple[float, float] | None = None


STRUCTURES: Mapping[str, _Structure] = {
    "industry_level_renewed": _Structure("industry", "level", False, "renewed", (0.022, 0.028), (0.10, 0.18)),
    "market_change_break": _Structure("market", "change", True, "break", (0.007, 0.013), (0.4, 0.9)),
    "size_product_intermittent": _Structure(
        "size", "product", False, "intermittent", (0.020, 0.030), (0.05, 0.15), tails=(5.0, 8.0)
    ),
    "block_gate_renewed": _Structure("block", "gate", False, "renewed", (0.018, 0.026), (0.08, 0.16)),
    "industry_extreme_break": _Structure("industry", "extreme", True, "break", (0.018, 0.026), (0.3, 0.8), True),
    "size_sign_renewed": _Structure("size", "sign", True, "renewed", (0.012, 0.018), (0.06, 0.12), True),
    "industry_change_fading": _Structure(
        "industry", "change", False, "fading", (0.045, 0.060), (0.12, 0.20), life=(8.0, 14.0)
    ),
    "block_rank_intermittent": _Structure(
        "block", "rank", False, "intermittent", (0.018, 0.026), (0.05, 0.15), True, tails=(5.0, 8.0)
    ),
    "market_gate_fading": _Structure("market", "gate", False, "fading", (0.024, 0.036), (0.10, 0.16), life=(8.0, 14.0)),
    "industry_product_break": _Structure("industry", "product", False, "break", (0.022, 0.030), (0.3, 0.8), True),
}


_NOTHING, _SPREAD = (0.03, 0.15), (0.15, 0.35)
"""Ranges of parameters that are the same for all structures."""


def draw_law(rng: np.random.Generator, structure: str) -> Law:
    """Draw the parameters of a structure."""
    ranges = STRUCTURES[structure]
    return Law(
        place=ranges.place,
        form=ranges.form,
        both=ranges.both,
        course=ranges.course,
        nothing=round(float(rng.uniform(*_NOTHING)), 2),
        strength=round(float(rng.uniform(*ranges.strength)), 4),
        change=round(float(rng.uniform(*ranges.change)), 2),
        spread=round(float(rng.uniform(*_SPREAD)), 2),
        either_sign=ranges.either_sign,
        tail=float(rng.choice(ranges.tails)),
        life=np.inf if ranges.life is None else round(float(rng.uniform(*ranges.life)), 1),
    )


def disclosed_law(nothing: float, strength: float, change: float) -> Law:
    """Return the law of a case that discloses it: in an industry at most one source has an effect, by its level."""
    return Law("industry", "level", False, "renewed", nothing, strength, change, spread=DEVIATION)


def family_json(law: Law) -> dict[str, float]:
    """Return the numbers of a disclosed law that the memo states."""
    return {
        "nothing": law.nothing,
        "analyst_share": ANALYST_SHARE,
        "signal_mean": law.strength,
        "signal_deviation": law.spread * law.strength,
        "analyst_mean": ANALYST_MEAN * law.strength,
        "analyst_deviation": law.spread * law.strength,
        "change": law.change,
    }


def law_json(law: Law) -> dict[str, Any]:
    """Return the law as JSON, in the form in which the truth stores it; infinite parameters are null."""
    return {name: None if value == np.inf else value for name, value in asdict(law).items()}


def law_from_json(stated: Mapping[str, Any]) -> Law:
    values: dict[str, Any] = {name: np.inf if value is None else value for name, value in stated.items()}
    return Law(**values)


def follows(law: Law, structure: str) -> bool:
    """Return True if the law can have been drawn from the structure."""
    ranges = STRUCTURES[structure]
    same = all(
        getattr(law, name) == getattr(ranges, name) for name in ("place", "form", "both", "course", "either_sign")
    )
    bounds = {
        "nothing": _NOTHING,
        "spread": _SPREAD,
        "strength": ranges.strength,
        "change": ranges.change,
        "life": ranges.life or (np.inf, np.inf),
    }
    inside = all(least <= getattr(law, name) <= most for name, (least, most) in bounds.items())
    return same and inside and law.tail in ranges.tails


def places(law: Law, book: AllocationBook) -> Integers:
    """Return the (n,) place of each name."""
    match law.place:
        case "industry":
            return book.group_of
        case "block":
            return book.group_of // BLOCK
        case "market":
            return np.zeros(NAMES, dtype=np.int64)
        case "size":
            return np.argsort(np.argsort(-book.benchmark, kind="stable"), kind="stable") // (NAMES // SIZES)


def candidates(law: Law) -> Integers:
    """Return the (C, 2) columns of each candidate, the same column twice for a feature of one source."""
    if not law.paired:
        return np.repeat(np.arange(SOURCES)[:, None], 2, axis=1)
    ordered = law.form == "gate"
    return np.array(
        [
            (first, partner)
            for vendor in range(VENDORS)
            for first in columns_of_vendor(vendor)
            for partner in columns_of_vendor(vendor)
            if first < partner or (ordered and first > partner)
        ]
    )


def chances(law: Law) -> Floats:
    """Return the (C,) probabilities of the candidates where a place has an effect."""
    if law.paired:
        count = len(candidates(law))
        return np.full(count, 1.0 / count)
    return np.where(IS_ANALYST, ANALYST_SHARE / ANALYSTS, (1.0 - ANALYST_SHARE) / SIGNALS)


def sizes(law: Law) -> tuple[Floats, Floats]:
    """Return mean and standard deviation (C,) of absolute sizes, return per quarter for a feature of 1."""
    if law.paired:
        mean = np.full(len(candidates(law)), law.strength)
    else:
        mean = np.where(IS_ANALYST, ANALYST_MEAN * law.strength, law.strength)
    return mean, np.full(len(mean), law.spread * law.strength)


def features(law: Law, scores: Floats, start: Integers) -> Floats:
    """Return features (T + 1, n, C) of scores (T + 1, n, sources).

    They are 0 before `start` (sources,), the record's begin, and where a score is NaN, which was not delivered.
    """
    first, partner = candidates(law).T
    begun = np.maximum(start[first], start[partner])
    match law.form:
        case "level":
            found = scores
        case "change":
            found, begun = np.diff(scores, axis=0, prepend=scores[:1]), np.maximum(begun + 1, 1)
        case "rank":
            order = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1, kind="stable")
            found = np.where(np.isnan(scores), np.nan, (order / (NAMES - 1) - 0.5) * np.sqrt(12.0))
        case "sign":
            found = np.sign(scores)
        case "extreme":
            found = scores * (np.abs(scores) > EXTREME) * _EXTREME_SCALE
        case "gate":
            found = scores[:, :, first] * (scores[:, :, partner] > 0.0) * np.sqrt(2.0)
        case "product":
            found = scores[:, :, first] * scores[:, :, partner]
    valid = np.arange(len(scores))[:, None] >= begun
    return np.where(valid[:, None, :] & ~np.isnan(found), found, 0.0)


def draw_effects(rng: np.random.Generator, law: Law, book: AllocationBook, found: Floats) -> Floats:
    """Draw effects on the names (T + 1, n), given the features (T + 1, n, C)."""
    effects, place_of = np.zeros(found.shape[:2]), places(law, book)
    cut = int(rng.integers(EARLIEST, HALVES)) if rng.random() < law.change else None
    mean, deviation = sizes(law)
    for place in range(int(place_of.max()) + 1):
        names = np.flatnonzero(place_of == place)
        for first, last in _stretches(rng, law, cut):
            if rng.random() < law.nothing:
                continue
            span = np.arange(first * PER_HALF, len(found) if last == HALVES else last * PER_HALF)
            weight = _weights(rng, law, len(span))
            for candidate in _chosen(rng, law):
                size = float(mean[candidate] + deviation[candidate] * rng.standard_normal())
                if law.either_sign and rng.random() < 0.5:
                    size = -size
                effects[np.ix_(span, names)] += size * weight[:, None] * found[span][:, names, candidate]
    return effects


def _chosen(rng: np.random.Generator, law: Law) -> list[int]:
    if law.both:
        return [int(rng.integers(SIGNALS)), SIGNALS + int(rng.integers(ANALYSTS))]
    return [int(rng.choice(len(chances(law)), p=chances(law)))]


def _stretches(rng: np.random.Generator, law: Law, cut: int | None) -> Iterator[tuple[int, int]]:
    """Yield first and one-past-last half-year of each regime in a place; `cut` is the common break."""
    match law.course:
        case "renewed" | "fading":
            cuts: list[int] = (np.flatnonzero(rng.random(HALVES - 1) < law.change) + 1).tolist()
        case "break":
            cuts = [] if cut is None else [cut]
        case "intermittent":
            cuts = []
    return pairwise([0, *cuts, HALVES])


def _weights(rng: np.random.Generator, law: Law, quarters: int) -> Floats:
    """Return the share of the size that is in force in each quarter of a regime."""
    if law.course != "intermittent":
        return 0.5 ** (np.arange(quarters) / law.life)
    turned = np.concatenate([[rng.random() < 0.5], rng.random(HALVES) < law.change])
    return np.repeat(np.cumsum(turned) % 2, PER_HALF)[:quarters].astype(float)


def draw_residuals(rng: np.random.Generator, law: Law, specific: Floats) -> Floats:
    """Draw residual returns (T, n) with standard deviations `specific` (n,), without effects."""
    if np.isinf(law.tail):
        return rng.standard_normal((QUARTERS, NAMES)) * specific
    return rng.standard_t(law.tail, (QUARTERS, NAMES)) * np.sqrt((law.tail - 2.0) / law.tail) * specific
