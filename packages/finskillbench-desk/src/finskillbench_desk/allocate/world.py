"""One world: a book, sources, which of them move which group, and the returns that followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.allocate.book import PREMIA, Book, draw_book
from finskillbench_desk.allocate.dials import (
    ANALYST_MEAN,
    ANALYST_SHARE,
    ANALYSTS,
    DEVIATION,
    GROUP_SIZE,
    GROUPS,
    HALVES,
    NAMES,
    QUARTERS,
    RETURN_UNIT,
    SIGNALS,
    Tier,
)
from finskillbench_desk.allocate.posterior import Family
from finskillbench_desk.allocate.sources import IS_ANALYST, Sources, draw_sources


@dataclass(frozen=True, slots=True)
class Effect:
    """What moves a group in a regime: a source, its effect on one score, and the quarters [first, last) of it."""

    source: int
    size: float
    first: int
    last: int


@dataclass(frozen=True)
class World:
    """What was drawn. `effects` (of each group, in order of time) is all that nobody sees.

    `factor_returns` is (T, k), decimals with five digits; `returns` (T, n) integers of basis points.
    """

    book: Book
    family: Family
    sources: Sources
    effects: tuple[tuple[Effect, ...], ...]
    factor_returns: Floats = field(repr=False)
    returns: Integers = field(repr=False)

    @property
    def residuals(self) -> Floats:
        """(T, n) returns less what the published factors explain, exactly as anybody can compute them."""
        return self.returns * RETURN_UNIT - self.factor_returns @ self.book.loadings.T


def family_of(tier: Tier) -> Family:
    """The family of a tier: analysts are rarer than signals, likelier to matter, and matter a little less."""
    return Family(
        change=tier.change,
        nothing=tier.nothing,
        prior=np.where(IS_ANALYST, ANALYST_SHARE / ANALYSTS, (1.0 - ANALYST_SHARE) / SIGNALS),
        mean=np.where(IS_ANALYST, ANALYST_MEAN * tier.strength, tier.strength),
        deviation=np.full(len(IS_ANALYST), DEVIATION * tier.strength),
    )


def draw_world(rng: np.random.Generator, names: Sequence[tuple[str, str]], tier: Tier) -> World:
    """A world of the tier's family over 120 names, pairs of ticker and group in the order of the groups."""
    book, family, sources = draw_book(rng, names), family_of(tier), draw_sources(rng, tier.copies)
    effects = tuple(tuple(_draw_effects(rng, family, sources)) for _ in range(GROUPS))
    factors: Floats = rng.multivariate_normal(PREMIA, book.factor_covariance, QUARTERS).round(5)
    returns: Floats = factors @ book.loadings.T + rng.standard_normal((QUARTERS, NAMES)) * book.specific
    for group, regimes in enumerate(effects):
        place = slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
        for effect in regimes:
            span = slice(effect.first, effect.last)
            scores = sources.values[span, place, effect.source] / sources.scale[effect.source]
            returns[span, place] += effect.size * scores
    return World(book, family, sources, effects, factors, np.rint(returns / RETURN_UNIT).astype(np.int32))


def _draw_effects(rng: np.random.Generator, family: Family, sources: Sources) -> Iterator[Effect]:
    """The effects of one industry, regime by regime; a source has none before its record is valid."""
    changes = np.flatnonzero(rng.random(HALVES - 1) < family.change) + 1
    ends = [0, *(changes * (QUARTERS // HALVES)).tolist(), QUARTERS]
    for first, last in pairwise(ends):
        source = int(np.flatnonzero(np.cumsum(family.prior) > rng.random())[0])
        size = float(family.mean[source] + family.deviation[source] * rng.standard_normal())
        begun = max(first, int(sources.start[source]))
        if rng.random() >= family.nothing and begun < last:
            yield Effect(source, size, begun, last)
