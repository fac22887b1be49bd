"""Find the trades of least cost that bring a portfolio within its whole mandate, or prove that there are none.

Payload: portfolio, mandate, trading_terms, sector_mapping, factor_exposures; benchmark_weights and covariance_matrix
where a constraint refers to them.
Result: trades, total_turnover (one-way), post_trade_compliant, cost_bps, checks (the mandate with its headroom measured
after the trades), proof, used (the mandate, the holdings, the least trade, and the turnover that the month leaves, null
without a limit). Numbers have ten decimals.
"""

import math
from typing import Any

from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT
from finskillbench.engines.risk.remediation import budget_left, remediate
from finskillbench.engines.risk.report import remedy_answer
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.engines.risk.trading import trading_rules_from
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Trade at the least cost; if the mandate is out of reach, come as near as the turnover budget allows."""
    market = market_from(payload)
    portfolio = portfolio_from(payload, market)
    mandate = mandate_from(payload.get("mandate"))
    mandate.check(len(market.tickers))
    rules = trading_rules_from(payload.get("trading_terms"), market.tickers, mandate)
    left = budget_left(portfolio, mandate)
    used = {
        "mandate_id": mandate.mandate_id,
        "constraints": [limit.kind.value for limit in mandate.constraints],
        "holdings": int((abs(portfolio.weights) > ZERO_WEIGHT).sum()),
        "cash_weight": portfolio.cash,
        "minimum_trade": rules.ticket,
        "turnover_left": left if math.isfinite(left) else None,
    }
    requested = portfolio, mandate, market, rules
    answer = remedy_answer(remediate(*requested), *requested)
    return rounded({**answer, "used": used})


if __name__ == "__main__":
    cli(main)
