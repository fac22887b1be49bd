"""Answers to a stress test from right to wrong: what a risk manager would report, or send back."""

from __future__ import annotations

from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.audits.ladders.decimals import to_decimals
from finskillbench.domains.risk.inputs import StressInput
from finskillbench.episode import JsonObject

_SENSITIVITY = "sector_sensitivity"


def ladder(label: Label[StressInput]) -> list[GradedExample]:
    """From the truth to a gain for a loss; three decimals are a tenth of a per cent of NAV, too few for a VaR."""
    truth = label.truth.expected_output
    headline = label.task_input["stress_scenario"]["market_shocks"].get("equity_change_pct", 0.0) / 100
    by_factor = [row for row in truth["attribution"]["by_factor"] if row["factor"] != _SENSITIVITY]
    var = truth.get("stressed_var_pct")
    rungs = [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six decimals", to_decimals(truth, 6), 1.0, 1.0),
        GradedExample("four decimals", to_decimals(truth, 4), 0.99, 1.0),
        GradedExample("three decimals, four of the VaR", _with_var(to_decimals(truth, 3), var), 0.9, 1.0),
        GradedExample("without the sectors' own moves by factor", _attributed(truth, by_factor=by_factor), 0.75, 0.97),
        GradedExample("P&L and sectors only", _attributed(truth, by_factor=[]), 0.75, 0.75),
        GradedExample("P&L alone", _attributed(truth, by_factor=[], by_sector=[]), 0.5, 0.5),
    ]
    if var is not None:
        rungs.append(GradedExample("a VaR that is a twentieth less", _with_var(truth, 0.95 * var), 0.25, 0.25))
    return [
        *rungs,
        GradedExample("the market's move for the P&L", _only(headline), 0.0, 0.5),
        GradedExample("a gain for the loss", _times(truth, -1.0), 0.0, 0.0),
        GradedExample("per cent for decimals", _times(truth, 100.0), 0.0, 0.0),
        GradedExample("nothing lost", _only(0.0), 0.0, 0.0),
    ]


def _with_var(truth: JsonObject, var: float | None) -> JsonObject:
    return truth if var is None else {**truth, "stressed_var_pct": round(var, 4)}


def _attributed(truth: JsonObject, **splits: list[Any]) -> JsonObject:
    return {**truth, "attribution": {**truth["attribution"], **splits}}


def _only(pnl: float) -> JsonObject:
    return {"estimated_pnl_pct": pnl, "attribution": {"by_sector": [], "by_factor": []}}


def _times(truth: JsonObject, factor: float) -> JsonObject:
    splits = {
        name: [{**row, "contribution_pct": row["contribution_pct"] * factor} for row in rows]
        for name, rows in truth["attribution"].items()
    }
    return {**truth, "estimated_pnl_pct": truth["estimated_pnl_pct"] * factor, "attribution": splits}
