"""Whether a mandate can be kept at all, and what it costs to get there."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from finskillbench.arrays import Floats
from finskillbench.engines.fields import shown
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError, certify
from finskillbench.engines.optimisation.program import solve
from finskillbench.engines.portfolio.formulation import Aim, Goal, formulate, level_of
from finskillbench.engines.portfolio.mandates.binding import without
from finskillbench.engines.portfolio.problem import Limits, PortfolioProblem
from finskillbench.errors import InputError

_ROUGH = 1e-7
_SOLVED = ("Solved", "AlmostSolved")


def shifted(limits: Limits, by: float) -> Limits:
    """The limits, counts apart, all wider (narrower, if negative) by the same amount in their own unit."""
    return replace(
        limits,
        max_weight=None if limits.max_weight is None else limits.max_weight + by,
        min_weight=None if limits.min_weight is None else limits.min_weight - by,
        sector_limits={name: cap + by for name, cap in limits.sector_limits.items()},
        max_turnover=None if limits.max_turnover is None else limits.max_turnover + by,
        max_tracking_error=None if limits.max_tracking_error is None else limits.max_tracking_error + by,
        neutrality_tolerance=limits.neutrality_tolerance + by,
    )


WAIVABLE = ("max_weight", "sector_limits", "max_turnover", "max_tracking_error", "factor_neutrality")
"""Limits that can be waived, each as a whole; budget, long-only and restricted names cannot."""


def waived(problem: PortfolioProblem, *names: str) -> PortfolioProblem:
    """The problem without some of the limits of `WAIVABLE`."""
    return reduce(without, names, problem)


def limit_set(problem: PortfolioProblem, limit: str) -> float:
    """The value of a limit as the problem sets it; a sector's name stands for its cap.

    Raises
    ------
    InputError : the problem sets no such limit.
    """
    limits = problem.limits
    if limit in limits.sector_limits:
        return limits.sector_limits[limit]
    if limit == "factor_neutrality" and limits.neutral_factors:
        return limits.neutrality_tolerance
    value = getattr(limits, limit) if limit in WAIVABLE else None
    if not isinstance(value, float):
        raise InputError(f"{shown(limit)} is no limit that the mandate sets as one number; choose one that it does")
    return value


def least_attainable(problem: PortfolioProblem, limit: str, *, polished: bool = True) -> Certified:
    """Certified least value of a limit at which it can be kept together with all the others.

    `limit` is a name of `WAIVABLE`, or of a sector in place of `sector_limits`; the mandate can be kept exactly when
    this is at most the limit that is set.

    Raises
    ------
    InfeasibleError : when the other limits contradict each other.
    UndecidedError : when nothing can be proved.
    """
    least = certify(formulate(problem, _least(limit)), unique=False, polished=polished)
    value = level_of(problem, limit, least.weights)
    gap = value - least.optimality.lower_bound
    return replace(least, value=value, optimality=replace(least.optimality, objective=value, gap=gap))


def rough_least(problem: PortfolioProblem, limit: str) -> tuple[float, Floats] | None:
    """Return the least attainable value of a limit to about 1e-7, unproved, and weights; None where there is none."""
    formulation = formulate(problem, _least(limit))
    found = solve(formulation.program, tolerance=_ROUGH)
    weights = found.x[formulation.weights]
    return (formulation.program.objective(found.x), weights) if found.status in _SOLVED else None


def _least(limit: str) -> Aim:
    return Aim(Goal.TURNOVER) if limit == "max_turnover" else Aim(Goal.LIMIT, limit=limit)


def conflicting_limits(problem: PortfolioProblem, limit: str) -> tuple[str, ...]:
    """The limits of a mandate that cannot be kept each of which, waived alone, lets all the others be kept.

    Where these contradict each other by themselves they are the only smallest set that does: every other set in
    conflict contains them. `limit` is one whose relaxing would do.

    Raises
    ------
    UndecidedError : they can be kept together, so that several smallest sets are in conflict.
    """
    value = limit_set(problem, limit)
    family = "sector_limits" if limit in problem.limits.sector_limits else limit
    found = [family, *(one for one in WAIVABLE if one != family and _kept(waived(problem, one), limit, value))]
    others = [one for one in WAIVABLE if one not in found]
    if _kept(waived(problem, *others), limit, value):
        raise UndecidedError("several smallest sets of limits are in conflict")
    return tuple(one for one in WAIVABLE if one in found)


def _kept(problem: PortfolioProblem, limit: str, value: float) -> bool:
    """Whether all the limits can be kept with one of them at a value."""
    try:
        return least_attainable(problem, limit, polished=False).value <= value
    except InfeasibleError:
        return False
