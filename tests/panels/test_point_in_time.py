"""Nothing dated d may depend on what comes after d: the future is cut off, and then scrambled."""

from dataclasses import replace
from datetime import date, timedelta
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.sampling import examples

from finskillbench.panels import Panels, build_panels
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS
from finskillbench.panels.market.benchmark_weights import build_benchmark_weights
from finskillbench.panels.market.estimates.factor_exposures import build_factor_exposures
from finskillbench.panels.market.estimates.views import ViewInputs, build_covariance, build_views
from finskillbench.panels.market.macro import build_macro
from finskillbench.panels.market.prices import build_prices
from finskillbench.panels.market.regimes import build_returns, returns_frame
from finskillbench.panels.market.sessions import build_factors, build_risk_free, month_end_rows
from finskillbench.panels.market.share_counts import build_liquidity, share_counts
from finskillbench.sources.market.collection import MarketData

pytestmark = pytest.mark.slow

TABLES = ("prices", "returns", "factors", "factor_exposures", "benchmark_weights", "views", "liquidity", "macro")


@pytest.fixture(scope="module")
def holed(lab: SimpleNamespace, market: MarketData) -> MarketData:
    """The market with a short hole, a long one and a late listing, so that filling is put to the test too."""
    market = lab.without(market, "N001", date(2023, 3, 6), date(2023, 3, 8))
    market = lab.without(market, "N002", date(2022, 12, 10), date(2022, 12, 28))
    return lab.without(market, "N003", date(2022, 1, 1), date(2022, 12, 20))


@pytest.fixture(scope="module")
def whole(holed: MarketData) -> Panels:
    return build_panels(holed)


def _tables(
    market: MarketData, month_ends: tuple[date, ...], risk_dates: set[date], members: dict[date, tuple[str, ...]]
) -> dict[str, pl.DataFrame]:
    """Every panel of a market, at given dates and for their names (a truncated market would choose other ones)."""
    grid = build_prices(market)
    adjusted = grid.fields["adj_close"]
    arrays = build_returns(adjusted)
    shape = (grid.symbols, grid.sessions)
    row = {day: place for place, day in enumerate(grid.sessions)}
    places = {
        row[day]: np.array([grid.symbols.index(name) for name in names]) for day, names in sorted(members.items())
    }
    covariance = build_covariance(*shape, arrays.simple, places)
    weights = build_benchmark_weights(
        *shape, grid.fields["close"], share_counts(market.statements, {}, grid.symbols), places
    ).frame
    rates = build_risk_free(market.macro, month_ends)
    settings = {
        row[day]: ViewInputs(
            places[row[day]],
            weights.filter(pl.col("date") == day)["market_cap_usd"].to_numpy(),
            weights.filter(pl.col("date") == day)["weight"].to_numpy(),
            covariance.covariance[day],
            rates[day],
        )
        for day in month_ends
    }
    risky = {row[day]: places[row[day]] for day in sorted(risk_dates)}
    return {
        "prices": grid.frame(),
        "returns": returns_frame(*shape, adjusted, arrays),
        "factors": build_factors(grid.sessions, market.factors),
        "liquidity": build_liquidity(*shape, grid.fields["close"], grid.fields["volume"], risky),
        "macro": build_macro(grid.sessions, market.macro),
        "factor_exposures": build_factor_exposures(
            *shape, arrays.simple, market.factors, month_end_rows(grid.sessions)
        ),
        "benchmark_weights": weights,
        "views": build_views(*shape, adjusted, arrays.simple, market.statements, settings).frame,
        "covariance": pl.DataFrame(
            {
                "date": list(covariance.covariance),
                "matrix": [c.matrix().ravel() for c in covariance.covariance.values()],
            }
        ),
        "risk_free": pl.DataFrame(list(rates.items()), schema=["date", "rate"], orient="row"),
    }


def _as_tables(panels: Panels) -> dict[str, pl.DataFrame]:
    return {
        **{name: getattr(panels, name) for name in TABLES},
        "covariance": pl.DataFrame(
            {"date": list(panels.covariance), "matrix": [c.matrix().ravel() for c in panels.covariance.values()]}
        ),
        "risk_free": pl.DataFrame(list(panels.risk_free.items()), schema=["date", "rate"], orient="row"),
    }


@settings(max_examples=examples(25))
@given(offset=st.integers(0, 330))
def test_cutting_off_the_future_changes_nothing(
    lab: SimpleNamespace, holed: MarketData, whole: Panels, offset: int
) -> None:
    """Rebuild from what was known on a day; every row up to that day is the same to the last bit or two."""
    last = date(2024, 2, 1) + timedelta(days=offset)
    month_ends = tuple(day for day in whole.month_ends if day <= last)
    risk_dates = {day for day in whole.risk_dates if day <= last}
    members = {day: whole.symbols_at(day) for day in {*risk_dates, *month_ends}}
    cut = _tables(lab.until(holed, last, REPORTING_LAG_DAYS), month_ends, risk_dates, members)
    for name, table in _as_tables(whole).items():
        expected = table.filter(pl.col("date") <= last)
        if name == "factor_exposures":  # a month-end is known one session late if a holiday ends the month
            known = cut[name].select("date").unique()
            assert known.height >= expected["date"].n_unique() - 1
            expected = expected.join(known, on="date", how="semi")
        assert expected.height > 0
        assert_frame_equal(cut[name], expected, rel_tol=1e-12, abs_tol=1e-14)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), month=st.integers(0, 10))
def test_scrambling_the_future_changes_nothing(holed: MarketData, whole: Panels, seed: int, month: int) -> None:
    """Keep the calendar, replace every later figure: the past stays, and the future does move (the test can fail)."""
    day = whole.month_ends[month]
    rng = np.random.default_rng(seed)

    def scrambled(table: pl.DataFrame, column: str, known_by: date) -> pl.DataFrame:
        noise = pl.Series(rng.uniform(0.9, 1.1, table.height))
        figures = [name for name in table.columns if table[name].dtype == pl.Float64]
        later = pl.col(column) > known_by
        return table.with_columns(pl.when(later).then(pl.col(n) * noise).otherwise(pl.col(n)).alias(n) for n in figures)

    lagged = day - timedelta(days=REPORTING_LAG_DAYS)
    names = ("net_income_quarterly", "equity", "net_income_annual", "diluted_shares")
    future = replace(
        holed,
        prices=scrambled(holed.prices, "date", day),
        factors=scrambled(holed.factors, "date", day),
        macro={name: scrambled(table, "date", day) for name, table in holed.macro.items()},
        statements={
            symbol: replace(s, **{name: scrambled(getattr(s, name), "end", lagged) for name in names})
            for symbol, s in holed.statements.items()
        },
    )
    after, before = _as_tables(build_panels(future)), _as_tables(whole)
    for name, table in before.items():
        past = pl.col("date") <= day
        assert_frame_equal(after[name].filter(past), table.filter(past), rel_tol=1e-12, abs_tol=1e-14)
        assert not after[name].filter(~past).equals(table.filter(~past)), f"{name} ignores its inputs"


def test_a_statement_counts_from_the_day_its_lag_ends(lab: SimpleNamespace, market: MarketData, whole: Panels) -> None:
    """A share count ending 2024-04-01 is known on 2024-06-30: not at the June month-end (28th), but in July."""
    statements = market.statements["N000"]
    counts = pl.concat([statements.diluted_shares, lab.table({date(2024, 4, 1): 5e8})]).sort("end")
    panels = build_panels(
        replace(market, statements={**market.statements, "N000": replace(statements, diluted_shares=counts)})
    )
    rows = panels.benchmark_weights.filter(pl.col("symbol") == "N000")
    as_of = dict(rows.select("date", "shares_as_of").iter_rows())
    assert {day for day in as_of if day < date(2024, 6, 30)} >= set(panels.month_ends[2:5])
    for day, end in as_of.items():
        known = date(2022, 12, 31) if day < date(2024, 3, 30) else date(2023, 12, 31)
        assert end == (known if day < date(2024, 6, 30) else date(2024, 4, 1)), day
