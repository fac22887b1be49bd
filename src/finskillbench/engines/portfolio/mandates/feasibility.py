"""Whether a mandate can be kept at all, and what it costs to get there."""

from __future__ import annotations

from dataclasses import replace

from finskillbench.engines.optimisation.certified import Certified
from finskillbench.engines.portfolio.formulation import Goal
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Limits, PortfolioProblem


def shifted(limits: Limits, by: float) -> Limits:
    """The limits, counts and turnover apart, all wider (narrower, if negative) by the same amount in their own unit."""
    return replace(
        limits,
        max_weight=None if limits.max_weight is None else limits.max_weight + by,
        min_weight=None if limits.min_weight is None else limits.min_weight - by,
        sector_limits={name: cap + by for name, cap in limits.sector_limits.items()},
        max_tracking_error=None if limits.max_tracking_error is None else limits.max_tracking_error + by,
        neutrality_tolerance=limits.neutrality_tolerance + by,
    )


def least_turnover(problem: PortfolioProblem, *, at_least: float = 0.0) -> Certified:
    """Certified least one-way turnover from the current portfolio into every other limit.

    The mandate can be kept exactly when this is at most its turnover limit.

    Raises
    ------
    InfeasibleError : when the other limits contradict each other whatever the turnover.
    UndecidedError : when nothing can be proved, or the solver finds clearly less than `at_least`.
    """
    free = replace(problem, limits=replace(problem.limits, max_turnover=None))
    return optimise(free, Goal.TURNOVER, unique=False, at_least=at_least)
