"""Macro panel: the last value released by each session.

Revised series (CPIAUCSL, UNRATE, DTWEXBGS) are dated by first release but carry the figures of the vintage read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum

import numpy as np
import polars as pl

from finskillbench.panels.columns import DATE, PanelColumn

_PERCENT = "percent per year"


class Publication(Enum):
    """Publication time of a value, relative to the day (or first day of the month) it measures."""

    SAME_DAY = "the day itself"
    NEXT_DAY = "the next working day"
    WEEKLY = "the Monday after its week"
    MONTHLY = "a day of the following month"


@dataclass(frozen=True, slots=True)
class Release:
    """Publication rule of a series.

    day : for `MONTHLY`, the day of the following month, the latest since 2016. banking : no publication on days when
        banks
    close but exchanges trade. late : months (first day) published later than the rule -> publication day.
    """

    publication: Publication
    column: PanelColumn
    day: int = 1
    banking: bool = True
    late: Mapping[date, date] | None = None

    def earliest(self, measured: date) -> date:
        """Return the first day on which the value can be known; sessions that publish nothing are skipped later."""
        match self.publication:
            case Publication.SAME_DAY:
                return measured
            case Publication.NEXT_DAY:
                return measured + timedelta(days=1)
            case Publication.WEEKLY:
                return measured + timedelta(days=7 - measured.weekday())
            case Publication.MONTHLY:
                following = (measured.replace(day=1) + timedelta(days=31)).replace(day=self.day)
                return max(following, (self.late or {}).get(measured, following))


def _daily(unit: str, meaning: str) -> PanelColumn:
    return PanelColumn(unit, "1 day, published the next working day", meaning)


# The federal shutdown of October and November 2025 stopped the Bureau of Labor Statistics: October's unemployment rate
# and index were never measured, September's and November's came late.
_SHUTDOWN_UNEMPLOYMENT = {
    date(2025, 9, 1): date(2025, 11, 20),
    date(2025, 11, 1): date(2025, 12, 16),
    date(2026, 1, 1): date(2026, 2, 11),
}
_SHUTDOWN_PRICES = {date(2025, 9, 1): date(2025, 10, 24)}

RELEASES: Mapping[str, Release] = {
    # H.15: the effective rate of a day is published on the next business day; a weekend carries Friday's.
    "DFF": Release(Publication.NEXT_DAY, _daily(_PERCENT, "effective federal funds rate")),
    # Monthly averages of H.15, complete with the last business day of the month, which appears within the first days.
    "FEDFUNDS": Release(
        Publication.MONTHLY,
        PanelColumn(_PERCENT, "1 month, published from the 5th of the next", "effective federal funds rate, mean"),
        day=5,
    ),
    # H.15: yields at constant maturity of a day are published on the next business day.
    "DGS3MO": Release(Publication.NEXT_DAY, _daily(_PERCENT, "yield of 3-month Treasuries")),
    "DGS2": Release(Publication.NEXT_DAY, _daily(_PERCENT, "yield of 2-year Treasuries")),
    "DGS10": Release(Publication.NEXT_DAY, _daily(_PERCENT, "yield of 10-year Treasuries")),
    "T10Y2Y": Release(Publication.NEXT_DAY, _daily("percentage points", "DGS10 - DGS2")),
    # Mid-month in general; the 19th was the latest (January 2016), and a weekend may follow.
    "CPIAUCSL": Release(
        Publication.MONTHLY,
        PanelColumn("index, 1982-84 = 100", "1 month, published from the 20th of the next", "consumer prices"),
        day=20,
        late=_SHUTDOWN_PRICES,
    ),
    # The Employment Situation appears on the first Friday in general, three weeks after the survey: at most the 10th.
    "UNRATE": Release(
        Publication.MONTHLY,
        PanelColumn("percent", "1 month, published from the 10th of the next", "unemployment rate"),
        day=10,
        late=_SHUTDOWN_UNEMPLOYMENT,
    ),
    # Computed by the exchange through its own session.
    "VIXCLS": Release(
        Publication.SAME_DAY,
        PanelColumn(_PERCENT, "1 day, published the same day", "implied volatility of S&P 500 options, 30 days ahead"),
        banking=False,
    ),
    # The index provider closes the day in the evening; FRED shows it the next morning.
    "BAMLH0A0HYM2": Release(
        Publication.NEXT_DAY, _daily("percentage points", "option-adjusted spread of US high-yield bonds")
    ),
    # H.10: daily values appear on Monday for the week before, on Tuesday if Monday is a holiday.
    "DTWEXBGS": Release(
        Publication.WEEKLY,
        PanelColumn(
            "index, January 2006 = 100", "1 day, published the Monday after its week", "broad trade-weighted dollar"
        ),
    ),
}
COLUMNS: Mapping[str, PanelColumn] = {"date": DATE, **{series: rule.column for series, rule in RELEASES.items()}}

MAX_AGE_DAYS: Mapping[Publication, int] = {
    Publication.SAME_DAY: 14,
    Publication.NEXT_DAY: 14,
    Publication.WEEKLY: 21,
    Publication.MONTHLY: 75,
}
"""Maximum days a released value is carried forward: holidays, or one month never measured."""


def build_macro(sessions: tuple[date, ...], macro: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return one row per session and one column per series present, in the order of `RELEASES` and FRED's units.

    A value holds from the first session after its release to the next release or `MAX_AGE_DAYS`, else null. `macro`
    maps FRED ids to date (increasing) and value; a null value is a holiday.
    """
    days = np.array(sessions, dtype="datetime64[D]")
    banking = days[[not _bank_holiday(day) for day in sessions]]
    columns: dict[str, pl.Series] = {"date": pl.Series("date", sessions, dtype=pl.Date)}
    for series, rule in RELEASES.items():
        if series in macro:
            columns[series] = pl.Series(series, _known(days, banking if rule.banking else days, rule, macro[series]))
    return pl.DataFrame(columns).with_columns(pl.exclude("date").fill_nan(None))


def _known(days: np.ndarray, publishing: np.ndarray, rule: Release, table: pl.DataFrame) -> np.ndarray:
    """Return the value (T,) known at each of the days (T,), released on the publishing ones; NaN if unknown."""
    table = table.drop_nulls("value").sort("date")
    values = table["value"].cast(pl.Float64).to_numpy()
    earliest = np.array([rule.earliest(day) for day in table["date"].to_list()], dtype="datetime64[D]")
    # A delayed month holds back later ones: values are published in order.
    place = np.searchsorted(publishing, np.maximum.accumulate(earliest))
    later = place >= len(publishing)
    released, values = publishing[place[~later]], values[~later]
    last = np.searchsorted(released, days, side="right") - 1
    age = days - np.take(released, np.maximum(last, 0)) if len(released) else np.zeros(len(days), "timedelta64[D]")
    known = (last >= 0) & (age <= np.timedelta64(MAX_AGE_DAYS[rule.publication], "D"))
    return np.where(known, np.take(values, np.maximum(last, 0)) if len(values) else np.nan, np.nan)


def _bank_holiday(day: date) -> bool:
    """Return True on Columbus Day and Veterans Day: the Federal Reserve closes while exchanges trade."""
    if (day.month, day.weekday()) == (10, 0):
        return 8 <= day.day <= 14
    return day.month == 11 and (day.day == 11 or (day.day == 12 and day.weekday() == 0))


def ended_series(panel: pl.DataFrame) -> Mapping[str, date]:
    """Return the last session with a value of each series that has none at the last session."""
    ended: dict[str, date] = {}
    for series in panel.columns[1:]:
        known = panel.filter(pl.col(series).is_not_null())
        if known.height and known["date"][-1] < panel["date"][-1]:
            ended[series] = known["date"][-1]
    return ended
