"""Figures of the second derivation from the raw files: rows of EDGAR's company facts.

Plain Python. The table of metrics says which tags are which metric; what each filing gives under them is kept. A
quarter is looked up when it is asked for, and is a difference where filers report only the year to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from finskillbench.domains.fundamental.second.answers import Figures, Value
from finskillbench.domains.fundamental.second.definitions import QUARTER_APART, SHORTER, Kind, kind_of, nearest_first
from finskillbench.domains.fundamental.second.stated import (
    COMPUTED,
    FiledFigure,
    Period,
    computed,
    in_units,
    stated,
    tagged,
)


class RawFacts:
    """One company's facts by metric and period, each with every figure that a filing gave.

    Parameters
    ----------
    rows : mappings with taxonomy, tag, unit, start (None for an instant), end, value, accession, form and filed.
    metrics : canonical metric to its entry of the table of metrics.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], metrics: Mapping[str, Any]) -> None:
        self.metrics = metrics
        by_tag = tagged(rows)
        filings = in_units({metric: stated(by_tag, entry) for metric, entry in metrics.items()}, metrics)
        self.versions: dict[str, dict[Period, list[FiledFigure]]] = {}
        self.starts: dict[str, dict[date, set[date]]] = {}
        self.ends: dict[str, dict[date, set[date]]] = {}
        for metric, entry in metrics.items():
            if entry.get("part"):
                continue
            figures = filings[metric]
            if "fallback" in entry:
                figures = figures | computed(figures, filings, entry["fallback"])
            best: dict[str, int] = {}
            for (_, accession), figure in figures.items():
                best[accession] = min(best.get(accession, COMPUTED), figure.rank)
            by_period: dict[Period, list[FiledFigure]] = {}
            for (period, _), figure in figures.items():
                by_period.setdefault(period, []).append(figure)
            self.versions[metric] = {period: _versions(filed, best) for period, filed in by_period.items()}
            starts, ends = self.starts.setdefault(metric, {}), self.ends.setdefault(metric, {})
            for start, end in by_period:
                if start is not None:
                    starts.setdefault(end, set()).add(start)
                    ends.setdefault(start, set()).add(end)

    def on(self, day: date) -> RawDay:
        """The facts as they were public on a day."""
        return RawDay(self, day)


@dataclass(frozen=True, slots=True)
class RawDay:
    """One company's facts as they were public on one day; a `Source`."""

    facts: RawFacts
    day: date

    def figures(self, end: date, kind: Kind) -> Figures:
        """Every figure of the period of a kind that ends on a day; None where no filing gives it."""
        return {metric: self.figure(metric, end, kind) for metric in self.facts.versions}

    def figure(self, metric: str, end: date, kind: Kind) -> Value:
        """One figure: a flow as stated, else a quarter by subtraction, or a balance."""
        if self.facts.metrics[metric]["kind"] != "flow":
            known = self._known(metric, (None, end), self.day)
            return None if known is None else known.value
        starts = self.facts.starts[metric].get(end, ())
        as_stated = [
            (known.new, start, known.value)
            for start in starts
            if kind_of(start, end) == kind and (known := self._known(metric, (start, end), self.day)) is not None
        ]
        if as_stated:
            return max(as_stated)[2]
        if kind != "quarterly" or not self.facts.metrics[metric].get("additive", True):
            return None
        least, most, _ = QUARTER_APART
        left: list[tuple[date, date, float]] = []
        for start in starts:
            shorter = SHORTER.get(kind_of(start, end))
            for stop in self.facts.ends[metric][start] if shorter else ():
                if kind_of(start, stop) == shorter and least <= (end - stop).days <= most:
                    made = self._difference(metric, (start, end), (start, stop))
                    if made is not None:
                        left.append((made[0], stop, made[1]))
        return max(left)[2] if left else None

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """The nearest of the days that end a quarter, so many days before, of which any flow is known."""
        flows = [metric for metric in self.facts.versions if self.facts.metrics[metric]["kind"] == "flow"]
        ends = {other for metric in flows for other in self.facts.starts[metric]}
        for other in nearest_first(end, ends, distance):
            if any(self.figure(metric, other, "quarterly") is not None for metric in flows):
                return other
        return None

    def _difference(self, metric: str, longer: Period, shorter: Period) -> tuple[date, float] | None:
        """A year to date less a shorter one: the day on which it was last made, and what it left.

        Made when both are first known under one tag, and again when both have been restated since.
        """
        versions = self.facts.versions[metric]
        filed = {figure.filed for period in (longer, shorter) for figure in versions.get(period, ())}
        made: tuple[date, float] | None = None
        for day in sorted(day for day in filed if day <= self.day):
            whole, part = self._known(metric, longer, day), self._known(metric, shorter, day)
            if whole is None or part is None or part.rank != whole.rank:  # another tag may be another concept
                continue
            if made is None or min(whole.new, part.new) > made[0]:
                made = day, whole.value - part.value
        return made

    def _known(self, metric: str, period: Period, day: date) -> FiledFigure | None:
        """The last figure of a period that was filed by a day."""
        found = None
        for figure in self.facts.versions[metric].get(period, ()):
            if figure.filed > day:
                break
            found = figure
        return found


def _versions(figures: Iterable[FiledFigure], best_of_filing: Mapping[str, int]) -> list[FiledFigure]:
    """What counts and is new, in order of filing: of a day the first tag and the last filing.

    A lesser tag is no restatement of a better one if it is a weak one or its filing uses a better one elsewhere: it
    then is another concept. What is filed again under a better tag is no news, but goes by that tag from then on.
    """
    found: list[FiledFigure] = []
    best, day = COMPUTED, date.min
    order = sorted(figures, key=lambda figure: figure.accession, reverse=True)
    for figure in sorted(order, key=lambda figure: (figure.filed, figure.rank)):
        if figure.filed == day:
            continue
        day = figure.filed
        counts = figure.rank <= best or not (figure.weak or best_of_filing[figure.accession] < figure.rank)
        if counts and (not found or found[-1].value != figure.value):
            found.append(figure)
        elif counts and figure.rank < found[-1].rank:
            found.append(replace(figure, new=found[-1].new))
        best = min(best, figure.rank)
    return found
