"""Constraint tiers sized to a benchmark, mandates in which every limit binds, and the input fields of both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.inputs import Constraints, MandateFields, MarketFields
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import TierSettings
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.portfolio.mandates.binding import slack, stated_limits, without
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import breach, check_limits, clean, name_count, portfolio_sector_weights
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.engines.portfolio.trivial import within_caps
from finskillbench.episode import JsonObject


def of_few_names(month: MonthEnd, rng: np.random.Generator) -> Floats:
    """Draw weights (n,) of a third to half of the names around the benchmark."""
    n = len(month.tickers)
    count = int(rng.integers(max(n // 3, 2), max(n // 2, 2) + 1))
    names = rng.choice(n, count, replace=False, p=month.benchmark)
    weights = np.zeros(n)
    weights[names] = month.benchmark[names] * np.exp(rng.normal(0.0, 0.5, count))
    return weights / weights.sum()


_EXACT = 1e-9
"""Rounding allowed before a cap is rounded up."""


@dataclass(frozen=True, slots=True, eq=False)
class SizedTier:
    """One constraint tier at a month-end, with limits that the benchmark satisfies (except counts of names)."""

    name: str
    constraints: Constraints

    @property
    def max_turnover(self) -> float | None:
        return self.constraints.get("max_turnover")


def sized_limits(tier: TierSettings, month: MonthEnd) -> Constraints:
    """Size the limits of a tier so that the benchmark satisfies them, without counts and minimum positions.

    Caps of names are at least the benchmark's largest weight; both kinds of caps are rounded up to 0.5 %.
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


def sector_caps(month: MonthEnd, headroom: float) -> dict[str, float]:
    """Return sector caps `headroom` above benchmark weights, rounded up to 0.5 %."""
    held = month.benchmark_sectors
    return {name: math.ceil(200 * (held[name] + headroom - _EXACT)) / 200 for name in sorted(held)}


def market_fields(month: MonthEnd, objective: Objective, risk_aversion: float) -> MarketFields:
    """Return the input fields of every optimisation."""
    return {
        "expected_returns": month.by_ticker(month.expected_returns),
        "covariance_matrix": month.covariance_table,
        "risk_free_rate": month.risk_free_rate,
        "objective": objective.value,
        "risk_aversion": risk_aversion,
    }


def mandate_fields(month: MonthEnd, limits: Constraints, current: Floats) -> MandateFields:
    """Return the input fields of subtasks with a full set of limits."""
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
    """Return the problem of an input, with the month's covariance instead of a parsed one."""
    return problem_from(task_input, risk=month.risk)


_SHARE = (0.8, 0.95)
"""Share of the portfolio's usage to which a slack limit is lowered."""
_ROUNDS = 4
"""Rounds of lowering limits, since one limit can loosen another."""
_STEPS = {"max_turnover": 100, "max_tracking_error": 400, "factor_neutrality": 100, "max_weight": 200}
"""Limits are multiples of the reciprocals."""
_LEAST = {"max_turnover": 0.05, "max_tracking_error": 0.01, "factor_neutrality": 0.02, "sector_limits": 0.01}
"""Lowest limits of a mandate; for sectors, above the benchmark weight."""
_BROKEN = 0.65
"""Minimum cost of ignoring a limit, as a share of full marks."""
_OFF_STRATEGY_SHARE = (0.35, 0.6)
"""Share of the current portfolio outside of the strategy."""
_OVER = (1.0, 1.1)
"""Multiples of the mandate's caps that the current portfolio satisfies, each in half of the draws."""
_MORE_NAMES = (2, 5)
"""Range by which the minimum number of names exceeds those held without it."""
_MOST_NAMES = 0.8
"""Maximum share of the universe that a mandate requires to be held."""


def loose(problem: PortfolioProblem, weights: Floats) -> set[str]:
    """Return the names of slack limits, ignoring the cap on names under risk_parity, where weights are small."""
    return slack(problem, weights) - _spared(problem)


def _spared(problem: PortfolioProblem) -> set[str]:
    return {"max_weight"} if problem.objective is Objective.RISK_PARITY else set()


def _broken_by(problem: PortfolioProblem, name: str) -> float:
    return breach(name, check_limits(problem, _best(without(problem, name)))[name])


def binding_mandate(
    problem: PortfolioProblem, month: MonthEnd, min_position: float | None, rng: np.random.Generator
) -> tuple[Constraints, Floats] | None:
    """Lower the limits of a problem until each binds, and draw the current portfolio for turnover.

    A minimum position is combined with a minimum number of names if fewer are held. Returns the changed limits and the
    current portfolio (n,); None if a limit cannot bind or costs little. Raises InfeasibleError or UndecidedError if no
    portfolio satisfies the drawn limits.
    """
    weights = _best(replace(problem, limits=replace(problem.limits, max_turnover=None)))
    share, over = float(rng.uniform(*_OFF_STRATEGY_SHARE)), float(rng.choice(_OVER))
    current = without_dust(month.drifted((1 - share) * weights + share * of_few_names(month, rng)))
    changed = Constraints()
    for _ in range(_ROUNDS):
        current = within_caps(_widened(problem, over), current)
        problem = replace(problem, current=current)
        weights = _best(problem)
        slack_limits = loose(problem, weights)
        if not slack_limits:
            break
        lower = _lowered(problem, month, weights, slack_limits, float(rng.uniform(*_SHARE)))
        if lower is None:
            return None
        changed |= lower
        problem = replace(problem, limits=replace(problem.limits, **lower))
    else:
        return None
    if any(_broken_by(problem, name) < _BROKEN for name in set(stated_limits(problem)) - _spared(problem)):
        return None
    if min_position is not None:
        held, most = name_count(weights), int(_MOST_NAMES * problem.size)
        fewest = min(held + int(rng.integers(*_MORE_NAMES)), most)
        if fewest > held:
            changed |= {"min_position": min_position, "min_names": fewest}
        elif ((weights > 0) & (weights < min_position)).any():
            changed["min_position"] = min_position
    return changed, current


def _widened(problem: PortfolioProblem, by: float) -> PortfolioProblem:
    limits = problem.limits
    caps = {name: by * cap for name, cap in limits.sector_limits.items()}
    most = None if limits.max_weight is None else by * limits.max_weight
    return replace(problem, limits=replace(limits, max_weight=most, sector_limits=caps))


def _lowered(
    problem: PortfolioProblem, month: MonthEnd, weights: Floats, names: set[str], share: float
) -> Constraints | None:
    """Lower the named limits to a share of their usage; None if a limit would be below its minimum."""
    found, checks = Constraints(), check_limits(problem, weights)
    for name in sorted(names):
        if name == "sector_limits":
            above = max(
                weight - month.benchmark_sectors[sector]
                for sector, weight in portfolio_sector_weights(weights, month.sectors).items()
            )
            if share * above < _LEAST[name]:
                return None
            found["sector_limits"] = sector_caps(month, share * above)
            continue
        least = _LEAST.get(name, float(month.benchmark.max()))
        limit = math.floor(share * checks[name].value * _STEPS[name]) / _STEPS[name]
        if limit < least - 1e-9:
            return None
        field = "neutrality_tolerance" if name == "factor_neutrality" else name
        found |= cast("Constraints", {field: limit})
    return found


def _best(problem: PortfolioProblem) -> Floats:
    return clean(optimise(problem, unique=False).weights)
