"""Results as JSON: weights by ticker, limits as met, proofs in four numbers."""

from __future__ import annotations

from typing import Any

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, check_limits
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem


def named(problem: PortfolioProblem, values: Floats) -> dict[str, float]:
    """Ticker to number, in ticker order."""
    return {ticker: float(value) for ticker, value in zip(problem.tickers, values, strict=True)}


def satisfaction(problem: PortfolioProblem, weights: Floats) -> dict[str, bool]:
    """One boolean for each limit that is set; being fully invested is assumed of every portfolio, not a limit."""
    found = check_limits(problem, weights)
    return {name: check.excess <= FEASIBILITY_TOLERANCE for name, check in found.items() if name != "fully_invested"}


def checks(problem: PortfolioProblem, weights: Floats) -> dict[str, dict[str, float]]:
    """Measured value and limit of each limit."""
    found = check_limits(problem, weights)
    return {name: {"value": check.value, "limit": check.limit} for name, check in found.items()}


def used(problem: PortfolioProblem) -> dict[str, Any]:
    """What an optimisation was made of: objective, its parameters, the limits by name, the size of the universe."""
    found: dict[str, Any] = {"names": problem.size, "objective": problem.objective.value}
    if problem.objective is Objective.MAX_SHARPE:
        found["risk_aversion"] = problem.risk_aversion
    return found | {"limits": sorted(check_limits(problem, problem.inverse_variance))}


def proof(certified: Certified) -> dict[str, Any]:
    """Value, proved gap, violation, and whether the optimum is the only one."""
    return {
        "objective_value": certified.value,
        "gap": certified.optimality.gap,
        "violation": certified.optimality.violation,
        "unique": certified.uniqueness.outcome.proved,
    }
