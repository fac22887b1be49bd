"""Prices panel: sessions by names, with short gaps filled and long ones reported."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Booleans, Floats
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, PanelColumn
from finskillbench.panels.market.sessions import trading_sessions
from finskillbench.panels.tables import PriceGap
from finskillbench.sources.market.collection import MarketData

MAX_FILLED_SESSIONS = 5

FIELDS = ("open", "high", "low", "close", "adj_close", "volume")
_USD = "USD per share"
COLUMNS: Mapping[str, PanelColumn] = {
    "date": DATE,
    "open": PanelColumn(_USD, "daily", "opening price as traded"),
    "high": PanelColumn(_USD, "daily", "highest price as traded"),
    "low": PanelColumn(_USD, "daily", "lowest price as traded"),
    "close": PanelColumn(_USD, "daily", "closing price as traded, without any adjustment"),
    "adj_close": PanelColumn(_USD, "daily", "closing price adjusted for splits and dividends"),
    "volume": PanelColumn("shares", "daily", "shares as traded, 0 on a filled session"),
}


@dataclass(frozen=True, slots=True, eq=False)
class PriceGrid:
    """Prices as arrays (T, n) per field, NaN if absent; `observed` (T, n) is true where the source has the price
    itself.
    """

    symbols: tuple[str, ...]
    sessions: tuple[date, ...]
    fields: Mapping[str, Floats]
    observed: Booleans
    forward_filled: Mapping[str, int]
    gaps: tuple[PriceGap, ...]

    def frame(self) -> pl.DataFrame:
        """Return `date`, then `field:SYMBOL` for each field and symbol; null where there is no price."""
        columns: dict[str, pl.Series] = {"date": pl.Series("date", self.sessions, dtype=pl.Date)}
        for field, values in self.fields.items():
            for place, symbol in enumerate(self.symbols):
                name = f"{field}:{symbol}"
                columns[name] = pl.Series(name, values[:, place]).fill_nan(None)
        return pl.DataFrame(columns)


def build_prices(market: MarketData) -> PriceGrid:
    """Place prices on the grid of sessions and carry the last one over short gaps, forward only, with a volume of 0.

    Longer gaps leave nulls and are reported. Raises SourceError for a name without prices, prices of an unknown name,
    or a price that is not positive.
    """
    symbols = tuple(security.symbol for security in market.securities)
    strangers = set(market.prices["symbol"].unique()) - set(symbols)
    if strangers:
        raise SourceError("prices", f"{min(strangers)} is not in the universe", remedy="remove it or add the security")
    sessions = trading_sessions(market.prices, len(symbols), market.factors)
    table = market.prices.filter(pl.col("date").is_in(pl.Series(sessions, dtype=pl.Date).implode()))
    days = np.array(sessions, dtype="datetime64[D]")
    row = np.searchsorted(days, table["date"].to_numpy())
    column = table["symbol"].cast(pl.Enum(symbols)).to_physical().to_numpy()

    def grid(field: str) -> Floats:
        values = np.full((len(sessions), len(symbols)), np.nan)
        values[row, column] = table[field].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return values

    adjusted = grid("adj_close")
    observed = ~np.isnan(adjusted)
    if (adjusted <= 0).any():
        worst = np.argwhere(adjusted <= 0)[0]
        raise SourceError("prices", f"adj_close of {symbols[worst[1]]} on {sessions[worst[0]]} is not positive")
    empty = np.flatnonzero(~observed.any(axis=0))
    if len(empty):
        raise SourceError(
            "prices", f"{symbols[empty[0]]} has no price in any session", remedy="drop it from the universe"
        )

    last, age = _age(observed)
    fill = (age > 0) & (age <= MAX_FILLED_SESSIONS) & (last >= 0)
    fields: dict[str, Floats] = {}
    for field in FIELDS:
        values = adjusted if field == "adj_close" else grid(field)
        carried = 0.0 if field == "volume" else np.take_along_axis(values, np.maximum(last, 0), axis=0)
        fields[field] = np.where(fill, carried, np.where(observed, values, np.nan))
    counts = fill.sum(axis=0)
    return PriceGrid(
        symbols=symbols,
        sessions=sessions,
        fields=fields,
        observed=observed,
        forward_filled={symbol: int(count) for symbol, count in zip(symbols, counts, strict=True) if count},
        gaps=_gaps(symbols, sessions, observed, last, age),
    )


def _age(observed: Booleans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return per cell the row of the last observation (-1 before the first) and the sessions since."""
    rows = np.arange(len(observed))[:, None]
    last = np.maximum.accumulate(np.where(observed, rows, -1), axis=0)
    return last, rows - last


def _gaps(
    symbols: tuple[str, ...],
    sessions: tuple[date, ...],
    observed: Booleans,
    last: NDArray[np.int64],
    age: NDArray[np.int64],
) -> tuple[PriceGap, ...]:
    """Return gaps longer than the filling, each found at its first empty session."""
    found: list[PriceGap] = []
    for row, place in np.argwhere((age == MAX_FILLED_SESSIONS + 1) & (last >= 0)).tolist():
        before = int(last[row, place])
        later = np.flatnonzero(observed[row:, place])
        after = int(row + later[0]) if len(later) else len(sessions)
        resumed = sessions[after] if after < len(sessions) else None
        found.append(PriceGap(symbols[place], sessions[before], resumed, after - before - 1))
    return tuple(sorted(found, key=lambda gap: (gap.symbol, gap.last)))
