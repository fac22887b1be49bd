"""Benchmark weights panel: capped shares of total market capitalisation at month-ends and risk dates."""

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, SYMBOL, PanelColumn, table_schema
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS
from finskillbench.panels.market.share_counts import ShareCount, ShareCounts

STALE_SHARES_DAYS = 2 * 365 + REPORTING_LAG_DAYS
"""Age from which shares are reported as stale; they are still used."""

LARGEST, TIMES_EQUAL = 0.05, 2.4
"""Cap on a benchmark weight: a fixed share, or a multiple of the equal weight if larger."""
RULE = (
    f"by market capitalisation, no name above the larger of {LARGEST:.0%} and {TIMES_EQUAL:g} / number of names; what "
    "a cap takes away is spread over the other names in proportion"
)
"""The rule as printed in tasks."""

COLUMNS: Mapping[str, PanelColumn] = {
    "date": DATE,
    "symbol": SYMBOL,
    "market_cap_usd": PanelColumn("USD", "point in time", "close x shares known by the date"),
    "weight": PanelColumn("fraction of the total, 0.05 is 5 %", "point in time", RULE),
    "shares": PanelColumn(
        "shares",
        "point in time",
        "of the last cover page, else diluted shares, else shares outstanding, known by the date, times the splits "
        "since: on the basis of the date's close",
    ),
    "shares_as_of": PanelColumn("date", "point in time", "day or end of the period the shares belong to", pl.Date),
    "shares_known": PanelColumn("date", "point in time", "day it was filed, else shares_as_of + 90 days", pl.Date),
}


class WeightsPanel(NamedTuple):
    """Long table, and by symbol the greatest age in days of stale shares."""

    frame: pl.DataFrame
    stale: Mapping[str, int]


def capped(sizes: Floats) -> Floats:
    """Return weights (n,) in proportion to sizes, none above the cap for n names, by `RULE`."""
    cap = max(LARGEST, TIMES_EQUAL / len(sizes))
    weights = sizes / sizes.sum()
    while (weights > cap).any():
        full = weights >= cap
        weights = np.where(full, cap, weights * (1 - cap * full.sum()) / weights[~full].sum())
    return weights


def build_benchmark_weights(
    universe: tuple[str, ...],
    sessions: tuple[date, ...],
    close: Floats,
    counts: Mapping[str, ShareCounts],
    members: Mapping[int, NDArray[np.intp]],
) -> WeightsPanel:
    """Weigh names by close (T, n) x shares known by each session; `members` maps rows to places of names.

    Raises SourceError for a name without a close, or without shares known by the date; later counts are never used.
    """
    records: dict[str, list[object]] = {name: [] for name in COLUMNS}
    stale: dict[str, int] = {}
    for row, places in members.items():
        day = sessions[row]
        symbols, quoted = list(map(universe.__getitem__, places)), close[row, places]
        known = [_known_shares(symbol, counts, day) for symbol in symbols]
        if np.isnan(quoted).any():
            symbol = symbols[int(np.argmax(np.isnan(quoted)))]
            raise SourceError(f"prices of {symbol}", f"no close on {day}", remedy="supply it or leave the name out")
        caps = quoted * np.array([fact.value for fact in known])
        records["date"] += [day] * len(symbols)
        records["symbol"] += symbols
        records["market_cap_usd"] += caps.tolist()
        records["weight"] += capped(caps).tolist()
        records["shares"] += [fact.value for fact in known]
        records["shares_as_of"] += [fact.end for fact in known]
        records["shares_known"] += [fact.known for fact in known]
        for symbol, fact in zip(symbols, known, strict=True):
            if fact.age(day) > STALE_SHARES_DAYS:
                stale[symbol] = max(stale.get(symbol, 0), fact.age(day))
    return WeightsPanel(pl.DataFrame(records, schema=table_schema(COLUMNS)), stale)


def _known_shares(symbol: str, counts: Mapping[str, ShareCounts], day: date) -> ShareCount:
    if symbol not in counts:
        raise SourceError(f"statements of {symbol}", "missing", remedy="add them or leave the name out of the universe")
    found = counts[symbol].at(day)
    if found is None:
        raise SourceError(
            f"statements of {symbol}",
            f"no share count known by {day} (period end + {REPORTING_LAG_DAYS} days)",
            remedy="add an earlier one or leave the name out of the universe",
        )
    if found.value <= 0:
        raise SourceError(f"statements of {symbol}", f"share count {found.value:g} at {found.end} is not positive")
    return found
