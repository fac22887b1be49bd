"""Mandates in which every limit binds: a limit with room to spare is set below what the portfolio uses of it.

The constraint tiers of the settings, set against the benchmark of a month-end, and the input fields they become.

The active book that a current portfolio holds beside its benchmark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.inputs import Constraints, Mandate, Market
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import TierSettings
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.portfolio.mandates.binding import slack, stated, without
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import breach, check_limits, clean, name_count, sector_weights
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.engines.portfolio.trivial import within_caps
from finskillbench.episode import JsonObject


def of_few_names(month: MonthEnd, rng: np.random.Generator) -> Floats:
    """(n,) weights of a third to half of the names, drawn and weighted around the benchmark."""
    n = len(month.tickers)
    count = int(rng.integers(max(n // 3, 2), max(n // 2, 2) + 1))
    names = rng.choice(n, count, replace=False, p=month.benchmark)
    weights = np.zeros(n)
    weights[names] = month.benchmark[names] * np.exp(rng.normal(0.0, 0.5, count))
    return weights / weights.sum()


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


_SHARE = (0.8, 0.95)
"""What a limit with room to spare is set to, as a share of what the portfolio uses of it."""
_ROUNDS = 4
"""Times that limits are lowered: what one takes away may leave room to another."""
_STEPS = {"max_turnover": 100, "max_tracking_error": 400, "factor_neutrality": 100, "max_weight": 200}
"""Limits are multiples of one over this."""
_LEAST = {"max_turnover": 0.05, "max_tracking_error": 0.01, "factor_neutrality": 0.02, "sector_limits": 0.01}
"""The least that a mandate allows: of a sector, above its benchmark weight."""
_BROKEN = 0.65
"""What ignoring a limit costs at the least, as a share of full marks."""
_OTHERS = (0.35, 0.6)
"""Share of the current portfolio that the strategy would not hold."""
_OVER = (1.0, 1.1)
"""Caps of names and sectors that the current portfolio keeps, as multiples of the mandate's: half keep these."""
_MORE_NAMES = (2, 5)
"""By how many a least number of names exceeds those held without it."""
_MOST_NAMES = 0.8
"""Share of the universe that a mandate asks to be held at the most."""


def loose(problem: PortfolioProblem, weights: Floats) -> set[str]:
    """Names of limits with room to spare, but for a cap on names beside inverse-variance weights: these are small."""
    return slack(problem, weights) - _spared(problem)


def _spared(problem: PortfolioProblem) -> set[str]:
    return {"max_weight"} if problem.objective is Objective.RISK_PARITY else set()


def _broken_by(problem: PortfolioProblem, name: str) -> float:
    """What the optimum without a limit loses by breaking it, as a share of full marks."""
    return breach(name, check_limits(problem, _best(without(problem, name)))[name])


def binding_mandate(
    problem: PortfolioProblem, month: MonthEnd, min_position: float | None, rng: np.random.Generator
) -> tuple[Constraints, Floats] | None:
    """Lower the limits of a problem until each binds, and draw the portfolio from which turnover counts.

    A least position comes with a least number of names where that many are not held anyway, and alone where smaller
    positions are.

    Returns
    -------
    The limits that changed and the current portfolio (n,); None where a limit cannot be made to bind, or costs little.

    Raises
    ------
    InfeasibleError, UndecidedError : the limits drawn leave nothing.
    """
    weights = _best(replace(problem, limits=replace(problem.limits, max_turnover=None)))
    share, over = float(rng.uniform(*_OTHERS)), float(rng.choice(_OVER))
    current = without_dust(month.drifted((1 - share) * weights + share * of_few_names(month, rng)))
    changed = Constraints()
    for _ in range(_ROUNDS):
        current = within_caps(_widened(problem, over), current)
        problem = replace(problem, current=current)
        weights = _best(problem)
        room = loose(problem, weights)
        if not room:
            break
        lower = _lowered(problem, month, weights, room, float(rng.uniform(*_SHARE)))
        if lower is None:
            return None
        changed |= lower
        problem = replace(problem, limits=replace(problem.limits, **lower))
    else:
        return None
    if any(_broken_by(problem, name) < _BROKEN for name in set(stated(problem)) - _spared(problem)):
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
    """The problem with every cap multiplied."""
    limits = problem.limits
    caps = {name: by * cap for name, cap in limits.sector_limits.items()}
    most = None if limits.max_weight is None else by * limits.max_weight
    return replace(problem, limits=replace(limits, max_weight=most, sector_limits=caps))


def _lowered(
    problem: PortfolioProblem, month: MonthEnd, weights: Floats, names: set[str], share: float
) -> Constraints | None:
    """The limits named, lowered to a share of what weights use of them; None where a mandate does not go so low."""
    found, checks = Constraints(), check_limits(problem, weights)
    for name in sorted(names):
        if name == "sector_limits":
            above = max(
                weight - month.benchmark_sectors[sector]
                for sector, weight in sector_weights(weights, month.sectors).items()
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
