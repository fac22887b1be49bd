"""Legacy portfolios: where a mandate starts from, and how far it must trade at the least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.inputs import Constraints
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.tiers import Tier, mandate_problem
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.optimisation.certified import Certified, UndecidedError
from finskillbench.engines.portfolio.mandates.feasibility import least_turnover

CLOSE_ENOUGH = 0.01
"""How near the least turnover must come to the wanted one; the wanted one is random anyway."""
_STEPS = 6
_OF_CAP = (0.6, 0.85)
"""Shares of its cap that a name of one style gets: drift does not take it over, and there are names enough for any
least number of holdings, which would take branching to decide."""


def legacy_portfolio(
    month: MonthEnd, tier: Tier, target: float, concentrated: Floats, tolerance: float = CLOSE_ENOUGH
) -> tuple[Floats, Certified | None]:
    """A drifted portfolio whose least turnover into the tier's other limits is close to `target`.

    It blends the benchmark, which keeps the tier's limits, with a `concentrated` one, then drifts with the market;
    the blend is found by false position. Returns the weights and the certified least turnover; where the tier limits no
    turnover, `target` is the share of the concentrated one and nothing has to be certified.

    Raises
    ------
    UndecidedError : when no blend comes near the target; the caller draws again.
    """

    def blend(share: float) -> Floats:
        return without_dust(month.drifted((1 - share) * month.benchmark + share * concentrated))

    if tier.max_turnover is None:
        return blend(target), None

    problem = mandate_problem(month, tier.constraints)

    def least_of(weights: Floats, at_least: float = 0.0) -> Certified:
        return least_turnover(replace(problem, current=weights), at_least=at_least)

    # The least turnover grows almost linearly with the share of the concentrated portfolio.
    low, high = (0.0, 0.0), (1.0, least_of(blend(1.0), target).value)
    if high[1] < target:
        raise UndecidedError("the concentrated portfolio drawn lies too near to the tier's limits")
    for _ in range(_STEPS):
        share = low[0] + (high[0] - low[0]) * (target - low[1]) / (high[1] - low[1])
        weights = blend(share)
        least = least_of(weights)
        if abs(least.value - target) < tolerance:
            return weights, least
        low, high = ((share, least.value), high) if least.value < target else (low, (share, least.value))
    raise UndecidedError("no blend of the benchmark and the concentrated portfolio comes near the wanted turnover")


def of_few_names(month: MonthEnd, rng: np.random.Generator) -> Floats:
    """(n,) weights of a third to half of the names, drawn and weighted around the benchmark."""
    n = len(month.tickers)
    count = int(rng.integers(max(n // 3, 2), max(n // 2, 2) + 1))
    names = rng.choice(n, count, replace=False, p=month.benchmark)
    weights = np.zeros(n)
    weights[names] = month.benchmark[names] * np.exp(rng.normal(0.0, 0.5, count))
    return weights / weights.sum()


def of_one_style(month: MonthEnd, limits: Constraints, rng: np.random.Generator) -> Floats:
    """(n,) weights of the names that load most on a random mix of the factors, within the caps on names and sectors.

    What has to be mended is tracking error and factors, which nobody does by hand.
    """
    betas = np.array(list(month.exposures.values()))
    centre, spread = betas.mean(axis=1, keepdims=True), betas.std(axis=1, keepdims=True)
    scores: Floats = rng.standard_normal(len(betas)) @ ((betas - centre) / spread)
    cap = limits.get("max_weight") or 1.0
    room = dict.fromkeys(month.sectors, 1.0) | dict(limits.get("sector_limits") or {})
    weights = np.zeros(len(month.tickers))
    most = float(rng.uniform(*_OF_CAP)) * cap
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    for place in order:
        sector = month.sectors[place]
        weights[place] = min(most, room[sector], 1.0 - weights.sum())
        room[sector] -= float(weights[place])
    return weights / weights.sum()
