"""What can be inferred from what is visible: the exact posterior mean of what the signals are worth.

Some of the vendors are sound, and the coefficients of a sound vendor are normal with one of a few strengths; those of
another vendor are zero. Given which vendors are sound and the strength, the posterior is normal, and there are 375
patterns and at most three strengths: all are summed over. What a vendor filled in afterwards is made of returns and of
chance, hence says nothing of its coefficients given the returns: its signals count from the week on in which they were
delivered live.
"""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.desk.trade_over_time.dials import (
    DECISIONS,
    RETURN_UNIT,
    SIGNAL_UNIT,
    SOUND,
    VENDORS,
    Tier,
)
from finskillbench.domains.desk.trade_over_time.world import VENDOR_OF, World
from finskillbench.engines.statistics.panel import Sums, sums

_PATTERNS = np.array([each for each in product((0.0, 1.0), repeat=len(VENDORS)) if sum(each) in SOUND])
"""(375, 10) which vendors may be sound together."""
_LOG_PRIOR = -np.log([comb(len(VENDORS), int(count)) for count in _PATTERNS.sum(axis=1)])


def history(world: World, *, backfilled: bool = False) -> Sums:
    """The sums of the panel at the first decision.

    `backfilled` is the mistake of counting what a vendor filled in afterwards.
    """
    weeks = world.draws.weeks
    signals = world.draws.signals[:weeks] / SIGNAL_UNIT
    if not backfilled:
        for place, first in enumerate(world.signals.live_from.tolist()):
            signals[:first, :, place] = 0.0
    return sums(signals, world.draws.returns[:weeks] / RETURN_UNIT / world.risk.specific, _relative(world))


def evidence(world: World, of_history: Sums) -> list[Sums]:
    """The sums of the panel at each of the twelve decisions, of what has been delivered by then."""
    weeks, known = world.draws.weeks, [of_history]
    covariance = _relative(world)
    for week in range(weeks, weeks + DECISIONS - 1):
        signals = world.draws.signals[week : week + 1] / SIGNAL_UNIT
        returns = world.draws.returns[week : week + 1] / RETURN_UNIT / world.risk.specific
        known.append(known[-1] + sums(signals, returns, covariance))
    return [known[world.delivered(decision)] for decision in range(DECISIONS)]


def _relative(world: World) -> Floats:
    """(n, n) covariance of returns in units of specific volatility."""
    scale = world.risk.specific
    return world.risk.covariance() / scale[:, None] / scale


def means(of: Sums, tier: Tier, decay: Floats) -> Floats:
    """(30,) posterior means of the information coefficients, from a panel's sums and the decay (30,) of the signals."""
    logs: list[Floats] = []
    centres: list[Floats] = []
    for strength in tier.strengths:
        scale = strength * np.sqrt(1 - decay) * _PATTERNS[:, VENDOR_OF]
        inner = scale[:, :, None] * of.information * scale[:, None, :] + np.eye(len(VENDOR_OF))
        weighed = scale * of.score
        solved = np.linalg.solve(inner, weighed[:, :, None])[:, :, 0]
        logs.append(_LOG_PRIOR + ((weighed * solved).sum(axis=1) - np.linalg.slogdet(inner)[1]) / 2)
        centres.append(scale * solved)
    log = np.concatenate(logs)
    weights = np.exp(log - log.max())
    return weights @ np.concatenate(centres) / weights.sum()


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
