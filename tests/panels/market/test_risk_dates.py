"""Risk dates, liquidity, macro and the snapshot of a date, against plain Python and by hand."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from statistics import mean, stdev
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.errors import InputError, SourceError
from finskillbench.panels import Panels, build_panels
from finskillbench.panels.market.macro import RELEASES, build_macro
from finskillbench.panels.market.regimes import NORMAL, choose_month_ends, choose_risk_dates
from finskillbench.sources.market.collection import MarketData


@pytest.fixture(scope="module")
def panels(market: MarketData) -> Panels:
    return build_panels(market)


def _month_ends(first: int, last: int) -> list[date]:
    months = [date(year, month, 1) for year in range(first, last + 2) for month in range(1, 13)]
    return [day - timedelta(days=1) for day in months[1 : 12 * (last - first + 1) + 1]]


def test_dates_are_spread_over_each_regime_and_half_of_the_normal_ones_are_recent() -> None:
    days = _month_ends(2017, 2025)
    chosen = choose_risk_dates(days, np.ones((len(days), 30), dtype=bool), days[-12:])
    regimes = list(chosen.regimes.values())
    assert {name: regimes.count(name) for name in set(regimes)} == {
        "2018_selloff": 3, "2020_covid": 5, "2022_tightening": 8, "2023_24_rebound": 8, "normal": 8,
    }  # fmt: skip
    normal = [day for day, regime in chosen.regimes.items() if regime == NORMAL]
    assert sum(day.year == 2025 for day in normal) == 4
    assert (normal[0], normal[-1]) == (date(2017, 1, 31), date(2025, 12, 31))
    assert list(chosen.regimes) == sorted(chosen.regimes)
    assert chosen.notes == ()


def test_dates_without_enough_names_are_left_out_and_said() -> None:
    days = _month_ends(2018, 2025)
    complete = np.ones((len(days), 30), dtype=bool)
    complete[[day.year == 2018 for day in days], 24:] = False  # 24 of 30
    complete[[day.year == 2020 for day in days], 25:] = False
    complete[days.index(date(2025, 12, 31)), 0] = False
    chosen = choose_risk_dates(days, complete, days[-12:])
    assert chosen.notes == (
        "Regime 2018_selloff has no risk date: at most 24 of 30 names are complete, 25 are needed.",
    )
    assert chosen.members[date(2020, 3, 31)].tolist() == list(range(25))
    assert chosen.members[date(2025, 12, 31)].tolist() == list(range(1, 30))
    late = choose_risk_dates(days[-12:], complete[-12:], days[-12:])
    assert set(late.regimes.values()) == {NORMAL}
    assert [note.split(":")[1] for note in late.notes] == [" no data cover it."] * 4


def test_month_ends_are_spread_over_all_years_with_enough_names() -> None:
    days = _month_ends(2016, 2025)
    complete = np.ones((len(days), 30), dtype=bool)
    complete[[day.year == 2016 for day in days], 24:] = False
    complete[[day.year == 2017 for day in days], 25:] = False
    chosen = choose_month_ends(days, complete)
    assert len(chosen) == 12
    assert {day.year for day in chosen} == set(range(2017, 2026))
    assert (min(chosen), max(chosen)) == (date(2017, 1, 31), date(2025, 12, 31))
    assert chosen[date(2017, 1, 31)].tolist() == list(range(25))
    assert list(chosen) == sorted(chosen)
    with pytest.raises(SourceError, match=r"no month-end has 25 of 30 names .* the best has 24"):
        choose_month_ends(days[:12], complete[:12])


def test_snapshot_is_what_the_panels_say(market: MarketData, panels: Panels) -> None:
    assert panels.report.notes.count("Regime 2020_covid has no risk date: no data cover it.") == 1
    day = panels.risk_dates[-1]
    at = panels.snapshot(day)
    assert at.tickers == panels.symbols_at(day) == panels.symbols
    assert at.risk is not None
    assert at.dollar_volume is not None
    np.testing.assert_allclose(at.risk.matrix, panels.covariance[day].matrix(), rtol=1e-12)
    for place, symbol in enumerate(at.tickers):
        past = market.prices.filter((pl.col("symbol") == symbol) & (pl.col("date") <= day)).sort("date").tail(21)
        assert at.dollar_volume[place] == pytest.approx(mean((past["close"] * past["volume"]).to_list()), rel=1e-12)
    wrong = date(2024, 6, 1)
    with pytest.raises(InputError, match=f"{wrong} is not a risk date"):
        panels.snapshot(wrong)
    with pytest.raises(InputError, match="neither a month-end of the edition nor a risk date"):
        panels.symbols_at(date(2024, 6, 1))


def test_a_name_that_came_late_is_not_of_an_early_date(lab: SimpleNamespace, market: MarketData) -> None:
    late = build_panels(lab.without(market, "N003", date(2022, 1, 1), date(2022, 12, 20)))
    early = late.risk_dates[0]
    assert early < date(2024, 1, 1)
    assert late.symbols_at(early) == ("N000", "N001", "N002", "N004", "N005")
    at = late.snapshot(early)
    assert at.benchmark is not None
    assert at.benchmark.sum() == pytest.approx(1)
    assert late.symbols_at(late.month_ends[-1]) == late.symbols
    # Nor is one that does not trade, or whose shares are not yet known.
    silent = (pl.col("symbol") == "N001") & (pl.col("date") <= early)
    quiet = replace(market, prices=market.prices.with_columns(
        pl.when(silent).then(0.0).otherwise(pl.col("volume")).alias("volume")
    ))  # fmt: skip
    assert "N001" not in build_panels(quiet).symbols_at(early)
    facts = market.statements["N002"]
    counts = facts.diluted_shares.filter(pl.col("end") > early - timedelta(days=100))
    unknown = lab.table({date(2023, 10, 15): 1e8})
    later = replace(facts, diluted_shares=pl.concat([unknown, counts]).sort("end"))
    assert "N002" not in build_panels(
        replace(market, statements={**market.statements, "N002": later})
    ).symbols_at(early)  # fmt: skip


SESSIONS = tuple(
    day for day in (date(2024, 9, 2) + timedelta(days=i) for i in range(120)) if day.weekday() < 5
)  # fmt: skip


def _only(series: str, *days: date) -> pl.DataFrame:
    table = pl.DataFrame({"date": list(days), "value": [float(i) for i in range(1, len(days) + 1)]})
    return build_macro(SESSIONS, {series: table})


@pytest.mark.parametrize(
    ("series", "measured", "known"),
    [
        ("VIXCLS", date(2024, 10, 11), date(2024, 10, 11)),
        ("VIXCLS", date(2024, 10, 14), date(2024, 10, 14)),  # exchanges trade on Columbus Day
        ("DGS10", date(2024, 10, 10), date(2024, 10, 11)),
        ("DGS10", date(2024, 10, 11), date(2024, 10, 15)),  # Friday, and the Monday is Columbus Day
        ("DFF", date(2024, 11, 10), date(2024, 11, 12)),  # Sunday, and the Monday is Veterans Day
        ("DTWEXBGS", date(2024, 10, 7), date(2024, 10, 15)),
        ("DTWEXBGS", date(2024, 10, 18), date(2024, 10, 21)),
        ("FEDFUNDS", date(2024, 9, 1), date(2024, 10, 7)),  # the 5th is a Saturday
        ("UNRATE", date(2024, 9, 1), date(2024, 10, 10)),
        ("CPIAUCSL", date(2024, 9, 1), date(2024, 10, 21)),
        ("CPIAUCSL", date(2024, 11, 1), date(2024, 12, 20)),
    ],
)
def test_a_value_counts_from_its_release(series: str, measured: date, known: date) -> None:
    panel = _only(series, measured)
    assert panel.drop_nulls(series)["date"][0] == known


def test_values_are_carried_forward_until_they_are_old() -> None:
    panel = _only("DGS10", date(2024, 9, 10), date(2024, 9, 11)).drop_nulls()
    assert panel["DGS10"][:3].to_list() == [1.0, 2.0, 2.0]
    assert panel["date"][-1] == date(2024, 9, 26)  # a fortnight after the 12th
    assert _only("UNRATE", date(2024, 8, 1)).drop_nulls()["date"][-1] == date(2024, 11, 22)


@settings(max_examples=examples(50))
@given(
    series=st.sampled_from(sorted(RELEASES)),
    offsets=st.lists(st.integers(0, 119), min_size=1, unique=True),
    cut=st.integers(0, 119),
)
def test_nothing_at_a_session_was_released_after_it(series: str, offsets: list[int], cut: int) -> None:
    """The value at a session is one whose release is not later; what is measured after a session never changes it."""
    days = sorted(SESSIONS[0] + timedelta(days=offset) for offset in offsets)
    monthly = {"FEDFUNDS", "UNRATE", "CPIAUCSL"}
    days = sorted({day.replace(day=1) for day in days}) if series in monthly else days
    panel = _only(series, *days)
    for session, value in panel.drop_nulls().iter_rows():
        measured = days[int(value) - 1]
        assert RELEASES[series].earliest(measured) <= session
        assert measured < session or (series == "VIXCLS" and measured <= session)
    last = SESSIONS[0] + timedelta(days=cut)
    past = [day for day in days if day <= last]
    if past:
        known = pl.col("date") <= last
        assert _only(series, *past).filter(known).equals(panel.filter(known))


def test_volatility_and_drawdown_by_plain_python(panels: Panels) -> None:
    table = panels.returns.filter(pl.col("symbol") == "N004").sort("date")
    price = panels.prices_of("adj_close")["N004"].to_list()
    simple = [after / before - 1 for before, after in pairwise(price)]
    for row in range(0, len(price), 37):
        peak = max(price[: row + 1])
        assert table["drawdown"][row] == pytest.approx(price[row] / peak - 1, abs=1e-12)
        expected = stdev(simple[row - 21 : row]) * 252**0.5 if row >= 21 else None
        assert table["volatility_21d"][row] == (None if expected is None else pytest.approx(expected, rel=1e-9))
