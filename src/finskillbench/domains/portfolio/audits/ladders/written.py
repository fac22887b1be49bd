"""What the ladders share: a portfolio as an agent writes it, and what rounding does to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample
from finskillbench.engines.portfolio.mandates.feasibility import shifted
from finskillbench.engines.portfolio.measures import violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.errors import FinSkillBenchError
from finskillbench.scoring.values import mapping

WORTHLESS = 0.02
"""The most that an answer earns which a portfolio manager would throw away."""


def rounded(value: object, digits: int) -> Any:
    """Every number of a JSON value with so many decimals."""
    table = mapping(value)
    if table:
        return {name: rounded(inner, digits) for name, inner in table.items()}
    return round(value, digits) if isinstance(value, float) else value


def keeps_limits(problem: PortfolioProblem, weights: Mapping[str, float]) -> bool:
    """Whether weights as written break no limit; their sum is left to the scorer."""
    array = np.array([weights.get(ticker, 0.0) for ticker in problem.tickers])
    return not set(violations(problem, array)) - {"fully_invested"}


def of_digits(problem: PortfolioProblem, answer: Mapping[str, Any], field: str, fewest: int = 3) -> list[GradedExample]:
    """The answer with six, four and three decimals; with fewer than six only where no limit is broken by it."""
    rungs = [GradedExample("every number to six decimals", rounded(answer, 6), 0.999, 1.0)]
    for digits, words, least in ((4, "four", 0.98), (3, "three", 0.9)):
        written = rounded(answer, digits)
        if digits >= fewest and keeps_limits(problem, written[field]):
            rungs.append(GradedExample(f"every number to {words} decimals", written, least, 1.0))
    return rungs


def other_objectives(problem: PortfolioProblem) -> dict[str, Floats]:
    """The optimum of the same limits under each other objective that the task's data allow, best first."""
    found: dict[str, Floats] = {}
    for objective in Objective:
        asked = objective is problem.objective
        needs_returns = objective in (Objective.MAX_SHARPE, Objective.MAX_RETURN)
        if not asked and not (needs_returns and problem.expected_returns is None):
            found[objective.value] = optimise(replace(problem, objective=objective), unique=False).weights
    return dict(sorted(found.items(), key=lambda item: problem.value(item[1])))


def too_wide(problem: PortfolioProblem, by: float = 0.1) -> Floats | None:
    """The optimum of limits that are all wider by a share of themselves; None where it breaks none by so much."""
    limits = problem.limits
    wide = replace(
        shifted(limits, 0.0),
        max_weight=_scaled(limits.max_weight, by),
        sector_limits={name: cap * (1 + by) for name, cap in limits.sector_limits.items()},
        max_turnover=_scaled(limits.max_turnover, by),
        max_tracking_error=_scaled(limits.max_tracking_error, by),
        neutrality_tolerance=limits.neutrality_tolerance * (1 + by),
    )
    try:
        weights = optimise(replace(problem, limits=wide), unique=False).weights
    except FinSkillBenchError:
        return None
    return weights if violations(problem, weights, 0.005) else None


def _scaled(limit: float | None, by: float) -> float | None:
    return None if limit is None else limit * (1 + by)
