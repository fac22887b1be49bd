"""Optimise a portfolio under a mandate's limits and prove the result.

Payload: covariance_matrix, constraints, objective; expected_returns and risk_aversion where the objective needs them;
benchmark_weights, current_portfolio, sector_mapping, factor_exposures where a limit refers to them.
Result: weights, constraint_satisfaction, checks (value and limit of each), expected_return, risk, proof; or
{"infeasible": true, "conflict": [...]}.
"""

from typing import Any

from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.report import checks, named, proof, satisfaction
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Solve one problem; every number is annualised."""
    problem = problem_from(payload)
    try:
        best = optimise(problem)
    except InfeasibleError as error:
        return {"infeasible": True, "conflict": sorted(error.multipliers)}
    weights = clean(best.weights)
    result = {
        "weights": named(problem, weights),
        "constraint_satisfaction": satisfaction(problem, weights),
        "checks": checks(problem, weights),
        "risk": problem.risk.variance(weights) ** 0.5,
        "proof": proof(best),
    }
    if problem.expected_returns is not None:
        result["expected_return"] = float(problem.mean @ weights)
    return result


if __name__ == "__main__":
    cli(main)
