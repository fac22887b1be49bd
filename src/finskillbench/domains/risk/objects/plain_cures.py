"""Cures that need no optimiser: limits on weights cut off one by one, and steps towards a spread portfolio.

What the best of them earns says whether a portfolio tests more than arithmetic on its weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.risk.objects.placement import clipped
from finskillbench.domains.risk.remediation.scoring import BREACH, ROUNDING, merit_of_cost, merit_of_excess
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import HARD_KINDS, limit_scales, measure_all
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, required
from finskillbench.engines.risk.remediation import budget_left, total_excess
from finskillbench.engines.risk.trading import Terms

MODELLED = frozenset({Kind.TRACKING_ERROR_MAX, Kind.BETA_RANGE, Kind.FACTOR_EXPOSURE_MAX, Kind.HHI_MAX})
"""Limits that no look at single weights and their sums shows: a risk model, betas, or all weights together."""
_UNEVEN = 1e-3
"""Costs that differ by so much from name to name settle the ties of equal ones."""
_STEPS = np.linspace(0.0, 1.0, 41)


def without_models(mandate: Mandate) -> Mandate:
    """The mandate with the limits on weights and their sums only."""
    return mandate.without(*MODELLED)


def even_costs(names: int) -> Floats:
    """(n,) costs of whoever minimises what is traded instead of what it costs."""
    return 1.0 + _UNEVEN * np.arange(names, dtype=np.float64)


def merit_without_optimiser(
    portfolio: Portfolio,
    mandate: Mandate,
    market: Market,
    terms: Terms,
    *,
    compliant: bool,
    value: float,
    others: Sequence[Floats] = (),
) -> float:
    """What the best of the plain cures earns beside the least cost, or the least shortfall where none complies.

    Breaches of rounding size are overlooked. `others` are more lists of trades (n,). What is below the ticket is
    dropped from all of them.
    """
    ways = _plain_weights(portfolio, terms.target(mandate), market) - portfolio.weights
    return merit_of_trades(portfolio, mandate, market, terms, [*ways, *others], compliant=compliant, value=value)


def merit_of_trades(
    portfolio: Portfolio,
    mandate: Mandate,
    market: Market,
    terms: Terms,
    lists: Sequence[Floats],
    *,
    compliant: bool,
    value: float,
) -> float:
    """What the best of some lists of trades (n,) earns once what is below the ticket is dropped from them."""
    if not lists:
        return 0.0
    target, trades = terms.target(mandate), np.vstack(lists)
    trades = np.where(np.abs(trades) < terms.ticket, 0.0, trades)
    turnover = (np.abs(trades).sum(axis=1) + np.abs(trades.sum(axis=1))) / 2
    left = budget_left(portfolio, mandate)
    if not compliant:  # as far on the way as the turnover left allows
        trades *= np.minimum(1.0, left / np.maximum(turnover, ZERO_WEIGHT))[:, None]
        turnover = np.minimum(turnover, left)
    cash = portfolio.cash - trades.sum(axis=1)
    weights, costs = portfolio.weights + trades, np.abs(trades) @ terms.costs
    values, excess = measure_all(weights, cash, portfolio.traded + turnover, target, market, ROUNDING)
    gating = [compliant or limit.kind in HARD_KINDS for limit in target.constraints]
    kept = (excess[:, gating] < BREACH).all(axis=1) & (cash > -BREACH)
    if compliant:
        return merit_of_cost(float(costs[kept].min()), value) if kept.any() else 0.0
    before = total_excess(portfolio, target, market)
    reached = _relative_excess(values[kept], excess[kept], target) + costs[kept]
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
