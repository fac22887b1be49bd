"""The constraint tiers of the settings, fitted to the universe of a month-end, and the input fields they become."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.inputs import Constraints, Mandate, Market
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import Range, Settings, TierSettings
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandates.fields import limits_from, problem_from
from finskillbench.engines.portfolio.measures import clean, tracking_error
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import JsonObject
from finskillbench.errors import SourceError

MAX_WEIGHT_ROOM = 1.7
"""The names at their caps hold at least so many times the portfolio."""
SECTOR_ROOM = 1.25
"""The sectors at their caps, as far as their names' own caps reach, hold at least so many times the portfolio."""
FEWEST_SHARE = 2 / 3
"""The most of the universe that a tier may ask to be held."""
NEUTRALITY_STEPS = (1, 1.5, 2, 3)
"""Multiples of the published neutrality tolerance, tried in turn; beyond the last the tier is neutral no longer."""
ATTAINABLE = 1.5
"""How far above the least attainable tracking error a tier's limit lies at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """One constraint tier at a month-end; `closest` (n,) keeps its limits nearest to the benchmark."""

    name: str
    constraints: Constraints
    risk_aversion: float
    legacy_turnover: Range
    closest: Floats

    @property
    def max_turnover(self) -> float | None:
        """The limit on one-way turnover."""
        return self.constraints.get("max_turnover")


def tier_at(context: BuildContext, settings: Settings, name: str, month: MonthEnd) -> Tier:
    """Fit a tier to the universe of a month-end: every universe of 15 names in five sectors has all three.

    A mandate that nobody could keep would test nothing, so each published limit is widened where the universe leaves it
    no room, by these rules and in this order; a note of the edition says so:

    - the cap of a name, until all names at their caps hold `MAX_WEIGHT_ROOM` times the portfolio; the count of names,
      to at most `FEWEST_SHARE` of the universe; among more names than sessions (whose covariance is in factors) a least
      count is dropped, since of a portfolio spread over hundreds of names few, or none, count as holdings;
    - the cap of a sector, by whole percents, until the sectors can hold `SECTOR_ROOM` times the portfolio;
    - the neutrality tolerance, by `NEUTRALITY_STEPS`, until a portfolio keeps it; if none does, it is dropped;
    - the tracking error, to `ATTAINABLE` times the least that the other limits allow, rounded up to 10 basis points.

    Raises
    ------
    SourceError : no portfolio keeps even that, or none is found: a price or a share count is far off.
    """
    try:
        return _fitted(context, settings["tiers"][name], name, month, settings["neutrality_tolerance"])
    except (InfeasibleError, UndecidedError) as error:
        raise SourceError(
            "prices",
            f"the {name} tier cannot be kept at {month.as_of}: {error}",
            remedy="check prices and shares up to that month, add names, or bring looser tiers by --catalog",
        ) from error


def _fitted(
    context: BuildContext, published: TierSettings, name: str, month: MonthEnd, neutrality_tolerance: float
) -> Tier:
    limits, notes = sized_limits(published, month), list[str]()
    closest = _neutral(month, limits, neutrality_tolerance, notes)
    fitted = (
        ("a name's cap", limits.get("max_weight"), published["max_weight"], ".1%"),
        ("the least number of holdings", limits.get("min_names"), published["min_names"], "d"),
        ("a sector's cap", max((limits.get("sector_limits") or {}).values()), published["sector_cap"], ".0%"),
    )
    notes[:0] = [
        f"{what} is dropped" if now is None else f"{what} is {now:{unit}} instead of {was:{unit}}"
        for what, now, was, unit in fitted
        if now != was
    ]
    wanted = published["max_tracking_error"]
    if wanted is not None:
        least = tracking_error(closest, month.benchmark, month.risk)
        limits["max_tracking_error"] = limit = max(wanted, math.ceil(ATTAINABLE * least * 1000) / 1000)
        if limit > wanted:
            notes.append(
                f"tracking error is limited to {limit:.1%} instead of {wanted:.1%}, "
                f"since {least:.2%} is the least attainable"
            )
    if notes:
        context.notes.append(f"The {name} tier at {month.as_of} is widened to its universe: {'; '.join(notes)}.")
    return Tier(name, limits, published["risk_aversion"], published["legacy_turnover"], closest)


def sized_limits(published: TierSettings, month: MonthEnd) -> Constraints:
    """The limits of a tier with caps and counts that so many names in so many sectors can keep, and no benchmark's."""
    names, sectors = len(month.tickers), Counter(month.sectors)
    weight = max(published["max_weight"], math.ceil(MAX_WEIGHT_ROOM / names * 1000) / 1000)
    percent = round(100 * published["sector_cap"])
    while percent < 100 and math.fsum(min(percent / 100, weight * n) for n in sectors.values()) < SECTOR_ROOM:
        percent += 1
    return {
        "long_only": True,
        "max_weight": weight,
        "sector_limits": dict.fromkeys(sorted(sectors), percent / 100),
        "min_names": min(published["min_names"], int(FEWEST_SHARE * names)) if month.risk.is_dense else None,
        "max_names": max(published["max_names"], names),
        "max_turnover": published["max_turnover"],
        "max_tracking_error": None,
        "factor_neutrality": bool(published["neutral_factors"]),
        "neutral_factors": published["neutral_factors"],
        "neutrality_tolerance": 0.0,
    }


def _neutral(month: MonthEnd, limits: Constraints, published: float, notes: list[str]) -> Floats:
    """Set the neutrality tolerance that can be kept and return the portfolio (n,) that does, nearest the benchmark."""
    for step in NEUTRALITY_STEPS if limits.get("factor_neutrality") else (1,):
        limits["neutrality_tolerance"] = step * published
        try:
            closest = _closest(month, limits)
        except InfeasibleError:
            continue
        if step > 1:
            notes.append(f"the neutrality tolerance is {step * published:g} instead of {published:g}")
        return closest
    notes.append("neutrality is dropped, since no portfolio comes near it")
    limits["factor_neutrality"], limits["neutral_factors"] = False, []
    limits["neutrality_tolerance"] = published
    return _closest(month, limits)


def _closest(month: MonthEnd, limits: Constraints) -> Floats:
    """(n,) the portfolio of least tracking error that keeps the limits, turnover apart."""
    # With mean 2Σb and risk aversion 1, λw'Σw − μ'w is (w−b)'Σ(w−b) less a constant.
    task_input = {
        **mandate_fields(month, {**limits, "max_turnover": None}, month.benchmark),
        "covariance_matrix": month.covariance_table,
        "objective": Objective.MAX_SHARPE.value,
        "expected_returns": month.by_ticker(2 * month.risk.times(month.benchmark)),
        "risk_aversion": 1.0,
    }
    return clean(optimise(month_problem(month, task_input)).weights)


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


def mandate_problem(month: MonthEnd, limits: Constraints) -> PortfolioProblem:
    """The problem of a mandate alone, as `month_problem` reads it of its input, without a current portfolio."""
    found = limits_from(limits, month.sectors)
    exposures = [month.exposures[name] for name in found.neutral_factors]
    return PortfolioProblem(
        month.tickers,
        month.risk,
        Objective.MIN_VARIANCE,
        found,
        sectors=month.sectors,
        benchmark=month.benchmark,
        exposures=np.stack(exposures, axis=1) if exposures else None,
    )


def month_problem(month: MonthEnd, task_input: JsonObject) -> PortfolioProblem:
    """The problem an agent reads from this input; the covariance is the month's own, not parsed again."""
    return problem_from(task_input, risk=month.risk)
