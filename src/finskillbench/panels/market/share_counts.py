"""How many shares a company had on a day, as far as was known: on the basis of that day, like its price.

The liquidity panel: average daily volume in dollars at the risk dates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.panels.columns import DATE, SYMBOL, Column, schema_of
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS
from finskillbench.sources.market.collection import Statements

VOLUME_SESSIONS = 21
"""A month of sessions."""

COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "date": DATE,
    "average_daily_volume_usd": Column(
        "USD per session", f"{VOLUME_SESSIONS} sessions trailing", "mean of close x volume"
    ),
}


def average_daily_volume(close: Floats, volume: Floats, row: int) -> Floats:
    """Mean of close x volume (n,) over the 21 sessions up to a row of (T, n), USD; NaN unless all are there.

    A session whose price was carried forward counts with its volume of 0.
    """
    first = row - VOLUME_SESSIONS + 1
    if first < 0:
        return np.full_like(close[0], np.nan)
    return (close[first : row + 1] * volume[first : row + 1]).mean(axis=0)


def build_liquidity(
    symbols: tuple[str, ...],
    sessions: tuple[date, ...],
    close: Floats,
    volume: Floats,
    members: Mapping[int, NDArray[np.intp]],
) -> pl.DataFrame:
    """Long, by date and symbol: the average daily volume of the names (places) given per row of the sessions.

    Parameters
    ----------
    close : (T, n) USD per share. volume : (T, n) shares. members : row to places among the symbols, both increasing.
    """
    names = pl.Series(symbols, dtype=pl.String)
    pieces = [
        pl.DataFrame(
            {
                "symbol": names.gather(places),
                "date": pl.Series([sessions[row]] * len(places), dtype=pl.Date),
                "average_daily_volume_usd": average_daily_volume(close, volume, row)[places],
            }
        )
        for row, places in members.items()
    ]
    return pl.concat([pl.DataFrame(schema=schema_of(COLUMNS)), *pieces])


MAX_COVER_AGE_DAYS = 200
"""A cover page older than two quarters and a late report is no longer the company's count."""


class Count(NamedTuple):
    """Shares on the basis of the day asked for, the day they were counted, and the day that was known."""

    end: date
    known: date
    value: float

    def age(self, as_of: date) -> int:
        """Days since they were counted."""
        return (as_of - self.end).days


class ShareCounts:
    """The counts of one company: the cover page of its last report, else diluted shares, else shares outstanding."""

    def __init__(self, statements: Statements, splits: pl.DataFrame | None) -> None:
        lag = timedelta(days=REPORTING_LAG_DAYS)
        self._covers = [Count(end, filed, value) for end, filed, value in statements.cover_shares.iter_rows()]
        self._reported = [
            [Count(end, end + lag, value) for end, value in table.drop_nulls().sort("end").iter_rows()]
            for table in (statements.diluted_shares, statements.shares_outstanding)
        ]
        self._broken = frozenset(statements.broken_shares)
        self._splits: list[tuple[date, float]] = (
            [] if splits is None else list(splits.select("date", "shares").drop_nulls().iter_rows())
        )

    def at(self, day: date) -> Count | None:
        """The count known on a day, times the splits since; None where none was, or where a merger makes it unsure."""
        found = _last(self._covers, day)
        if found is None or found.age(day) > MAX_COVER_AGE_DAYS:
            diluted, outstanding = (_last(counts, day) for counts in self._reported)
            found = diluted or outstanding
            if found is None or found.end in self._broken:
                return None
        value = found.value
        for when, ratio in self._splits:
            if found.end < when <= day:
                value *= ratio
        return found._replace(value=value)


def share_counts(
    statements: Mapping[str, Statements], splits: Mapping[str, pl.DataFrame], symbols: tuple[str, ...]
) -> dict[str, ShareCounts]:
    """The counts of each symbol that has statements."""
    return {symbol: ShareCounts(statements[symbol], splits.get(symbol)) for symbol in symbols if symbol in statements}


def _last(counts: list[Count], day: date) -> Count | None:
    """The last count known by a day; they are in the order in which they became known."""
    place = bisect_right(counts, day, key=lambda count: count.known)
    return counts[place - 1] if place else None
