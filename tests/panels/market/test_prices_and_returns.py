"""Sessions, filling, gaps and returns on tables small enough to work out by hand."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from finskillbench.errors import SourceError
from finskillbench.panels.market.prices import build_prices
from finskillbench.panels.market.regimes import build_returns, find_jumps, returns_frame
from finskillbench.panels.market.sessions import last_full_year, month_end_rows, trading_sessions
from finskillbench.panels.tables import Jump, PriceGap
from finskillbench.sources.market.collection import MarketData


def test_sessions_are_days_when_half_the_universe_trades(lab: SimpleNamespace, market: MarketData) -> None:
    day = date(2023, 6, 14)
    three = market
    for symbol in ("N000", "N001", "N002"):
        three = lab.without(three, symbol, day, day)
    assert day in trading_sessions(three.prices, 6, three.factors)
    two = lab.without(three, "N003", day, day)
    assert day not in trading_sessions(two.prices, 6, two.factors)
    assert (
        len(trading_sessions(two.prices, 6, two.factors)) == len(trading_sessions(three.prices, 6, three.factors)) - 1
    )


def test_sessions_lie_within_the_factors(market: MarketData) -> None:
    factors = market.factors.filter(pl.col("date").is_between(date(2023, 1, 10), date(2023, 2, 1)))
    sessions = trading_sessions(market.prices, 6, factors)
    assert (sessions[0], sessions[-1], len(sessions)) == (date(2023, 1, 10), date(2023, 2, 1), 17)
    with pytest.raises(SourceError, match="no day has both prices"):
        trading_sessions(market.prices, 6, factors.clear())


def test_a_month_ends_when_that_is_known() -> None:
    days = [date(2024, 3, 27), date(2024, 3, 28)]
    assert month_end_rows(days) == []  # Good Friday follows: not known yet
    assert month_end_rows([*days, date(2024, 4, 1)]) == [1]
    assert month_end_rows([date(2024, 12, 30), date(2024, 12, 31)]) == [1]  # the last weekday
    assert month_end_rows([date(2024, 8, 29), date(2024, 8, 30)]) == [1]  # a Friday before a month-end weekend
    assert month_end_rows([]) == []


def test_the_last_full_year_is_covered_from_january_to_december(market: MarketData) -> None:
    sessions = build_prices(market).sessions
    assert last_full_year(sessions)[0] == date(2024, 1, 31)
    assert last_full_year(sessions)[-1] == date(2024, 12, 31)
    assert last_full_year([day for day in sessions if day <= date(2024, 12, 31)])[0] == date(2024, 1, 31)
    assert last_full_year([day for day in sessions if day <= date(2024, 12, 30)])[0] == date(2023, 1, 31)
    with pytest.raises(SourceError, match="no calendar year"):
        last_full_year([day for day in sessions if day >= date(2024, 1, 8)])


def test_short_holes_are_filled_and_counted_long_ones_left_and_reported(
    lab: SimpleNamespace, market: MarketData
) -> None:
    holed = lab.without(market, "N001", date(2023, 3, 6), date(2023, 3, 10))  # 5 sessions
    holed = lab.without(holed, "N002", date(2023, 3, 6), date(2023, 3, 14))  # 7 sessions
    holed = lab.without(holed, "N003", date(2022, 1, 1), date(2023, 1, 31))  # listed in February
    holed = lab.without(holed, "N004", date(2025, 1, 3), date(2025, 2, 1))  # 9 sessions, never back
    grid = build_prices(holed)
    assert grid.forward_filled == {"N001": 5, "N002": 5, "N004": 5}
    assert grid.gaps == (
        PriceGap("N002", date(2023, 3, 3), date(2023, 3, 15), 7),
        PriceGap("N004", date(2025, 1, 2), None, 9),
    )
    frame = grid.frame()
    march = frame.filter(pl.col("date").is_between(date(2023, 3, 3), date(2023, 3, 15)))
    for field in ("open", "high", "low", "close", "adj_close"):
        five, seven = march[f"{field}:N001"].to_list(), march[f"{field}:N002"].to_list()
        assert five[1:6] == [five[0]] * 5
        assert seven[1:8] == [seven[0]] * 5 + [None, None]
        assert seven[8] is not None
    assert march["volume:N002"].to_list()[1:8] == [0.0] * 5 + [None, None]
    assert frame["adj_close:N003"].null_count() == frame.filter(pl.col("date") < date(2023, 2, 1)).height
    observed = dict(zip(grid.symbols, grid.observed.sum(axis=0).tolist(), strict=True))
    assert observed["N000"] - observed["N002"] == 7


def test_prices_that_cannot_be_placed_are_refused(lab: SimpleNamespace, market: MarketData) -> None:
    with pytest.raises(SourceError, match="N005 is not in the universe"):
        build_prices(replace(market, securities=market.securities[:-1]))
    with pytest.raises(SourceError, match="N003 has no price in any session"):
        build_prices(lab.without(market, "N003", date(2000, 1, 1), date(2030, 1, 1)))
    worst = (pl.col("symbol") == "N001") & (pl.col("date") == date(2023, 5, 3))
    negative = market.prices.with_columns(pl.when(worst).then(-1.0).otherwise(pl.col("adj_close")).alias("adj_close"))
    with pytest.raises(SourceError, match="N001 on 2023-05-03 is not positive"):
        build_prices(replace(market, prices=negative))


def test_returns_by_hand() -> None:
    price = np.array([[100.0], [110.0], [np.nan], [99.0], [148.5]])
    arrays = build_returns(price)
    np.testing.assert_allclose(arrays.simple[:, 0], [np.nan, 0.1, np.nan, np.nan, 0.5], rtol=1e-14)
    np.testing.assert_allclose(arrays.log[:, 0], np.log([np.nan, 1.1, np.nan, np.nan, 1.5]), rtol=1e-13)
    np.testing.assert_allclose(arrays.drawdown[:, 0], [0, 0, np.nan, -0.1, 0], rtol=1e-13)
    sessions = tuple(date(2024, 1, day) for day in (2, 3, 4, 5, 8))
    assert find_jumps(("X",), sessions, arrays.simple) == (Jump("X", date(2024, 1, 8), 0.5),)
    frame = returns_frame(("X",), sessions, price, arrays)
    assert frame["date"].to_list() == [sessions[0], sessions[1], sessions[3], sessions[4]]
    assert frame["simple"].to_list() == [None, pytest.approx(0.1), None, pytest.approx(0.5)]


def test_volatility_is_the_annualised_sample_deviation_of_21_returns(market: MarketData) -> None:
    adjusted = build_prices(market).fields["adj_close"]
    arrays = build_returns(adjusted)
    assert np.isnan(arrays.volatility_21d[:21]).all()
    window = adjusted[40:62, 2]
    deviation = np.std(np.diff(window) / window[:-1], ddof=1)
    assert arrays.volatility_21d[61, 2] == pytest.approx(deviation * 252**0.5, rel=1e-12)
    # Identity: the log return is ln(1 + simple), and compounding returns gives the price back.
    np.testing.assert_allclose(np.log1p(arrays.simple[1:]), arrays.log[1:], atol=1e-15)
    np.testing.assert_allclose(adjusted[0] * np.prod(1 + arrays.simple[1:], axis=0), adjusted[-1], rtol=1e-10)
