"""Rebalance: the best objective first, then the cheapest trades that gain enough of it, each of a minimum size.

Payload: current_portfolio, covariance_matrix, objective, constraints; expected_returns and risk_aversion where the
objective needs them; sector_mapping with sector limits; trading_costs_bps, min_trade, required_improvement. Nothing is
assumed for a required field.
Result: trade_list (signed changes), new_weights, turnover (one-way), trading_cost_bps (of NAV), used (the inputs),
proof of both stages. Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.fields import require
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.rebalance import RebalancingRules, rebalance
from finskillbench.engines.portfolio.report import named, proof, used
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Solve both stages from the current portfolio."""
    aversion = ["risk_aversion"] if payload.get("objective") == "max_sharpe" else []
    rule_fields = "trading_costs_bps", "min_trade", "required_improvement"
    require(payload, "objective", "constraints", "current_portfolio", *rule_fields, *aversion)
    problem = problem_from(payload)
    rules = RebalancingRules.of(payload, problem)
    try:
        result = rebalance(problem, rules)
    except InfeasibleError as error:
        return {"infeasible": True, "conflict": sorted(error.multipliers)}
    trades = {ticker: change for ticker, change in named(problem, result.trades).items() if abs(change) > 1e-9}
    stated = {"min_trade": rules.min_trade, "required_improvement": rules.required_improvement}
    answer: dict[str, Any] = {
        "trade_list": trades,
        "new_weights": named(problem, clean(result.weights)),
        "turnover": result.turnover,
        "trading_cost_bps": result.cost,
        "used": {**used(problem), **stated, "required_value": result.required_value},
        "proof": {"stage_1": proof(result.target), "stage_2": proof(result.cheapest)},
    }
    return rounded(answer)


if __name__ == "__main__":
    cli(main)
