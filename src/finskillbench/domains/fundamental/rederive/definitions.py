"""Periods and limits of the definitions, and what a source of figures must offer.

Figures of the second derivation from what an episode may see: the rows of its `filing_facts`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Literal, Protocol

from finskillbench.domains.fundamental.inputs import FactRow, SegmentRow
from finskillbench.domains.fundamental.rederive.answers import Figures, SegmentChange

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


Breakdown = Mapping[str, float]
"""Segment to its revenue of one quarter."""


class VisibleFacts:
    """The facts that an episode may see, by kind of period and last day; a `Source`."""

    def __init__(self, rows: Sequence[FactRow]) -> None:
        found: dict[tuple[str, date], dict[str, FactRow]] = defaultdict(dict)
        for row in rows:
            figures, metric = found[_period(row["start"], row["end"])], row["metric"]
            if metric not in figures or _rank(row) > _rank(figures[metric]):
                figures[metric] = row
        self._found = dict(found)

    def figures(self, end: date, kind: Kind) -> Figures:
        """Flows of the period of a kind that ends on a day, and the balance sheet of that day."""
        return {metric: float(row["value"]) for metric, row in self._rows(end, kind)}

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        """The tag of each of those figures."""
        return {metric: row["tag"] for metric, row in self._rows(end, kind)}

    def row(self, metric: str, end: date, kind: Kind) -> FactRow | None:
        """The row of one figure."""
        return dict(self._rows(end, kind)).get(metric)

    def _rows(self, end: date, kind: Kind) -> list[tuple[str, FactRow]]:
        """Metric and row of the period of a kind that ends on a day, and of that day."""
        return [one for period in (kind, "instant") for one in self._found.get((period, end), {}).items()]

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """A flow in the quarters that end up to a year before a day."""
        least, most = LATELY
        quarters = [day for kind, day in self._found if kind == "quarterly" and least <= (end - day).days <= most]
        found = (self._found["quarterly", day].get(metric) for day in sorted(quarters))
        return [float(row["value"]) for row in found if row is not None]

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """The nearest of the days, so many days before, with which a quarter ends of which anything is known."""
        ends = [day for kind, day in self._found if kind == "quarterly"]
        return next(iter(nearest_first(end, ends, distance)), None)


def _rank(row: FactRow) -> tuple[bool, str, str, str, float, str]:
    """Reported before derived, then the last filed; the same period may be given two first days."""
    start, value = str(row["start"]), float(row["value"])
    return not row["derived"], row["filed"], row["accession"], start, value, row["tag"]


@lru_cache(maxsize=2**14)  # of a company's facts some thousand share a few dozen periods
def _period(start: str | None, end: str) -> tuple[str, date]:
    """Kind and last day of a row's period."""
    last = date.fromisoformat(end)
    return kind_of(None if start is None else date.fromisoformat(start), last), last


def segment_changes(rows: Sequence[SegmentRow], facts: VisibleFacts, end: date, prior_end: date) -> list[SegmentChange]:
    """The largest changes of the segments of the first axis that explains the change of revenue; no more than five.

    That is an axis with the same segments in both quarters that adds up to revenue in both.
    """
    parts = [_breakdowns(rows, day) for day in (end, prior_end)]
    revenues = [facts.figures(day, "quarterly").get("revenue") for day in (end, prior_end)]
    for axis in AXES:
        now, before = (breakdown.get(axis, {}) for breakdown in parts)
        if now and now.keys() == before.keys() and _whole(now, revenues[0]) and _whole(before, revenues[1]):
            changes = {name: now[name] - before[name] for name in now if now[name] != before[name]}
            largest = sorted(changes, key=lambda name: (-abs(changes[name]), name))[:MOST_SEGMENTS]
            return [SegmentChange(name, axis, changes[name]) for name in largest]
    return []


def _whole(parts: Breakdown, revenue: float | None) -> bool:
    return revenue is not None and abs(math.fsum(parts.values()) - revenue) <= SEGMENT_GAP * abs(revenue)


def _breakdowns(rows: Sequence[SegmentRow], end: date) -> dict[str, Breakdown]:
    """Revenue of the quarter that ends on a day by axis and segment, as the last filing breaks it down."""
    found: dict[str, dict[tuple[str, str, str], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        day = date.fromisoformat(row["end"])
        if day == end and kind_of(date.fromisoformat(row["start"]), day) == "quarterly":
            found[row["axis"]][row["filed"], row["accession"], row["start"]][row["segment"]] = float(row["value"])
    return {axis: filings[max(filings)] for axis, filings in found.items()}
