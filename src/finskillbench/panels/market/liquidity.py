"""The liquidity panel: average daily volume in dollars at the risk dates."""

from collections.abc import Mapping
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.panels.columns import DATE, SYMBOL, Column, schema_of

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
