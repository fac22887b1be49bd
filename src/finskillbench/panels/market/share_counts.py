"""Point-in-time share counts on the basis of a day's price, and the liquidity panel."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.panels.columns import DATE, SYMBOL, PanelColumn, table_schema
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS
from finskillbench.sources.market.collection import Statements

VOLUME_SESSIONS = 21

COLUMNS: Mapping[str, PanelColumn] = {
    "symbol": SYMBOL,
    "date": DATE,
    "average_daily_volume_usd": PanelColumn(
        "USD per session", f"{VOLUME_SESSIONS} sessions trailing", "mean of close x volume"
    ),
}


def average_daily_volume(close: Floats, volume: Floats, row: int) -> Floats:
    """Return the mean of close x volume (n,) over the 21 sessions up to a row of (T, n), USD; NaN unless complete."""
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
    """Return the average daily volume by date and symbol for the names (places) given per row of the sessions.

    close : (T, n) USD per share. volume : (T, n) shares.
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
    return pl.concat([pl.DataFrame(schema=table_schema(COLUMNS)), *pieces])


MAX_COVER_AGE_DAYS = 200
"""Maximum age of a cover page: two quarters and a late report."""


class ShareCount(NamedTuple):
    """Shares on the basis of a day, the day they were counted, and the day they became known."""

    end: date
    known: date
    value: float

    def age(self, as_of: date) -> int:
        return (as_of - self.end).days


class ShareCounts:
    """Share counts of one company: cover page of its last report, else diluted shares, else shares outstanding."""

    def __init__(self, statements: Statements, splits: pl.DataFrame | None) -> None:
        lag = timedelta(days=REPORTING_LAG_DAYS)
        self._covers = [ShareCount(end, filed, value) for end, filed, value in statements.cover_shares.iter_rows()]
        self._reported = [
            [ShareCount(end, end + lag, value) for end, value in table.drop_nulls().sort("end").iter_rows()]
            for table in (statements.diluted_shares, statements.shares_outstanding)
        ]
        self._broken = frozenset(statements.broken_shares)
        self._splits: list[tuple[date, float]] = (
            [] if splits is None else list(splits.select("date", "shares").drop_nulls().iter_rows())
        )

    def at(self, day: date) -> ShareCount | None:
        """Return the count known on a day times later splits; None if unknown, or uncertain after a merger."""
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
    return {symbol: ShareCounts(statements[symbol], splits.get(symbol)) for symbol in symbols if symbol in statements}


def _last(counts: list[ShareCount], day: date) -> ShareCount | None:
    """Return the last count known by a day; counts are in the order in which they became known."""
    place = bisect_right(counts, day, key=lambda count: count.known)
    return counts[place - 1] if place else None
