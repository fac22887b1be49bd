"""Figures of the second derivation from what an episode may see: the rows of its `filing_facts`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache

from finskillbench.domains.fundamental.inputs import FactRow, SegmentRow
from finskillbench.domains.fundamental.second.answers import Figures, SegmentChange
from finskillbench.domains.fundamental.second.definitions import (
    AXES,
    LATELY,
    MOST_SEGMENTS,
    SEGMENT_GAP,
    Kind,
    kind_of,
    nearest_first,
)

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
