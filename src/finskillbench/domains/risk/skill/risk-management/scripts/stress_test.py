"""Estimate a portfolio's P&L under a scenario, split by sector and by factor.

Payload: portfolio, stress_scenario (factor_shocks, sector_sensitivities), sector_mapping, factor_exposures.
Result: estimated_pnl_pct (decimal of NAV, a loss is negative) and attribution; each split adds up to the P&L; used (the
scenario's id, its shocks and sensitivities as applied, the number of holdings). Numbers have ten decimals.
"""

from typing import Any

from finskillbench.arrays import FACTORS
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT
from finskillbench.engines.risk.report import stress_answer
from finskillbench.engines.risk.stress import apply, scenario_from
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Apply the scenario to the weights as they stand."""
    market = market_from(payload)
    portfolio = portfolio_from(payload, market)
    scenario = scenario_from(payload.get("stress_scenario"))
    used = {
        "scenario_id": scenario.scenario_id,
        "factor_shocks": dict(zip(FACTORS, scenario.factor_shocks.tolist(), strict=True)),
        "sector_sensitivities": dict(scenario.sector_sensitivities),
        "holdings": int((abs(portfolio.weights) > ZERO_WEIGHT).sum()),
    }
    return rounded({**stress_answer(apply(portfolio, scenario, market)), "used": used})


if __name__ == "__main__":
    cli(main)
