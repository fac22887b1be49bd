"""Answers that cheat at remediation and at stress testing: made without the truth and without doing the work."""

from __future__ import annotations

import math
from collections.abc import Mapping

from finskillbench.domains.risk.inputs import HoldingsInput, RemediationInput, StressInput
from finskillbench.episode import JsonObject

_FACTOR = "mkt_rf"
_STEPS = (0.1, 0.3, 1.0)


def remediation(task_input: RemediationInput) -> Mapping[str, JsonObject]:
    """No trades under either statement, everything sold, and steps towards portfolios that break few limits."""
    now = dict.fromkeys(task_input["sector_mapping"], 0.0) | _weights(task_input)
    even = dict.fromkeys(now, 1.0 / len(now))
    found: dict[str, JsonObject] = {
        "no trades, said to comply": _traded({}, now, compliant=True),
        "no trades, said not to": _traded({}, now, compliant=False),
        "trades of nothing, said not to comply": _traded(now, now, compliant=False),
        "everything sold": _traded(dict.fromkeys(now, 0.0), now, compliant=True),
    }
    for name, goal in (("equal weights", even), ("the benchmark", task_input["benchmark_weights"])):
        for step in _STEPS:
            target = {symbol: weight + step * (goal.get(symbol, 0.0) - weight) for symbol, weight in now.items()}
            for compliant in (True, False):
                said = "complies" if compliant else "does not"
                found[f"{step:.0%} of the way to {name}, said it {said}"] = _traded(target, now, compliant=compliant)
    return found


def stress(task_input: StressInput) -> Mapping[str, JsonObject]:
    """The headline for the P&L, and every holding moving with the market only."""
    scenario = task_input["stress_scenario"]
    headline = scenario["market_shocks"].get("equity_change_pct", 0.0) / 100
    return {
        "the headline": _spread(task_input, headline),
        "half as much again": _spread(task_input, 1.5 * headline),
        "the shock to the market": _spread(task_input, scenario["factor_shocks"].get(_FACTOR, 0.0)),
    }


def _weights(task_input: HoldingsInput) -> dict[str, float]:
    return {row["symbol"]: row["weight"] for row in task_input["portfolio"]["holdings"]}


def _traded(target: Mapping[str, float], now: Mapping[str, float], *, compliant: bool) -> JsonObject:
    changes = {symbol: weight - now[symbol] for symbol, weight in target.items()}
    trades = [
        {
            "symbol": symbol,
            "action": "buy" if change > 0 else "sell",
            "current_weight": now[symbol],
            "target_weight": target[symbol],
            "trade_pct": change,
        }
        for symbol, change in changes.items()
    ]
    turnover = (math.fsum(map(abs, changes.values())) + abs(math.fsum(changes.values()))) / 2
    return {"trades": trades, "total_turnover": turnover, "post_trade_compliant": compliant}


def _spread(task_input: StressInput, pnl: float) -> JsonObject:
    """A P&L laid on the sectors by their weights, and on the market alone."""
    weights = _weights(task_input)
    invested = math.fsum(weights.values()) or 1.0
    sectors: dict[str, float] = {}
    for symbol, weight in weights.items():
        sector = task_input["sector_mapping"][symbol]
        sectors[sector] = sectors.get(sector, 0.0) + pnl * weight / invested
    return {
        "estimated_pnl_pct": pnl,
        "attribution": {
            "by_sector": [{"sector": name, "contribution_pct": part} for name, part in sectors.items()],
            "by_factor": [{"factor": _FACTOR, "contribution_pct": pnl}],
        },
    }
