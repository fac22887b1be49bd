"""Feasibility of a mandate, and the least relaxation that makes it feasible."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from finskillbench.arrays import Floats
from finskillbench.engines.fields import describe_value
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError, certify
from finskillbench.engines.optimisation.program import solve_conic
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal, formulate_portfolio, level_of
from finskillbench.engines.portfolio.mandates.binding import without
from finskillbench.engines.portfolio.problem import PortfolioLimits, PortfolioProblem
from finskillbench.errors import InputError

_ROUGH = 1e-7
_SOLVED = ("Solved", "AlmostSolved")


def shifted(limits: PortfolioLimits, by: float) -> PortfolioLimits:
    """Widen (or narrow) all limits except counts by the same amount, each in its own unit."""
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
"""Limits that can be waived as a whole; budget, long-only and restricted names cannot."""


def without_limits(problem: PortfolioProblem, *names: str) -> PortfolioProblem:
    """Return the problem without some limits of `WAIVABLE`."""
    return reduce(without, names, problem)


def limit_set(problem: PortfolioProblem, limit: str) -> float:
    """Return the value of a limit, or of a sector's cap; raise `InputError` if not set."""
    limits = problem.limits
    if limit in limits.sector_limits:
        return limits.sector_limits[limit]
    if limit == "factor_neutrality" and limits.neutral_factors:
        return limits.neutrality_tolerance
    value = getattr(limits, limit) if limit in WAIVABLE else None
    if not isinstance(value, float):
        raise InputError(
            f"{describe_value(limit)} is not a limit that the mandate sets as one number; choose one that is"
        )
    return value


def least_attainable(problem: PortfolioProblem, limit: str, *, polished: bool = True) -> Certified:
    """Certify the least value of a limit that is compatible with all other limits.

    `limit` is a name of `WAIVABLE`, or a sector in place of `sector_limits`. The mandate is feasible if and only if the
    result is at most the limit. Raises `InfeasibleError` if the other limits conflict, `UndecidedError` if nothing can
    be proved.
    """
    least = certify(formulate_portfolio(problem, aim_at(limit)), unique=False, polished=polished)
    value = level_of(problem, limit, least.weights)
    gap = value - least.optimality.lower_bound
    return replace(least, value=value, optimality=replace(least.optimality, objective=value, gap=gap))


def rough_least(problem: PortfolioProblem, limit: str) -> tuple[float, Floats] | None:
    """Return the least attainable value of a limit to about 1e-7, unproved, with weights; None if there is none."""
    formulation = formulate_portfolio(problem, aim_at(limit))
    found = solve_conic(formulation.program, tolerance=_ROUGH)
    weights = found.x[formulation.weights]
    return (formulation.program.objective(found.x), weights) if found.status in _SOLVED else None


def aim_at(limit: str) -> PortfolioAim:
    """Return the aim of the least value of a limit."""
    by_turnover = limit == "max_turnover"
    return PortfolioAim(PortfolioGoal.TURNOVER) if by_turnover else PortfolioAim(PortfolioGoal.LIMIT, limit=limit)


def conflicting_limits(problem: PortfolioProblem, limit: str) -> tuple[str, ...]:
    """Return the limits of an infeasible mandate that each restore feasibility if waived alone.

    If these conflict by themselves, they are the only minimal conflicting set: all others contain them. `limit` is one
    whose relaxation suffices. Raises `UndecidedError` if they are compatible, so that several minimal sets conflict.
    """
    value = limit_set(problem, limit)
    family = "sector_limits" if limit in problem.limits.sector_limits else limit
    found = [family, *(one for one in WAIVABLE if one != family and _kept(without_limits(problem, one), limit, value))]
    remaining = [one for one in WAIVABLE if one not in found]
    if _kept(without_limits(problem, *remaining), limit, value):
        raise UndecidedError("several smallest sets of limits are in conflict")
    return tuple(one for one in WAIVABLE if one in found)


def _kept(problem: PortfolioProblem, limit: str, value: float) -> bool:
    try:
        return least_attainable(problem, limit, polished=False).value <= value
    except InfeasibleError:
        return False
