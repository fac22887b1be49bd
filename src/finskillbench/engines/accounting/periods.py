"""Reporting periods, classified by length in days.

Fiscal years of 52 or 53 weeks, transition periods and calendar shifts make labels like "Q2" unreliable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from finskillbench.errors import InputError


class Duration(StrEnum):
    """Class of a fact's period; balance-sheet figures are instants."""

    INSTANT = "instant"
    QUARTERLY = "quarterly"
    HALF = "half"
    NINE_MONTHS = "nine_months"
    ANNUAL = "annual"
    OTHER = "other"


DAYS: Mapping[Duration, tuple[int, int]] = MappingProxyType(
    {
        Duration.QUARTERLY: (70, 125),
        Duration.HALF: (150, 200),
        Duration.NINE_MONTHS: (235, 290),
        Duration.ANNUAL: (340, 380),
    }
)
"""Least and greatest length in days, inclusive; 12 to 17 weeks are a quarter."""

QUARTER_APART = DAYS[Duration.QUARTERLY]
"""Days between the ends of successive quarters."""
YEAR_APART = (350, 380)
"""Days between the ends of a quarter and of the same quarter one year later."""
_NOMINAL = {QUARTER_APART: 91, YEAR_APART: 365}

_FORMS: Mapping[str, Duration] = MappingProxyType(
    {"10-Q": Duration.QUARTERLY, "10-K": Duration.ANNUAL, "20-F": Duration.ANNUAL, "40-F": Duration.ANNUAL}
)


@lru_cache(maxsize=2**14)  # a company's thousands of facts share a few dozen periods
def classify_period(start: date | None, end: date) -> Duration:
    """Classify a period by its length (`start` None: instant); raise `InputError` if it starts after it ends."""
    if start is None:
        return Duration.INSTANT
    days = (end - start).days + 1
    if days < 1:
        raise InputError(f"a period starts on {start} and ends on {end}; the start must not be after the end")
    return next((name for name, (least, most) in DAYS.items() if least <= days <= most), Duration.OTHER)


def duration_of(form: str) -> Duration:
    """Return a form's headline period, quarter or year; raise `InputError` for forms such as 10-KT."""
    try:
        return _FORMS[form.removesuffix("/A")]
    except KeyError:
        raise InputError(f"form_type must be one of {', '.join(_FORMS)} or an amendment of one, not {form!r}") from None


def earlier(end: date, ends: Iterable[date], apart: tuple[int, int]) -> date | None:
    """Return the latest end `apart` days (QUARTER_APART or YEAR_APART) before `end`, nearest to nominal, or None."""
    least, most = apart
    fitting = [other for other in ends if least <= (end - other).days <= most]
    nominal = _NOMINAL[apart]
    return min(fitting, key=lambda other: (abs((end - other).days - nominal), end - other), default=None)
