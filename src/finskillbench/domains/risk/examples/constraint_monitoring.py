"""Shortcuts and graded examples of constraint monitoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.examples import exploits
from finskillbench.domains.risk.examples.exploits import to_significant_digits
from finskillbench.domains.risk.inputs import CovarianceInput, Holding, MonitoringInput, PortfolioInput
from finskillbench.domains.risk.rederive import monitoring_answer
from finskillbench.episode import JsonObject

_WITHOUT_VALUES = ("weights and trades, the rest kept", "all kept, a little inside", "all broken, a little")
_PLAIN = frozenset({"long_only", "beta_range", "name_count"})
"""Limits that are never stated in per cent."""


def shortcuts(task_input: MonitoringInput) -> Mapping[str, JsonObject]:
    """Return answers by name of the shortcut, where it applies."""
    exploit_answers = exploits.monitoring_exploits(task_input)
    found = {name: exploit_answers[name] for name in _WITHOUT_VALUES}
    portfolio = task_input["portfolio"]
    holdings, cash = portfolio["holdings"], portfolio["cash_weight"]
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    found["limits read as hundredths"] = _in_hundredths(task_input)
    if cash > 0:
        times = 1 / (1 - cash)
        scaled: list[Holding] = [{"symbol": one["symbol"], "weight": times * one["weight"]} for one in holdings]
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


def _common_only(covariance: CovarianceInput) -> CovarianceInput:
    """Drop specific risk; for a full matrix, cut variances by a third."""
    if "matrix" in covariance:
        rows = [
            [two * (2 / 3 if i == j else 1.0) for j, two in enumerate(row)]
            for i, row in enumerate(covariance["matrix"])
        ]
        return {**covariance, "matrix": rows}
    return {**covariance, "specific": [0.0] * len(covariance["tickers"])}


def _in_hundredths(task_input: MonitoringInput) -> JsonObject:
    found = monitoring_answer(task_input)
    rows = cast("list[dict[str, Any]]", found["constraints"])
    for row in rows:
        if row["type"] not in _PLAIN and row["type"] != "position_limit_min":
            beyond = row["value"] - row["limit"] / 100
            row |= {"status": "FAIL", "violation_magnitude": beyond} if beyond > 0 else {}
    failed = sum(row["status"] == "FAIL" for row in rows)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}


_Row = dict[str, Any]
_Change = Callable[[_Row], _Row | None]


def graded_examples(label: Label[MonitoringInput]) -> list[GradedExample]:
    """Return examples from the truth to an empty list."""
    truth = label.truth.expected_output
    broken = [row["type"] for row in truth["constraints"] if row["status"] == "FAIL"]
    kept = [row["type"] for row in truth["constraints"] if row["status"] == "PASS"]
    examples = [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six digits", to_significant_digits(truth, 6), 1.0, 1.0),
        GradedExample("what is optional left out", _changed(truth, _bare), 1.0, 1.0),
        GradedExample("worst names said not to apply", _changed(truth, _unnamed), 1.0, 1.0),
        GradedExample("headroom beside the limits that are kept", _changed(truth, _with_headroom), 1.0, 1.0),
        GradedExample("four digits", to_significant_digits(truth, 4), 0.9, 1.0),
        GradedExample("three digits", to_significant_digits(truth, 3), 0.7, 1.0),
    ]
    if kept:
        examples.append(GradedExample("one false alarm", _changed(truth, _flagged(kept[:1])), 0.02, 0.3))
    if broken:
        examples.append(GradedExample("one breach missed", _changed(truth, _cleared(broken[:1])), 0.0, 0.12))
        if len(broken) > 1:
            examples.append(GradedExample("two breaches missed", _changed(truth, _cleared(broken[:2])), 0.0, 0.12))
        examples.append(GradedExample("every limit said to be kept", _changed(truth, _cleared(broken)), 0.0, 0.0))
    examples.append(
        GradedExample("values in per cent", _changed(truth, lambda row: row | {"value": row["value"] * 100}), 0.0, 0.1)
    )
    examples.append(GradedExample("verdicts without values", _changed(truth, _without_value), 0.0, 0.0))
    examples.append(GradedExample("no constraints", {**truth, "constraints": []}, 0.0, 0.0))
    return sorted(examples, key=lambda example: example.most == 0.0)


def _changed(truth: JsonObject, change: _Change) -> JsonObject:
    rows = [row for one in truth["constraints"] if (row := change(dict(one))) is not None]
    failed = sum(row["status"] == "FAIL" for row in rows)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}


def _bare(row: _Row) -> _Row:
    return {name: row[name] for name in ("type", "status", "value")}


def _unnamed(row: _Row) -> _Row:
    return row | dict.fromkeys(("worst_symbol", "worst_sector"), "N/A")


def _with_headroom(row: _Row) -> _Row:
    if row["status"] == "FAIL" or row.get("limit") is None:
        return row
    return row | {"violation_magnitude": -abs(row["value"] - row["limit"])}


def _flagged(kinds: list[str]) -> _Change:
    return lambda row: row | {"status": "FAIL"} if row["type"] in kinds else row


def _cleared(kinds: list[str]) -> _Change:
    def change(row: _Row) -> _Row:
        if row["type"] not in kinds:
            return row
        return {name: value for name, value in row.items() if name != "violation_magnitude"} | {"status": "PASS"}

    return change


def _without_value(row: _Row) -> _Row:
    return {name: row[name] for name in ("type", "status")}
