"""What can be inferred from what is visible: the exact posterior mean of what the signals are worth today.

Some of the vendors had an edge, the coefficients of such a vendor are normal with one of a few strengths, and its edge
holds to this day or ended with one of a few weeks; those of another vendor are zero. Given which vendors had an edge,
until when, and the strength, the posterior is normal: all such patterns are summed over, 16,125 for each strength. What
a vendor filled in afterwards is made of returns and of chance, hence says nothing of its coefficients given the
returns: its signals count from the week on in which they were delivered live. From the day on which the house has
found out whether some vendors' edges hold, patterns that say otherwise have no weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, lru_cache, reduce
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.engines.panel import Sums, sums
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    ENDS,
    HOLDS,
    RETURN_UNIT,
    SIGNAL_UNIT,
    SOUND,
    VENDOR_OF,
    VENDORS,
    Tier,
    World,
)

Stretches = tuple[Sums, ...]
"""The panel's sums over the weeks up to each end that an edge may have had, and over those since the last of them."""
_EACH = len(VENDOR_OF) // len(VENDORS)
"""Signals that a vendor sells."""
_HOLDS = len(ENDS) + 1
"""Stretches that an edge covers which holds to this day; one that ended with the first of the weeks covers one."""


def history(world: World, *, backfilled: bool = False) -> Stretches:
    """The sums of the panel at the first decision.

    `backfilled` is the mistake of counting what a vendor filled in afterwards.
    """
    weeks = world.draws.weeks
    signals = world.draws.signals[:weeks] / SIGNAL_UNIT
    if not backfilled:
        for place, first in enumerate(world.signals.live_from.tolist()):
            signals[:first, :, place] = 0.0
    returns = world.draws.returns[:weeks] / RETURN_UNIT / world.risk.specific
    covariance = _relative(world)
    return tuple(sums(signals[a:b], returns[a:b], covariance) for a, b in pairwise((0, *ENDS, weeks)))


def whole(of: Stretches) -> Sums:
    """The sums over all weeks, for those who make no difference between them."""
    return reduce(Sums.__add__, of)


def evidence(world: World, of_history: Stretches) -> list[Stretches]:
    """The sums of the panel at each of the twelve decisions, of what has been delivered by then."""
    weeks, known = world.draws.weeks, [of_history]
    covariance = _relative(world)
    for week in range(weeks, weeks + DECISIONS - 1):
        signals = world.draws.signals[week : week + 1] / SIGNAL_UNIT
        returns = world.draws.returns[week : week + 1] / RETURN_UNIT / world.risk.specific
        known.append((*known[-1][:-1], known[-1][-1] + sums(signals, returns, covariance)))
    return [known[world.delivered(decision)] for decision in range(DECISIONS)]


def _relative(world: World) -> Floats:
    """(n, n) covariance of returns in units of specific volatility."""
    scale = world.risk.specific
    return world.risk.covariance() / scale[:, None] / scale


class _Patterns(NamedTuple):
    """Patterns of edges: which of so many sound vendors' edges ended when.

    Attributes
    ----------
    place : (p,) place of a pattern among all of its number of vendors.
    prior : (p,) log prior.
    signals : (p, k) the signals of its vendors.
    in_force : (p, 10) whether the edge of a vendor holds to this day.
    today : (p, k) whether the edge of a signal does.
    systems, scores : (p, k, k) and (p, k) where the entries of a pattern stand among those of all signals, by stretch.
    """

    place: Integers
    prior: Floats
    signals: Integers
    in_force: Booleans
    today: Booleans
    systems: Integers
    scores: Integers

    def chosen(self, which: Booleans) -> _Patterns:
        """Some of the patterns."""
        parts: list[Any] = [part[which] for part in self]
        return _Patterns(*parts)


def _shape(size: int) -> tuple[int, int]:
    """How many sets of so many vendors there are, and in how many ways their edges cover stretches."""
    return math.comb(len(VENDORS), size), _HOLDS**size


@cache
def _patterns(size: int, *, ended: bool) -> _Patterns:
    """Patterns of so many sound vendors: those in which every edge has ended, or all others."""
    sets = np.array(list(combinations(range(len(VENDORS)), size)))
    covered = np.array(list(product(range(1, _HOLDS + 1), repeat=size)))
    chances: Floats = np.where(covered == _HOLDS, HOLDS, (1 - HOLDS) / len(ENDS))
    prior = np.broadcast_to(np.log(chances).sum(axis=1) - np.log(len(sets)), _shape(size)).ravel()
    chosen = (covered == _HOLDS).any(axis=1) != ended
    place = np.flatnonzero(np.broadcast_to(chosen, _shape(size)))
    vendors, covers = sets[place // len(covered)], covered[place % len(covered)]
    signals = (_EACH * vendors[..., None] + np.arange(_EACH)).reshape(len(place), size * _EACH)
    stretch, count = np.repeat(covers, _EACH, axis=1) - 1, len(VENDOR_OF)
    shared = np.minimum(stretch[:, :, None], stretch[:, None, :])
    holds = covers == _HOLDS
    return _Patterns(
        place,
        prior[place],
        signals,
        (holds[:, :, None] & (vendors[:, :, None] == np.arange(len(VENDORS)))).any(axis=1),
        np.repeat(holds, _EACH, axis=1),
        (shared * count + signals[:, :, None]) * count + signals[:, None, :],
        stretch * count + signals,
    )


def means(of: Stretches, tier: Tier, decay: Floats, verdicts: Mapping[int, bool]) -> Floats:
    """(30,) posterior means of the information coefficients of today.

    Parameters
    ----------
    of : the panel's sums.
    tier : whose strengths may be.
    decay : (30,) what is left of the signals after a week.
    verdicts : vendor to whether its edge is known to hold.
    """
    found = [
        _weighed(of, strength * np.sqrt(1 - decay), size, verdicts) for strength in tier.strengths for size in SOUND
    ]
    highest = max(float(log.max()) for log, _, _ in found)
    total, sizes = np.zeros(len(VENDOR_OF)), list[float]()
    for log, patterns, centres in found:
        weights = np.exp(log - highest)
        sizes.append(float(weights.sum()))
        products = weights[patterns.place][:, None] * centres
        total += np.bincount(patterns.signals.ravel(), products.ravel(), len(VENDOR_OF))
    return total / math.fsum(sizes)


def _weighed(
    of: Stretches, deviation: Floats, size: int, verdicts: Mapping[int, bool]
) -> tuple[Floats, _Patterns, Floats]:
    """Log weights of the patterns of so many sound vendors; those of them with an edge that may hold, and what signals
    are worth today by each (p, k).

    Systems are solved of those patterns alone that the verdicts leave possible; the others weigh nothing.
    """
    log = np.full(math.prod(_shape(size)), -np.inf)
    if not any(verdicts.values()):
        ended = _patterns(size, ended=True)
        log[ended.place] = _ended(of[:-1], tuple(deviation.tolist()), size)
    patterns = _patterns(size, ended=False)
    for vendor, holds in verdicts.items():
        which = patterns.in_force[:, vendor] == holds
        patterns = patterns.chosen(which)
    log[patterns.place], solved = _solved(of, deviation, patterns)
    return log, patterns, deviation[patterns.signals] * solved * patterns.today


@lru_cache(maxsize=4 * len(SOUND))
def _ended(of: Stretches, deviation: tuple[float, ...], size: int) -> Floats:
    """(p,) log weights of the patterns in which every edge has ended: later weeks say nothing of them."""
    return _solved(of, np.array(deviation), _patterns(size, ended=True))[0]


def _solved(of: Stretches, deviation: Floats, patterns: _Patterns) -> tuple[Floats, Floats]:
    """Log weights (p,) of patterns, and the coefficients by each in standard deviations of their prior (p, k)."""
    informations = np.cumsum([one.information for one in of], axis=0)
    scores = np.cumsum([one.score for one in of], axis=0)
    # Scaled once for all patterns, whose systems are put together from the entries.
    inner = np.take(deviation[:, None] * informations * deviation + np.eye(len(VENDOR_OF)), patterns.systems)
    weighed = np.take(deviation * scores, patterns.scores)
    solved: Floats = np.asarray(np.linalg.solve(inner, weighed[..., None])[..., 0], dtype=float)
    gained = ((weighed * solved).sum(axis=-1) - np.linalg.slogdet(inner)[1]) / 2
    return patterns.prior + gained, solved


def signals_at(world: World, decision: int, *, stale: bool = False) -> Floats:
    """(n, 30) means of the signals at a decision, given the newest that were delivered.

    `stale` is the mistake of taking an old file for a new one.
    """
    delivered = world.delivered(decision)
    newest = world.draws.signals[world.draws.weeks + delivered] / SIGNAL_UNIT
    return newest if stale else newest * world.signals.decay ** (decision - delivered)


def forecasts(world: World, decision: int, worth: Floats, *, stale: bool = False) -> Floats:
    """(12 - decision, n) expected returns of the weeks from a decision on, as expected at that decision."""
    signals = signals_at(world, decision, stale=stale)
    later = worth * world.signals.decay ** np.arange(DECISIONS - decision)[:, None]
    return (later @ signals.T) * world.risk.specific
