"""Test if a draft mandate is feasible from the current portfolio; find the conflict and the least value of one limit.

Payload: constraints, limit_to_relax, covariance_matrix, current_portfolio, and benchmark_weights, sector_mapping,
factor_exposures where a limit refers to them.
Result: feasible, conflicting_limits (the smallest set that cannot hold together; empty where feasible),
least_attainable (of limit_to_relax, with all the other limits unchanged), limit (its current value), weights (a
portfolio that attains it), used (the inputs), proof; or, if relaxing it does not help, feasible false with the conflict
among the others. Limits are exact; numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.fields import require
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.mandates.feasibility import conflicting_limits, least_attainable, limit_set
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.report import named, proof, used
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Find the least attainable value, compare it with the limit, and name the limits in conflict."""
    require(payload, "constraints", "current_portfolio", "limit_to_relax")
    problem = problem_from(payload)
    name = str(payload["limit_to_relax"]).removeprefix("sector_limits.")
    limit = limit_set(problem, name)
    try:
        least = least_attainable(problem, name)
    except InfeasibleError as error:
        return {"feasible": False, "conflict": sorted(error.multipliers)}
    feasible = least.value <= limit
    answer: dict[str, Any] = {
        "feasible": feasible,
        "conflicting_limits": [] if feasible else list(conflicting_limits(problem, name)),
        "least_attainable": least.value,
        "limit": limit,
        "weights": named(problem, clean(least.weights)),
        "used": {"names": problem.size, "limits": used(problem)["limits"]},
        "proof": proof(least),
    }
    return rounded(answer)


if __name__ == "__main__":
    cli(main)
