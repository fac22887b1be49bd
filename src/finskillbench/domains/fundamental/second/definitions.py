"""Periods and limits of the definitions, and what a source of figures must offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from typing import Literal, Protocol

from finskillbench.domains.fundamental.second.answers import Figures

Kind = Literal["quarterly", "half", "nine_months", "annual"]

LENGTHS: dict[Kind, tuple[int, int]] = {
    "quarterly": (70, 125),
    "half": (150, 200),
    "nine_months": (235, 290),
    "annual": (340, 380),
}
"""Days of a period, first and last day counted."""
SHORTER: dict[str, Kind] = {"half": "quarterly", "nine_months": "half", "annual": "nine_months"}
"""What leaves a quarter when it is taken from a longer period that starts on the same day."""
QUARTER_APART = (70, 125, 91)
YEAR_APART = (350, 380, 365)
"""Least, greatest and usual days from the end of a quarter to that of the next, or of the same one a year later."""
LATELY = (60, 400)
"""Days before a quarter with which the quarters end that it is held against."""
FORMS = ("10-Q", "10-K", "20-F", "40-F")
"""Forms that an episode may be about; a 10-Q is of a quarter, the others of a year."""
AXES = ("product_segment", "geographic_segment")
SEGMENT_GAP = 0.01
"""Share of revenue by which the segments of an axis may miss it."""
MOST_SEGMENTS = 5


class Source(Protocol):
    """The figures of one company as they were public on one day."""

    def figures(self, end: date, kind: Kind) -> Figures:
        """Flows of the period of a kind that ends on a day, and the balance sheet of that day."""
        ...

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        """Under which tag each of those figures stands, as far as it is said."""
        ...

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """A flow in the quarters that end up to a year before a day."""
        ...

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """Last day of the quarter that ends so many days before; None where nothing is known of one."""
        ...


def compared(source: Source, end: date, prior_end: date | None) -> tuple[Figures, Figures]:
    """A quarter and an earlier one, of which only figures under the same tag count: others are of another basis."""
    now = source.figures(end, "quarterly")
    if prior_end is None:
        return now, {}
    here, there = source.tags(end, "quarterly"), source.tags(prior_end, "quarterly")
    before = source.figures(prior_end, "quarterly")
    return now, {name: value for name, value in before.items() if _alike(name, here, there)}


def a_year_apart(source: Source, end: date) -> tuple[Figures, Figures, date | None]:
    """A quarter, the same quarter a year before, and its last day; without figures where there is none.

    Diluted shares are those of the years that end with the quarters where they are not known of both quarters.
    """
    prior_end, shares = source.preceding(end, YEAR_APART), "diluted_shares"
    now, before = compared(source, end, prior_end)
    if prior_end is None:
        return now, before, None
    if now.get(shares) is None or source.figures(prior_end, "quarterly").get(shares) is None:
        years = [source.figures(day, "annual").get(shares) for day in (end, prior_end)]
        if None not in years and _alike(shares, *(source.tags(day, "annual") for day in (end, prior_end))):
            now, before = {**now, shares: years[0]}, {**before, shares: years[1]}
    return now, before, prior_end


def _alike(name: str, here: Mapping[str, str], there: Mapping[str, str]) -> bool:
    return name not in here or name not in there or here[name] == there[name]


@lru_cache(maxsize=2**14)  # of a company's facts some thousand share a few dozen periods
@lru_cache(maxsize=2**14)  # a company's filings share a few hundred periods
def kind_of(start: date | None, end: date) -> str:
    """Class of a period by its length; "instant" without a first day."""
    if start is None:
        return "instant"
    days = (end - start).days + 1
    return next((kind for kind, (least, most) in LENGTHS.items() if least <= days <= most), "other")


def period_of(form: str) -> Kind:
    """What a form reports on; ValueError for a form that no episode may be about."""
    if form not in FORMS:
        raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
    return "quarterly" if form == "10-Q" else "annual"


def periods_of(sub_task: str, form: str, end: date, prior_end: date | None) -> list[tuple[date, Kind]]:
    """The periods whose statements a label rests on: that of the form, or two quarters."""
    if sub_task == "normalization":
        return [(end, period_of(form))]
    return [(day, "quarterly") for day in (end, prior_end) if day is not None]


def nearest_first(end: date, others: Iterable[date], distance: tuple[int, int, int]) -> list[date]:
    """Days that lie so many days before one, the nearest to the usual distance first and of two the later."""
    least, most, usual = distance
    fitting = [day for day in others if least <= (end - day).days <= most]
    return sorted(fitting, key=lambda day: (abs((end - day).days - usual), (end - day).days))
