# pyright: basic
"""Benchmark weights, trailing earnings and views by hand."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from finskillbench.errors import SourceError
from finskillbench.panels import Panels, build_panels
from finskillbench.panels.filings.statements import Series, trailing_year
from finskillbench.panels.market.benchmark_weights import build_benchmark_weights, capped
from finskillbench.panels.market.estimates.views import (
    EQUITY_PREMIUM,
    INFORMATION_COEFFICIENT,
    SIGNAL_WEIGHTS,
    z_scores,
)
from finskillbench.panels.market.share_counts import share_counts
from finskillbench.sources.market.collection import MarketData


@pytest.fixture(scope="module")
def panels(market: MarketData) -> Panels:
    return build_panels(market)


def _with(market: MarketData, symbol: str, **tables: pl.DataFrame) -> MarketData:
    return replace(market, statements={**market.statements, symbol: replace(market.statements[symbol], **tables)})


def test_weights_are_close_times_known_shares(market: MarketData, panels: Panels) -> None:
    day = date(2024, 6, 28)
    caps = {}
    for symbol in panels.symbols:
        close = market.prices.filter((pl.col("symbol") == symbol) & (pl.col("date") == day))["close"].item()
        shares = market.statements[symbol].diluted_shares.filter(pl.col("end") == date(2023, 12, 31))["value"].item()
        caps[symbol] = close * shares
    expected = np.array([caps[symbol] / sum(caps.values()) for symbol in panels.symbols])
    np.testing.assert_allclose(panels.weights(day), expected, rtol=1e-14)
    for month_end in panels.month_ends:
        assert panels.weights(month_end).sum() == pytest.approx(1, abs=1e-14)


def test_a_cap_is_spread_over_the_others_in_proportion() -> None:
    # Of 30 names the cap is 2.4 / 30; the second breaks it once the excess of the first is spread.
    found = capped(np.r_[10.0, 2.8, np.ones(28)])
    np.testing.assert_allclose(found, np.r_[0.08, 0.08, np.full(28, 0.84 / 28)], rtol=1e-12)


def test_shares_fall_back_to_outstanding_and_never_to_the_future(lab: SimpleNamespace, market: MarketData) -> None:
    none, future = lab.table({}), lab.table({date(2024, 12, 31): 1e8})
    panels = build_panels(_with(market, "N001", diluted_shares=none, shares_outstanding=future))
    assert not panels.benchmark_weights.filter(pl.col("symbol") == "N001").height
    sessions = panels.prices["date"].to_list()
    with pytest.raises(SourceError, match="statements of N001: no share count known by 2024-01-31"):
        build_benchmark_weights(
            panels.symbols,
            tuple(sessions),
            panels.prices_of("close").drop("date").to_numpy(),
            share_counts(
                _with(market, "N001", diluted_shares=none, shares_outstanding=future).statements, {}, panels.symbols
            ),
            {sessions.index(date(2024, 1, 31)): np.arange(6)},
        )
    old = lab.table({date(2020, 12, 31): 2e8})
    panels = build_panels(_with(market, "N001", diluted_shares=none, shares_outstanding=old))
    rows = panels.benchmark_weights.filter(pl.col("symbol") == "N001")
    assert set(rows["shares"]) == {2e8}
    assert set(rows["shares_as_of"]) == {date(2020, 12, 31)}
    assert panels.report.stale_shares == {"N001": (date(2024, 12, 31) - date(2020, 12, 31)).days}
    assert any("N001 is up to 1461 days old" in note for note in panels.report.notes)


def test_trailing_year_completes_fourth_quarters(lab: SimpleNamespace) -> None:
    quarters = Series.of(
        lab.table(
            {
                date(2023, 3, 31): 1.0,
                date(2023, 6, 30): 2.0,
                date(2023, 9, 30): 3.0,
                date(2024, 3, 31): 5.0,
                date(2024, 9, 30): 7.0,  # June is missing: annual figures only from here
            }
        )
    )
    annual = Series.of(lab.table({date(2022, 12, 31): 8.0, date(2023, 12, 31): 10.0, date(2024, 12, 31): 20.0}))
    trailing = trailing_year(quarters, annual)
    ends = [date.fromordinal(date(1970, 1, 1).toordinal() + int(end)) for end in trailing.ends]
    assert dict(zip(ends, trailing.values, strict=True)) == {
        date(2022, 12, 31): 8.0,
        date(2023, 12, 31): 10.0,
        date(2024, 3, 31): 2.0 + 3.0 + 4.0 + 5.0,  # the fourth quarter is 10 - 1 - 2 - 3
        date(2024, 12, 31): 20.0,
    }
    assert trailing.known(date(2024, 6, 28)) == (date(2023, 12, 31), 10.0)  # 89 days after March
    assert trailing.known(date(2024, 6, 29)) == (date(2024, 3, 31), 14.0)  # 90
    assert trailing.known(date(2023, 3, 30)) is None


def test_z_scores() -> None:
    np.testing.assert_allclose(z_scores(np.array([1.0, 2.0, 3.0])), [-(1.5**0.5), 0, 1.5**0.5], rtol=1e-14)
    np.testing.assert_allclose(z_scores(np.array([1.0, np.nan, 3.0])), [-1, 0, 1])
    np.testing.assert_array_equal(z_scores(np.array([0.1, 0.1, 0.1])), 0)
    np.testing.assert_array_equal(z_scores(np.full(3, np.nan)), 0)
    outlier = z_scores(np.r_[np.zeros(99), 1e6])
    assert outlier[-1] == 3.0


def test_signals_and_expected_return_by_hand(market: MarketData, panels: Panels) -> None:
    """On 2024-05-31 the year 2023 is known; 63 sessions before, on 2024-03-05, the four quarters to September."""
    day, symbol = date(2024, 5, 31), "N003"
    assert day in panels.month_ends
    row = panels.views.row(by_predicate=(pl.col("date") == day) & (pl.col("symbol") == symbol), named=True)
    statements = market.statements[symbol]
    incomes = dict(statements.net_income_quarterly.iter_rows())
    years = dict(statements.net_income_annual.iter_rows())
    cap = panels.benchmark_weights.row(by_predicate=(pl.col("date") == day) & (pl.col("symbol") == symbol), named=True)[
        "market_cap_usd"
    ]
    now = years[date(2023, 12, 31)]
    fourth = years[date(2022, 12, 31)] - sum(incomes[date(2022, m, d)] for m, d in ((3, 31), (6, 30), (9, 30)))
    before = fourth + sum(incomes[date(2023, m, d)] for m, d in ((3, 31), (6, 30), (9, 30)))
    assert row["earnings_as_of"] == date(2023, 12, 31)
    assert row["earnings_yield"] == pytest.approx(now / cap, rel=1e-12)
    assert row["roe"] == pytest.approx(now / dict(statements.equity.iter_rows())[date(2023, 12, 31)], rel=1e-12)
    assert row["eps_revision"] == pytest.approx((now - before) / cap, rel=1e-12)

    prices = market.prices.filter((pl.col("symbol") == symbol) & (pl.col("date") <= day))["adj_close"].to_numpy()
    assert row["momentum_12_1"] == pytest.approx(prices[-22] / prices[-253] - 1, rel=1e-12)
    volatility = np.std(prices[-252:] / prices[-253:-1] - 1, ddof=1) * 252**0.5
    assert row["low_volatility"] == pytest.approx(-volatility, rel=1e-12)
    at = panels.views.filter(pl.col("date") == day)
    sums = sum((weight * at[f"z_{name}"].to_numpy() for name, weight in SIGNAL_WEIGHTS.items()), np.zeros(at.height))
    composite = z_scores(sums)[at["symbol"].to_list().index(symbol)]
    assert row["composite_z"] == pytest.approx(composite, rel=1e-12)
    assert row["alpha"] == pytest.approx(INFORMATION_COEFFICIENT * volatility * composite, rel=1e-12)
    place, matrix, weights = panels.symbols_at(day).index(symbol), panels.covariance[day].matrix(), panels.weights(day)
    beta = (matrix @ weights)[place] / (weights @ matrix @ weights)
    assert row["equilibrium_premium"] == pytest.approx(EQUITY_PREMIUM * beta, rel=1e-12)
    assert row["risk_free"] == panels.risk_free[day]
    parts = row["risk_free"] + row["equilibrium_premium"] + row["alpha"]
    assert row["expected_return"] == pytest.approx(parts, rel=1e-14)
    premium = panels.views.filter(pl.col("date") == day)["equilibrium_premium"].to_numpy()
    assert weights @ premium == pytest.approx(EQUITY_PREMIUM, rel=1e-12)  # the benchmark earns the stated premium
    assert sum(SIGNAL_WEIGHTS.values()) == pytest.approx(1)
    for name in SIGNAL_WEIGHTS:
        np.testing.assert_allclose(at[f"z_{name}"].to_numpy(), z_scores(at[name].to_numpy()), atol=1e-12)


def test_an_absent_signal_is_null_scores_zero_and_is_counted(lab: SimpleNamespace, market: MarketData) -> None:
    negative = market.statements["N002"].equity.with_columns(-pl.col("value"))
    altered = _with(market, "N002", equity=negative)
    altered = _with(altered, "N005", net_income_quarterly=lab.table({}), net_income_annual=lab.table({}))
    panels = build_panels(altered)
    assert panels.report.absent_signals == {
        "earnings_yield": 12,
        "roe": 24,
        "momentum_12_1": 0,
        "eps_revision": 12,
        "low_volatility": 0,
    }
    rows = panels.views.filter(pl.col("symbol") == "N002")
    assert rows["roe"].null_count() == 12
    assert set(rows["z_roe"]) == {0.0}
    assert panels.views["expected_return"].null_count() == 0
