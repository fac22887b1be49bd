"""Single limits: which ones bind, and the problem without one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.measures import check_limits
from finskillbench.engines.portfolio.problem import PortfolioProblem

_OFF: Mapping[str, Mapping[str, Any]] = {
    "max_weight": {"max_weight": None},
    "sector_limits": {"sector_limits": {}},
    "min_position": {"min_position": None},
    "min_names": {"min_names": None},
    "max_names": {"max_names": None},
    "max_turnover": {"max_turnover": None},
    "max_tracking_error": {"max_tracking_error": None},
    "factor_neutrality": {"neutral_factors": ()},
}
_ACTIVE = 1e-6
"""A measured value this close to its limit binds."""


def stated_limits(problem: PortfolioProblem) -> list[str]:
    """Return the names of a problem's limits, without long-only and full investment."""
    return [name for name in check_limits(problem, problem.inverse_variance) if name in _OFF]


def without(problem: PortfolioProblem, name: str) -> PortfolioProblem:
    """Return the problem without one limit."""
    exposures = None if name == "factor_neutrality" else problem.exposures
    return replace(problem, limits=replace(problem.limits, **_OFF[name]), exposures=exposures)


def slack(problem: PortfolioProblem, weights: Floats) -> set[str]:
    """Return the names of non-binding limits; a least position always binds."""
    checks = check_limits(problem, weights)
    return {name for name in stated_limits(problem) if name != "min_position" and checks[name].excess < -_ACTIVE}
