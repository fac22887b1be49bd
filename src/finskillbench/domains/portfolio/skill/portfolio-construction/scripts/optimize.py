"""Optimise a portfolio under a mandate's limits and prove the result.

Payload: covariance_matrix, constraints, objective; expected_returns and, under max_sharpe, risk_aversion where the
objective needs them; benchmark_weights, current_portfolio, sector_mapping, factor_exposures where a limit refers to
them. Nothing is assumed for a required field.
Result: weights, constraint_satisfaction, checks (value and limit of each), used (the inputs), expected_return, risk,
proof; or {"infeasible": true, "conflict": [...], "used"}. Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.fields import require
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.report import checks, named, proof, satisfaction, used
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Solve one problem; every number is annualised."""
    aversion = ["risk_aversion"] if payload.get("objective") == "max_sharpe" else []
    require(payload, "objective", "constraints", *aversion)
    problem = problem_from(payload)
    try:
        best = optimise(problem)
    except InfeasibleError as error:
        return {"infeasible": True, "conflict": sorted(error.multipliers), "used": used(problem)}
    weights = clean(best.weights)
    result = {
        "weights": named(problem, weights),
        "constraint_satisfaction": satisfaction(problem, weights),
        "checks": checks(problem, weights),
        "used": used(problem),
        "risk": problem.risk.variance(weights) ** 0.5,
        "proof": proof(best),
    }
    if problem.expected_returns is not None:
        result["expected_return"] = float(problem.mean @ weights)
    return rounded(result)


if __name__ == "__main__":
    cli(main)
