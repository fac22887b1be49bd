"""Measure a portfolio against every constraint of its mandate.

Payload: portfolio, mandate, sector_mapping, factor_exposures; benchmark_weights and covariance_matrix where a
constraint refers to them.
Result: overall_compliant, violations_count, constraints (type, status, value, limit or range, the worst name or
sector, and the excess over a limit).
"""

from typing import Any

from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Check the current portfolio."""
    market = market_from(payload)
    portfolio = portfolio_from(payload, market)
    mandate = mandate_from(payload.get("mandate"))
    mandate.check(len(market.tickers))
    return constraint_report(portfolio, mandate, market)


if __name__ == "__main__":
    cli(main)
