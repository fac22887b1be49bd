"""JSON results: weights by ticker, limit checks, proof summaries."""

from __future__ import annotations

from typing import Any

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, check_limits
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem


def named(problem: PortfolioProblem, values: Floats) -> dict[str, float]:
    """Map tickers to values, in order."""
    return {ticker: float(value) for ticker, value in zip(problem.tickers, values, strict=True)}


def satisfaction(problem: PortfolioProblem, weights: Floats) -> dict[str, bool]:
    """Return whether each limit is kept, without full investment."""
    found = check_limits(problem, weights)
    return {name: check.excess <= FEASIBILITY_TOLERANCE for name, check in found.items() if name != "fully_invested"}


def checks(problem: PortfolioProblem, weights: Floats) -> dict[str, dict[str, float]]:
    """Return measured value and limit of each limit."""
    found = check_limits(problem, weights)
    return {name: {"value": check.value, "limit": check.limit} for name, check in found.items()}


def used(problem: PortfolioProblem) -> dict[str, Any]:
    """Return the inputs of an optimisation: objective, parameters, limit names, universe size."""
    found: dict[str, Any] = {"names": problem.size, "objective": problem.objective.value}
    if problem.objective is Objective.MAX_SHARPE:
        found["risk_aversion"] = problem.risk_aversion
    return found | {"limits": sorted(check_limits(problem, problem.inverse_variance))}


def proof(certified: Certified) -> dict[str, Any]:
    """Return value, proved gap, violation and uniqueness."""
    return {
        "objective_value": certified.value,
        "gap": certified.optimality.gap,
        "violation": certified.optimality.violation,
        "unique": certified.uniqueness.outcome.proved,
    }
