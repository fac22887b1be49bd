"""What the checks of several domains read from panels: sessions, returns, the window of a covariance."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

import numpy as np

from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.panels import Panels
from finskillbench.panels.market.estimates.views import WINDOW

_SHIFTS = (-21, -5, -1, 1, 5, 21)
"""Sessions by which the window of a covariance is moved to see whether another one fits better."""


@cache
def nyse(first: date, last: date) -> frozenset[date]:
    """Sessions of the exchange from a month before the first date to a month after the last."""
    # Imported here: the calendar library costs half a second that loading an edition need not pay.
    import exchange_calendars

    month = timedelta(days=31)
    calendar = exchange_calendars.get_calendar("XNYS", start=str(first - month), end=str(last + month))
    return frozenset(date(day.year, day.month, day.day) for day in calendar.sessions)


def simple_returns(panels: Panels) -> tuple[list[date], np.ndarray]:
    """Sessions and simple returns (T, n) by the prices; NaN where undefined."""
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    simple = np.full_like(adjusted, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        simple[1:] = adjusted[1:] / adjusted[:-1] - 1
    return panels.prices["date"].to_list(), simple


def columns_of(panels: Panels, estimate: Covariance) -> list[int]:
    """Where the names of a covariance stand among those of the panels."""
    at = {symbol: place for place, symbol in enumerate(panels.symbols)}
    return [at[symbol] for symbol in estimate.symbols]


def best_shift(simple: np.ndarray, end: int, estimate: Covariance) -> int:
    """By how many sessions the window that fits the estimate best ends after the row `end`.

    Shrinkage and a ridge change the diagonal and the scale, so the off-diagonal row sums are compared, normalised.
    """
    sums = estimate.times(np.ones(len(estimate.symbols))) - estimate.variances()
    wanted = sums / np.linalg.norm(sums)
    errors: dict[int, float] = {}
    for shift in (0, *_SHIFTS):
        window = simple[max(end + shift - WINDOW + 1, 0) : end + shift + 1]
        if len(window) == WINDOW and end + shift < len(simple) and np.isfinite(window).all():
            centred = window - window.mean(axis=0)
            sums = centred.T @ centred.sum(axis=1) - np.einsum("tn,tn->n", centred, centred)
            errors[shift] = float(np.abs(wanted - sums / np.linalg.norm(sums)).max())
    return min(errors, key=lambda shift: (errors[shift], abs(shift)))
