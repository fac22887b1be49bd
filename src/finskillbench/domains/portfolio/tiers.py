"""What the portfolio subtasks share: the constraint tiers, the definitions shown to the agent, and the inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext, MonthEnd
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, clean, tracking_error
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import HOLDING_THRESHOLD, Objective, PortfolioProblem
from finskillbench.episode import JsonObject
from finskillbench.errors import SourceError
from finskillbench.panels.market.covariance import WINDOW

SKILL = "portfolio_construction"
ATTAINABLE = 1.25
"""How far above the least attainable tracking error a tier's limit lies at least."""
METADATA = {"covariance_method": "ledoit_wolf", "lookback_sessions": 252}
"""Facts of every portfolio episode for stratified reports; never shown to an agent."""

OBJECTIVE_TEXT = {
    Objective.MAX_SHARPE: "maximise expected_returns'w - risk_free_rate - risk_aversion * w'Sw",
    Objective.MIN_VARIANCE: "minimise w'Sw",
    Objective.MAX_RETURN: "maximise expected_returns'w",
    Objective.RISK_PARITY: "minimise ||w - v||^2 + 0.5 * w'Sw, v_i = (1/S_ii) / sum_j (1/S_jj)",
}
"""The objectives as the agent reads them; S is the covariance. Rendered beside the truth's own definition."""

OBJECTIVE_NAME = {
    Objective.MAX_SHARPE: "maximum risk-adjusted return (max_sharpe)",
    Objective.MIN_VARIANCE: "minimum variance (min_variance)",
    Objective.MAX_RETURN: "maximum expected return (max_return)",
    Objective.RISK_PARITY: "risk balance (risk_parity)",
}

PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: three decimals of a weight are not enough to keep a limit, and the prompt itself abridges."""
UNITS = "expected_returns, covariance_matrix and risk_free_rate are annualised decimals (0.05 is 5% a year)"
CONVENTIONS = {
    "fully_invested": "weights sum to 1",
    "long_only": "no negative weight",
    "max_turnover": "one-way: half the sum of |w - current_portfolio|",
    "max_tracking_error": "annualised: sqrt((w - b)'S(w - b)), b the benchmark_weights, S the covariance",
    "factor_neutrality": "|beta_f'(w - b)| <= neutrality_tolerance for each of neutral_factors, by factor_exposures",
    "names": f"a holding is a weight >= {HOLDING_THRESHOLD}; min_names and max_names count holdings",
    "sector_limits": "total weight of the sector's tickers, by sector_mapping",
    "tolerance": f"limits are checked on the submitted weights with a tolerance of {FEASIBILITY_TOLERANCE}",
}


def conventions(objective: Objective | None, *names: str) -> dict[str, str]:
    """The definitions that an episode's truth depends on, in the words shown to the agent."""
    chosen = {"units": UNITS} | {name: CONVENTIONS[name] for name in ("fully_invested", *names, "tolerance")}
    return chosen if objective is None else {"objective": OBJECTIVE_TEXT[objective]} | chosen


def covariance_field(month: MonthEnd) -> dict[str, Any]:
    """The covariance by reference, as the edition stores it."""
    return {"tickers": list(month.tickers), "ref": f"panels/covariance/{month.as_of}.npz"}


def market_fields(month: MonthEnd, objective: Objective, risk_aversion: float) -> dict[str, Any]:
    """Inputs of every optimisation."""
    return {
        "expected_returns": month.by_ticker(month.expected_returns),
        "covariance_matrix": covariance_field(month),
        "risk_free_rate": month.risk_free_rate,
        "objective": objective.value,
        "risk_aversion": risk_aversion,
    }


@dataclass(frozen=True, slots=True)
class Tier:
    """One constraint tier of the catalog at a month-end; `closest` (n,) keeps its limits nearest to the benchmark."""

    name: str
    constraints: Mapping[str, Any]
    risk_aversion: float
    legacy: Mapping[str, Any]
    closest: Floats

    @classmethod
    def of(cls, context: BuildContext, name: str, month: MonthEnd) -> Tier:
        """Read a tier for the universe of a month-end.

        `max_names` never falls below the universe (published: 30 of 30). The tracking-error limit is the published one
        where the benchmark's concentration leaves room for it, else `ATTAINABLE` times the least that the other limits
        allow, rounded up to 10 basis points: a mandate that nobody could keep would test nothing.
        """
        return context.shared(f"tier/{name}/{month.as_of}", lambda: cls._read(context, name, month))

    @classmethod
    def _read(cls, context: BuildContext, name: str, month: MonthEnd) -> Tier:
        data = context.catalog["tiers"][name]
        limits = {
            "long_only": True,
            "max_weight": data["max_weight"],
            "sector_limits": dict.fromkeys(sorted(set(month.sectors)), data["sector_cap"]),
            "min_names": data["min_names"],
            "max_names": max(data["max_names"], len(month.sectors)),
            "max_turnover": data["max_turnover"],
            "max_tracking_error": data["max_tracking_error"],
            "factor_neutrality": bool(data["neutral_factors"]),
            "neutral_factors": data["neutral_factors"],
            "neutrality_tolerance": context.catalog["neutrality_tolerance"],
        }
        tier = cls(name, limits, data["risk_aversion"], data["legacy"], month.benchmark)
        if data["max_tracking_error"] is None:
            return replace(tier, closest=cls._closest(context, name, month, limits))
        closest = cls._closest(context, name, month, limits | {"max_tracking_error": None})
        least = tracking_error(closest, month.benchmark, month.risk)
        attainable = math.ceil(ATTAINABLE * least * 1000) / 1000
        if attainable > data["max_tracking_error"]:
            context.notes.append(
                f"The {name} tier at {month.as_of} limits tracking error to {attainable:.1%} instead of "
                f"{data['max_tracking_error']:.1%}: with this benchmark {least:.2%} is the least attainable."
            )
            limits = limits | {"max_tracking_error": attainable}
        return replace(tier, constraints=limits, closest=closest)

    @classmethod
    def _closest(cls, context: BuildContext, name: str, month: MonthEnd, limits: Mapping[str, Any]) -> Floats:
        """`_closest`, with month, tier and the likely cause in the error where no portfolio can be found.

        The tiers are made for real markets, so the first suspects are moves no market makes within the covariance's
        window: one wrong price swamps the variance and the betas of its name.
        """
        try:
            return _closest(month, limits)
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


def _closest(month: MonthEnd, limits: Mapping[str, Any]) -> Floats:
    """(n,) the portfolio of least tracking error that keeps the limits, turnover apart."""
    task_input = {
        "covariance_matrix": covariance_field(month),
        "objective": Objective.MAX_SHARPE.value,
        # With mean 2Σb and risk aversion 1, λw'Σw − μ'w is (w−b)'Σ(w−b) less a constant.
        "expected_returns": month.by_ticker(2 * month.risk.times(month.benchmark)),
        "risk_aversion": 1.0,
        "constraints": {**limits, "max_turnover": None},
    }
    static = constraint_fields(month, limits, month.benchmark)
    return clean(optimise(month_problem(month, static | task_input)).weights)


def constraint_fields(month: MonthEnd, limits: Mapping[str, Any], current: Floats) -> dict[str, Any]:
    """Inputs of every subtask with a full set of limits."""
    return {
        "constraints": dict(limits),
        "benchmark_weights": month.by_ticker(month.benchmark),
        "current_portfolio": month.by_ticker(current),
        "sector_mapping": dict(zip(month.tickers, month.sectors, strict=True)),
        "factor_exposures": {
            ticker: {factor: float(betas[row]) for factor, betas in month.exposures.items()}
            for row, ticker in enumerate(month.tickers)
        },
    }


def month_problem(month: MonthEnd, task_input: JsonObject) -> PortfolioProblem:
    """The problem an agent reads from this input; the covariance is the month's own, not parsed again."""
    return problem_from(task_input, risk=month.risk)
