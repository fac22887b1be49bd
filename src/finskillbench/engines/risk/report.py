"""JSON results: ranked exposures, risk figures, stress attributions, trades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.risk.exposures import (
    Exposure,
    days_to_liquidate,
    factor_betas,
    hhi,
    illiquid_share,
    top,
    weights_by_sector,
)
from finskillbench.engines.risk.mandate import RiskMandate
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio, turnover_of
from finskillbench.engines.risk.remediation import Remedy, SolvedProgram, portfolio_after
from finskillbench.engines.risk.stress import StressResult
from finskillbench.engines.risk.trading import TradingRules

LEAST_TRADE = 1e-7
"""Smallest weight change of a trade: the accuracy of a solver."""


def exposure_list(exposures: Sequence[Exposure]) -> list[dict[str, Any]]:
    """Return ranked exposures as the answer of risk identification."""
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


def risk_figures(portfolio: Portfolio, market: MarketSnapshot) -> dict[str, Any]:
    """Return liquidity (null days without volume) and concentration; raise `InputError` if the market lacks volumes."""
    held = np.flatnonzero(np.abs(portfolio.weights) > ZERO_WEIGHT)
    days = days_to_liquidate(portfolio, market).tolist()
    return {
        "days_to_liquidate": {market.tickers[i]: days[i] if math.isfinite(days[i]) else None for i in held},
        "illiquid_share": illiquid_share(portfolio, market),
        "hhi": hhi(portfolio.weights),
        "five_largest": top(portfolio.weights, 5),
        "sector_weights": weights_by_sector(portfolio.weights, market),
        "factor_betas": factor_betas(portfolio.weights, market),
    }


def stress_answer(result: StressResult) -> dict[str, Any]:
    """Return the answer of stress testing: P&L, attributions and, if correlations move, VaR."""
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


def significant_trades(remedy: Remedy) -> Floats:
    """(n,) Trades of a remedy, 0 below the solver's accuracy."""
    return np.where(np.abs(remedy.trades) <= LEAST_TRADE, 0.0, remedy.trades)


def trade_list(portfolio: Portfolio, trades: Floats, market: MarketSnapshot) -> list[dict[str, Any]]:
    """List one entry per changed name, in ticker order; `trades` (n,) are signed weight changes."""
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
    remedy: Remedy, portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, rules: TradingRules
) -> dict[str, Any]:
    """Return the answer of risk remediation: trades, limit checks with headroom, and proof."""
    trades = significant_trades(remedy)
    return {
        "trades": trade_list(portfolio, trades, market),
        "total_turnover": turnover_of(trades),
        "post_trade_compliant": remedy.compliant,
        "cost_bps": 100 * rules.cost(trades),
        "checks": constraint_report(portfolio_after(portfolio, trades), rules.target(mandate), market)["constraints"],
        "proof": {
            "unique": not remedy.stages or remedy.stages[-1].certified.uniqueness.outcome.proved,
            "stages": [_proof(program) for program in remedy.stages],
        },
    }


def _proof(program: SolvedProgram) -> dict[str, Any]:
    found = program.certified
    return {
        "goal": program.aim.goal.value,
        "value": found.value,
        "gap": found.optimality.gap,
        "violation": found.optimality.violation,
    }
