"""Mandate checks that leave something out: what is not in the weights, the benchmark, shorts, cash or past trades."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from finskillbench.domains.risk.audits import exploits
from finskillbench.domains.risk.inputs import CovarianceInput, Holding, MonitoringInput, PortfolioInput
from finskillbench.domains.risk.second import monitoring_answer
from finskillbench.episode import JsonObject

_WITHOUT_VALUES = ("weights and trades, the rest kept", "all kept, a little inside", "all broken, a little")
_PLAIN = frozenset({"long_only", "beta_range", "name_count"})
"""Limits that nobody states in per cent."""


def shortcuts(task_input: MonitoringInput) -> Mapping[str, JsonObject]:
    """Answers by name; a mistake is left out where the case has nothing to make it about."""
    told = exploits.monitoring(task_input)
    found = {name: told[name] for name in _WITHOUT_VALUES}
    portfolio = task_input["portfolio"]
    holdings, cash = portfolio["holdings"], portfolio["cash_weight"]
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    found["limits read as hundredths"] = _in_hundredths(task_input)
    if cash > 0:
        scaled = _scaled(holdings, 1 / (1 - cash))
        found["cash ignored"] = _held(task_input, {**portfolio, "holdings": scaled, "cash_weight": 0.0})
    if any(one["weight"] < 0 for one in holdings):
        longs = [one for one in holdings if one["weight"] > 0]
        sizes: list[Holding] = [{"symbol": one["symbol"], "weight": abs(one["weight"])} for one in holdings]
        found["shorts ignored"] = _held(task_input, {**portfolio, "holdings": longs})
        found["gross instead of net"] = _held(task_input, {**portfolio, "holdings": sizes})
    if "turnover_max_monthly" in kinds and portfolio["trades_this_month"]:
        found["trades of the month ignored"] = _held(task_input, {**portfolio, "trades_this_month": {}})
        doubled = {name: 2 * change for name, change in portfolio["trades_this_month"].items()}
        found["turnover not halved"] = _held(task_input, {**portfolio, "trades_this_month": doubled})
    if "tracking_error_max" in kinds:
        bare = dict.fromkeys(task_input["benchmark_weights"], 0.0)
        found["absolute risk for tracking error"] = monitoring_answer({**task_input, "benchmark_weights": bare})
        covariance = _common_only(task_input["covariance_matrix"])
        found["tracking error without specific risk"] = monitoring_answer(
            {**task_input, "covariance_matrix": covariance}
        )
    return found


def _held(task_input: MonitoringInput, portfolio: PortfolioInput) -> JsonObject:
    return monitoring_answer({**task_input, "portfolio": portfolio})


def _scaled(holdings: list[Holding], times: float) -> list[Holding]:
    return [{"symbol": one["symbol"], "weight": times * one["weight"]} for one in holdings]


def _common_only(covariance: CovarianceInput) -> CovarianceInput:
    """The covariance without its specific part; of a matrix in full, the variances of a third less."""
    if "matrix" in covariance:
        rows = [
            [two * (2 / 3 if i == j else 1.0) for j, two in enumerate(row)]
            for i, row in enumerate(covariance["matrix"])
        ]
        return {**covariance, "matrix": rows}
    return {**covariance, "specific": [0.0] * len(covariance["tickers"])}


def _in_hundredths(task_input: MonitoringInput) -> JsonObject:
    """The right values against limits a hundred times too small."""
    found = monitoring_answer(task_input)
    rows = cast("list[dict[str, Any]]", found["constraints"])
    for row in rows:
        if row["type"] not in _PLAIN and row["type"] != "position_limit_min":
            beyond = row["value"] - row["limit"] / 100
            row |= {"status": "FAIL", "violation_magnitude": beyond} if beyond > 0 else {}
    failed = sum(row["status"] == "FAIL" for row in rows)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}
