"""Whether a mandate can be kept at all, and what it costs to get there."""

from __future__ import annotations

from dataclasses import replace

from finskillbench.engines.optimisation.certified import Certified
from finskillbench.engines.portfolio.formulation import Goal
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem


def least_turnover(problem: PortfolioProblem) -> Certified:
    """Certified least one-way turnover from the current portfolio into every other limit.

    The mandate can be kept exactly when this is at most its turnover limit.

    Raises
    ------
    InfeasibleError : when the other limits contradict each other whatever the turnover.
    """
    free = replace(problem, limits=replace(problem.limits, max_turnover=None))
    return optimise(free, Goal.TURNOVER, unique=False)
