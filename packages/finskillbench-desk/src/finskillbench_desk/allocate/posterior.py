"""What the visible data say of the coming quarter, exactly: all regimes of the disclosed family are summed over.

Given factor returns, residuals of different industries are independent. An industry goes through regimes that change
at half-years; in each, nothing moves it or one source does, and regimes are independent of each other. So the evidence
of a stretch of half-years is a sum over sources in closed form (`engines.statistics.sources`), and that of the whole
record a sum over partitions into stretches, by the forward recursion of product partition models.

Source: Barry and Hartigan (1992); Fearnhead (2006), Exact and efficient Bayesian inference for multiple changepoints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.allocate.dials import GROUP_SIZE, GROUPS, HALVES, NAMES, QUARTERS
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
