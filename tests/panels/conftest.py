# pyright: basic
"""A small seeded market of weekdays, and ways to alter it."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import date, timedelta
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from finskillbench.arrays import FACTORS
from finskillbench.sources.market.collection import MarketData, SecurityRecord, Statements
from finskillbench.sources.synthetic.calendar import quarter_ends


def statement_table(rows: dict[date, float]) -> pl.DataFrame:
    """A table of figures by end of period."""
    return pl.DataFrame({"end": list(rows), "value": list(rows.values())}, schema={"end": pl.Date, "value": pl.Float64})


def _statements(symbol: str, start: date, end: date, rng: np.random.Generator) -> Statements:
    quarters = quarter_ends(start - timedelta(days=800), end)
    incomes = {day: float(rng.normal(1e8, 3e7)) for day in quarters}
    annual = {
        day: sum(incomes[quarter] for quarter in quarters if quarter.year == day.year)
        for day in quarters
        if day.month == 12 and date(day.year, 3, 31) in incomes
    }
    return Statements(
        symbol=symbol,
        net_income_quarterly=statement_table({d: v for d, v in incomes.items() if d.month != 12}),
        eps_quarterly=statement_table({}),
        equity=statement_table({day: float(rng.uniform(2e9, 4e9)) for day in annual}),
        net_income_annual=statement_table(annual),
        eps_annual=statement_table({}),
        diluted_shares=statement_table({day: float(rng.uniform(1e8, 3e8)) for day in annual}),
        shares_outstanding=statement_table({}),
    )


def build_market(
    names: int = 6, start: date = date(2022, 12, 1), end: date = date(2025, 1, 15), seed: int = 1
) -> MarketData:
    """Weekday sessions; returns of six factors and noise; quarterly statements without fourth quarters."""
    rng = np.random.default_rng(seed)
    days = np.arange(np.datetime64(start), np.datetime64(end + timedelta(days=1)))
    days = days[np.is_busday(days)]
    symbols = [f"N{i:03d}" for i in range(names)]
    factors = rng.standard_normal((len(days), 6)) * 0.007
    returns = factors @ rng.normal(0.4, 0.4, (6, names)) + rng.standard_normal((len(days), names)) * 0.012
    prices = 50 * np.exp(np.cumsum(returns, axis=0))
    long = {
        "symbol": pl.Series(symbols).gather(np.repeat(np.arange(names), len(days))),
        "date": pl.Series(np.tile(days, names)),
        **{
            field: (prices * scale).T.ravel()
            for field, scale in (("open", 1.01), ("high", 1.02), ("low", 0.98), ("close", 1.0), ("adj_close", 0.97))
        },
        "volume": rng.integers(100_000, 1_000_000, len(days) * names).astype(np.float64),
    }
    wide = {"date": pl.Series(days), **{name: factors[:, k] for k, name in enumerate(FACTORS)}}
    return MarketData(
        securities=tuple(
            SecurityRecord(symbol, symbol, None, None, None, "Technology", "Software", "NYSE", "US", None)
            for symbol in symbols
        ),
        prices=pl.DataFrame(long),
        factors=pl.DataFrame({**wide, "rf": np.full(len(days), 1e-4)}),
        macro={"DGS3MO": pl.DataFrame({"date": pl.Series(days), "value": 4 + rng.standard_normal(len(days)) * 0.1})},
        statements={symbol: _statements(symbol, start, end, rng) for symbol in symbols},
        notes=("A note of the sources.",),
    )


def without(market: MarketData, symbol: str, first: date, last: date) -> MarketData:
    """The market less the prices of one name between two dates."""
    hole = (pl.col("symbol") == symbol) & pl.col("date").is_between(first, last)
    return replace(market, prices=market.prices.filter(~hole))


def until(market: MarketData, last: date, lag_days: int) -> MarketData:
    """What was known on a day: nothing dated later, and no statement whose lag ends later."""
    return replace(
        market,
        prices=market.prices.filter(pl.col("date") <= last),
        factors=market.factors.filter(pl.col("date") <= last),
        macro={name: table.filter(pl.col("date") <= last) for name, table in market.macro.items()},
        statements={
            symbol: map_tables(statements, lambda table: table.filter(pl.col("end") <= last - timedelta(days=lag_days)))
            for symbol, statements in market.statements.items()
        },
    )


def map_tables(statements: Statements, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Statements:
    """The statements with every table changed."""
    names = [field.name for field in fields(statements) if isinstance(getattr(statements, field.name), pl.DataFrame)]
    return replace(statements, **{name: change(getattr(statements, name)) for name in names})


@pytest.fixture(scope="session")
def lab() -> SimpleNamespace:
    """The makers above: build, without, until, map_tables, table."""
    return SimpleNamespace(
        build=build_market, without=without, until=until, map_tables=map_tables, table=statement_table
    )


@pytest.fixture(scope="session")
def market() -> MarketData:
    """Six names, December 2022 to mid-January 2025: 2024 is the last full year."""
    return build_market()
