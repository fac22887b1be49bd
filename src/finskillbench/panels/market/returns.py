"""The returns panel: simple and log returns, 21-day volatility and running drawdown on the adjusted close."""

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view

from finskillbench.arrays import Floats
from finskillbench.panels.columns import DATE, SYMBOL, Column
from finskillbench.panels.report import Jump

SESSIONS_PER_YEAR = 252
VOLATILITY_SESSIONS = 21
JUMP_LIMIT = 0.40
"""A one-session move beyond this is reported (the real set has a spurious +61 % on DHR, 2016-07-05)."""

COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "date": DATE,
    "simple": Column("decimal per session", "1 session", "P_t / P_(t-1) - 1 of the adjusted close"),
    "log": Column("decimal per session", "1 session", "ln(P_t / P_(t-1)) of the adjusted close"),
    "volatility_21d": Column(
        "decimal per year", "21 sessions trailing", "standard deviation (ddof 1) of simple returns x sqrt(252)"
    ),
    "drawdown": Column("decimal", "since the first price", "P_t / running maximum of P - 1, never above 0"),
}


class ReturnArrays(NamedTuple):
    """Arrays (T, n); NaN where undefined."""

    simple: Floats
    log: Floats
    volatility_21d: Floats
    drawdown: Floats


def build_returns(adj_close: Floats) -> ReturnArrays:
    """Returns of an adjusted close (T, n) that is NaN where there is no price.

    A return needs both prices, a volatility all 21 returns.
    """
    simple, log = np.full_like(adj_close, np.nan), np.full_like(adj_close, np.nan)
    simple[1:] = (adj_close[1:] - adj_close[:-1]) / adj_close[:-1]
    log[1:] = np.log(adj_close[1:] / adj_close[:-1])
    peak = np.fmax.accumulate(adj_close, axis=0)
    return ReturnArrays(simple, log, annual_volatility(simple, VOLATILITY_SESSIONS), adj_close / peak - 1.0)


def annual_volatility(simple: Floats, sessions: int) -> Floats:
    """Trailing standard deviation (ddof 1) of returns (T, n) over so many rows, x sqrt(252); NaN unless all there."""
    out = np.full_like(simple, np.nan)
    if len(simple) >= sessions:
        windows = sliding_window_view(simple, sessions, axis=0)
        for place in range(simple.shape[1]):  # one name at a time: the windows of all would not fit in memory
            out[sessions - 1 :, place] = windows[:, place].std(axis=1, ddof=1) * np.sqrt(SESSIONS_PER_YEAR)
    return out


def find_jumps(symbols: tuple[str, ...], sessions: tuple[date, ...], simple: Floats) -> tuple[Jump, ...]:
    """Moves of more than 40 % in one session, by symbol and date."""
    with np.errstate(invalid="ignore"):
        places = np.argwhere(np.abs(simple) > JUMP_LIMIT)
    jumps = (Jump(symbols[name], sessions[row], float(simple[row, name])) for row, name in places.tolist())
    return tuple(sorted(jumps, key=lambda jump: (jump.symbol, jump.date)))


def returns_frame(
    symbols: tuple[str, ...], sessions: tuple[date, ...], adj_close: Floats, arrays: ReturnArrays
) -> pl.DataFrame:
    """Long, by symbol and date: a row per session with a price; null where a figure is undefined."""
    place, row = np.nonzero(~np.isnan(adj_close).T)
    names = pl.Series("symbol", symbols, dtype=pl.String).gather(place)
    days = pl.Series("date", sessions, dtype=pl.Date).gather(row)
    figures = {name: pl.Series(values.T[place, row]).fill_nan(None) for name, values in arrays._asdict().items()}
    return pl.DataFrame({"symbol": names, "date": days, **figures})
