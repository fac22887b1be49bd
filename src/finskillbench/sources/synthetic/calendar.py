"""NYSE sessions of the fictional market and the month- and quarter-ends around them."""

from datetime import date, timedelta
from functools import cache

import numpy as np
from numpy.typing import NDArray

FIRST_SESSION = date(2016, 1, 4)
LAST_SESSION = date(2025, 12, 31)


@cache
def sessions() -> tuple[date, ...]:
    """NYSE trading days from 2016-01-04 to 2025-12-31 (2,514)."""
    # Imported here: the calendar library costs half a second that reading a collection need not pay.
    import exchange_calendars

    calendar = exchange_calendars.get_calendar("XNYS", start="2015-12-01", end=LAST_SESSION.isoformat())
    days = calendar.sessions_in_range(FIRST_SESSION.isoformat(), LAST_SESSION.isoformat())
    return tuple(date(day.year, day.month, day.day) for day in days)


@cache
def session_ordinals() -> NDArray[np.int64]:
    """(T,) proleptic ordinals of the sessions, to search dates in."""
    ordinals = np.array([day.toordinal() for day in sessions()])
    ordinals.flags.writeable = False
    return ordinals


@cache
def dividend_sessions() -> tuple[int, ...]:
    """Indices of the ex-dividend sessions: the first after the 14th of a quarter's last month."""
    days = sessions()
    return tuple(
        i
        for i in range(1, len(days))
        # A session opens the second half of its month if the one before still lay in the first half.
        if days[i].month % 3 == 0 and days[i].day > 14 >= days[i - 1].day and days[i - 1].month == days[i].month
    )


def quarter_ends(first: date, last: date) -> tuple[date, ...]:
    """Calendar quarter-ends from `first` to `last`, both included where they are one."""
    ends = (month_end(year, month) for year in range(first.year, last.year + 1) for month in (3, 6, 9, 12))
    return tuple(end for end in ends if first <= end <= last)


def month_end(year: int, month: int) -> date:
    """The last day of a month."""
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def new_york_offset(day: date) -> str:
    """UTC offset at midnight of a weekday in New York: second Sunday of March to first Sunday of November."""
    march, november = date(day.year, 3, 8), date(day.year, 11, 1)
    begins = march + timedelta(days=(6 - march.weekday()) % 7)
    ends = november + timedelta(days=(6 - november.weekday()) % 7)
    return "-04:00" if begins <= day < ends else "-05:00"


def business_day(day: date) -> date:
    """The day itself or the next session; before the first session, the next weekday."""
    if day < FIRST_SESSION:
        return day + timedelta(days=max(0, 7 - day.weekday()) if day.weekday() > 4 else 0)
    if day > LAST_SESSION:
        return day
    return sessions()[int(np.searchsorted(session_ordinals(), day.toordinal()))]
