"""The constraint tiers of the settings, set against the benchmark of a month-end, and the input fields they become."""

from __future__ import annotations

import math
from dataclasses import dataclass

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.inputs import Constraints, Mandate, Market
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import TierSettings
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import JsonObject

_EXACT = 1e-9
"""What rounding of a weight may add to it before a cap is rounded up."""


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """One constraint tier at a month-end: limits that the benchmark itself keeps, counts of names apart."""

    name: str
    constraints: Constraints

    @property
    def max_turnover(self) -> float | None:
        """The limit on one-way turnover."""
        return self.constraints.get("max_turnover")


def sized_limits(tier: TierSettings, month: MonthEnd) -> Constraints:
    """The limits of a tier that the benchmark of a month-end keeps; counts of names and least positions apart.

    The cap of a name is no lower than the benchmark's largest weight, that of a sector lies `sector_room` above the
    benchmark's; both are rounded up to half a per cent.
    """
    limits: Constraints = {
        "long_only": True,
        "max_weight": max(tier["max_weight"], math.ceil(200 * (float(month.benchmark.max()) - _EXACT)) / 200),
        "sector_limits": sector_caps(month, tier["sector_room"]),
    }
    if tier["max_turnover"] is not None:
        limits["max_turnover"] = tier["max_turnover"]
    if tier["max_tracking_error"] is not None:
        limits["max_tracking_error"] = tier["max_tracking_error"]
    if tier["neutral_factors"]:
        limits["factor_neutrality"] = True
        limits["neutral_factors"] = tier["neutral_factors"]
        limits["neutrality_tolerance"] = tier["neutrality_tolerance"]
    return limits


def sector_caps(month: MonthEnd, room: float) -> dict[str, float]:
    """Caps of sectors that lie so far above their benchmark weights, rounded up to half a per cent."""
    held = month.benchmark_sectors
    return {name: math.ceil(200 * (held[name] + room - _EXACT)) / 200 for name in sorted(held)}


def market_fields(month: MonthEnd, objective: Objective, risk_aversion: float) -> Market:
    """Inputs of every optimisation."""
    return {
        "expected_returns": month.by_ticker(month.expected_returns),
        "covariance_matrix": month.covariance_table,
        "risk_free_rate": month.risk_free_rate,
        "objective": objective.value,
        "risk_aversion": risk_aversion,
    }


def mandate_fields(month: MonthEnd, limits: Constraints, current: Floats) -> Mandate:
    """Inputs of every subtask with a full set of limits."""
    return {
        "constraints": limits,
        "benchmark_weights": month.by_ticker(month.benchmark),
        "current_portfolio": month.by_ticker(current),
        "sector_mapping": month.sector_mapping,
        "factor_exposures": {
            ticker: {factor: float(betas[row]) for factor, betas in month.exposures.items()}
            for row, ticker in enumerate(month.tickers)
        },
    }


def month_problem(month: MonthEnd, task_input: JsonObject) -> PortfolioProblem:
    """The problem an agent reads from this input; the covariance is the month's own, not parsed again."""
    return problem_from(task_input, risk=month.risk)
