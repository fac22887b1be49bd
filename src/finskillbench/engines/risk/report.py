"""Results as JSON: ranked exposures, risk figures, stress attributions, trades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.risk.exposures import (
    Exposure,
    days_to_liquidate,
    factor_exposures,
    hhi,
    illiquid_share,
    sector_weights,
    top,
)
from finskillbench.engines.risk.mandate import Mandate
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, turnover_of
from finskillbench.engines.risk.remediation import Remedy, Stage, after
from finskillbench.engines.risk.stress import StressResult
from finskillbench.engines.risk.trading import Terms

LEAST_TRADE = 1e-7
"""A weight that changes by no more has not been traded: the accuracy of a solver."""


def exposure_list(exposures: Sequence[Exposure]) -> list[dict[str, Any]]:
    """Ranked exposures as risk identification answers them."""
    return [
        {
            "rank": rank,
            "type": exposure.type.value,
            "subject": exposure.subject,
            "detail": exposure.detail,
            "magnitude": exposure.magnitude,
            "evidence": exposure.evidence,
        }
        for rank, exposure in enumerate(exposures, start=1)
    ]


def risk_figures(portfolio: Portfolio, market: Market) -> dict[str, Any]:
    """Liquidity and concentration; `days_to_liquidate` of a holding that nobody trades is null.

    Raises
    ------
    InputError : the market gives no volumes.
    """
    held = np.flatnonzero(np.abs(portfolio.weights) > ZERO_WEIGHT)
    days = days_to_liquidate(portfolio, market).tolist()
    return {
        "days_to_liquidate": {market.tickers[i]: days[i] if math.isfinite(days[i]) else None for i in held},
        "illiquid_share": illiquid_share(portfolio, market),
        "hhi": hhi(portfolio.weights),
        "five_largest": top(portfolio.weights, 5),
        "sector_weights": sector_weights(portfolio.weights, market),
        "factor_betas": factor_exposures(portfolio.weights, market),
    }


def stress_answer(result: StressResult) -> dict[str, Any]:
    """P&L, both attributions and, where correlations move, the VaR as stress testing answers them."""
    answer: dict[str, Any] = {
        "estimated_pnl_pct": result.pnl,
        "attribution": {
            "by_sector": [
                {"sector": sector, "contribution_pct": amount} for sector, amount in result.by_sector.items()
            ],
            "by_factor": [
                {"factor": factor, "contribution_pct": amount} for factor, amount in result.by_factor.items()
            ],
        },
    }
    return answer if result.stressed_var is None else answer | {"stressed_var_pct": result.stressed_var}


def traded(remedy: Remedy) -> Floats:
    """(n,) the trades of a remedy, 0 where no more is left of a name than what the solver cannot tell from it."""
    return np.where(np.abs(remedy.trades) <= LEAST_TRADE, 0.0, remedy.trades)


def trade_list(portfolio: Portfolio, trades: Floats, market: Market) -> list[dict[str, Any]]:
    """One entry for each name whose weight changes, in ticker order; `trades` (n,) are signed weight changes."""
    return [
        {
            "symbol": ticker,
            "action": "buy" if change > 0 else "sell",
            "current_weight": current,
            "target_weight": current + change,
            "trade_pct": change,
        }
        for ticker, current, change in zip(market.tickers, portfolio.weights.tolist(), trades.tolist(), strict=True)
        if change
    ]


def remedy_answer(
    remedy: Remedy, portfolio: Portfolio, mandate: Mandate, market: Market, terms: Terms
) -> dict[str, Any]:
    """The trades as risk remediation answers them, the mandate with its headroom measured after them, and the proof."""
    trades = traded(remedy)
    return {
        "trades": trade_list(portfolio, trades, market),
        "total_turnover": turnover_of(trades),
        "post_trade_compliant": remedy.compliant,
        "cost_bps": 100 * terms.cost(trades),
        "checks": constraint_report(after(portfolio, trades), terms.target(mandate), market)["constraints"],
        "proof": {
            "unique": not remedy.stages or remedy.stages[-1].certified.uniqueness.outcome.proved,
            "stages": [_proof(stage) for stage in remedy.stages],
        },
    }


def _proof(stage: Stage) -> dict[str, Any]:
    """What a program minimised, its value, the proved gap and the largest violation."""
    found = stage.certified
    return {
        "goal": stage.aim.goal.value,
        "value": found.value,
        "gap": found.optimality.gap,
        "violation": found.optimality.violation,
    }
