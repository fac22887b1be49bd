"""Cures without an optimiser; their best score shows whether a case needs more than arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.risk.objects.placement import clipped
from finskillbench.domains.risk.remediation.scoring import BREACH, ROUNDING, merit_of_cost, merit_of_excess
from finskillbench.engines.risk.mandate import ConstraintKind, RiskMandate
from finskillbench.engines.risk.monitor import HARD_KINDS, limit_scales, measure_all
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio, require_field
from finskillbench.engines.risk.remediation import budget_left, total_excess
from finskillbench.engines.risk.trading import TradingRules
from finskillbench.scoring.values import clip

MODELLED = frozenset(
    {
        ConstraintKind.TRACKING_ERROR_MAX,
        ConstraintKind.BETA_RANGE,
        ConstraintKind.FACTOR_EXPOSURE_MAX,
        ConstraintKind.HHI_MAX,
    }
)
"""Limits that need a risk model, betas, or all weights together."""
_UNEVEN = 1e-3
"""Cost increment per name that breaks ties of equal costs."""
_STEPS = np.linspace(0.0, 1.0, 41)


def without_models(mandate: RiskMandate) -> RiskMandate:
    """Return the mandate with limits on weights and their sums only."""
    return mandate.without(*MODELLED)


def even_costs(names: int) -> Floats:
    """Return (n,) nearly equal costs, which minimise the traded amount."""
    return 1.0 + _UNEVEN * np.arange(names, dtype=np.float64)


def merit_without_optimiser(
    portfolio: Portfolio,
    mandate: RiskMandate,
    market: MarketSnapshot,
    rules: TradingRules,
    *,
    compliant: bool,
    value: float,
    additional: Sequence[Floats] = (),
) -> float:
    """Return the best score of simple cures and `additional` trades (n,) against the optimal `value`."""
    ways = _plain_weights(portfolio, rules.target(mandate), market) - portfolio.weights
    return merit_of_trades(portfolio, mandate, market, rules, [*ways, *additional], compliant=compliant, value=value)


def merit_of_trades(
    portfolio: Portfolio,
    mandate: RiskMandate,
    market: MarketSnapshot,
    rules: TradingRules,
    lists: Sequence[Floats],
    *,
    compliant: bool,
    value: float,
) -> float:
    """Return the best score of trade lists (n,) without trades below the ticket."""
    if not lists:
        return 0.0
    target, trades = rules.target(mandate), np.vstack(lists)
    trades = np.where(np.abs(trades) < rules.ticket, 0.0, trades)
    turnover = (np.abs(trades).sum(axis=1) + np.abs(trades.sum(axis=1))) / 2
    left = budget_left(portfolio, mandate)
    if not compliant:  # scale down to the turnover left
        trades *= np.minimum(1.0, left / np.maximum(turnover, ZERO_WEIGHT))[:, None]
        turnover = np.minimum(turnover, left)
    cash = portfolio.cash - trades.sum(axis=1)
    weights, costs = portfolio.weights + trades, np.abs(trades) @ rules.costs
    values, excess = measure_all(weights, cash, portfolio.traded + turnover, target, market, ROUNDING)
    gating = [compliant or limit.kind in HARD_KINDS for limit in target.constraints]
    kept = (excess[:, gating] < BREACH).all(axis=1) & (cash > -BREACH)
    if compliant:
        return clip(merit_of_cost(float(costs[kept].min()), value)) if kept.any() else 0.0
    before = total_excess(portfolio, target, market)
    reached = _relative_excess(values[kept], excess[kept], target) + costs[kept]
    return clip(merit_of_excess(float(reached.min(initial=before)), value, before))


def _relative_excess(values: Floats, excess: Floats, mandate: RiskMandate) -> Floats:
    """Vectorise `total_relative_excess` over values and excess (p, constraints)."""
    total = np.zeros(len(values))
    for limit, value, over in zip(mandate.constraints, values.T, excess.T, strict=True):
        if limit.kind not in HARD_KINDS:
            below, above = limit_scales(limit)
            total += np.maximum(over, 0.0) / np.where(value < limit.bounds[0], below, above)
    return total


def _plain_weights(portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot) -> Floats:
    """Return (p, n) weights from the current and the capped portfolio towards diversified ones, then the benchmark.

    Steps towards the benchmark are excluded, because their size needs a model.
    """
    start, n = portfolio.weights, len(portfolio.weights)
    held = (np.abs(start) > ZERO_WEIGHT).astype(float)
    calm = 1.0 / np.sqrt(require_field(market.risk, "covariance").variances)
    goals = [np.full(n, 1.0 / n), held / held.sum(), calm / calm.sum()]
    ways = [
        base + _STEPS[:, None] * (goal * invested - base)
        for base in (start, clipped(portfolio, mandate, market))
        for goal in goals
        for invested in (float(start.sum()), 1.0)
    ]
    return np.vstack([*ways, require_field(market.benchmark, "benchmark weights")])
