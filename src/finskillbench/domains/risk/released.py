"""How the published release carries the risk subtasks: without prompts, mandates and scenarios by their id alone."""

from __future__ import annotations

from collections.abc import Callable

from finskillbench.domains.base import Released
from finskillbench.episode import JsonObject, Prompt

_DEFINED = {"mandate": ("mandate_id", "mandates"), "stress_scenario": ("scenario_id", "stress_scenarios")}


def _fields(*fields: str) -> Callable[[JsonObject], tuple[str, ...]]:
    return lambda task_input: ("portfolio", *fields, "market_data")


RELEASED = {
    "constraint_monitoring": Released(
        _fields("mandate"),
        prompt=Prompt(
            "Check the portfolio against every constraint of the mandate.",
            "Respond with a JSON object with overall_compliant, violations_count and constraints.",
        ),
        defined=_DEFINED,
    ),
    "risk_identification": Released(
        _fields(),
        prompt=Prompt(
            "Identify the portfolio's greatest risk exposures and rank them by magnitude.",
            "Respond with a JSON object with top_risk_exposures, the greatest first.",
        ),
        defined=_DEFINED,
    ),
    "stress_testing": Released(
        _fields("stress_scenario"),
        prompt=Prompt(
            "Estimate the portfolio's profit or loss under the stress scenario and attribute it.",
            "Respond with a JSON object with estimated_pnl_pct and attribution.",
        ),
        defined=_DEFINED,
    ),
    "risk_remediation": Released(
        _fields("mandate"),
        prompt=Prompt(
            "Find the trades that bring the portfolio into compliance with the mandate at the least turnover.",
            "Respond with a JSON object with trades, total_turnover and post_trade_compliant.",
        ),
        defined=_DEFINED,
    ),
}
"""The prompts state the task and no more."""
