"""What the risk subtasks share: input fields, the definitions shown to the agent, agreement of two derivations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, TypeVar

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.building import BuildContext, conventions
from finskillbench.domains.proofs import rederived
from finskillbench.domains.risk.objects.construct import MonitoringPair
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.second import AGREEMENT
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, required
from finskillbench.episode import Episode, Prompt
from finskillbench.errors import InternalError

T = TypeVar("T")

SKILL = "risk_management"
EPISODES = 40
"""Episodes of each risk subtask."""
PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: the prompt itself abridges numbers to three significant figures."""

UNITS = (
    "weights, cash_weight, turnover, exposures and P&L are decimals of NAV (0.05 is 5 %); covariance and tracking "
    "error are annualised decimals; betas are ratios; average daily volume and total_nav are USD"
)
CONVENTIONS = {
    "units": UNITS,
    "portfolio": f"weights are signed (a short position is negative) and sum with cash_weight to 1; a holding is a "
    f"name whose |weight| exceeds {ZERO_WEIGHT:.0e}; holdings and "
    "cash_weight are after trades_this_month; cash carries no risk, no beta and no P&L",
    "constraints": "each constraint of the mandate carries its own definition",
}
"""What every task that holds a portfolio against a mandate says, beside the definitions of the constraints."""


def holdings(case: PortfolioCase) -> int:
    """Number of names held."""
    return int((np.abs(case.book.weights) > ZERO_WEIGHT).sum())


def by_ticker(market: Market, values: Floats) -> dict[str, float]:
    """Ticker to number, in ticker order."""
    return {ticker: float(value) for ticker, value in zip(market.tickers, values, strict=True)}


def sector_mapping(market: Market) -> dict[str, str]:
    """Ticker to sector."""
    return dict(zip(market.tickers, market.sectors, strict=True))


def factor_exposures(market: Market) -> dict[str, dict[str, float]]:
    """Ticker to its six betas."""
    return {
        ticker: dict(zip(FACTORS, map(float, row), strict=True))
        for ticker, row in zip(market.tickers, market.betas, strict=True)
    }


def covariance_field(market: Market, as_of: date) -> dict[str, Any]:
    """The covariance by reference, as the edition stores it."""
    return {"tickers": list(market.tickers), "ref": f"panels/covariance/{as_of}.npz"}


def returns_field(market: Market, as_of: date) -> dict[str, Any]:
    """The returns of the trailing window by reference."""
    sessions = required(market.returns, "returns").shape[0]
    tickers = list(market.tickers)
    return {"tickers": tickers, "ref": "panels/returns.parquet", "end": as_of.isoformat(), "sessions": sessions}


def mandate_fields(market: Market, as_of: date) -> dict[str, Any]:
    """Inputs of every subtask that holds a portfolio against a mandate."""
    return {
        "sector_mapping": sector_mapping(market),
        "factor_exposures": factor_exposures(market),
        "benchmark_weights": by_ticker(market, required(market.benchmark, "benchmark weights")),
        "covariance_matrix": covariance_field(market, as_of),
    }


def mandate_episode(
    name: str,
    prefix: str,
    pair: MonitoringPair,
    prompt: Prompt,
    definitions: Mapping[str, str],
    **fields: Any,
) -> Episode:
    """What an agent sees of a portfolio held against a mandate: `fields` are inputs that only one subtask gives.

    `definitions` are the subtask's own, beside those of the portfolio.
    """
    case, mandate = pair.case, pair.mandate
    task_input = {
        "portfolio": case.to_json(),
        "mandate": mandate.to_json(),
        **fields,
        **mandate_fields(case.market, case.as_of),
        "conventions": conventions(CONVENTIONS, definitions),
    }
    task_id = f"{prefix}_{case.as_of}_{case.portfolio_id}_{mandate.mandate_id}"
    metadata = {"tier": pair.tier, "mandate": mandate.mandate_id}
    return Episode(task_id, SKILL, name, case.as_of, pair.tier, task_input, prompt, metadata)


def resolved_covariance(market: Market) -> dict[str, Any]:
    """The covariance in full, as `covariance_matrix` resolves."""
    risk = required(market.risk, "covariance")
    return {"tickers": list(market.tickers), "loadings": risk.root.tolist(), "specific": risk.diagonal.tolist()}


def agreed(task_id: str, pairs: Iterable[tuple[str, float, float]]) -> float:
    """Largest |first - second| of (what, first, second).

    Raises
    ------
    InternalError : naming the number on which the two derivations differ by more than `AGREEMENT`.
    """
    widest = 0.0
    for what, first, second in pairs:
        apart = abs(first - second)
        if not apart <= AGREEMENT:
            raise InternalError(f"{task_id}: {what} is {first!r} by the engine and {second!r} derived a second time")
        widest = max(widest, apart)
    return widest


def same(task_id: str, what: str, first: object, second: object) -> None:
    """Refuse two derivations that differ in something that is no number.

    Raises
    ------
    InternalError : naming what differs.
    """
    if first != second:
        raise InternalError(f"{task_id}: {what} is {first!r} by the engine and {second!r} derived a second time")


def derived_again(difference: float, numbers: int) -> dict[str, Any]:
    """The proof of a label whose arithmetic was done twice; see `rederived`."""
    return rederived(difference, AGREEMENT, numbers, "plain arithmetic, item by item, from the episode's input")


def planted(case: PortfolioCase) -> dict[str, str]:
    """What the portfolio is, for reports and checks: part of the truth, since an episode file would tell its risk."""
    return {"portfolio_type": case.type, "regime": case.regime}


def pool_sizes(context: BuildContext) -> dict[str, dict[str, int]]:
    """What each risk subtask drew its episodes from, by subtask; kept in the manifest."""
    return context.shared("risk/pools", dict)
