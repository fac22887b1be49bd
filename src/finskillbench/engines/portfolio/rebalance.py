"""Rebalancing: first the best objective, then the least trading that keeps it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.engines.optimisation.uniqueness import Uniqueness
from finskillbench.engines.portfolio.formulation import Goal
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem

OBJECTIVE_TOLERANCE = 1e-4
"""Stage 2 keeps the objective within this fraction of its stage-1 value (numerics, trap 3)."""


@dataclass(frozen=True)
class Rebalancing:
    """Both stages and the trades (n,), signed changes of weight that sum to zero; turnover is one-way."""

    target: Certified
    least_trading: Certified
    weights: Floats
    trades: Floats
    turnover: float


def rebalance(problem: PortfolioProblem, tolerance: float = OBJECTIVE_TOLERANCE) -> Rebalancing:
    """Two-stage rebalancing from `problem.current`.

    Stage 1 minimises the objective f; stage 2 minimises Σ|w − w0|/2 over portfolios with f(w) <= f* + tolerance·|f*|;
    where several do, the one with the least ||w − w0||² is taken (specification: data, Truth).

    Raises
    ------
    InfeasibleError, UndecidedError : as `optimise`.
    """
    target = optimise(problem)
    cap = target.value + tolerance * abs(target.value)
    least = optimise(problem, Goal.TURNOVER, objective_cap=cap)
    weights = least.weights
    if not least.uniqueness.outcome.proved:
        # A billionth of slack keeps an interior for the solver; it is far below what any score can see.
        tied = replace(problem, limits=replace(problem.limits, max_turnover=least.value + 1e-9))
        nearest = optimise(tied, Goal.DISTANCE, objective_cap=cap, anchor=problem.current)
        if least.uniqueness.outcome is Uniqueness.MULTIPLE or nearest.uniqueness.outcome.proved:
            weights = nearest.weights
            least = replace(least, weights=weights, uniqueness=nearest.uniqueness)
    current = problem.current if problem.current is not None else np.zeros(problem.size)
    trades = weights - current
    return Rebalancing(target, least, weights, trades, float(np.abs(trades).sum() / 2))
