"""The benchmark weights panel: share of total market capitalisation at month-ends and risk dates."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, SYMBOL, Column, schema_of
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS, Fact, Series
from finskillbench.sources.market import Statements

STALE_SHARES_DAYS = 2 * 365 + REPORTING_LAG_DAYS
"""Shares older than two reporting years are used, being what was known, and reported."""

COLUMNS: Mapping[str, Column] = {
    "date": DATE,
    "symbol": SYMBOL,
    "market_cap_usd": Column("USD", "point in time", "close x shares known by the date"),
    "weight": Column("fraction of the total, 0.05 is 5 %", "point in time", "market_cap_usd over its sum"),
    "shares": Column("shares", "point in time", "diluted shares, else shares outstanding, known by the date"),
    "shares_as_of": Column("date", "point in time", "end of the period the shares belong to", pl.Date),
}


class WeightsPanel(NamedTuple):
    """The long table, and the greatest age in days of shares that were stale, by symbol."""

    frame: pl.DataFrame
    stale: Mapping[str, int]


def build_benchmark_weights(
    universe: tuple[str, ...],
    sessions: tuple[date, ...],
    close: Floats,
    statements: Mapping[str, Statements],
    members: Mapping[int, NDArray[np.intp]],
) -> WeightsPanel:
    """Weigh the names by close (T, n) x shares known by each of the rows' sessions.

    `members` gives the places of the names of each row.

    Raises
    ------
    SourceError : a name without a close, or without shares known by the date. A later count is never used for an
        earlier date.
    """
    counts = {symbol: _share_counts(statements, symbol) for symbol in universe}
    records: dict[str, list[object]] = {name: [] for name in COLUMNS}
    stale: dict[str, int] = {}
    for row, places in members.items():
        day = sessions[row]
        symbols, quoted = list(map(universe.__getitem__, places)), close[row, places]
        known = [_known_shares(symbol, *counts[symbol], day) for symbol in symbols]
        if np.isnan(quoted).any():
            symbol = symbols[int(np.argmax(np.isnan(quoted)))]
            raise SourceError(f"prices of {symbol}", f"no close on {day}", remedy="supply it or leave the name out")
        caps = quoted * np.array([fact.value for fact in known])
        records["date"] += [day] * len(symbols)
        records["symbol"] += symbols
        records["market_cap_usd"] += caps.tolist()
        records["weight"] += (caps / caps.sum()).tolist()
        records["shares"] += [fact.value for fact in known]
        records["shares_as_of"] += [fact.end for fact in known]
        for symbol, fact in zip(symbols, known, strict=True):
            if fact.age(day) > STALE_SHARES_DAYS:
                stale[symbol] = max(stale.get(symbol, 0), fact.age(day))
    return WeightsPanel(pl.DataFrame(records, schema=schema_of(COLUMNS)), stale)


def shares_known_from(statements: Mapping[str, Statements], symbol: str) -> date:
    """The first day on which a share count of the name is known; `date.max` if there is none."""
    first = [series.ends[0] for series in _share_counts(statements, symbol) if len(series.ends)]
    if not first:
        return date.max
    return date(1970, 1, 1) + timedelta(days=int(min(first)) + REPORTING_LAG_DAYS)


def _share_counts(statements: Mapping[str, Statements], symbol: str) -> tuple[Series, Series]:
    if symbol not in statements:
        raise SourceError(f"statements of {symbol}", "missing", remedy="add them or leave the name out of the universe")
    return Series.of(statements[symbol].diluted_shares), Series.of(statements[symbol].shares_outstanding)


def _known_shares(symbol: str, diluted: Series, outstanding: Series, day: date) -> Fact:
    fact = diluted.known(day) or outstanding.known(day)
    if fact is None:
        raise SourceError(
            f"statements of {symbol}",
            f"no share count known by {day} (period end + {REPORTING_LAG_DAYS} days)",
            remedy="add an earlier one or leave the name out of the universe",
        )
    if fact.value <= 0:
        raise SourceError(f"statements of {symbol}", f"share count {fact.value:g} at {fact.end} is not positive")
    return fact
