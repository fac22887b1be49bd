# pyright: basic
"""The real collection: figures a reader of the market would expect."""

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.sampling import thorough

from finskillbench.panels import Panels, build_panels
from finskillbench.panels.market.regimes import NORMAL, REGIMES
from finskillbench.sources.market.collection import MarketData, load_market


@pytest.fixture(scope="module")
def real_market(realdata: Path) -> MarketData:
    return load_market(realdata)


@pytest.fixture(scope="module")
def panels(real_market: MarketData) -> Panels:
    return build_panels(real_market)


@thorough
def test_month_ends_are_spread_over_the_years(panels: Panels) -> None:
    assert len(panels.month_ends) == 12
    assert {day.year for day in panels.month_ends} == set(range(2017, 2026))
    assert len(panels.symbols) == 30
    assert min(len(panels.symbols_at(day)) for day in panels.month_ends) >= 25
    assert panels.risk_free[date(2025, 12, 31)] == pytest.approx(0.0367, abs=1e-12)


def test_benchmark_is_plausible(panels: Panels) -> None:
    for day in panels.month_ends:
        weights = panels.weights(day)
        assert weights.max() == pytest.approx(2.4 / len(weights))
        assert weights.min() > 0.002
    caps = panels.benchmark_weights.filter(pl.col("date") == date(2025, 12, 31))
    citigroup = caps.row(by_predicate=pl.col("symbol") == "C", named=True)["market_cap_usd"]
    assert 1.5e11 < citigroup < 2.6e11
    assert all(shares <= day for day, shares in panels.benchmark_weights.select("date", "shares_as_of").iter_rows())
    assert panels.report.stale_shares["REG"] == (date(2026, 1, 30) - date(2020, 12, 31)).days
    assert set(panels.report.stale_shares) == {"LNT", "LYV", "REG"}  # the first two long ago


def test_exposures_are_plausible(panels: Panels) -> None:
    table = panels.factor_exposures
    betas = table["mkt_rf"].to_numpy()
    assert 0.8 < np.median(betas) < 1.1
    assert np.median(np.abs(table.select("smb", "hml", "rmw", "cma", "mom").to_numpy())) < 0.5
    assert 0.3 < np.median(table["r2"].to_numpy()) < 0.7
    assert table["n_obs"].to_numpy().min() >= 120
    carrier = table.filter(pl.col("symbol") == "CARR")  # listed on 2020-03-19
    assert carrier["date"].min() == date(2020, 9, 30)


def test_covariances_are_positive_definite_and_plausible(panels: Panels) -> None:
    for day in panels.month_ends:
        covariance = panels.covariance[day]
        least = np.linalg.eigvalsh(covariance.matrix())[0]
        assert least >= covariance.least_eigenvalue_bound() * (1 - 1e-9) > 0
        volatility = np.sqrt(covariance.variances())
        assert 0.11 < volatility.min() < volatility.max() < 1.1
        benchmark = np.sqrt(panels.weights(day) @ covariance.times(panels.weights(day)))
        assert 0.065 < benchmark < 0.40  # the calmest year, and the one of March 2020


def test_views_are_plausible_and_distinct(panels: Panels) -> None:
    for day in panels.month_ends:
        expected, rate = panels.expected_returns(day), panels.risk_free[day]
        assert panels.weights(day) @ expected == pytest.approx(rate + 0.05, abs=0.01)
        assert -0.10 < (expected - rate).min() < (expected - rate).max() < 0.13
        assert (expected > rate).mean() > 0.9
        assert len(set(expected.tolist())) == len(expected)  # rounded inputs would tie
    # Starbucks' equity is negative since 2019; its return on equity means nothing.
    absent = panels.views.filter(pl.col("roe").is_null() & (pl.col("date") >= date(2022, 6, 30)))
    assert set(absent["symbol"]) == {"SBUX", "LYV"}
    assert panels.report.absent_signals["roe"] <= 24
    assert max(count for name, count in panels.report.absent_signals.items() if name != "roe") <= 2


def test_every_regime_has_its_dates(panels: Panels) -> None:
    count = {regime: list(panels.regimes.values()).count(regime) for regime in {*REGIMES, NORMAL}}
    assert count == {"2018_selloff": 3, "2020_covid": 5, "2022_tightening": 8, "2023_24_rebound": 8, "normal": 8}
    assert panels.report.notes[-1].startswith("The close equals")
    absent = {day: sorted(set(panels.symbols) - set(panels.symbols_at(day))) for day in panels.risk_dates}
    # Prices from 2018 on; listed in 2020; a reverse split and a spin-off in one; merged with Rice and with Zynga.
    assert absent[date(2018, 12, 31)] == ["BF-B", "CARR", "DD", "EQT"]
    assert absent[date(2020, 4, 30)] == ["CARR"]
    assert absent[date(2022, 9, 30)] == ["TTWO"]
    assert absent[date(2025, 12, 31)] == ["DD"]  # spun off its electronics between two downloads, nobody says when
    for day in panels.risk_dates:
        market = panels.snapshot(day)
        assert market.risk is not None
        assert market.benchmark is not None
        assert market.dollar_volume is not None
        assert 0.07 < market.risk.variance(market.benchmark) ** 0.5 < 0.5
        assert 0.8 < market.benchmark @ market.betas[:, 0] < 1.2
        assert 1e7 < market.dollar_volume.min() < market.dollar_volume.max() < 5e9


def test_macro_knows_what_was_published(panels: Panels) -> None:
    """Values that a reader of the day could have had; the dates are those of the releases."""

    def at(day: date, series: str) -> float:
        return panels.macro.filter(pl.col("date") == day)[series].item()

    assert at(date(2020, 3, 16), "VIXCLS") == 82.69  # the record close, known that evening
    assert at(date(2020, 3, 31), "DGS10") == 0.70  # H.15 of 30 March
    assert at(date(2020, 4, 30), "UNRATE") == 4.4  # March; April's 14.8 % came on 8 May
    assert at(date(2020, 5, 29), "UNRATE") == 14.8
    assert at(date(2025, 11, 19), "UNRATE") == at(date(2025, 10, 1), "UNRATE") == 4.3  # August: the shutdown
    assert at(date(2025, 11, 20), "UNRATE") == 4.4
    assert panels.macro["VIXCLS"].null_count() == panels.macro["BAMLH0A0HYM2"].null_count() - 1 == 0
    assert panels.macro["date"].to_list() == panels.prices["date"].to_list()


def test_the_spurious_jump_of_danaher_is_reported(panels: Panels) -> None:
    """+61 % on 2016-07-05: mended and noted by the sources, or left and flagged here; never silent."""
    noted = [note for note in panels.report.notes if note.startswith("DHR") and "2016-07-05" in note]
    assert len(noted) == 1
    assert "61.2%" in noted[0]
