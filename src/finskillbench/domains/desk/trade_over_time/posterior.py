"""What can be inferred from what is visible: the exact posterior mean of what the signals are worth today.

Some of the vendors had an edge, the coefficients of such a vendor are normal with one of a few strengths, and its edge
holds to this day or ended with one of a few weeks; those of another vendor are zero. Given which vendors had an edge,
until when, and the strength, the posterior is normal: all such patterns are summed over, 16,125 for each strength. What
a vendor filled in afterwards is made of returns and of chance, hence says nothing of its coefficients given the
returns: its signals count from the week on in which they were delivered live. From the day on which the house has
found out whether some vendors' edges hold, patterns that say otherwise have no weight.
"""

from __future__ import annotations

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
    return total / sum(float(weight.sum()) for weight in weights)


def _weighed(of: Stretches, deviation: Floats, size: int, verdicts: Mapping[int, bool]) -> tuple[Floats, Floats]:
    """Log weights (m, s) of the patterns of so many sound vendors, and what signals are worth today (m, s, 30)."""
    informations = np.cumsum([each.information for each in of], axis=0)
    scores = np.cumsum([each.score for each in of], axis=0)
    sets, covered, log = _patterns(size)
    each = len(VENDOR_OF) // len(VENDORS)
    columns = (each * sets[..., None] + np.arange(each)).reshape(len(sets), 1, -1)
    covers = np.repeat(covered, each, axis=2)
    shared = np.minimum(covers[..., None], covers[..., None, :]) - 1
    scale = deviation[columns]
    inner = scale[..., None] * informations[shared, columns[..., None], columns[..., None, :]] * scale[..., None, :]
    inner += np.eye(inner.shape[-1])
    weighed = scale * scores[covers - 1, columns]
    solved = np.linalg.solve(inner, weighed[..., None])[..., 0]
    log = log + ((weighed * solved).sum(axis=-1) - np.linalg.slogdet(inner)[1]) / 2
    for vendor, holds in verdicts.items():
        log[((sets == vendor) & (covered == _HOLDS)).any(axis=-1) != holds] = -np.inf
    centres = np.zeros((*log.shape, len(VENDOR_OF)))
    today = scale * solved * (covers == _HOLDS)
    np.put_along_axis(centres, np.broadcast_to(columns, today.shape), today, axis=2)
    return log, centres


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
