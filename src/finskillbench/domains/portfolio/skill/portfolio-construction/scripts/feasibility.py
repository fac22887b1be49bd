"""Can a mandate be kept from the current portfolio? The least one-way turnover into its other limits decides.

Payload: constraints, covariance_matrix, current_portfolio, and benchmark_weights, sector_mapping, factor_exposures
where a limit refers to them.
Result: feasible, minimum_turnover, limit, weights (a portfolio of that turnover), used (what went in), proof; or, when
the other limits already contradict each other, feasible false with the conflict. Limits are exact; numbers have ten
decimals.
"""

from typing import Any

from finskillbench.engines.fields import require
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.mandates.feasibility import least_turnover
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.report import named, proof, used
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Find the least turnover and compare it with the limit."""
    require(payload, "constraints", "current_portfolio")
    problem = problem_from(payload)
    try:
        least = least_turnover(problem)
    except InfeasibleError as error:
        return {"feasible": False, "conflict": sorted(error.multipliers)}
    limit = problem.limits.max_turnover
    answer: dict[str, Any] = {
        "feasible": limit is None or least.value <= limit,
        "minimum_turnover": least.value,
        "limit": limit,
        "weights": named(problem, clean(least.weights)),
        "used": {"names": problem.size, "limits": used(problem)["limits"]},
        "proof": proof(least),
    }
    return rounded(answer)


if __name__ == "__main__":
    cli(main)
