"""Estimate a portfolio's P&L under a scenario, split by sector and by factor, and its VaR at stressed correlations.

Payload: portfolio (with option_overlay where it has options), stress_scenario (factor_shocks, sector_sensitivities; and
sector_proxies, spread_widening_bp, correlation_shift where it has them), sector_mapping, factor_exposures; and
benchmark_weights, average_daily_volume_usd, covariance_matrix where the task has them.
Result: estimated_pnl_pct (decimal of NAV, a loss is negative) and attribution; each split adds up to the P&L;
stressed_var_pct (null where no correlations move); used (the scenario's id, its shocks and sensitivities as applied,
the names whose betas were estimated, the number of holdings and of options). Numbers have ten decimals.
"""

from typing import Any

from finskillbench.arrays import FACTORS
from finskillbench.engines.risk.full_stress import overlay_from, stress, with_estimated_betas
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT
from finskillbench.engines.risk.report import stress_answer
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Apply the scenario to the current weights and to the options."""
    payload_fields = with_estimated_betas(payload)
    market = market_from(payload_fields)
    portfolio, overlay = portfolio_from(payload, market), overlay_from(payload)
    scenario = scenario_from(payload.get("stress_scenario"))
    used = {
        "scenario_id": scenario.scenario_id,
        "factor_shocks": dict(zip(FACTORS, scenario.factor_shocks.tolist(), strict=True)),
        "sector_sensitivities": dict(scenario.sector_sensitivities),
        "betas_estimated": sorted(payload_fields["factor_exposures"].keys() - payload["factor_exposures"].keys()),
        "holdings": int((abs(portfolio.weights) > ZERO_WEIGHT).sum()),
        "options": len(overlay),
    }
    answer = stress_answer(stress(portfolio, overlay, scenario, market))
    return rounded({"stressed_var_pct": None, **answer, "used": used})


if __name__ == "__main__":
    cli(main)
