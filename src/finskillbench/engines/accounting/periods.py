"""Reporting periods by their dates: which are quarters, halves, nine months, years, and which precede which.

Fiscal years of 52 or 53 weeks, transition periods and calendar shifts make labels like "Q2" unreliable; lengths in days
are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from finskillbench.errors import InputError


class Duration(StrEnum):
    """What a fact's period is; a balance-sheet figure is an instant."""

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
"""Least and greatest length in days, both included, first and last day counted; 12 to 17 weeks are a quarter."""

QUARTER_APART = DAYS[Duration.QUARTERLY]
"""Days from the end of one quarter to the end of the next."""
YEAR_APART = (350, 380)
"""Days from the end of a quarter to the end of the same quarter a year later."""
_NOMINAL = {QUARTER_APART: 91, YEAR_APART: 365}

_FORMS: Mapping[str, Duration] = MappingProxyType(
    {
        "10-Q": Duration.QUARTERLY,
        "10-K": Duration.ANNUAL,
        "20-F": Duration.ANNUAL,
        "40-F": Duration.ANNUAL,
    }
)


@lru_cache(maxsize=2**14)  # of a company's facts some thousand share a few dozen periods
def classify(start: date | None, end: date) -> Duration:
    """Class of a period by its length; `start` is None for an instant.

    Raises
    ------
    InputError : the period starts after it ends.
    """
    if start is None:
        return Duration.INSTANT
    days = (end - start).days + 1
    if days < 1:
        raise InputError(f"a period starts on {start} and ends on {end}; the start must not be after the end")
    return next((name for name, (least, most) in DAYS.items() if least <= days <= most), Duration.OTHER)


def duration_of(form: str) -> Duration:
    """The period that a form's headline figures cover: the quarter of a 10-Q, the year of a 10-K, 20-F or 40-F.

    Raises
    ------
    InputError : the form is none of these or an amendment of one (a 10-KT covers no standard period).
    """
    try:
        return _FORMS[form.removesuffix("/A")]
    except KeyError:
        raise InputError(f"form_type must be one of {', '.join(_FORMS)} or an amendment of one, not {form!r}") from None


def earlier(end: date, ends: Iterable[date], apart: tuple[int, int]) -> date | None:
    """The end among `ends` that lies `apart` days (QUARTER_APART or YEAR_APART) before `end`; None if there is none.

    Of several, the one nearest to 91 or 365 days, of equally near ones the later.
    """
    least, most = apart
    fitting = [other for other in ends if least <= (end - other).days <= most]
    nominal = _NOMINAL[apart]
    return min(fitting, key=lambda other: (abs((end - other).days - nominal), end - other), default=None)
