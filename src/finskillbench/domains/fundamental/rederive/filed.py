"""Figures of a company as filed, by concept, with every version."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from itertools import pairwise, product, starmap
from typing import Any, NamedTuple

from finskillbench.domains.fundamental.rederive.definitions import QUARTER_APART, SHORTER, YEAR_APART, Kind, kind_of
from finskillbench.domains.fundamental.rederive.identities import differs_beyond_rounding
from finskillbench.sums import exact_sum

Span = tuple[date | None, date]

_MEZZANINE = re.compile(
    r"(TemporaryEquity|Redeemable)\w*(CarryingAmount|FairValue|RedemptionValue|Stock)\w*|OtherMinorityInterests"
)
_WHOLE_MEZZANINE = re.compile(r"TemporaryEquityCarryingAmountIncluding\w*")
_ADDED_UP = re.compile(r"RedeemableNoncontrollingInterestEquity(Common|Preferred|Other)\w*")
_NONCONTROLLING = re.compile(r"RedeemableNoncontrollingInterest\w*|OtherMinorityInterests")


class FiledRow(NamedTuple):
    """Figure of a filing; `tag` without taxonomy."""

    tag: str
    start: date | None
    end: date
    filed: date
    accession: str
    value: float


class AsFiled:
    """Figures of one company by concept and version, from the fields of `FiledRow`s; an unchanged repetition is no
    version.
    """

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._found: dict[str, dict[Span, list[FiledRow]]] = defaultdict(lambda: defaultdict(list))
        days: dict[date, date] = {}  # rows repeat days and accession numbers: share one object of each
        filings: dict[str, str] = {}
        for row in sorted(starmap(FiledRow, rows), key=lambda row: (row.filed, row.accession)):
            versions = self._found[row.tag][row.start, row.end]
            if not versions or versions[-1].value != row.value:
                start = None if row.start is None else days.setdefault(row.start, row.start)
                end, filed = (days.setdefault(day, day) for day in (row.end, row.filed))
                accession = filings.setdefault(row.accession, row.accession)
                versions.append(FiledRow(row.tag, start, end, filed, accession, row.value))
        self._ends: dict[tuple[str, date], list[date]] = defaultdict(list)
        for tag, spans in self._found.items():
            for start, end in spans:
                if start is not None:
                    self._ends[tag, end].append(start)
        self._names: dict[str, tuple[str, ...]] = {}

    def tags(self, names: str) -> tuple[str, ...]:
        if names not in self._names:
            pattern = re.compile(names)
            self._names[names] = tuple(sorted(tag for tag in self._found if pattern.fullmatch(tag)))
        return self._names[names]

    def versions(self, tag: str, span: Span) -> list[FiledRow]:
        """Return the versions of a period under a concept, in order of filing."""
        return self._found[tag][span] if tag in self._found and span in self._found[tag] else []

    def of(self, tag: str, end: date, kind: Kind, day: date) -> FiledRow | None:
        """Return the last figure by a day of a concept at `end`, or of the period of a kind ending then."""
        instant = self._last(tag, (None, end), day)
        known = self.stated(tag, end, kind, day) if instant is None else [instant]
        if known or kind != "quarterly":
            return max(known, key=lambda row: row.filed, default=None)
        return self.left(tag, end, day)

    def left(self, tag: str, end: date, day: date) -> FiledRow | None:
        """Derive a quarter from two year-to-date figures on one basis, as last filed by a day."""
        least, most, _ = QUARTER_APART
        for start in self._ends.get((tag, end), ()):
            whole = self._last(tag, (start, end), day)
            shorter = SHORTER.get(kind_of(start, end))
            for other in self._found[tag] if whole is not None and shorter else ():
                if other[0] == start and kind_of(*other) == shorter and least <= (end - other[1]).days <= most:
                    part = self._last(tag, other, day)
                    if whole is None or part is None or (part.filed < whole.filed and self._recasts(whole)):
                        continue
                    return whole._replace(value=whole.value - part.value)
        return None

    def _recasts(self, row: FiledRow) -> bool:
        """Return True if the filing of a period restates it, or the same period of the year before."""
        least, most, _ = YEAR_APART
        for (start, end), versions in self._found[row.tag].items():
            if (end == row.end or least <= (row.end - end).days <= most) and kind_of(start, end) == kind_of(
                row.start, row.end
            ):
                for before, after in pairwise(versions):
                    if after.accession == row.accession and differs_beyond_rounding(after.value, before.value):
                        return True
        return False

    def stated(self, tag: str, end: date, kind: Kind, day: date) -> list[FiledRow]:
        """Return the last figures by a day of a concept for periods of exactly that kind."""
        spans = [(start, end) for start in self._ends.get((tag, end), ()) if kind_of(start, end) == kind]
        return [row for span in spans if (row := self._last(tag, span, day)) is not None]

    def values(self, tag: str, end: date, kind: Kind, day: date) -> set[float]:
        """Return all values of a concept and period by a day: each version, each difference of two."""
        rows = list(self.versions(tag, (None, end)))
        found = set[float]()
        least, most, _ = QUARTER_APART
        for start in self._ends.get((tag, end), ()):
            longer = [row for row in self.versions(tag, (start, end)) if row.filed <= day]
            if kind_of(start, end) == kind:
                rows += longer
            shorter = SHORTER.get(kind_of(start, end)) if kind == "quarterly" else None
            for other in self._found[tag] if shorter else ():
                if other[0] == start and kind_of(*other) == shorter and least <= (end - other[1]).days <= most:
                    parts = [row for row in self.versions(tag, other) if row.filed <= day]
                    found |= {whole.value - part.value for whole, part in product(longer, parts)}
        return found | {row.value for row in rows if row.filed <= day}

    def _last(self, tag: str, span: Span, day: date) -> FiledRow | None:
        return next((row for row in reversed(self.versions(tag, span)) if row.filed <= day), None)

    def mezzanine(self, end: date, day: date) -> list[float]:
        """Return possible values of temporary equity and redeemable interests: a total, or its parts added up."""
        found = {
            tag: row.value
            for tag in self.tags(_MEZZANINE.pattern)
            if (row := self.of(tag, end, "quarterly", day)) is not None
        }
        whole = [value for tag, value in found.items() if _WHOLE_MEZZANINE.fullmatch(tag)]
        if whole:
            return whole
        added_up = exact_sum(value for tag, value in found.items() if _ADDED_UP.fullmatch(tag))
        shared = {tag: value for tag, value in found.items() if _NONCONTROLLING.fullmatch(tag)}
        noncontrolling = {value for tag, value in shared.items() if not _ADDED_UP.fullmatch(tag)} or {added_up}
        temporary_equity = {value for tag, value in found.items() if tag not in shared} or {0.0}
        return sorted(one + other for one, other in product(temporary_equity, noncontrolling)) if found else []
