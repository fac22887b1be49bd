"""Dates of an edition (month-ends of portfolio tasks, risk dates by market regime), and the returns panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from finskillbench.arrays import Booleans, Floats
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, SYMBOL, PanelColumn
from finskillbench.panels.tables import Jump

SESSIONS_PER_YEAR = 252
VOLATILITY_SESSIONS = 21
JUMP_LIMIT = 0.40
"""One-session move from which a jump is reported (the real set has a spurious +61 % on DHR, 2016-07-05)."""

COLUMNS: Mapping[str, PanelColumn] = {
    "symbol": SYMBOL,
    "date": DATE,
    "simple": PanelColumn("decimal per session", "1 session", "P_t / P_(t-1) - 1 of the adjusted close"),
    "log": PanelColumn("decimal per session", "1 session", "ln(P_t / P_(t-1)) of the adjusted close"),
    "volatility_21d": PanelColumn(
        "decimal per year", "21 sessions trailing", "standard deviation (ddof 1) of simple returns x sqrt(252)"
    ),
    "drawdown": PanelColumn("decimal", "since the first price", "P_t / running maximum of P - 1, never above 0"),
}


class ReturnArrays(NamedTuple):
    """Arrays (T, n); NaN where undefined."""

    simple: Floats
    log: Floats
    volatility_21d: Floats
    drawdown: Floats


def build_returns(adj_close: Floats) -> ReturnArrays:
    """Return returns of an adjusted close (T, n); NaN where a price is missing. A volatility needs all 21 returns."""
    simple, log = np.full_like(adj_close, np.nan), np.full_like(adj_close, np.nan)
    simple[1:] = (adj_close[1:] - adj_close[:-1]) / adj_close[:-1]
    log[1:] = np.log(adj_close[1:] / adj_close[:-1])
    peak = np.fmax.accumulate(adj_close, axis=0)
    return ReturnArrays(simple, log, annual_volatility(simple, VOLATILITY_SESSIONS), adj_close / peak - 1.0)


def annual_volatility(simple: Floats, sessions: int) -> Floats:
    """Return the trailing standard deviation (ddof 1) of returns (T, n) x sqrt(252); NaN unless all are present."""
    out = np.full_like(simple, np.nan)
    if len(simple) >= sessions:
        windows = sliding_window_view(simple, sessions, axis=0)
        for place in range(simple.shape[1]):  # one name at a time: all windows would not fit in memory
            out[sessions - 1 :, place] = windows[:, place].std(axis=1, ddof=1) * np.sqrt(SESSIONS_PER_YEAR)
    return out


def find_jumps(symbols: tuple[str, ...], sessions: tuple[date, ...], simple: Floats) -> tuple[Jump, ...]:
    """Return moves of more than 40 % in one session, by symbol and date."""
    with np.errstate(invalid="ignore"):
        places = np.argwhere(np.abs(simple) > JUMP_LIMIT)
    jumps = (Jump(symbols[name], sessions[row], float(simple[row, name])) for row, name in places.tolist())
    return tuple(sorted(jumps, key=lambda jump: (jump.symbol, jump.date)))


def returns_frame(
    symbols: tuple[str, ...], sessions: tuple[date, ...], adj_close: Floats, arrays: ReturnArrays
) -> pl.DataFrame:
    """Return a long table by symbol and date, a row per session with a price; null where undefined."""
    place, row = np.nonzero(~np.isnan(adj_close).T)
    names = pl.Series("symbol", symbols, dtype=pl.String).gather(place)
    days = pl.Series("date", sessions, dtype=pl.Date).gather(row)
    figures = {name: pl.Series(values.T[place, row]).fill_nan(None) for name, values in arrays._asdict().items()}
    return pl.DataFrame({"symbol": names, "date": days, **figures})


T = TypeVar("T")

REGIMES: Mapping[str, tuple[date, date]] = {
    "2018_selloff": (date(2018, 10, 1), date(2018, 12, 31)),
    "2020_covid": (date(2020, 2, 1), date(2020, 6, 30)),
    "2022_tightening": (date(2022, 1, 1), date(2022, 10, 31)),
    "2023_24_rebound": (date(2023, 1, 1), date(2024, 12, 31)),
}
USER_REGIME = "own"
"""Regime of dates used only by a user's portfolios."""
NORMAL = "normal"
"""Regime of all other month-ends, and of the last full year, which follows every replayed window."""
DATES_PER_REGIME = 8
MONTH_ENDS = 12
"""Number of portfolio dates, spread over all years: expected returns of adjacent months correlate at 0.93 to 0.96."""
FEWEST_NAMES = 25
"""Minimum names on a date; in smaller universes 5/6 of them, and always half of the universe."""


class RiskDates(NamedTuple):
    """Regime per risk date, in order; the places (n_d,) of the names complete on it; notes on regimes without dates."""

    regimes: Mapping[date, str]
    members: Mapping[date, NDArray[np.intp]]
    notes: tuple[str, ...]


def choose_risk_dates(days: Sequence[date], complete: Booleans, last_year: Sequence[date]) -> RiskDates:
    """Choose at most `DATES_PER_REGIME` dates per regime, evenly spread over those with enough names.

    Half of the normal dates are in the last full year, after every replayed window. complete : (len(days), n), names
    with
    every figure. last_year : month-ends of the last full year.
    """
    names = complete.shape[1]
    least = _min_names(names)
    count = dict(zip(days, complete.sum(axis=1).tolist(), strict=True))
    final = set(last_year)
    groups: dict[str, list[date]] = {name: [] for name in (*REGIMES, NORMAL)}
    for day in days:
        groups[NORMAL if day in final else _regime(day)].append(day)
    chosen: dict[date, str] = {}
    notes: list[str] = []
    for regime, all_days in groups.items():
        fit = [day for day in all_days if count[day] >= least]
        if not fit:
            most = max((count[day] for day in all_days), default=0)
            why = f"at most {most} of {names} names are complete, {least} are needed" if most else "no data cover it"
            notes.append(f"Regime {regime} has no risk date: {why}.")
        recent = _spread([day for day in fit if day in final], DATES_PER_REGIME // 2)
        remaining = _spread([day for day in fit if day not in final], DATES_PER_REGIME - len(recent))
        chosen |= dict.fromkeys((*remaining, *recent), regime)
    ordered = sorted(chosen)
    place = {day: row for row, day in enumerate(days)}
    return RiskDates(
        regimes={day: chosen[day] for day in ordered},
        members={day: np.flatnonzero(complete[place[day]]) for day in ordered},
        notes=tuple(notes),
    )


def with_user_dates(dates: RiskDates, user_dates: Mapping[date, Booleans]) -> RiskDates:
    """Add the dates of a user's portfolios that have enough complete names; `user_dates` maps them to a mask (n,)."""
    fit = {
        day: np.flatnonzero(complete)
        for day, complete in user_dates.items()
        if day not in dates.regimes and complete.sum() >= _min_names(len(complete))
    }
    regimes = {**dates.regimes, **dict.fromkeys(fit, USER_REGIME)}
    return RiskDates(dict(sorted(regimes.items())), {**dates.members, **fit}, dates.notes)


def choose_month_ends(days: Sequence[date], complete: Booleans) -> Mapping[date, NDArray[np.intp]]:
    """Choose `MONTH_ENDS` dates spread over those with enough names; return the places of complete names on each.

    complete : (len(days), n), names with every figure. Raises SourceError if no date has enough names.
    """
    least = _min_names(complete.shape[1])
    fit = [place for place, count in enumerate(complete.sum(axis=1).tolist()) if count >= least]
    if not fit:
        most = int(complete.sum(axis=1).max(initial=0))
        raise SourceError(
            "prices and statements",
            f"no month-end has {least} of {complete.shape[1]} names with a year of prices and known shares, "
            f"the best has {most}",
            remedy="supply earlier prices and share counts, or leave the names out that lack them",
        )
    return {days[place]: np.flatnonzero(complete[place]) for place in _spread(fit, MONTH_ENDS)}


def _min_names(names: int) -> int:
    """Return the minimum names on a date for a universe of this size."""
    return max(-(-names // 2), min(FEWEST_NAMES, -(-5 * names // 6)))


def _regime(day: date) -> str:
    return next((name for name, (first, last) in REGIMES.items() if first <= day <= last), NORMAL)


def _spread(days: Sequence[T], count: int) -> list[T]:
    """Return `count` of the days evenly spread from first to last; all if there are fewer."""
    if len(days) <= count:
        return list(days)
    return [days[place] for place in np.linspace(0, len(days) - 1, count).round().astype(int)]
