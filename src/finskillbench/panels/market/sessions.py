"""Trading sessions, month-ends, the risk-free rate and the factors panel; each session uses past data only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise

import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, PanelColumn
from finskillbench.sources.market.collection import MarketData

SERIES = "DGS3MO"
"""FRED: market yield on three-month Treasury bills at constant maturity, percent per year."""
MAX_AGE_DAYS = 10
"""Age from which a rate counts as missing; holidays are shorter."""


def build_risk_free(macro: Mapping[str, pl.DataFrame], dates: Sequence[date]) -> dict[date, float]:
    """Return the last DGS3MO observation on or before each date, as an annual decimal (0.043 is 4.3 %).

    Raises SourceError if the series is missing or its last observation is more than ten days old.
    """
    if SERIES not in macro:
        raise SourceError(f"FRED {SERIES}", "the series is missing", remedy="add its file to the raw directory")
    table = macro[SERIES].drop_nulls("value").sort("date")
    rates: dict[date, float] = {}
    for day in dates:
        past = table.filter(pl.col("date") <= day).tail(1)
        if not past.height or (day - past["date"][0]).days > MAX_AGE_DAYS:
            raise SourceError(f"FRED {SERIES}", f"no observation in the ten days up to {day}", remedy="extend the file")
        rates[day] = float(past["value"][0]) / 100.0
    return rates


_DAILY = "decimal per session"
COLUMNS: Mapping[str, PanelColumn] = {
    "date": DATE,
    **{factor: PanelColumn(_DAILY, "1 session", f"return of the factor {factor}") for factor in FACTORS},
    "rf": PanelColumn(_DAILY, "1 session", "return of the one-month Treasury bill"),
}


def build_factors(sessions: tuple[date, ...], factors: pl.DataFrame) -> pl.DataFrame:
    """Return a row per session with date, six factors and rf, daily decimals; null where the source has no value."""
    days = pl.DataFrame({"date": pl.Series(sessions, dtype=pl.Date)})
    return days.join(factors.select(*COLUMNS), on="date", how="left", maintain_order="left")


_LATEST_FIRST_SESSION = 5
"""Latest day of January for the first session of a fully covered year."""


def trading_sessions(prices: pl.DataFrame, names: int, factors: pl.DataFrame) -> tuple[date, ...]:
    """Return days on which at least half of the universe has an adjusted close, within the dates of the factors.

    Raises SourceError if there is none.
    """
    if factors.height:
        covered = factors["date"].sort()
        days = tuple(day for day in price_days(prices, names) if covered[0] <= day <= covered[-1])
        if days:
            return days
    raise SourceError(
        "prices",
        "no day has both prices for half of the universe and factor returns",
        remedy="supply prices and factors for the same dates",
    )


def price_days(prices: pl.DataFrame, names: int) -> tuple[date, ...]:
    """Return the increasing days on which at least half of the names have an adjusted close."""
    days = (
        prices.filter(pl.col("adj_close").is_not_null() & pl.col("adj_close").is_not_nan())
        .group_by("date")
        .len()
        .filter(pl.col("len") * 2 >= names)
        .get_column("date")
        .sort()
    )
    return tuple(days.to_list())


def refuse_short_series(market: MarketData) -> None:
    """Refuse factor or rate files that end before the last full year of the prices.

    Sessions are limited to the factor dates, so a short file would silently move every as-of date to an earlier year.
    Raises SourceError naming the file, its end and the missing days; or no fully covered year.
    """
    days = price_days(market.prices, len(market.securities))
    if not days:
        return  # `trading_sessions` reports missing prices
    end = last_full_year(days)[-1]
    for series, table, allowed in (("factors", market.factors, 0), (SERIES, market.macro.get(SERIES), MAX_AGE_DAYS)):
        last = table["date"].max() if table is not None else None
        if not isinstance(last, date) or last + timedelta(days=allowed) >= end:
            continue  # long enough, or absent, which its own panel reports
        missing = sum(last < day <= end for day in days)
        raise SourceError(
            market.files.get(series, series),
            f"ends on {last}, {missing} sessions before the end of {end.year}, the last full year of the prices "
            f"(which run to {days[-1]}): {series} from {last + timedelta(days=1)} to {end} are missing",
            remedy=f"download a newer file, or end all prices before {end}",
        )


def rows_up_to(sessions: Sequence[date], days: Iterable[date]) -> list[int]:
    """Return places of the last session up to each day, increasing; days outside the sessions have none."""
    return sorted({bisect_right(sessions, day) - 1 for day in days if sessions[0] <= day <= sessions[-1]})


def month_end_rows(sessions: Sequence[date]) -> list[int]:
    """Return places of the sessions that end a month.

    The last month counts once a later session is known, or if its last session is its last weekday; never early.
    """
    ends = [
        row
        for row, (day, following) in enumerate(pairwise(sessions))
        if (day.year, day.month) != (following.year, following.month)
    ]
    if sessions and _next_weekday(sessions[-1]).month != sessions[-1].month:
        ends.append(len(sessions) - 1)
    return ends


def last_full_year(sessions: Sequence[date]) -> tuple[date, ...]:
    """Return the month-ends of the last calendar year fully covered by the sessions; SourceError if there is none."""
    ends = [sessions[row] for row in month_end_rows(sessions)]
    for year in range(sessions[-1].year, sessions[0].year - 1, -1):
        chosen = tuple(day for day in ends if day.year == year)
        starts = [day for day in sessions if day.year == year]
        if len(chosen) == 12 and starts[0] <= date(year, 1, _LATEST_FIRST_SESSION):
            return chosen
    raise SourceError(
        "prices",
        f"no calendar year is fully covered: sessions run from {sessions[0]} to {sessions[-1]}",
        remedy="add prices",
    )


def _next_weekday(day: date) -> date:
    following = day + timedelta(days=1)
    while following.weekday() >= 5:
        following += timedelta(days=1)
    return following
