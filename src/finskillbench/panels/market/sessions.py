"""Which days are sessions and which sessions end a month, decided from the past and the present only.

The annual risk-free rate at each month-end.

The factors panel: the daily returns that scenarios replay and exposures are regressed on, at every session.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise

import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, Column
from finskillbench.sources.market.collection import MarketData

SERIES = "DGS3MO"
"""FRED: market yield on three-month Treasury bills at constant maturity, percent per year."""
MAX_AGE_DAYS = 10
"""A rate older than this is a missing one: holidays never close the bill market so long."""


def build_risk_free(macro: Mapping[str, pl.DataFrame], dates: Sequence[date]) -> dict[date, float]:
    """The last observation of DGS3MO on or before each date, as an annual decimal (0.043 is 4.3 %).

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
COLUMNS: Mapping[str, Column] = {
    "date": DATE,
    **{factor: Column(_DAILY, "1 session", f"return of the factor {factor}") for factor in FACTORS},
    "rf": Column(_DAILY, "1 session", "return of the one-month Treasury bill"),
}


def build_factors(sessions: tuple[date, ...], factors: pl.DataFrame) -> pl.DataFrame:
    """A row per session, null where the source has no value; days that are no session are left out.

    Parameters
    ----------
    factors : daily decimals with date, the six factors and rf.
    """
    days = pl.DataFrame({"date": pl.Series(sessions, dtype=pl.Date)})
    return days.join(factors.select(*COLUMNS), on="date", how="left", maintain_order="left")


_LATEST_FIRST_SESSION = 5
"""A year is covered from its start if its first session is on or before this day of January."""


def trading_sessions(prices: pl.DataFrame, names: int, factors: pl.DataFrame) -> tuple[date, ...]:
    """Days on which at least half of the universe has an adjusted close, within the dates of the factors.

    Parameters
    ----------
    prices : long, with symbol, date, adj_close. names : size of the universe. factors : with date.

    Raises
    ------
    SourceError : if there is none.
    """
    if factors.height:
        covered = factors["date"].sort()
        days = tuple(day for day in price_days(prices, names) if covered[0] <= day <= covered[-1])
        if days:
            return days
    raise SourceError(
        "prices", "no day has prices of half the universe and factor returns", remedy="check that the two overlap"
    )


def price_days(prices: pl.DataFrame, names: int) -> tuple[date, ...]:
    """Days on which at least half of so many names have an adjusted close, increasing; see `trading_sessions`."""
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
    """Let the prices alone decide the edition's year: a factor or rate file that does not reach its end is an error.

    Sessions lie within the factors, so a file cut off in 2019 would otherwise move every as-of date to 2018 unasked.

    Raises
    ------
    SourceError : naming the file, where it ends and what is missing; or no year that the prices cover whole.
    """
    days = price_days(market.prices, len(market.securities))
    if not days:
        return  # without prices there are no sessions either, which says more
    end = last_full_year(days)[-1]
    for series, table, allowed in (
        ("factors", market.factors, 0),
        (SERIES, market.macro.get(SERIES), MAX_AGE_DAYS),
    ):
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
    """Places of the last session up to each day, increasing; of none before the first session or after the last."""
    return sorted({bisect_right(sessions, day) - 1 for day in days if sessions[0] <= day <= sessions[-1]})


def month_end_rows(sessions: Sequence[date]) -> list[int]:
    """Places of the sessions that end a month.

    The last month counts once a session of a later month is known, or when its last session is its last weekday. So a
    month that ends on a weekday holiday (Good Friday, Memorial Day) is known to be over one session late, never early.
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
    """The 12 month-ends of the last calendar year that the sessions cover from January to December.

    Raises SourceError if there is none.
    """
    ends = [sessions[row] for row in month_end_rows(sessions)]
    for year in range(sessions[-1].year, sessions[0].year - 1, -1):
        chosen = tuple(day for day in ends if day.year == year)
        starts = [day for day in sessions if day.year == year]
        if len(chosen) == 12 and starts[0] <= date(year, 1, _LATEST_FIRST_SESSION):
            return chosen
    raise SourceError(
        "prices",
        f"no calendar year is covered whole: sessions run {sessions[0]} to {sessions[-1]}",
        remedy="add prices",
    )


def _next_weekday(day: date) -> date:
    following = day + timedelta(days=1)
    while following.weekday() >= 5:
        following += timedelta(days=1)
    return following
