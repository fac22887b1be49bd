"""A price file in the making: rows of any provider, on one basis, as the CSV that `sources.market.prices` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from finskillbench.fetch.http.contents import ContentError, NothingError
from finskillbench.fetch.window import Window

_HEADER = "Date,Open,High,Low,Close,Adj Close,Volume"


@dataclass(frozen=True, slots=True)
class Session:
    """One row: USD and shares, all but `adjusted` on the basis of today's shares; None where nothing is recorded.

    adjusted : the close without later dividends too. dividend : USD per share, going ex on this day.
    split : new shares for one old, from this day on; 0 on other days.
    """

    day: date
    opening: float | None
    high: float | None
    low: float | None
    close: float
    adjusted: float
    volume: float | None
    dividend: float = 0.0
    split: float = 0.0


def csv_of(sessions: Iterable[Session], window: Window, *, dividends: bool = True) -> bytes:
    """The sessions of the window and of the years before it, as CSV; `dividends` where the provider tells them.

    Raises
    ------
    NothingError : there is none. ContentError : two rows of one day, or days out of order.
    """
    chosen = [one for one in sessions if window.prices_from <= one.day <= window.last]
    if not chosen:
        raise NothingError(f"no session from {window.prices_from} to {window.last}")
    for one, following in pairwise(chosen):
        if following.day <= one.day:
            raise ContentError(f"{following.day} after {one.day}: the days do not increase", lasting=True)
    lines = [_HEADER + (",Dividends" if dividends else "") + ",Stock Splits"]
    for one in chosen:
        cells = [one.opening, one.high, one.low, one.close, one.adjusted, one.volume]
        cells += [one.dividend, one.split] if dividends else [one.split]
        lines.append(f"{one.day.isoformat()},{','.join(map(_cell, cells))}")
    return ("\n".join(lines) + "\n").encode()


def _cell(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def number(row: Mapping[str, object], field: str) -> float | None:
    """A number of a row; None where it is absent or null.

    Raises
    ------
    ContentError : it is something else.
    """
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ContentError(f"{field} is {value!r}")
    return float(value)


def required(row: Mapping[str, object], field: str) -> float:
    """A number that must be there; ContentError where it is not."""
    value = number(row, field)
    if value is None:
        raise ContentError(f"a row without {field}: {str(dict(row))[:80]}")
    return value


def day_of(text: object) -> date:
    """The day of an ISO date, with or without a time; ContentError where there is none."""
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        raise ContentError(f"{text!r} is no date") from None
