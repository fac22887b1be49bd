"""What the risk subtasks share: input fields and the definitions shown to the agent.

How the published release carries the risk subtasks: without prompts, mandates and scenarios by their id alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import cast

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.base import Released
from finskillbench.domains.building import conventions
from finskillbench.domains.risk.inputs import CovarianceInput, MandateInput, MonitoringInput
from finskillbench.domains.risk.objects.monitoring import MonitoringPair
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.engines.holdings import HOLDING
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, required
from finskillbench.episode import Episode, JsonObject, Prompt
from finskillbench.panels.market.benchmark_weights import RULE

SKILL = "risk_management"
PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: the prompt itself abridges numbers to three significant figures."""

BENCHMARK = {
    "benchmark": f"benchmark_weights are {RULE}",
}
"""What every task with a benchmark says of it."""
CONVENTIONS = {
    **BENCHMARK,
    "portfolio": f"weights are signed (a short position is negative) and sum with cash_weight to 1; {HOLDING}, "
    f"and a weight of at most {COMPLIANCE_TOLERANCE:.5f} in size counts as 0; holdings and cash_weight are after "
    "trades_this_month; cash carries no risk and no beta",
    "constraints": "each constraint of the mandate carries its own definition; a limit is kept where the measured "
    f"value lies beyond it by no more than the tolerance of {COMPLIANCE_TOLERANCE:.5f}, in the unit of the limit",
}
"""What every task that holds a portfolio against a mandate says, beside the definitions of the constraints."""


def mandate_conventions(task_input: MonitoringInput, own: Mapping[str, str]) -> dict[str, str]:
    """What a task on a mandate says: units of what its own limits measure, `CONVENTIONS`, and what the subtask adds."""
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    error = " and tracking error are annualised decimals" if "tracking_error_max" in kinds else " is annualised"
    units = (
        "weights, cash_weight, trades and turnover are decimals of NAV (0.05 is 5 %); betas are ratios; covariance"
        f"{error}; total_nav is in USD"
    )
    return conventions({"units": units}, CONVENTIONS, own)


def holdings(case: PortfolioCase) -> int:
    """Number of names held."""
    return int((np.abs(case.portfolio.weights) > ZERO_WEIGHT).sum())


def by_ticker(market: Market, values: Floats) -> dict[str, float]:
    """Ticker to number, in ticker order."""
    return dict(zip(market.tickers, values.tolist(), strict=True))


def sector_mapping(market: Market) -> dict[str, str]:
    """Ticker to sector."""
    return dict(zip(market.tickers, market.sectors, strict=True))


def factor_exposures(market: Market) -> dict[str, dict[str, float]]:
    """Ticker to its six betas."""
    return {
        ticker: dict(zip(FACTORS, row, strict=True))
        for ticker, row in zip(market.tickers, market.betas.tolist(), strict=True)
    }


def covariance_field(market: Market, as_of: date) -> CovarianceInput:
    """The covariance by reference, as the edition stores it."""
    return {"tickers": list(market.tickers), "ref": f"panels/covariance/{as_of}.npz"}


def resolved_covariance(market: Market) -> CovarianceInput:
    """The covariance in full, as `covariance_matrix` resolves."""
    risk = required(market.risk, "covariance")
    return {"tickers": list(market.tickers), "loadings": risk.root.tolist(), "specific": risk.diagonal.tolist()}


def dense_covariance(market: Market) -> CovarianceInput:
    """The covariance in full, as a matrix where that is the smaller form: quicker for sums over a few names."""
    risk = required(market.risk, "covariance")
    if len(risk.root) < risk.size:
        return resolved_covariance(market)
    return {"tickers": list(market.tickers), "matrix": risk.matrix.tolist()}


def mandate_input(pair: MonitoringPair, **more: object) -> MonitoringInput:
    """The input of every subtask that holds a portfolio against a mandate; `more` are fields that only one gives.

    The caller fills in `conventions`, which depend on the rest.
    """
    case, market = pair.case, pair.case.market
    fields = {
        "portfolio": case.to_json(),
        "mandate": cast("MandateInput", pair.mandate.to_json()),
        **more,
        "sector_mapping": sector_mapping(market),
        "factor_exposures": factor_exposures(market),
        "benchmark_weights": by_ticker(market, required(market.benchmark, "benchmark weights")),
        "covariance_matrix": covariance_field(market, case.as_of),
        "conventions": {},
    }
    return cast("MonitoringInput", fields)  # in the order in which it is printed


def mandate_episode(name: str, prefix: str, pair: MonitoringPair, prompt: Prompt, task_input: JsonObject) -> Episode:
    """What an agent sees of a portfolio held against a mandate."""
    case, mandate = pair.case, pair.mandate
    task_id = f"{prefix}_{case.as_of}_{case.portfolio_id}_{mandate.mandate_id}"
    metadata = {"tier": pair.tier, "mandate": mandate.mandate_id}
    return Episode(task_id, SKILL, name, case.as_of, pair.tier, task_input, prompt, metadata)


PLANTED = ("portfolio_type", "regime")
"""What `planted` tells; the checks of the domain hold it to the portfolio and to the panels."""


def planted(case: PortfolioCase) -> dict[str, str]:
    """What the portfolio is, for reports and checks: part of the truth, since an episode file would tell its risk."""
    return {"portfolio_type": case.type, "regime": case.regime}


_DEFINED = {"mandate": ("mandate_id", "mandates"), "stress_scenario": ("scenario_id", "stress_scenarios")}


def _fields(*fields: str) -> Callable[[JsonObject], tuple[str, ...]]:
    return lambda task_input: ("portfolio", *fields, "market_data")


RELEASED = {
    "constraint_monitoring": Released(
        _fields("mandate"),
        prompt=Prompt(
            "Check the portfolio against every constraint of the mandate.",
            "Respond with a JSON object with overall_compliant, violations_count and constraints.",
        ),
        defined=_DEFINED,
    ),
    "risk_identification": Released(
        _fields(),
        prompt=Prompt(
            "Identify the portfolio's greatest risk exposures and rank them by magnitude.",
            "Respond with a JSON object with top_risk_exposures, the greatest first.",
        ),
        defined=_DEFINED,
    ),
    "stress_testing": Released(
        _fields("stress_scenario"),
        prompt=Prompt(
            "Estimate the portfolio's profit or loss under the stress scenario and attribute it.",
            "Respond with a JSON object with estimated_pnl_pct and attribution.",
        ),
        defined=_DEFINED,
    ),
    "risk_remediation": Released(
        _fields("mandate"),
        prompt=Prompt(
            "Find the trades that bring the portfolio into compliance with the mandate at the least turnover.",
            "Respond with a JSON object with trades, total_turnover and post_trade_compliant.",
        ),
        defined=_DEFINED,
    ),
}
"""The prompts state the task and no more."""
