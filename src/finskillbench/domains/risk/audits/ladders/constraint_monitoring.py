"""Answers to a monitoring task from right to wrong: what a compliance officer would sign, correct, or send back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.audits.ladders.rounding import rounded
from finskillbench.domains.risk.inputs import MonitoringInput
from finskillbench.episode import JsonObject

_Row = dict[str, Any]
_Change = Callable[[_Row], _Row | None]


def ladder(label: Label[MonitoringInput]) -> list[GradedExample]:
    """From the truth to an empty list; a breach is missed only where there is one."""
    truth = label.truth.expected_output
    broken = [row["type"] for row in truth["constraints"] if row["status"] == "FAIL"]
    kept = [row["type"] for row in truth["constraints"] if row["status"] == "PASS"]
    rungs = [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six digits", rounded(truth, 6), 1.0, 1.0),
        GradedExample("what is optional left out", _changed(truth, _bare), 1.0, 1.0),
        GradedExample("worst names said not to apply", _changed(truth, _unnamed), 1.0, 1.0),
        GradedExample("headroom beside the limits that are kept", _changed(truth, _with_headroom), 1.0, 1.0),
        GradedExample("four digits", rounded(truth, 4), 0.9, 1.0),
        GradedExample("three digits", rounded(truth, 3), 0.7, 1.0),
    ]
    if kept:
        rungs.append(GradedExample("one false alarm", _changed(truth, _flagged(kept[:1])), 0.02, 0.3))
    if broken:
        rungs.append(GradedExample("one breach missed", _changed(truth, _cleared(broken[:1])), 0.0, 0.12))
        if len(broken) > 1:
            rungs.append(GradedExample("two breaches missed", _changed(truth, _cleared(broken[:2])), 0.0, 0.12))
        rungs.append(GradedExample("every limit said to be kept", _changed(truth, _cleared(broken)), 0.0, 0.0))
    rungs.append(GradedExample("values in per cent", _changed(truth, _per_cent), 0.0, 0.1))
    rungs.append(GradedExample("verdicts without values", _changed(truth, _without_value), 0.0, 0.0))
    rungs.append(GradedExample("no constraints", {**truth, "constraints": []}, 0.0, 0.0))
    return sorted(rungs, key=lambda rung: rung.most == 0.0)


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


def _per_cent(row: _Row) -> _Row:
    return row | {"value": row["value"] * 100}


def _without_value(row: _Row) -> _Row:
    return {name: row[name] for name in ("type", "status")}
