"""Cures that need no optimiser: limits on weights cut off one by one, and steps towards a spread portfolio.

What the best of them earns says whether a portfolio tests more than arithmetic on its weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.risk.objects.placement import clipped
from finskillbench.domains.risk.remediation.scoring import BREACH, ROUNDING, merit_of_excess, merit_of_turnover
from finskillbench.engines.risk.formulation import Aim, Goal
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import HARD_KINDS, limit_scales, measure, measure_all
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, required
from finskillbench.engines.risk.remediation import after, budget_left, solve_stage, total_excess

MODELLED = frozenset({Kind.TRACKING_ERROR_MAX, Kind.BETA_RANGE, Kind.FACTOR_EXPOSURE_MAX, Kind.HHI_MAX})
"""Limits that no look at single weights and their sums shows: a risk model, betas, or all weights together."""
_STEPS = np.linspace(0.0, 1.0, 41)


def without_models(mandate: Mandate) -> Mandate:
    """The mandate with the limits on weights and their sums only."""
    return replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind not in MODELLED))


def needs_a_model(portfolio: Portfolio, mandate: Mandate, market: Market) -> bool:
    """Whether the cheapest cure of all other limits breaks one of those on tracking error, beta, factors or HHI.

    Raises
    ------
    InfeasibleError, UndecidedError : as `solve_stage`.
    """
    if not any(limit.kind in MODELLED for limit in mandate.constraints):
        return False
    found = solve_stage(portfolio, without_models(mandate), market, Aim(Goal.TURNOVER)).certified
    done = after(portfolio, found.weights - portfolio.weights)
    return any(one.kind in MODELLED and one.excess >= BREACH for one in measure(done, mandate, market, ROUNDING))


def merit_without_optimiser(
    portfolio: Portfolio, mandate: Mandate, market: Market, *, compliant: bool, value: float
) -> float:
    """What the best of the plain cures earns beside the least turnover, or the least excess where none complies.

    A lower bound in place of that `value` gives no more than is earned. Breaches of rounding size are overlooked.
    """
    trades = _plain_weights(portfolio, mandate, market) - portfolio.weights
    turnover = (np.abs(trades).sum(axis=1) + np.abs(trades.sum(axis=1))) / 2
    left = budget_left(portfolio, mandate)
    if not compliant:  # as far on the way as the turnover left allows
        trades *= np.minimum(1.0, left / np.maximum(turnover, ZERO_WEIGHT))[:, None]
        turnover = np.minimum(turnover, left)
    cash = portfolio.cash - trades.sum(axis=1)
    weights = portfolio.weights + trades
    values, excess = measure_all(weights, cash, portfolio.traded + turnover, mandate, market, ROUNDING)
    gating = [compliant or limit.kind in HARD_KINDS for limit in mandate.constraints]
    kept = (excess[:, gating] < BREACH).all(axis=1) & (cash > -BREACH)
    if compliant:
        return merit_of_turnover(float(turnover[kept].min()), value) if kept.any() else 0.0
    before = total_excess(portfolio, mandate, market)
    reached = _relative_excess(values[kept], excess[kept], mandate)
    return merit_of_excess(float(reached.min(initial=before)), value, before)


def _relative_excess(values: Floats, excess: Floats, mandate: Mandate) -> Floats:
    """(p,) what `monitor.relative_excess` says of each of p portfolios: values and excess (p, constraints)."""
    total = np.zeros(len(values))
    for limit, value, over in zip(mandate.constraints, values.T, excess.T, strict=True):
        if limit.kind not in HARD_KINDS:
            below, above = limit_scales(limit)
            total += np.maximum(over, 0.0) / np.where(value < limit.bounds[0], below, above)
    return total


def _plain_weights(portfolio: Portfolio, mandate: Mandate, market: Market) -> Floats:
    """(p, n) weights on the way from the portfolio, or from it cut at its limits, towards spread portfolios.

    These are equal weights, of all names and of those held, and inverse volatilities; as much invested as now, and
    fully. Last comes the benchmark itself, which keeps every mandate: steps towards it are not among them, since how
    much of it must be bought takes a model.
    """
    start, n = portfolio.weights, len(portfolio.weights)
    held = (np.abs(start) > ZERO_WEIGHT).astype(float)
    calm = 1.0 / np.sqrt(required(market.risk, "covariance").variances)
    goals = [np.full(n, 1.0 / n), held / held.sum(), calm / calm.sum()]
    ways = [
        base + _STEPS[:, None] * (goal * invested - base)
        for base in (start, clipped(portfolio, mandate, market))
        for goal in goals
        for invested in (float(start.sum()), 1.0)
    ]
    return np.vstack([*ways, required(market.benchmark, "benchmark weights")])
