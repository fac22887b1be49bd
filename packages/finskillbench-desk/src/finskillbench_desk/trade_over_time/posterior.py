"""Exact posterior mean of the signals' worth today, given the visible data.

Some vendors had an edge with normal coefficients of one of a few strengths; it holds to this day or ended in one of a
few weeks. Other vendors' coefficients are zero. Given sound vendors, ends and strength the posterior is normal; all
16,125 patterns per strength are summed over. Backfilled values count as missing, since given the returns they say
nothing about the coefficients. Patterns that contradict published findings have no weight.
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
    TradingTier,
    TradingWorld,
)

Stretches = tuple[Sums, ...]
"""Sums of the panel up to each possible end of an edge, and since the last of them."""
_EACH = len(VENDOR_OF) // len(VENDORS)
"""Signals per vendor."""
_HOLDS = len(ENDS) + 1
"""Number of stretches covered by an edge that still holds; one that ended first covers one."""


def history_sums(world: TradingWorld, *, backfilled: bool = False) -> Stretches:
    """Return the sums at the first decision; `backfilled` is the mistake of counting backfilled values."""
    weeks = world.draws.weeks
    signals = world.draws.signals[:weeks] / SIGNAL_UNIT
    if not backfilled:
        for place, first in enumerate(world.signals.live_from.tolist()):
            signals[:first, :, place] = 0.0
    returns = world.draws.returns[:weeks] / RETURN_UNIT / world.risk.specific
    covariance = _relative(world)
    return tuple(sums(signals[a:b], returns[a:b], covariance) for a, b in pairwise((0, *ENDS, weeks)))


def all_weeks(of: Stretches) -> Sums:
    """Return the sums over all weeks."""
    return reduce(Sums.__add__, of)


def sums_at_decisions(world: TradingWorld, of_history: Stretches) -> list[Stretches]:
    """Return the sums at each of the twelve decisions, from the data delivered by then."""
    weeks, known = world.draws.weeks, [of_history]
    covariance = _relative(world)
    for week in range(weeks, weeks + DECISIONS - 1):
        signals = world.draws.signals[week : week + 1] / SIGNAL_UNIT
        returns = world.draws.returns[week : week + 1] / RETURN_UNIT / world.risk.specific
        known.append((*known[-1][:-1], known[-1][-1] + sums(signals, returns, covariance)))
    return [known[world.delivered(decision)] for decision in range(DECISIONS)]


def _relative(world: TradingWorld) -> Floats:
    scale = world.risk.specific
    return world.risk.covariance() / scale[:, None] / scale


class _Patterns(NamedTuple):
    """Patterns of edges: sound vendors and the ends of their edges.

    Attributes
    ----------
    place, prior : (p,) index of a pattern among those with equally many vendors, and log prior.
    signals : (p, k) signals of its vendors.
    in_force : (p, 10) whether a vendor's edge holds today; `today` (p, k) by signal.
    systems, scores : (p, k, k) and (p, k) indices of the pattern's entries among those of all signals, by stretch.
    """

    place: Integers
    prior: Floats
    signals: Integers
    in_force: Booleans
    today: Booleans
    systems: Integers
    scores: Integers

    def chosen(self, which: Booleans) -> _Patterns:
        parts: list[Any] = [part[which] for part in self]
        return _Patterns(*parts)


def _shape(size: int) -> tuple[int, int]:
    """Return the numbers of sets of so many vendors and of combinations of their covered stretches."""
    return math.comb(len(VENDORS), size), _HOLDS**size


@cache
def _patterns(size: int, *, ended: bool) -> _Patterns:
    """Return the patterns of so many sound vendors in which every edge has ended, or all others."""
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


def posterior_means(of: Stretches, tier: TradingTier, decay: Floats, verdicts: Mapping[int, bool]) -> Floats:
    """Return (30,) posterior means of today's information coefficients.

    Parameters
    ----------
    of : sums of the panel by stretch.
    tier : tier with the possible strengths.
    decay : (30,) share of a signal left after a week.
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
    """Return log weights of the patterns, the patterns with a current edge, and signal worth (p, k) by each.

    Only patterns that the verdicts permit are solved; the others have no weight.
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
    """Return (p,) log weights of patterns without a current edge, which later weeks do not affect."""
    return _solved(of, np.array(deviation), _patterns(size, ended=True))[0]


def _solved(of: Stretches, deviation: Floats, patterns: _Patterns) -> tuple[Floats, Floats]:
    """Return log weights (p,) and coefficients (p, k) of patterns, in prior standard deviations."""
    informations = np.cumsum([one.information for one in of], axis=0)
    scores = np.cumsum([one.score for one in of], axis=0)
    # Scaled once; each pattern's system is assembled from these entries.
    inner = np.take(deviation[:, None] * informations * deviation + np.eye(len(VENDOR_OF)), patterns.systems)
    weighed = np.take(deviation * scores, patterns.scores)
    solved: Floats = np.asarray(np.linalg.solve(inner, weighed[..., None])[..., 0], dtype=float)
    gained = ((weighed * solved).sum(axis=-1) - np.linalg.slogdet(inner)[1]) / 2
    return patterns.prior + gained, solved


def signals_at(world: TradingWorld, decision: int, *, stale: bool = False) -> Floats:
    """Return (n, 30) signal means at a decision, given the newest delivery; `stale` treats an old file as new."""
    delivered = world.delivered(decision)
    newest = world.draws.signals[world.draws.weeks + delivered] / SIGNAL_UNIT
    return newest if stale else newest * world.signals.decay ** (decision - delivered)


def forecasts(world: TradingWorld, decision: int, worth: Floats, *, stale: bool = False) -> Floats:
    """Return (12 - decision, n) expected returns of the weeks from a decision on."""
    signals = signals_at(world, decision, stale=stale)
    later = worth * world.signals.decay ** np.arange(DECISIONS - decision)[:, None]
    return (later @ signals.T) * world.risk.specific
