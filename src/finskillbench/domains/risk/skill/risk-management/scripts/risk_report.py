"""Rank a portfolio's material risk exposures by their standalone risk; measure its liquidity and concentration.

Payload: portfolio, sector_mapping, factor_exposures, average_daily_volume_usd, factor_volatility, benchmark_weights,
covariance_matrix.
Result: top_risk_exposures (magnitude: loss at one standard deviation; evidence: beta, weight, HHI or illiquid
share); and days_to_liquidate by holding, illiquid_share, hhi, five_largest, sector_weights, factor_betas.
"""

from typing import Any

from finskillbench.engines.risk.exposures import ranked
from finskillbench.engines.risk.report import exposure_list, risk_figures
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure the risks of one portfolio."""
    market = market_from(payload)
    portfolio = portfolio_from(payload, market)
    return {"top_risk_exposures": exposure_list(ranked(portfolio, market)), **risk_figures(portfolio, market)}


if __name__ == "__main__":
    cli(main)
