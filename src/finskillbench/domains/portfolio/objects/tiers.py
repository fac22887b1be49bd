"""The constraint tiers of the settings, fitted to the universe of a month-end, and the input fields they become."""

from __future__ import annotations

import math
from dataclasses import dataclass

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.inputs import Constraints, Mandate, Market
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import Legacy, Settings, TierSettings
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import clean, tracking_error
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import JsonObject
from finskillbench.errors import SourceError
from finskillbench.panels.market.covariance import WINDOW

ATTAINABLE = 1.25
"""How far above the least attainable tracking error a tier's limit lies at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """One constraint tier at a month-end; `closest` (n,) keeps its limits nearest to the benchmark."""

    name: str
    constraints: Constraints
    risk_aversion: float
    legacy: Legacy
    closest: Floats

    @property
    def max_turnover(self) -> float | None:
        """The limit on one-way turnover."""
        return self.constraints.get("max_turnover")


def tier_at(context: BuildContext, settings: Settings, name: str, month: MonthEnd) -> Tier:
    """Fit a tier to the universe of a month-end.

    `max_names` never falls below the universe (published: 30 of 30). The tracking-error limit is the published one
    where the benchmark's concentration leaves room for it, else `ATTAINABLE` times the least that the other limits
    allow, rounded up to 10 basis points: a mandate that nobody could keep would test nothing.

    Raises
    ------
    SourceError : no portfolio keeps the tier. The tiers are made for real markets, so the error names the first
        suspects: moves no market makes within the covariance's window, for one wrong price swamps the variance and the
        betas of its name.
    """
    try:
        return _fitted(context, settings["tiers"][name], name, month, settings["neutrality_tolerance"])
    except (InfeasibleError, UndecidedError) as error:
        first = context.panels.window_returns(month.as_of, WINDOW)[0][0]
        jumps = [
            f"{jump.symbol} {jump.simple_return:+.0%} on {jump.date}"
            for jump in context.panels.report.jumps
            if first <= jump.date <= month.as_of
        ]
        cause = f"; likely cause, moves between {first} and {month.as_of}: {', '.join(jumps)}" if jumps else ""
        raise SourceError(
            "prices",
            f"the {name} tier cannot be kept at {month.as_of}: {error}{cause}",
            remedy="check those prices" if jumps else "check prices and shares up to that month, or add names",
        ) from error


def _fitted(
    context: BuildContext, published: TierSettings, name: str, month: MonthEnd, neutrality_tolerance: float
) -> Tier:
    wanted = published["max_tracking_error"]
    limits: Constraints = {
        "long_only": True,
        "max_weight": published["max_weight"],
        "sector_limits": dict.fromkeys(sorted(set(month.sectors)), published["sector_cap"]),
        "min_names": published["min_names"],
        "max_names": max(published["max_names"], len(month.sectors)),
        "max_turnover": published["max_turnover"],
        "max_tracking_error": None,
        "factor_neutrality": bool(published["neutral_factors"]),
        "neutral_factors": published["neutral_factors"],
        "neutrality_tolerance": neutrality_tolerance,
    }
    closest = _closest(month, limits)
    if wanted is not None:
        least = tracking_error(closest, month.benchmark, month.risk)
        attainable = math.ceil(ATTAINABLE * least * 1000) / 1000
        if attainable > wanted:
            context.notes.append(
                f"The {name} tier at {month.as_of} limits tracking error to {attainable:.1%} instead of "
                f"{wanted:.1%}: with this benchmark {least:.2%} is the least attainable."
            )
        limits["max_tracking_error"] = max(attainable, wanted)
    return Tier(name, limits, published["risk_aversion"], published["legacy"], closest)


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


def month_problem(month: MonthEnd, task_input: JsonObject) -> PortfolioProblem:
    """The problem an agent reads from this input; the covariance is the month's own, not parsed again."""
    return problem_from(task_input, risk=month.risk)
