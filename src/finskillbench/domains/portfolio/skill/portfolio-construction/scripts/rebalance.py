"""Rebalance: the best objective first, then the least one-way turnover that keeps it.

Payload: current_portfolio, covariance_matrix, objective, constraints; expected_returns and risk_aversion where the
objective needs them; sector_mapping with sector limits; objective_tolerance. Nothing is assumed for a field that
decides.
Result: trade_list (signed changes), new_weights, turnover (one-way), used (what went in), proof of both stages. Numbers
have ten decimals.
"""

from typing import Any

from finskillbench.engines.fields import number, require
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.rebalance import rebalance
from finskillbench.engines.portfolio.report import named, proof, used
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Solve both stages from the current portfolio."""
    aversion = ["risk_aversion"] if payload.get("objective") == "max_sharpe" else []
    require(payload, "objective", "constraints", "current_portfolio", "objective_tolerance", *aversion)
    problem = problem_from(payload)
    tolerance = number(payload, "objective_tolerance", "the task")
    try:
        result = rebalance(problem, tolerance)
    except InfeasibleError as error:
        return {"infeasible": True, "conflict": sorted(error.multipliers)}
    trades = {ticker: change for ticker, change in named(problem, result.trades).items() if abs(change) > 1e-9}
    answer: dict[str, Any] = {
        "trade_list": trades,
        "new_weights": named(problem, clean(result.weights)),
        "turnover": result.turnover,
        "used": {**used(problem), "objective_tolerance": tolerance},
        "proof": {"stage_1": proof(result.target), "stage_2": proof(result.least_trading)},
    }
    return rounded(answer)


if __name__ == "__main__":
    cli(main)
