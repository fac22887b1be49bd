"""What the visible data say of the coming quarter, exactly: all regimes of the disclosed family are summed over.

Given factor returns, residuals of different industries are independent. An industry goes through regimes that change
at half-years; in each, nothing moves it or one source does, and regimes are independent of each other. So the evidence
of a stretch of half-years is a sum over sources in closed form (`engines.statistics.sources`), and that of the whole
record a sum over partitions into stretches, by the forward recursion of product partition models.

Source: Barry and Hartigan (1992); Fearnhead (2006), Exact and efficient Bayesian inference for multiple changepoints.

One world: a book, sources, which of them move which group, and the returns that followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.allocate.sources import (
    ANALYST_MEAN,
    ANALYST_SHARE,
    ANALYSTS,
    DEVIATION,
    GROUP_SIZE,
    GROUPS,
    HALVES,
    IS_ANALYST,
    NAMES,
    PREMIA,
    QUARTERS,
    RETURN_UNIT,
    SIGNALS,
    Book,
    Sources,
    Tier,
    draw_book,
    draw_sources,
)
from finskillbench_desk.engines.sources import evidence, sums_by_group

STRETCHES: tuple[Integers, Integers] = tuple(np.triu_indices(HALVES + 1, 1))  # pyright: ignore
"""First half-year, and the one after the last, of every stretch: (S,) each, those up to now in order of their start."""


@dataclass(frozen=True)
class Family:
    """The disclosed family of worlds.

    `change` is the chance that a new regime begins with a half-year, `nothing` that no source moves an industry in a
    regime; `prior` (C,) are the chances of the sources where one does, `mean` and `deviation` (C,) of the normal prior
    of its effect.
    """

    change: float
    nothing: float
    prior: Floats
    mean: Floats
    deviation: Floats


@dataclass(frozen=True)
class Reading:
    """Some columns of the sources as somebody reads them.

    Attributes
    ----------
    columns : (C,) the sources.
    scores : (T + 1, n, C) values in standard scores, repaired; the last row is of the coming quarter, and zero for a
        column that was not delivered: it has no effect then.
    start : (C,) first quarter that counts of each column.
    separate : (C,) columns that are taken for independent of all others (nobody should).
    """

    columns: Integers
    scores: Floats = field(repr=False)
    start: Integers
    separate: Booleans


@dataclass(frozen=True)
class Hypotheses:
    """What the data say of C columns in every stretch of half-years.

    `odds` (S, G, C) is prior times evidence, against no effect at all, of a source over each of the S stretches in the
    order of `STRETCHES`; `means` and `variances` (K, G, C) are of its effect over the stretch from each of the K
    half-years to now. `now` (n, C) are the scores of the coming quarter, `separate` as in `Reading`.
    """

    odds: Floats
    means: Floats
    variances: Floats
    now: Floats
    separate: Booleans

    def with_columns(self, columns: Integers, other: Hypotheses) -> Hypotheses:
        """These hypotheses with those about some columns replaced."""
        merged: list[Any] = []
        for name in ("odds", "means", "variances", "now", "separate"):
            whole = getattr(self, name).copy()
            whole[..., columns] = getattr(other, name)
            merged.append(whole)
        return Hypotheses(*merged)


@dataclass(frozen=True)
class Belief:
    """The posterior of the coming quarter.

    `alive` (G, C) are the chances that a source moves an industry now, `effect` (G, C) its expected effect (zero where
    it does not); `alpha` (n,) and `doubt` (n, n) are mean and covariance of what effects do to the names.
    """

    alive: Floats
    effect: Floats
    alpha: Floats
    doubt: Floats


def weigh(reading: Reading, residuals: Floats, specific: Floats, family: Family) -> Hypotheses:
    """Prior times evidence of the columns of a reading, in every stretch."""
    columns = reading.columns
    sums = sums_by_group(reading.scores[:-1], residuals, specific, GROUPS)
    counted = np.arange(QUARTERS)[:, None, None] >= reading.start
    x, y = (_running(part * counted) for part in sums)
    first, last = STRETCHES
    mean, deviation = family.mean[columns], family.deviation[columns]
    found = evidence(x[last] - x[first], y[last] - y[first], mean, deviation)
    to_now = last == HALVES
    odds = np.exp(found.log_odds) * family.prior[columns] * (1.0 - family.nothing)
    return Hypotheses(odds, found.mean[to_now], found.variance[to_now], reading.scores[-1], reading.separate)


def _running(sums: Floats) -> Floats:
    """(K + 1, G, C) sums before each half-year, and over all of them."""
    halves = sums.reshape(HALVES, QUARTERS // HALVES, *sums.shape[1:]).sum(axis=1)
    return np.concatenate([np.zeros((1, *halves.shape[1:])), np.cumsum(halves, axis=0)])


def forecast(hypotheses: Hypotheses, family: Family) -> Belief:
    """From the evidence of all stretches to the coming quarter's effects on the names."""
    first, last = STRETCHES
    stretch = family.nothing + hypotheses.odds.sum(axis=2)
    stay, turn = np.log(1.0 - family.change), np.log(family.change)
    logs = np.log(stretch) + (last - first - 1)[:, None] * stay
    before = np.zeros((HALVES, GROUPS))  # evidence of all that precedes a regime that begins with a half-year
    for half in range(1, HALVES):
        ending = last == half
        before[half] = np.logaddexp.reduce(before[first[ending]] + logs[ending], axis=0) + turn
    to_now = last == HALVES
    start = before + logs[to_now]
    start = np.exp(start - np.logaddexp.reduce(start, axis=0))
    odds = hypotheses.odds[to_now]
    whole = np.broadcast_to(stretch[to_now][:, :, None], odds.shape)
    if hypotheses.separate.any():
        whole = np.where(hypotheses.separate, family.nothing + odds, whole)
    now = start[:, :, None] * odds / whole
    effect = (now * hypotheses.means).sum(axis=0)
    square = (now * (hypotheses.means**2 + hypotheses.variances)).sum(axis=0)
    scores = hypotheses.now.reshape(GROUPS, GROUP_SIZE, -1)
    alpha = np.einsum("gic,gc->gi", scores, effect)
    doubt = np.zeros((NAMES, NAMES))
    if not hypotheses.separate.any():  # chances that do not exclude each other have no covariance of this form
        for group in range(GROUPS):
            place = slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
            second = (scores[group] * square[group]) @ scores[group].T
            doubt[place, place] = second - np.outer(alpha[group], alpha[group])
    return Belief(now.sum(axis=0), effect, alpha.ravel(), doubt)


@dataclass(frozen=True, slots=True)
class _Effect:
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
    effects: tuple[tuple[_Effect, ...], ...]
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


def _draw_effects(rng: np.random.Generator, family: Family, sources: Sources) -> Iterator[_Effect]:
    """The effects of one industry, regime by regime; a source has none before its record is valid."""
    changes = np.flatnonzero(rng.random(HALVES - 1) < family.change) + 1
    ends = [0, *(changes * (QUARTERS // HALVES)).tolist(), QUARTERS]
    for first, last in pairwise(ends):
        source = int(np.flatnonzero(np.cumsum(family.prior) > rng.random())[0])
        size = float(family.mean[source] + family.deviation[source] * rng.standard_normal())
        begun = max(first, int(sources.start[source]))
        if rng.random() >= family.nothing and begun < last:
            yield _Effect(source, size, begun, last)
