"""The months that an edition is to be about, and what must be fetched around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from finskillbench.errors import InputError
from finskillbench.sources.files import DEFAULT_START

EARLIEST = DEFAULT_START.replace(year=DEFAULT_START.year + 1)
"""Builds read nothing from before `DEFAULT_START`, and a date needs a year behind it."""
_REPORTS_BEFORE = 24
"""Months of reports before the window: a fourth quarter is a year less nine months, and is compared with the year
before, which is restated in between."""


@dataclass(frozen=True, slots=True)
class Window:
    """Whole months, from the first day of one to the last day of another."""

    first: date
    last: date

    @property
    def prices_from(self) -> date:
        """The first day of prices, factors and rates: the first that builds read, so that every regime is covered."""
        return DEFAULT_START

    @property
    def reports_from(self) -> date:
        """The first filing day of the reports whose XBRL documents are fetched."""
        months = self.first.year * 12 + self.first.month - 1 - _REPORTS_BEFORE
        return date(months // 12, months % 12 + 1, 1)


def window_of(start: str, end: str, today: date) -> Window:
    """The window of two months, YYYY-MM, that are over.

    Raises
    ------
    InputError : no months, in the wrong order, too early, or not over today.
    """
    first, last = _month("--from", start), _month("--to", end)
    last = (last + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    if last < first:
        raise InputError(f"--from {start} is after --to {end}; exchange them")
    if first < EARLIEST:
        raise InputError(f"--from {start}: builds read nothing before {DEFAULT_START}; take {EARLIEST:%Y-%m} or later")
    if last >= today:
        raise InputError(
            f"--to {end} is not over yet, and its files would differ from day to day; take an earlier month"
        )
    return Window(first, last)


def _month(option: str, text: str) -> date:
    if re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text) is None:
        raise InputError(f"{option} {text}: no month; write YYYY-MM, such as 2026-07")
    return date(int(text[:4]), int(text[5:]), 1)
