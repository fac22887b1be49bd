"""Input fields and conventions common to the risk subtasks, and their prompts for the published release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import cast

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.base import Released
from finskillbench.domains.building import merge_conventions
from finskillbench.domains.risk.inputs import CovarianceInput, MandateInput, MonitoringInput
from finskillbench.domains.risk.objects.monitoring import MonitoringPair
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.engines.holdings import HOLDING
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, require_field
from finskillbench.episode import Episode, JsonObject, Prompt
from finskillbench.panels.market.benchmark_weights import RULE

SKILL = "risk_management"
PRECISION = "Give every number with at least 6 decimals."
"""Part of every prompt: the printed input shows only three significant figures."""

BENCHMARK = {"benchmark": f"benchmark_weights are {RULE}"}
"""Definition of the benchmark, for every task that has one."""
CONVENTIONS = {
    **BENCHMARK,
    "portfolio": f"weights are signed (a short position is negative) and sum with cash_weight to 1; {HOLDING}, "
    f"and a weight of at most {COMPLIANCE_TOLERANCE:.5f} in size counts as 0; holdings and cash_weight are after "
    "trades_this_month; cash carries no risk and no beta",
    "constraints": "each constraint of the mandate carries its own definition; a limit is kept if the measured "
    f"value is beyond it by no more than the tolerance of {COMPLIANCE_TOLERANCE:.5f}, in the unit of the limit",
}
"""Conventions of every task that checks a portfolio against a mandate."""


def mandate_conventions(task_input: MonitoringInput, additions: Mapping[str, str]) -> dict[str, str]:
    """Return the conventions of a mandate task: units of its limits, `CONVENTIONS`, and `additions`."""
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    error = " and tracking error are annualised decimals" if "tracking_error_max" in kinds else " is annualised"
    units = (
        "weights, cash_weight, trades and turnover are decimals of NAV (0.05 is 5 %); betas are ratios; covariance"
        f"{error}; total_nav is in USD"
    )
    return merge_conventions({"units": units}, CONVENTIONS, additions)


def holding_count(case: PortfolioCase) -> int:
    """Return the number of names held."""
    return int((np.abs(case.portfolio.weights) > ZERO_WEIGHT).sum())


def values_by_ticker(market: MarketSnapshot, values: Floats) -> dict[str, float]:
    """Map tickers to `values`, in ticker order."""
    return dict(zip(market.tickers, values.tolist(), strict=True))


def sector_mapping(market: MarketSnapshot) -> dict[str, str]:
    """Map tickers to sectors."""
    return dict(zip(market.tickers, market.sectors, strict=True))


def betas_by_ticker(market: MarketSnapshot) -> dict[str, dict[str, float]]:
    """Map tickers to their six betas."""
    return {
        ticker: dict(zip(FACTORS, row, strict=True))
        for ticker, row in zip(market.tickers, market.betas.tolist(), strict=True)
    }


def covariance_field(market: MarketSnapshot, as_of: date) -> CovarianceInput:
    """Return a reference to the stored covariance."""
    return {"tickers": list(market.tickers), "ref": f"panels/covariance/{as_of}.npz"}


def resolved_covariance(market: MarketSnapshot) -> CovarianceInput:
    """Return the covariance as loadings and specific variances."""
    risk = require_field(market.risk, "covariance")
    return {"tickers": list(market.tickers), "loadings": risk.root.tolist(), "specific": risk.diagonal.tolist()}


def dense_covariance(market: MarketSnapshot) -> CovarianceInput:
    """Return the covariance as a matrix if that is smaller, else as loadings; faster for sums over few names."""
    risk = require_field(market.risk, "covariance")
    if len(risk.root) < risk.size:
        return resolved_covariance(market)
    return {"tickers": list(market.tickers), "matrix": risk.matrix.tolist()}


def mandate_input(pair: MonitoringPair, **more: object) -> MonitoringInput:
    """Return the input of a mandate task; `more` are fields of one subtask, the caller sets `conventions`."""
    case, market = pair.case, pair.case.market
    fields = {
        "portfolio": case.to_json(),
        "mandate": cast("MandateInput", pair.mandate.to_json()),
        **more,
        "sector_mapping": sector_mapping(market),
        "factor_exposures": betas_by_ticker(market),
        "benchmark_weights": values_by_ticker(market, require_field(market.benchmark, "benchmark weights")),
        "covariance_matrix": covariance_field(market, case.as_of),
        "conventions": {},
    }
    return cast("MonitoringInput", fields)  # key order is print order


def mandate_episode(name: str, prefix: str, pair: MonitoringPair, prompt: Prompt, task_input: JsonObject) -> Episode:
    """Return the episode of a portfolio under a mandate."""
    case, mandate = pair.case, pair.mandate
    task_id = f"{prefix}_{case.as_of}_{case.portfolio_id}_{mandate.mandate_id}"
    metadata = {"tier": pair.tier, "mandate": mandate.mandate_id}
    return Episode(task_id, SKILL, name, case.as_of, pair.tier, task_input, prompt, metadata)


PLANTED = ("portfolio_type", "regime")
"""Keys of `planted_facts`, which the checks compare with the portfolio and the panels."""


def planted_facts(case: PortfolioCase) -> dict[str, str]:
    """Return portfolio type and regime for the truth; an episode file must not reveal them."""
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
"""Release of the risk subtasks: short prompts; mandates and scenarios by id."""
