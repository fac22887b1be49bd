"""Independent checks of risk answers by the printed conventions, and their losses in money."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from finskillbench.domains.faults import DOLLARS, Loss
from finskillbench.domains.risk import rederive
from finskillbench.domains.risk.inputs import RemediationInput, StressInput
from finskillbench.domains.risk.remediation.cure import RemediationProgram
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import as_number, as_text, objects

_ROUNDED = 1e-5
"""Excess over a limit that comes from rounding to six decimals."""
_LEAST = 0.995
"""Share of a shortfall that a bound must reach to prove it the least, for rounding."""


def _trades(answer: JsonObject) -> dict[str, float] | None:
    found = {as_text(one.get("symbol")): as_number(one.get("trade_pct")) for one in objects(answer.get("trades"))}
    trades = {name: change for name, change in found.items() if name is not None and change is not None}
    return trades if len(trades) == len(found) else None


def _keeps_rules(task_input: RemediationInput, answer: JsonObject) -> dict[str, float] | None:
    """Return the trades if they start at the printed weights, have allowed sizes, and keep the mandate as stated.

    That is the mandate with its headroom, or its hard limits if the answer states that none keep it.
    """
    trades, curable, owned = _trades(answer), answer.get("post_trade_compliant"), rederive.weights(task_input)
    if trades is None or not trades.keys() <= task_input["sector_mapping"].keys() or not isinstance(curable, bool):
        return None
    before = [(str(one.get("symbol")), as_number(one.get("current_weight"))) for one in objects(answer.get("trades"))]
    found = rederive.measure_mandate_after(rederive.with_headroom(task_input), trades, _ROUNDED)
    kept = (
        all(weight is None or abs(weight - owned.get(name, 0.0)) <= _ROUNDED for name, weight in before)
        and task_input["portfolio"]["cash_weight"] - math.fsum(trades.values()) >= -_ROUNDED
        and not rederive.undersized_names(task_input, trades, _ROUNDED)
        and all(one.excess <= _ROUNDED for kind, one in found.items() if curable or kind in rederive.HARD_LIMITS)
    )
    return trades if kept else None


def _accepts_remedy(task_input: RemediationInput, answer: JsonObject) -> bool:
    """Accept trades that keep the rules, or that prove to have the least shortfall if none keep the mandate."""
    trades = _keeps_rules(task_input, answer)
    if trades is None:
        return False
    return answer["post_trade_compliant"] is True or _is_least_shortfall(task_input, trades)


def _is_least_shortfall(task_input: RemediationInput, trades: Mapping[str, float]) -> bool:
    after = rederive.input_after_trades(rederive.with_headroom(task_input), trades, _ROUNDED)
    value, owned = (
        rederive.cost_of(task_input, trades) + rederive.rederived_relative_excess(after),
        rederive.weights(after),
    )
    program = RemediationProgram(task_input, "excess")
    weights = np.array([owned.get(name, 0.0) for name in program.tickers])
    return program.bound(weights, _LEAST * value) >= _LEAST * value


ACCEPTS = {"risk_remediation": _accepts_remedy}


def _misstated(task_input: StressInput, answer: JsonObject, right: JsonObject) -> float | None:
    """Return the error of the stated P&L in dollars."""
    stated = as_number(answer.get("estimated_pnl_pct"))
    return None if stated is None else abs(stated - right["estimated_pnl_pct"]) * task_input["portfolio"]["total_nav"]


def _overpaid(task_input: RemediationInput, answer: JsonObject, right: JsonObject) -> float | None:
    """Return the additional trading cost in dollars; None unless the trades keep the rules and cure the portfolio."""
    trades, best = _keeps_rules(task_input, answer), _trades(right)
    if trades is None or best is None or not (answer["post_trade_compliant"] and right["post_trade_compliant"]):
        return None
    more = rederive.cost_of(task_input, trades) - rederive.cost_of(task_input, best)
    return more / 100 * task_input["portfolio"]["total_nav"]


LOSSES = {"stress_testing": Loss(DOLLARS, _misstated), "risk_remediation": Loss(DOLLARS, _overpaid)}
