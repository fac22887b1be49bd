"""Measure given weights against a mandate's limits.

Payload: weights, constraints, covariance_matrix, and benchmark_weights, current_portfolio, sector_mapping,
factor_exposures where a limit refers to them.
Result: constraint_satisfaction (an excess of up to 0.0005 is allowed), checks (value and limit of each), and the
weights as used. Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.fields import require, weights_from
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.report import checks, named, satisfaction
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Check the weights without changing them."""
    require(payload, "weights", "constraints")
    problem = problem_from(payload)
    weights = weights_from(payload.get("weights"), problem.tickers, "weights")
    return rounded(
        {
            "constraint_satisfaction": satisfaction(problem, weights),
            "checks": checks(problem, weights),
            "used": {"weights": named(problem, weights)},
        }
    )


if __name__ == "__main__":
    cli(main)
