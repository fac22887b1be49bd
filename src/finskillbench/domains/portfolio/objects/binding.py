"""Mandates in which every limit binds: each limit is set below what the others alone lead to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.inputs import Constraints
from finskillbench.domains.portfolio.objects.legacy import of_few_names
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.portfolio.mandates.binding import slack, without
from finskillbench.engines.portfolio.measures import clean, name_count, tracking_error, turnover
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem, required

_TIGHTENED = (0.8, 0.95)
"""What turnover and tracking error are limited to, as a share of what the other limits lead to."""
_AGAIN = 0.97
"""The same of a turnover that the limit on tracking error has lowered below its own limit."""
_NEUTRAL = (0.4, 0.7)
"""The same of active betas."""
_LEAST_TOLERANCE = 0.02
"""Least tolerance of an active beta."""
_ERROR_STEPS = 400
"""Limits on tracking error are multiples of a quarter of a per cent."""
_OTHERS = (0.35, 0.6)
"""Share of the current portfolio that the strategy would not hold."""
_MORE_NAMES = (2, 5)
"""By how many a least number of names exceeds those held without it."""
_MOST_NAMES = 0.8
"""Share of the universe that a mandate asks to be held at the most."""


def all_bind(problem: PortfolioProblem, weights: Floats) -> bool:
    """Whether weights are up against every limit; no cap on names binds inverse-variance weights."""
    spared = {"max_weight"} if problem.objective is Objective.RISK_PARITY else set[str]()
    return slack(problem, weights) <= spared


def binding_mandate(
    problem: PortfolioProblem, month: MonthEnd, min_position: float | None, rng: np.random.Generator
) -> tuple[Constraints, Floats] | None:
    """Tighten the limits of a problem until each binds, and draw the portfolio from which turnover counts.

    Limits on betas, turnover and tracking error of the problem are the most that is allowed. A least position comes
    with a least number of names where that many are not held anyway, and alone where smaller positions are.

    Returns
    -------
    The limits that changed and the current portfolio (n,); None where a limit cannot be made to bind.

    Raises
    ------
    InfeasibleError, UndecidedError : the limits drawn leave nothing.
    """
    limits, changed = problem.limits, Constraints()
    problem = replace(problem, limits=replace(limits, max_turnover=None, max_tracking_error=None))
    if limits.neutral_factors:
        tilt = required(problem.exposures, "factor exposures").T @ (
            _best(without(problem, "factor_neutrality")) - month.benchmark
        )
        tolerance = _floored(float(np.abs(tilt).max()), rng.uniform(*_NEUTRAL), 100, limits.neutrality_tolerance)
        if tolerance < _LEAST_TOLERANCE:
            return None
        changed["neutrality_tolerance"] = tolerance
        problem = _limited(problem, neutrality_tolerance=tolerance)
    weights = _best(problem)
    share = rng.uniform(*_OTHERS)
    current = without_dust(month.drifted((1 - share) * weights + share * of_few_names(month, rng)))
    problem = replace(problem, current=current)
    if limits.max_turnover is not None:
        most = _floored(turnover(weights, current), rng.uniform(*_TIGHTENED), 100, limits.max_turnover)
        changed["max_turnover"] = most
        problem = _limited(problem, max_turnover=most)
        weights = _best(problem)
    if limits.max_tracking_error is not None:
        error = tracking_error(weights, month.benchmark, month.risk)
        most = _floored(error, rng.uniform(*_TIGHTENED), _ERROR_STEPS, limits.max_tracking_error)
        changed["max_tracking_error"] = most
        problem = _limited(problem, max_tracking_error=most)
        weights = _best(problem)
        if "max_turnover" in slack(problem, weights):
            most = changed["max_turnover"] = _floored(turnover(weights, current), _AGAIN, 100, 1.0)
            problem = _limited(problem, max_turnover=most)
            weights = _best(problem)
    if not all_bind(problem, weights):
        return None
    if min_position is not None:
        held, most = name_count(weights), int(_MOST_NAMES * problem.size)
        fewest = min(held + int(rng.integers(*_MORE_NAMES)), most)
        if fewest > held:
            changed |= {"min_position": min_position, "min_names": fewest}
        elif ((weights > 0) & (weights < min_position)).any():
            changed["min_position"] = min_position
    return changed, current


def _best(problem: PortfolioProblem) -> Floats:
    return clean(optimise(problem, unique=False).weights)


def _limited(problem: PortfolioProblem, **limits: float) -> PortfolioProblem:
    return replace(problem, limits=replace(problem.limits, **limits))


def _floored(value: float, share: float, steps: int, most: float) -> float:
    """A share of a value rounded down to whole steps, and no more than `most`."""
    return min(math.floor(value * share * steps) / steps, most)
