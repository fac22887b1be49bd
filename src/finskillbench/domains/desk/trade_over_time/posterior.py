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
from functools import cache, reduce
from itertools import combinations, pairwise, product

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.desk.trade_over_time.dials import (
    DECISIONS,
    ENDS,
    HOLDS,
    RETURN_UNIT,
    SIGNAL_UNIT,
    SOUND,
    VENDORS,
    Tier,
)
from finskillbench.domains.desk.trade_over_time.world import VENDOR_OF, World
from finskillbench.engines.statistics.panel import Sums, sums

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


@cache
def _patterns(size: int) -> tuple[Integers, Integers, Floats]:
    """Patterns of so many sound vendors: the vendors (m, 1, size), the stretches that their edges cover (1, s, size),
    the log prior (1, s).
    """
    sets = np.array(list(combinations(range(len(VENDORS)), size)))
    covered = np.array(list(product(range(1, _HOLDS + 1), repeat=size)))
    chances: Floats = np.where(covered == _HOLDS, HOLDS, (1 - HOLDS) / len(ENDS))
    return sets[:, None], covered[None], np.log(chances).sum(axis=1)[None] - np.log(len(sets))


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
    highest = max(float(log.max()) for log, _ in found)
    weights = [np.exp(log - highest) for log, _ in found]
    total = np.zeros(len(VENDOR_OF))
    for weight, (_, centres) in zip(weights, found, strict=True):
        total += np.einsum("ms,msk->k", weight, centres)
    return total / math.fsum(float(weight.sum()) for weight in weights)


def _weighed(of: Stretches, deviation: Floats, size: int, verdicts: Mapping[int, bool]) -> tuple[Floats, Floats]:
    """Log weights (m, s) of the patterns of so many sound vendors, and what signals are worth today (m, s, 30).

    Systems are solved of those patterns alone that the verdicts leave possible; the others weigh nothing.
    """
    sets, covered, prior = _patterns(size)
    possible = np.ones((len(sets), covered.shape[1]), dtype=bool)
    for vendor, holds in verdicts.items():
        possible &= ((sets == vendor) & (covered == _HOLDS)).any(axis=-1) == holds
    place = np.flatnonzero(possible)
    vendors = np.broadcast_to(sets, (*possible.shape, size))[possible]
    covers = np.broadcast_to(covered, (*possible.shape, size))[possible]
    inner, weighed = _systems(of, deviation, vendors, covers)
    solved = np.linalg.solve(inner, weighed[..., None])[..., 0]
    log = np.full(possible.shape, -np.inf)
    gained = ((weighed * solved).sum(axis=-1) - np.linalg.slogdet(inner)[1]) / 2
    log[possible] = np.broadcast_to(prior, possible.shape)[possible] + gained
    columns = (_EACH * vendors[..., None] + np.arange(_EACH)).reshape(len(place), size * _EACH)
    centres = np.zeros((*possible.shape, len(VENDOR_OF)))
    today = deviation[columns] * solved * np.repeat(covers == _HOLDS, _EACH, axis=1)
    centres.reshape(-1, len(VENDOR_OF))[place[:, None], columns] = today
    return log, centres


def _systems(of: Stretches, deviation: Floats, vendors: Integers, covers: Integers) -> tuple[Floats, Floats]:
    """The systems (p, k, k) and their right-hand sides (p, k) of patterns: vendors and covered stretches (p, size)."""
    count, size = vendors.shape
    informations = np.cumsum([one.information for one in of], axis=0)
    scores = np.cumsum([one.score for one in of], axis=0)
    # Scaled once for all patterns, which are put together from blocks of two vendors.
    scaled = deviation[:, None] * informations * deviation + np.eye(len(VENDOR_OF))
    blocks = scaled.reshape(len(of), len(VENDORS), _EACH, len(VENDORS), _EACH).swapaxes(2, 3).copy()
    inner = np.empty((count, size * _EACH, size * _EACH))
    for row, column in product(range(size), repeat=2):
        shared = np.minimum(covers[:, row], covers[:, column]) - 1
        block = blocks[shared, vendors[:, row], vendors[:, column]]
        inner[:, row * _EACH : (row + 1) * _EACH, column * _EACH : (column + 1) * _EACH] = block
    weighed = (deviation * scores).reshape(len(of), len(VENDORS), _EACH)[covers - 1, vendors]
    return inner, weighed.reshape(count, size * _EACH)


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
