"""Can a mandate be kept from the current portfolio? The least one-way turnover into its other limits decides.

Payload: constraints, covariance_matrix, current_portfolio, and benchmark_weights, sector_mapping, factor_exposures
where a limit refers to them.
Result: feasible, minimum_turnover, weights (a portfolio of that turnover), proof; or, when the other limits already
contradict each other, feasible false with the conflict.
"""

from typing import Any

from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.feasibility import least_turnover
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.report import named, proof
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Find the least turnover and compare it with the limit."""
    problem = problem_from(payload)
    try:
        least = least_turnover(problem)
    except InfeasibleError as error:
        return {"feasible": False, "conflict": sorted(error.multipliers)}
    limit = problem.limits.max_turnover
    return {
        "feasible": limit is None or least.value <= limit,
        "minimum_turnover": least.value,
        "weights": named(problem, clean(least.weights)),
        "proof": proof(least),
    }


if __name__ == "__main__":
    cli(main)
