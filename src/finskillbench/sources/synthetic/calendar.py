"""NYSE sessions, random streams, rounding and sector profiles (`sectors.json`) of the fictional market.

Each stream is independent, so that a name's draws do not depend on the number of names. Drawn numbers are rounded,
because logarithms and exponentials differ between processors in the last bits.
"""

import math
from datetime import date, timedelta
from enum import IntEnum
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats

FIRST_SESSION = date(2016, 1, 4)
LAST_SESSION = date(2025, 12, 31)


_CLOSED = frozenset({date(2018, 12, 5), date(2025, 1, 9)})
"""Days of mourning for Presidents Bush and Carter."""
_JUNETEENTH_SINCE = 2022


@cache
def sessions() -> tuple[date, ...]:
    """Return the NYSE trading days from 2016-01-04 to 2025-12-31 (2,514), by the exchange's rule 7.2."""
    closed = _CLOSED.union(*(_holidays(year) for year in range(FIRST_SESSION.year, LAST_SESSION.year + 1)))
    days = (FIRST_SESSION + timedelta(days=number) for number in range((LAST_SESSION - FIRST_SESSION).days + 1))
    return tuple(day for day in days if day.weekday() < 5 and day not in closed)


def _holidays(year: int) -> set[date]:
    """Return the NYSE holidays; Saturdays are observed on Friday, Sundays on Monday.

    New Year's Day on a Saturday is not observed, because the Friday before ends an accounting year.
    """
    fixed = [date(year, 7, 4), date(year, 12, 25)]
    if date(year, 1, 1).weekday() != 5:
        fixed.append(date(year, 1, 1))
    if year >= _JUNETEENTH_SINCE:
        fixed.append(date(year, 6, 19))
    kept = {day + timedelta(days={5: -1, 6: 1}.get(day.weekday(), 0)) for day in fixed}
    mondays = _weekday(year, 1, 0, 3), _weekday(year, 2, 0, 3), _weekday(year, 6, 0, 1) - timedelta(7)
    return kept | {*mondays, _good_friday(year), _weekday(year, 9, 0, 1), _weekday(year, 11, 3, 4)}


def _weekday(year: int, month: int, weekday: int, number: int) -> date:
    """Return the first, second, ... Monday (0) to Sunday (6) of a month."""
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (number - 1))


def _good_friday(year: int) -> date:
    """Return Good Friday by the anonymous Gregorian computus (Meeus, Astronomical Algorithms, ch. 8)."""
    century, rest = divmod(year, 100)
    golden = year % 19
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    month, day = divmod(epact + weekday - 7 * ((golden + 11 * epact + 22 * weekday) // 451) + 114, 31)
    return date(year, month, day + 1) - timedelta(days=2)


@cache
def session_ordinals() -> NDArray[np.int64]:
    """(T,) proleptic ordinals of the sessions, to search dates in."""
    ordinals = np.array([day.toordinal() for day in sessions()])
    ordinals.flags.writeable = False
    return ordinals


@cache
def dividend_sessions() -> tuple[int, ...]:
    """Return indices of the ex-dividend sessions: the first after the 14th of a quarter's last month."""
    days = sessions()
    return tuple(
        i
        for i in range(1, len(days))
        # A session opens the second half of its month if the one before was in the first half.
        if days[i].month % 3 == 0 and days[i].day > 14 >= days[i - 1].day and days[i - 1].month == days[i].month
    )


def quarter_ends(first: date, last: date) -> tuple[date, ...]:
    """Return calendar quarter-ends from `first` to `last`, inclusive."""
    ends = (month_end(year, month) for year in range(first.year, last.year + 1) for month in (3, 6, 9, 12))
    return tuple(end for end in ends if first <= end <= last)


def month_end(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def new_york_offset(day: date) -> str:
    """Return New York's UTC offset at midnight of a weekday; summer time is March to November."""
    return "-04:00" if _weekday(day.year, 3, 6, 2) <= day < _weekday(day.year, 11, 6, 1) else "-05:00"


def business_day(day: date) -> date:
    """Return the day or the next session; before the first session, the next weekday."""
    if day < FIRST_SESSION:
        return day + timedelta(days=max(0, 7 - day.weekday()) if day.weekday() > 4 else 0)
    if day > LAST_SESSION:
        return day
    return sessions()[int(np.searchsorted(session_ordinals(), day.toordinal()))]


class SyntheticStream(IntEnum):
    """Purpose of a random stream; changing a number changes every collection."""

    FACTORS = 1
    MACRO = 2
    NAMES = 3
    COMPANY = 4
    RETURNS = 5
    TRADING = 6
    CAPS = 7
    SECTORS = 8
    FILINGS = 9


def generator(seed: int, stream: SyntheticStream, index: int = 0) -> np.random.Generator:
    """Return the PCG64 generator of a purpose and optionally a name."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, int(stream), index])))


def on_grid(value: float, places: int, low: float = -math.inf, high: float = math.inf) -> float:
    """Clip a number and round it as NumPy does."""
    within: np.float64 = np.clip(np.float64(value), low, high)
    return float(np.round(within, places))


def round_to(values: Floats, places: int) -> Floats:
    return np.round(values, places)


def thousands(values: Floats) -> Floats:
    """Round to thousands of dollars."""
    return round_to(values, -3)


class Sector(msgspec.Struct, frozen=True):
    """Typical figures of a sector's companies.

    count : of thirty companies. betas : mean loadings on mkt_rf, smb, hml, rmw, cma, mom. volatility : annual, of the
        sector's return beyond the factors. selling, research : expenses over revenue; 0 if the line is not reported.
        receivables, inventory : over a quarter's revenue. fixed (property, plant and equipment), cash : over total
        assets. liabilities : over equity. products : product segments. sic : SEC code and description. business :
        company-name endings with GICS sub-industries.
    """

    count: int
    betas: tuple[float, ...]
    volatility: float
    selling: float
    research: float
    receivables: float
    inventory: float
    fixed: float
    cash: float
    liabilities: float
    products: tuple[str, ...]
    sic: tuple[int, str]
    business: tuple[tuple[str, str], ...]


PROFILES = msgspec.json.decode(Path(__file__).with_name("sectors.json").read_bytes(), type=dict[str, Sector])
