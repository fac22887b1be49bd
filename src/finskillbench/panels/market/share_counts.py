"""How many shares a company had on a day, as far as was known: on the basis of that day, like its price."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

import polars as pl

from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS
from finskillbench.sources.market.collection import Statements

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
