# pyright: basic
"""Exposures, covariances and rates against independent estimators."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from sklearn.covariance import LedoitWolf as Oracle

from finskillbench.errors import InputError, SourceError
from finskillbench.panels import Panels, build_panels
from finskillbench.panels.market.estimates.factor_exposures import build_factor_exposures
from finskillbench.panels.market.estimates.views import build_covariance
from finskillbench.panels.market.prices import build_prices
from finskillbench.panels.market.regimes import build_returns
from finskillbench.panels.market.sessions import build_risk_free, month_end_rows
from finskillbench.sources.market.collection import MarketData

FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")


@pytest.fixture(scope="module")
def panels(market: MarketData) -> Panels:
    return build_panels(market)


def test_exposures_equal_ols_of_excess_returns(market: MarketData, panels: Panels) -> None:
    day = panels.month_ends[3]
    dates, returns = panels.window_returns(day)
    factors = market.factors.filter(pl.col("date").is_in(pl.Series(dates).implode()))
    design = sm.add_constant(factors.select(FACTORS).to_numpy())
    rows = panels.factor_exposures.filter(pl.col("date") == day)
    assert rows["symbol"].to_list() == list(panels.symbols)
    for j, symbol in enumerate(panels.symbols):
        oracle = sm.OLS(returns[:, j] - factors["rf"].to_numpy(), design).fit()
        row = rows.row(by_predicate=pl.col("symbol") == symbol, named=True)
        np.testing.assert_allclose([row[f] for f in FACTORS], oracle.params[1:], atol=1e-12)
        assert row["alpha"] == pytest.approx(252 * oracle.params[0], abs=1e-12)
        assert row["r2"] == pytest.approx(oracle.rsquared, abs=1e-12)
        assert row["n_obs"] == 252
    np.testing.assert_array_equal(panels.exposures(day), rows.select(FACTORS).to_numpy())


def test_a_late_listing_has_exposures_from_120_observations_on(lab: SimpleNamespace, market: MarketData) -> None:
    late = lab.without(market, "N002", date(2000, 1, 1), date(2023, 9, 29))
    panels = build_panels(late)
    early = [day for day in panels.month_ends if day < date(2024, 9, 30)]  # 252 returns later
    assert {"N002" in panels.symbols_at(day) for day in early} == {False}
    assert "N002" in panels.symbols_at(panels.month_ends[-1])
    grid = build_prices(late)
    simple = build_returns(grid.fields["adj_close"]).simple
    rows = month_end_rows(grid.sessions)
    shape = (grid.symbols, grid.sessions)
    table = build_factor_exposures(*shape, simple, late.factors, rows)
    listed = table.filter(pl.col("symbol") == "N002")
    listing = grid.sessions.index(date(2023, 10, 2))  # its first return is a session later
    assert listed["date"][0] == date(2024, 3, 29)
    assert listed["n_obs"][:2].to_list() == [grid.sessions.index(day) - listing for day in listed["date"][:2]]
    assert grid.sessions.index(date(2024, 2, 29)) - listing < 120 <= listed["n_obs"][0]
    assert table["date"][0] == date(2023, 11, 30)  # the first month-end with 252 sessions, row 0 of which has no return
    assert set(table.filter(pl.col("date") == date(2023, 11, 30))["symbol"]) == set(grid.symbols) - {"N002"}

    # A session without factors is left out for every name, not read as zero.
    absent = pl.when(pl.col("date") == date(2024, 3, 7)).then(None).otherwise(pl.col("hml")).alias("hml")
    less = build_factor_exposures(*shape, simple, late.factors.with_columns(absent), rows)
    march = pl.col("date") == date(2024, 3, 29)
    assert (table.filter(march)["n_obs"] - less.filter(march)["n_obs"]).to_list() == [1] * 6


def test_covariance_is_annualised_ledoit_wolf_of_the_trailing_year(panels: Panels) -> None:
    assert set(panels.covariance) == {*panels.month_ends, *panels.risk_dates}
    for day in (panels.month_ends[0], panels.month_ends[-1]):
        dates, returns = panels.window_returns(day)
        assert (len(dates), dates[-1]) == (252, day)
        oracle = Oracle().fit(returns)
        matrix = panels.covariance[day].matrix()
        np.testing.assert_allclose(matrix, 252 * oracle.covariance_, rtol=0, atol=1e-14 * 252)
        assert np.linalg.eigvalsh(matrix)[0] >= panels.covariance[day].least_eigenvalue_bound() * (1 - 1e-9) > 0
        assert panels.report.shrinkage[day.isoformat()] == pytest.approx(oracle.shrinkage_, rel=1e-10)
    assert panels.report.ridged == ()


def test_a_name_with_a_gap_is_left_out_of_every_window_that_has_it(lab: SimpleNamespace, market: MarketData) -> None:
    panels = build_panels(lab.without(market, "N004", date(2024, 5, 6), date(2024, 5, 15)))
    with_it = {day for day in panels.month_ends if "N004" in panels.symbols_at(day)}
    assert with_it == {day for day in panels.month_ends if day < date(2024, 5, 13)}
    assert panels.views.filter(pl.col("date") == panels.month_ends[-1])["symbol"].to_list() == [
        *("N000", "N001", "N002", "N003", "N005")
    ]
    grid = build_prices(lab.without(market, "N004", date(2024, 5, 6), date(2024, 5, 15)))
    simple = build_returns(grid.fields["adj_close"]).simple
    with pytest.raises(SourceError, match=r"prices of N004: 4 of the 252 returns up to 2024-05-31 .* on 2024-05-13"):
        build_covariance(grid.symbols, grid.sessions, simple, {grid.sessions.index(date(2024, 5, 31)): np.arange(6)})


def test_the_first_month_end_has_a_year_behind_it(lab: SimpleNamespace) -> None:
    assert build_panels(lab.build(start=date(2024, 1, 3))).month_ends == (date(2024, 12, 31),)


def test_the_rate_is_the_last_one_known(market: MarketData, panels: Panels) -> None:
    table = pl.DataFrame({"date": [date(2024, 5, 30), date(2024, 5, 31), date(2024, 6, 3)], "value": [4.1, None, 9.0]})
    assert build_risk_free({"DGS3MO": table}, [date(2024, 5, 31)]) == {date(2024, 5, 31): pytest.approx(0.041)}
    with pytest.raises(SourceError, match="no observation in the ten days up to 2024-06-28"):
        build_risk_free({"DGS3MO": table}, [date(2024, 6, 28)])
    with pytest.raises(SourceError, match="the series is missing"):
        build_panels(replace(market, macro={}))
    assert tuple(panels.risk_free) == panels.month_ends


def test_look_ups_name_what_is_not_there(panels: Panels) -> None:
    with pytest.raises(InputError, match="2024-06-01 is not a session"):
        panels.window_returns(date(2024, 6, 1))
    with pytest.raises(InputError, match="needed"):
        panels.window_returns(date(2022, 12, 8))
    with pytest.raises(InputError, match="2023-06-30 is neither a month-end of the edition nor a risk date"):
        panels.weights(date(2023, 6, 30))
    with pytest.raises(InputError, match="no field turnover"):
        panels.prices_of("turnover")
