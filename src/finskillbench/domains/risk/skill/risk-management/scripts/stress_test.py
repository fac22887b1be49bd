"""Estimate a portfolio's P&L under a scenario, split by sector and by factor.

Payload: portfolio, stress_scenario (factor_shocks, sector_sensitivities), sector_mapping, factor_exposures.
Result: estimated_pnl_pct (decimal of NAV, a loss is negative) and attribution; each split adds up to the P&L.
"""

from typing import Any

from finskillbench.engines.risk.report import stress_answer
from finskillbench.engines.risk.stress import apply, scenario_from
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Apply the scenario to the weights as they stand."""
    market = market_from(payload)
    portfolio = portfolio_from(payload, market)
    return stress_answer(apply(portfolio, scenario_from(payload.get("stress_scenario")), market))


if __name__ == "__main__":
    cli(main)
