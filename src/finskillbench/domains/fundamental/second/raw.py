"""Figures of the second derivation from the raw files: rows of EDGAR's company facts.

Plain Python, with its own choice of elements; what each filing gives under them is kept. A quarter is looked up when it
is asked for, and is a difference where filers report only the year to date on one basis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from finskillbench.domains.fundamental.second.answers import Figures, Value
from finskillbench.domains.fundamental.second.basis import Restated, recast, restatements_of
from finskillbench.domains.fundamental.second.choice import Period, filings
from finskillbench.domains.fundamental.second.concepts import CONCEPTS, NOT_NEGATIVE, Concept
from finskillbench.domains.fundamental.second.definitions import (
    LATELY,
    QUARTER_APART,
    SHORTER,
    Kind,
    kind_of,
    nearest_first,
)
from finskillbench.domains.fundamental.second.identities import Fault, faults, torn
from finskillbench.domains.fundamental.second.stated import FiledFigure, stated


class RawFacts:
    """One company's facts by metric and period, each with every figure that a filing gave.

    Parameters
    ----------
    rows : mappings with taxonomy, tag, unit, start (None for an instant), end, value, accession, form and filed.
    concepts : metric to how it is read.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], concepts: Mapping[str, Concept] = CONCEPTS) -> None:
        self.concepts = concepts
        self.versions: dict[str, dict[Period, list[FiledFigure]]] = {}
        self.restated: dict[str, Restated] = {}
        self.starts: dict[str, dict[date, set[date]]] = {}
        self.ends: dict[str, dict[date, set[date]]] = {}
        self._days: dict[date, RawDay] = {}
        for metric, figures in stated(filings(rows), concepts).items():
            by_period: dict[Period, list[FiledFigure]] = {}
            for (period, _), figure in figures.items():
                by_period.setdefault(period, []).append(figure)
            self.versions[metric] = {period: _versions(filed) for period, filed in by_period.items()}
            told = self.versions[metric].items()
            self.restated[metric] = restatements_of((start, end, filed) for (start, end), filed in told)
            starts, ends = self.starts.setdefault(metric, {}), self.ends.setdefault(metric, {})
            for start, end in by_period:
                if start is not None:
                    starts.setdefault(end, set()).add(start)
                    ends.setdefault(start, set()).add(end)
        self.flows = [metric for metric in self.versions if not concepts[metric].instant]
        self.flow_ends = {end for metric in self.flows for end in self.starts[metric]}

    def on(self, day: date) -> RawDay:
        """The facts as they were public on a day; a day that is asked for again keeps what it has looked up."""
        if day not in self._days:
            self._days[day] = RawDay(self, day)
        return self._days[day]


@dataclass(frozen=True, slots=True)
class RawDay:
    """One company's facts as they were public on one day; a `Source`."""

    facts: RawFacts
    day: date
    # Each figure is asked for some five times: by the labels of three subtasks and by the identities.
    _found: dict[tuple[str, date, Kind], FiledFigure | None] = field(default_factory=dict, repr=False, compare=False)

    def figures(self, end: date, kind: Kind) -> Figures:
        """Every figure of the period of a kind that ends on a day; None where no filing gives it."""
        return {metric: self.figure(metric, end, kind) for metric in self.facts.versions}

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        """Under which element each of those figures stands, of those that are known."""
        told = {metric: self.told(metric, end, kind) for metric in self.facts.versions}
        return {metric: one.tag for metric, one in told.items() if one is not None}

    def figure(self, metric: str, end: date, kind: Kind) -> Value:
        """One figure: a flow as stated, else a quarter by subtraction, or a balance."""
        found = self.told(metric, end, kind)
        return None if found is None else found.value

    def told(self, metric: str, end: date, kind: Kind) -> FiledFigure | None:
        """One figure with where it comes from."""
        key = (metric, end, kind)
        if key not in self._found:
            self._found[key] = self._looked_up(metric, end, kind)
        return self._found[key]

    def _looked_up(self, metric: str, end: date, kind: Kind) -> FiledFigure | None:
        concept = self.facts.concepts[metric]
        if concept.instant:
            return self._known(metric, (None, end), self.day)
        starts = self.facts.starts[metric].get(end, ())
        as_stated = [
            (known.filed, start, known)
            for start in starts
            if kind_of(start, end) == kind and (known := self._known(metric, (start, end), self.day)) is not None
        ]
        if as_stated:
            return max(as_stated, key=lambda one: one[:2])[2]
        if kind != "quarterly" or not concept.summed:
            return None
        least, most, _ = QUARTER_APART
        left: list[tuple[date, date, FiledFigure]] = []
        for start in starts:
            shorter = SHORTER.get(kind_of(start, end))
            for stop in self.facts.ends[metric][start] if shorter else ():
                if kind_of(start, stop) == shorter and least <= (end - stop).days <= most:
                    made = self._difference(metric, (start, end), (start, stop))
                    if made is not None:
                        left.append((made.filed, stop, made))
        return max(left, key=lambda one: one[:2])[2] if left else None

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """A flow in the quarters that end up to a year before a day."""
        least, most = LATELY
        ends = [day for day in self.facts.starts[metric] if least <= (end - day).days <= most]
        known = [self.figure(metric, day, "quarterly") for day in sorted(ends)]
        return [value for value in known if value is not None]

    def faults(self, periods: Iterable[tuple[date, Kind]]) -> Iterator[Fault]:
        """The identities that the statements of some periods break."""
        listed = list(periods)
        yield from faults(self, listed)
        for end, kind in listed:
            for metric, concept in self.facts.concepts.items() if kind == "quarterly" else ():
                if concept.summed and not concept.instant and not concept.helper:
                    yield from self._torn(metric, end)

    def _torn(self, metric: str, end: date) -> Iterator[Fault]:
        """A quarter that a filing states, where the year to date of that filing leaves another."""
        quarter = self.told(metric, end, "quarterly")
        if quarter is None or not quarter.stated:
            return
        for start in self.facts.starts[metric].get(end, ()):
            shorter = SHORTER.get(kind_of(start, end))
            whole = self._known(metric, (start, end), self.day)
            if shorter is None or whole is None or whole.accession != quarter.accession:
                continue
            least, most, _ = QUARTER_APART
            for stop in self.facts.ends[metric][start]:
                part = self._known(metric, (start, stop), self.day)
                near = kind_of(start, stop) == shorter and least <= (end - stop).days <= most
                if not near or part is None or part.tag != whole.tag or quarter.tag != whole.tag:
                    continue
                one_basis = not recast(self.facts.restated[metric], whole.accession, start, end)
                if one_basis and torn(quarter.value, whole.value - part.value, whole.value):
                    left = whole.value - part.value
                    yield Fault("quarters", f"{metric} to {end} is {quarter.value:.12g}, the year leaves {left:.12g}")

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """The nearest of the days that end a quarter, so many days before, of which any flow is known."""
        for other in nearest_first(end, self.facts.flow_ends, distance):
            if any(self.figure(metric, other, "quarterly") is not None for metric in self.facts.flows):
                return other
        return None

    def _difference(self, metric: str, longer: Period, shorter: Period) -> FiledFigure | None:
        """A year to date less a shorter one, filed on the day on which it was last made.

        Made when both are first known under one element, and again when both have been restated since. A filing that
        recasts the year before tells another year than what was filed for its parts until then; an expense or a
        revenue below zero shows the same.
        """
        versions = self.facts.versions[metric]
        filed = {figure.filed for period in (longer, shorter) for figure in versions.get(period, ())}
        made: FiledFigure | None = None
        for day in sorted(day for day in filed if day <= self.day):
            whole, part = self._known(metric, longer, day), self._known(metric, shorter, day)
            if whole is None or part is None or part.tag != whole.tag:
                continue
            if part.new < whole.new and recast(self.facts.restated[metric], whole.accession, *longer):
                continue
            value = whole.value - part.value
            if value < 0 and (metric == "revenue" or metric in NOT_NEGATIVE):
                continue
            if made is None or min(whole.new, part.new) > made.filed:
                made = replace(whole, filed=day, value=value, stated=False)
        return made

    def _known(self, metric: str, period: Period, day: date) -> FiledFigure | None:
        """The last figure of a period that was filed by a day."""
        found = None
        for figure in self.facts.versions[metric].get(period, ()):
            if figure.filed > day:
                break
            found = figure
        return found


def _versions(figures: Iterable[FiledFigure]) -> list[FiledFigure]:
    """What is new, its value or its element, in order of filing: of a day the first element and the last filing.

    A neighbouring element is no restatement of a better one.
    """
    found: list[FiledFigure] = []
    best, day = 10**6, date.min
    order = sorted(figures, key=lambda figure: figure.accession, reverse=True)
    for figure in sorted(order, key=lambda figure: (figure.filed, figure.rank)):
        if figure.filed == day:
            continue
        day = figure.filed
        counts = figure.rank <= best or not figure.weak
        if counts and (not found or found[-1].value != figure.value):
            found.append(figure)
        elif counts and figure.tag != found[-1].tag:
            found.append(replace(figure, new=found[-1].new))
        best = min(best, figure.rank)
    return found
