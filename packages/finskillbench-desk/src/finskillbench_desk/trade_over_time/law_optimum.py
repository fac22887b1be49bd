"""Drawing of cases whose law is not disclosed, with their optimum, zero and traps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import InternalError
from finskillbench_desk.market import ListedName
from finskillbench_desk.trade_over_time.law_posterior import Evidence, evidence_of, followed_aims, law_aims
from finskillbench_desk.trade_over_time.law_world import LawWorld, draw_law_world
from finskillbench_desk.trade_over_time.laws import draw_law
from finskillbench_desk.trade_over_time.optimum import Optimum, TradingSetup, costly_traps, held_path, losses
from finskillbench_desk.trade_over_time.world import DECISIONS

LEAST_GAIN = 2.5
"""Least gain in millions that is foreseen on the first day; worlds in which less can be gained are drawn again.

What becomes known later must not decide, or the posterior would depend on it.
"""
MOST_DRAWS = 60
"""Largest number of worlds drawn for a case; two in five or more of a structure's worlds suffice."""


def draw_law_case(
    rng: np.random.Generator, market: Sequence[ListedName], structure: str, tier: str
) -> tuple[LawWorld, Optimum]:
    """Draw laws of a structure and worlds under them until enough can be gained; also return the optimum."""
    tickers, industries = [each.symbol for each in market], [each.industry for each in market]
    for _ in range(MOST_DRAWS):
        case = draw_law_world(tickers, industries, draw_law(rng, structure), rng, tier)
        seen = evidence_of(case)
        if foreseen_gain(case, seen) >= LEAST_GAIN:
            return case, _law_optimum(case, seen)
    raise InternalError(f"none of {MOST_DRAWS} worlds of {structure} offers a gain of {LEAST_GAIN:g} millions")


def foreseen_gain(case: LawWorld, seen: Evidence) -> float:
    """Return the gain in millions over ignoring all signals, by the first day's forecasts of all weeks."""
    setup, weeks = TradingSetup.of(case.world), case.world.draws.weeks
    forecasts = seen.forecasts(weeks, weeks, weeks + DECISIONS) * case.world.risk.specific
    policy = setup.policy(0)
    return math.fsum(
        policy.loss(place, policy.aim(place, forecasts[place:]), policy.aim(place, 0.0 * forecasts[place:]))
        for place in range(DECISIONS)
    )


def law_textbooks(setup: TradingSetup, aims: Floats) -> dict[str, Floats]:
    """Return the losses (12,) of holding still, and of the policy that expects nothing of any signal."""
    ignoring = followed_aims(setup, ignoring_aims(setup))
    return {"holding still": losses(setup, aims, held_path(setup)), "ignoring signals": losses(setup, aims, ignoring)}


def ignoring_aims(setup: TradingSetup) -> Floats:
    """Return (12, n) aims of the policy that expects nothing of any signal."""
    nothing = np.zeros((DECISIONS, len(setup.tickers)))
    return np.array([setup.policy(place).aim(place, nothing[place:]) for place in range(DECISIONS)])


def _law_optimum(case: LawWorld, seen: Evidence) -> Optimum:
    world, aims = case.world, law_aims(case, seen)
    paths = law_textbooks(TradingSetup.of(world), aims)
    better = min(paths, key=lambda name: float(paths[name].sum()))
    believing = replace(seen, start=np.zeros_like(seen.start))

    def misread(kind: str, place: int) -> Floats:
        """Return the forecasts (12 - place, n) of an investor who knows the law and fell for a trap."""
        known, first = world.draws.weeks + world.delivered(place), world.draws.weeks + place
        if kind == "stale":
            first = known
        source = believing if kind == "backfill" else seen
        return source.forecasts(known, first, first + DECISIONS - place) * world.risk.specific

    traps = costly_traps(world, aims, misread, paths["holding still"])
    return Optimum(aims, np.zeros((DECISIONS, 0)), paths[better], better, traps)
