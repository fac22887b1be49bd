"""Validated conversion of risk-task JSON to a market and a portfolio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines import fields
from finskillbench.engines.portfolio.mandates.fields import covariance_from
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, turnover_of
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

SUM_TOLERANCE = 1e-6
"""Maximum deviation of weights and cash from 1: rounding of a weight list."""
BENCHMARK_TOLERANCE = 1e-3
"""Maximum deviation of benchmark weights from 1: rounding of thousands of weights."""
MOST_DOLLARS = 1e15
"""Maximum portfolio value or daily volume in USD."""


def market_from(task_input: Mapping[str, Any], *, risk: RiskModel | None = None) -> MarketSnapshot:
    """Read the universe of a resolved task input; absent optional fields are None.

    Tickers are in the order of `covariance_matrix`, else of `sector_mapping`. Maps must cover all tickers, except
    `benchmark_weights` (absent: 0). With `risk`, only the covariance's tickers are read. Raises `InputError` with field
    and remedy.
    """
    by_ticker = fields.mapping(task_input, "sector_mapping")
    present = {name for name, value in task_input.items() if value is not None}
    tickers = fields.tickers_of(task_input, "covariance_matrix") if "covariance_matrix" in present else tuple(by_ticker)
    if not tickers:
        raise InputError("sector_mapping is empty; inject it from the task data")
    sectors = tuple(fields.covered(by_ticker, ticker, "sector_mapping") for ticker in tickers)
    if not all(isinstance(sector, str) and sector for sector in sectors):
        raise InputError("sector_mapping must map every ticker to the name of a sector")
    betas = fields.exposures_from(fields.mapping(task_input, "factor_exposures"), tickers, FACTORS)
    volume = None
    if "average_daily_volume_usd" in present:
        volume = fields.values_from(
            task_input["average_daily_volume_usd"], tickers, "average_daily_volume_usd", largest=MOST_DOLLARS
        )
        if not (volume >= 0).all():
            raise InputError("average_daily_volume_usd holds a negative number; inject the field")
    return MarketSnapshot(
        tickers=tickers,
        sectors=sectors,
        betas=betas,
        benchmark=_benchmark(task_input, tickers) if "benchmark_weights" in present else None,
        risk=(covariance_from(task_input) if risk is None else risk) if "covariance_matrix" in present else None,
        dollar_volume=volume,
        factor_volatility=_factor_volatility(task_input) if "factor_volatility" in present else None,
    )


def portfolio_from(task_input: Mapping[str, Any], market: MarketSnapshot) -> Portfolio:
    """Read `portfolio`: holdings, cash, NAV and this month's trades; raise `InputError` with field and remedy."""
    table = fields.mapping(task_input, "portfolio")
    weights = _holdings(table.get("holdings"), market)
    cash = fields.number(table, "cash_weight", "portfolio")
    if cash < -SUM_TOLERANCE:
        raise InputError(f"portfolio: cash_weight is {cash:.8g}; a portfolio does not borrow, give cash of at least 0")
    total = float(weights.sum()) + cash
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"portfolio: holdings and cash_weight sum to {total:.8g}; give fractions of NAV that sum to 1")
    nav = fields.number(table, "total_nav", "portfolio", largest=MOST_DOLLARS)
    if nav <= 0:
        raise InputError(f"portfolio: total_nav must be a positive number of USD, not {fields.describe_value(nav)}")
    if table.get("trades_this_month") is None:
        raise InputError("portfolio: trades_this_month is missing; inject it, or give {} where nothing was traded")
    trades = fields.weights_from(table["trades_this_month"], market.tickers, "trades_this_month", "the universe")
    return Portfolio(weights=weights, cash=cash, nav=nav, traded=turnover_of(trades))


def _holdings(data: object, market: MarketSnapshot) -> Floats:
    if (rows := fields.list_of(data)) is None:
        raise InputError("portfolio: holdings must be a list of {symbol, weight} objects")
    place = {ticker: index for index, ticker in enumerate(market.tickers)}
    weights = np.zeros(len(place))
    seen: set[str] = set()
    for index, item in enumerate(rows):
        where, row = f"portfolio: holdings[{index}]", fields.table_of(item) or {}
        symbol = row.get("symbol")
        if not isinstance(symbol, str):
            raise InputError(f"{where} must be an object with a symbol and a weight")
        if symbol not in place:
            raise InputError(
                f"{where} names {fields.listed([symbol[:60]])}, which the universe of the task does not have"
            )
        if symbol in seen:
            raise InputError(f"{where} names {symbol} a second time; give one weight for each name")
        seen.add(symbol)
        weights[place[symbol]] = fields.number(row, "weight", where)
    return weights


def _benchmark(task_input: Mapping[str, Any], tickers: tuple[str, ...]) -> Floats:
    weights = fields.weights_from(
        fields.mapping(task_input, "benchmark_weights"), tickers, "benchmark_weights", "the universe"
    )
    total = float(weights.sum())
    if abs(total - 1.0) > BENCHMARK_TOLERANCE:
        raise InputError(f"benchmark_weights sum to {total:.8g}; inject the field, fractions that sum to 1")
    return weights


def _factor_volatility(task_input: Mapping[str, Any]) -> Floats:
    table = fields.mapping(task_input, "factor_volatility")
    found = np.array([fields.number(table, factor, "factor_volatility") for factor in FACTORS])
    if not (found >= 0).all():
        raise InputError("factor_volatility holds a negative number; inject the field")
    return found
