"""Exact posterior of the coming quarter's effects, summed over all regimes of the disclosed family, and world draws.

An industry's regimes change at half-years; in each, no source or one source has an effect, independently of other
regimes. The evidence of a stretch of half-years is a sum over sources in closed form (`engines.sources`). That of the
record is a sum over partitions into stretches, by the forward recursion of product partition models.

Source: Barry and Hartigan (1992); Fearnhead (2006), Exact and efficient Bayesian inference for multiple changepoints.
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
    AllocationBook,
    AllocationTier,
    Sources,
    draw_book,
    draw_sources,
)
from finskillbench_desk.engines.sources import evidence, sums_by_group

STRETCHES: tuple[Integers, Integers] = tuple(np.triu_indices(HALVES + 1, 1))  # pyright: ignore
"""First and one-past-last half-year of every stretch, (S,) each; stretches up to now are in order of their start."""


@dataclass(frozen=True)
class Family:
    """The disclosed family of worlds, with normal priors of effects.

    `change` is the probability that a regime begins with a half-year, `nothing` that a regime has no effect, `prior`
    (C,)
    that of each source otherwise; `mean` and `deviation` (C,) describe the effects.
    """

    change: float
    nothing: float
    prior: Floats
    mean: Floats
    deviation: Floats


@dataclass(frozen=True)
class ScoredColumns:
    """Scores of C sources under one reading of the data.

    `scores` (T + 1, n, C) are standardised and repaired; the last row is the coming quarter, NaN if undelivered.
    `start`
    (C,) is the first valid quarter; `separate` (C,) marks columns mistaken for independent ones.
    """

    columns: Integers
    scores: Floats = field(repr=False)
    start: Integers
    separate: Booleans


@dataclass(frozen=True)
class Hypotheses:
    """Evidence on C columns: `odds` (S, G, C), prior times evidence over no effect, by stretch as in `STRETCHES`.

    `means` and `variances` (K, G, C) describe the effect from each of K half-years to now; `now` (n, C) are the coming
    quarter's scores.
    """

    odds: Floats
    means: Floats
    variances: Floats
    now: Floats
    separate: Booleans

    def with_columns(self, columns: Integers, other: Hypotheses) -> Hypotheses:
        merged: list[Any] = []
        for name in ("odds", "means", "variances", "now", "separate"):
            whole = getattr(self, name).copy()
            whole[..., columns] = getattr(other, name)
            merged.append(whole)
        return Hypotheses(*merged)


@dataclass(frozen=True)
class Belief:
    """Posterior of the coming quarter: `alive` (G, C) probabilities of an effect and `effect` (G, C) its mean.

    `alpha` (n,) and `doubt` (n, n) are mean and covariance of the effects on the names.
    """

    alive: Floats
    effect: Floats
    alpha: Floats
    doubt: Floats


def weigh(reading: ScoredColumns, residuals: Floats, specific: Floats, family: Family) -> Hypotheses:
    """Compute prior times evidence of scored columns in every stretch."""
    columns = reading.columns
    sums = sums_by_group(reading.scores[:-1], residuals, specific, GROUPS)
    counted = np.arange(QUARTERS)[:, None, None] >= reading.start
    x, y = (_running(part * counted) for part in sums)
    first, last = STRETCHES
    mean, deviation = family.mean[columns], family.deviation[columns]
    found = evidence(x[last] - x[first], y[last] - y[first], mean, deviation)
    to_now = last == HALVES
    odds = np.exp(found.log_odds) * family.prior[columns] * (1.0 - family.nothing)
    now = np.nan_to_num(reading.scores[-1])
    return Hypotheses(odds, found.mean[to_now], found.variance[to_now], now, reading.separate)


def _running(sums: Floats) -> Floats:
    """Return (K + 1, G, C) sums before each half-year and over all of them."""
    halves = sums.reshape(HALVES, QUARTERS // HALVES, *sums.shape[1:]).sum(axis=1)
    return np.concatenate([np.zeros((1, *halves.shape[1:])), np.cumsum(halves, axis=0)])


def forecast(hypotheses: Hypotheses, family: Family) -> Belief:
    """Combine the evidence of all stretches into the coming quarter's effects on the names."""
    first, last = STRETCHES
    stretch = family.nothing + hypotheses.odds.sum(axis=2)
    stay, turn = np.log(1.0 - family.change), np.log(family.change)
    logs = np.log(stretch) + (last - first - 1)[:, None] * stay
    before = np.zeros((HALVES, GROUPS))  # log evidence before a regime that begins with a half-year
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
    if not hypotheses.separate.any():  # without exclusive alternatives, this covariance formula does not hold
        for group in range(GROUPS):
            place = slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
            uncentred = (scores[group] * square[group]) @ scores[group].T
            doubt[place, place] = uncentred - np.outer(alpha[group], alpha[group])
    return Belief(now.sum(axis=0), effect, alpha.ravel(), doubt)


@dataclass(frozen=True, slots=True)
class _Effect:
    """Effect of one source in a regime: return for a score of 1, over the quarters [first, last)."""

    source: int
    size: float
    first: int
    last: int


@dataclass(frozen=True)
class VisibleWorld:
    """Visible data of a case: `factor_returns` (T, k) to five decimals and `returns` (T, n) in basis points."""

    book: AllocationBook
    sources: Sources
    factor_returns: Floats = field(repr=False)
    returns: Integers = field(repr=False)

    @property
    def residuals(self) -> Floats:
        """(T, n) returns less what the published factors explain."""
        return self.returns * RETURN_UNIT - self.factor_returns @ self.book.loadings.T


@dataclass(frozen=True)
class AllocationWorld(VisibleWorld):
    """A drawn world of the disclosed family; `effects` is hidden."""

    family: Family
    effects: tuple[tuple[_Effect, ...], ...]


def family_of(tier: AllocationTier) -> Family:
    """Return a tier's family; analysts are fewer than signals, likelier to matter, with slightly smaller effects."""
    return Family(
        change=tier.change,
        nothing=tier.nothing,
        prior=np.where(IS_ANALYST, ANALYST_SHARE / ANALYSTS, (1.0 - ANALYST_SHARE) / SIGNALS),
        mean=np.where(IS_ANALYST, ANALYST_MEAN * tier.strength, tier.strength),
        deviation=np.full(len(IS_ANALYST), DEVIATION * tier.strength),
    )


def draw_world(rng: np.random.Generator, names: Sequence[tuple[str, str]], tier: AllocationTier) -> AllocationWorld:
    """Draw a world of a tier over 120 names, pairs of ticker and group in the order of the groups."""
    book, family, sources = draw_book(rng, names), family_of(tier), draw_sources(rng, tier.copies)
    effects = tuple(tuple(_draw_effects(rng, family, sources)) for _ in range(GROUPS))
    factors = draw_factor_returns(rng, book)
    returns: Floats = factors @ book.loadings.T + rng.standard_normal((QUARTERS, NAMES)) * book.specific
    for group, regimes in enumerate(effects):
        place = slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
        for effect in regimes:
            span = slice(effect.first, effect.last)
            scores = sources.values[span, place, effect.source] / sources.scale[effect.source]
            returns[span, place] += effect.size * scores
    return AllocationWorld(book, sources, factors, np.rint(returns / RETURN_UNIT).astype(np.int32), family, effects)


def draw_factor_returns(rng: np.random.Generator, book: AllocationBook) -> Floats:
    factors: Floats = rng.multivariate_normal(PREMIA, book.factor_covariance, QUARTERS).round(5)
    return factors


def _draw_effects(rng: np.random.Generator, family: Family, sources: Sources) -> Iterator[_Effect]:
    """Yield one industry's effects, regime by regime; a source has none before its record is valid."""
    changes = np.flatnonzero(rng.random(HALVES - 1) < family.change) + 1
    ends = [0, *(changes * (QUARTERS // HALVES)).tolist(), QUARTERS]
    for first, last in pairwise(ends):
        source = int(np.flatnonzero(np.cumsum(family.prior) > rng.random())[0])
        size = float(family.mean[source] + family.deviation[source] * rng.standard_normal())
        begun = max(first, int(sources.start[source]))
        if rng.random() >= family.nothing and begun < last:
            yield _Effect(source, size, begun, last)
