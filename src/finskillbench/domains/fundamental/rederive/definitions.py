"""Periods and limits of the conventions, and the facts that an episode may see."""

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
"""Longer period -> the one with the same start that ends a quarter earlier."""
QUARTER_APART = (70, 125, 91)
YEAR_APART = (350, 380, 365)
"""Least, greatest and usual days between ends of consecutive quarters, and of quarters a year apart."""
LATELY = (60, 400)
"""Days before a quarter's end within which preceding quarters are compared with it."""
FORMS = ("10-Q", "10-K", "20-F", "40-F")
"""Forms of episodes; a 10-Q covers a quarter, the others a year."""
AXES = ("product_segment", "geographic_segment")
SEGMENT_GAP = 0.01
"""Share of revenue by which the segments of an axis may differ from it."""
MOST_SEGMENTS = 5


class FigureSource(Protocol):
    """Figures of one company as public on one day."""

    def figures(self, end: date, kind: Kind) -> Figures:
        """Return flows of the period of a kind ending on a day, and the balance sheet of that day."""
        ...

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        """Return the known tags of those figures."""
        ...

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """Return a flow in the quarters that end up to a year before a day."""
        ...

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """Return the end of the quarter at a distance before a day; None if no such quarter is known."""
        ...


def comparable_quarters(source: FigureSource, end: date, prior_end: date | None) -> tuple[Figures, Figures]:
    """Return a quarter and an earlier one, the latter limited to figures under the same tag."""
    now = source.figures(end, "quarterly")
    if prior_end is None:
        return now, {}
    tags, prior_tags = source.tags(end, "quarterly"), source.tags(prior_end, "quarterly")
    before = source.figures(prior_end, "quarterly")
    return now, {name: value for name, value in before.items() if _same_tag(name, tags, prior_tags)}


def a_year_apart(source: FigureSource, end: date) -> tuple[Figures, Figures, date | None]:
    """Return a quarter, the same quarter a year before, and its last day; empty and None if unknown.

    Diluted shares are those of the fiscal years unless both quarters have them.
    """
    prior_end, shares = source.preceding(end, YEAR_APART), "diluted_shares"
    now, before = comparable_quarters(source, end, prior_end)
    if prior_end is None:
        return now, before, None
    if now.get(shares) is None or source.figures(prior_end, "quarterly").get(shares) is None:
        years = [source.figures(day, "annual").get(shares) for day in (end, prior_end)]
        if None not in years and _same_tag(shares, *(source.tags(day, "annual") for day in (end, prior_end))):
            now, before = {**now, shares: years[0]}, {**before, shares: years[1]}
    return now, before, prior_end


def _same_tag(name: str, tags: Mapping[str, str], prior_tags: Mapping[str, str]) -> bool:
    return name not in tags or name not in prior_tags or tags[name] == prior_tags[name]


@lru_cache(maxsize=2**14)  # a company's filings share a few hundred periods
def kind_of(start: date | None, end: date) -> str:
    """Return the class of a period by its length; "instant" without a first day."""
    if start is None:
        return "instant"
    days = (end - start).days + 1
    return next((kind for kind, (least, most) in LENGTHS.items() if least <= days <= most), "other")


def period_of(form: str) -> Kind:
    """Return the kind of period a form covers; ValueError for a form without episodes."""
    if form not in FORMS:
        raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
    return "quarterly" if form == "10-Q" else "annual"


def periods_of(sub_task: str, form: str, end: date, prior_end: date | None) -> list[tuple[date, Kind]]:
    """Return the periods behind a label: that of the form, or two quarters."""
    if sub_task == "normalization":
        return [(end, period_of(form))]
    return [(day, "quarterly") for day in (end, prior_end) if day is not None]


def nearest_first(end: date, days: Iterable[date], distance: tuple[int, int, int]) -> list[date]:
    """Return days at a distance before one, nearest to the usual distance first, the later of a tie."""
    least, most, usual = distance
    fitting = [day for day in days if least <= (end - day).days <= most]
    return sorted(fitting, key=lambda day: (abs((end - day).days - usual), (end - day).days))


Breakdown = Mapping[str, float]


class VisibleFacts:
    """Facts visible to an episode, by kind of period and last day; a `FigureSource`."""

    def __init__(self, rows: Sequence[FactRow]) -> None:
        found: dict[tuple[str, date], dict[str, FactRow]] = defaultdict(dict)
        for row in rows:
            figures, metric = found[_period(row["start"], row["end"])], row["metric"]
            if metric not in figures or _rank(row) > _rank(figures[metric]):
                figures[metric] = row
        self._found = dict(found)

    def figures(self, end: date, kind: Kind) -> Figures:
        return {metric: float(row["value"]) for metric, row in self._rows(end, kind)}

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        return {metric: row["tag"] for metric, row in self._rows(end, kind)}

    def row(self, metric: str, end: date, kind: Kind) -> FactRow | None:
        return dict(self._rows(end, kind)).get(metric)

    def _rows(self, end: date, kind: Kind) -> list[tuple[str, FactRow]]:
        return [one for period in (kind, "instant") for one in self._found.get((period, end), {}).items()]

    def quarters_before(self, metric: str, end: date) -> list[float]:
        least, most = LATELY
        quarters = [day for kind, day in self._found if kind == "quarterly" and least <= (end - day).days <= most]
        found = (self._found["quarterly", day].get(metric) for day in sorted(quarters))
        return [float(row["value"]) for row in found if row is not None]

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        ends = [day for kind, day in self._found if kind == "quarterly"]
        return next(iter(nearest_first(end, ends, distance)), None)


def _rank(row: FactRow) -> tuple[bool, str, str, str, float, str]:
    """Rank reported before derived, then by filing; a period may appear with two first days."""
    start, value = str(row["start"]), float(row["value"])
    return not row["derived"], row["filed"], row["accession"], start, value, row["tag"]


@lru_cache(maxsize=2**14)  # thousands of facts share a few dozen periods
def _period(start: str | None, end: str) -> tuple[str, date]:
    last = date.fromisoformat(end)
    return kind_of(None if start is None else date.fromisoformat(start), last), last


def segment_changes(rows: Sequence[SegmentRow], facts: VisibleFacts, end: date, prior_end: date) -> list[SegmentChange]:
    """Return the largest segment changes of the first axis that adds up to revenue, with equal segments, in both
    quarters.
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
    """Return revenue of the quarter ending on a day by axis and segment, from the latest filing."""
    found: dict[str, dict[tuple[str, str, str], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        day = date.fromisoformat(row["end"])
        if day == end and kind_of(date.fromisoformat(row["start"]), day) == "quarterly":
            found[row["axis"]][row["filed"], row["accession"], row["start"]][row["segment"]] = float(row["value"])
    return {axis: filings[max(filings)] for axis, filings in found.items()}
