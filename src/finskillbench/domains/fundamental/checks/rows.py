"""The facts panel read back by company, for the checks: rows as filed, and derived rows with the parents they name."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

import polars as pl

from finskillbench.domains.checks.examination import examining
from finskillbench.domains.fundamental.second.identities import Restated, restatements_of
from finskillbench.episode import Episode
from finskillbench.findings import Findings

_TERM = re.compile(r"(?:^| ([+-]) )(\S+) (\w+) (?:(\d{4}-\d\d-\d\d)\.\.)?(\d{4}-\d\d-\d\d)")

Period = tuple[str, date | None, date]
"""Metric, first and last day."""


class Row(NamedTuple):
    """A figure of one company."""

    metric: str
    start: date | None
    end: date
    filed: date
    value: float
    tag: str
    accession: str
    derived: bool
    parents: str

    @property
    def period(self) -> Period:
        """What the row is about."""
        return self.metric, self.start, self.end

    @property
    def where(self) -> str:
        """The row as a finding names it."""
        return f"{self.metric} {self.start or ''}..{self.end} {self.filed}"


class Term(NamedTuple):
    """One of the figures that a derived row says it comes from."""

    sign: int
    accession: str
    period: Period


def terms_of(parents: str) -> list[Term]:
    """The figures that a text of parents names; ValueError where it cannot be read."""
    found, place = list[Term](), 0
    for match in _TERM.finditer(parents):
        if match.start() != place:
            break
        sign, accession, metric, start, end = match.groups()
        first = None if start is None else date.fromisoformat(start)
        found.append(Term(-1 if sign == "-" else 1, accession, (metric, first, date.fromisoformat(end))))
        place = match.end()
    if place != len(parents) or not found:
        raise ValueError(f"parents {parents[:60]!r} cannot be read")
    return found


class Company:
    """The figures of one company: those that filings state or sum up, and the quarters that are differences.

    filed, differences : by period, in order of filing; sums : with their terms; days : on which each filing was filed.
    """

    def __init__(self, symbol: str, rows: Iterable[Row]) -> None:
        self.symbol = symbol
        self.filed: dict[Period, list[Row]] = defaultdict(list)
        self.differences: dict[Period, list[Row]] = defaultdict(list)
        self.sums: list[tuple[Row, list[Term]]] = []
        self.days: dict[str, date] = {}
        self._restated: dict[str, Restated] = {}
        for row in sorted(rows, key=lambda row: row.filed):
            terms = terms_of(row.parents) if row.derived else []
            if terms and all(term.period[0] == row.metric for term in terms):
                self.differences[row.period].append(row)
                continue
            self.filed[row.period].append(row)
            self.days[row.accession] = row.filed
            if terms:
                self.sums.append((row, terms))

    def restated(self, metric: str) -> Restated:
        """What filings restate of a metric."""
        if metric not in self._restated:
            told = ((start, end, rows) for (name, start, end), rows in self.filed.items() if name == metric)
            self._restated[metric] = restatements_of(told)
        return self._restated[metric]

    def on(self, period: Period, day: date) -> Row | None:
        """The figure of a period that filings had stated by a day."""
        return current(self.filed.get(period, ()), day)


def current(rows: Sequence[Row], day: date) -> Row | None:
    """The last of some rows, in order of filing, up to a day."""
    place = bisect_right(rows, day, key=lambda row: row.filed)
    return rows[place - 1] if place else None


def since(rows: Sequence[Row], row: Row) -> date:
    """The day on which the value of a row was first told without another in between."""
    day = row.filed
    for other in reversed(rows[: rows.index(row)]):
        if other.value != row.value:
            break
        day = other.filed
    return day


def companies(facts: pl.DataFrame, findings: Findings) -> Iterator[Company]:
    """Every company; one whose rows cannot be read is a finding."""
    fields = facts.drop_nulls(["symbol", "metric", "end", "filed", "value"]).select("symbol", *Row._fields)
    found: dict[str, list[Row]] = defaultdict(list)
    for symbol, *row in fields.iter_rows():
        found[symbol].append(Row(*row))
    for symbol, rows in found.items():
        with examining(symbol, findings):
            yield Company(symbol, rows)


_SHOWN = 10
"""Rows of a panel that are named before the rest are only counted."""
_NAMED_BY = ("symbol", "metric", "axis", "start", "end", "filed", "accession")


def period_end(episode: Episode) -> date:
    """Last day of the period that an episode is about; KeyError or ValueError if it does not say."""
    field = "current_period_end" if episode.sub_task == "driver_decomposition" else "period_end"
    return date.fromisoformat(episode.input[field])


def fail_rows(frame: pl.DataFrame, message: str, findings: Findings) -> None:
    """Add a defect for each row, as `add_rows` does."""
    add_rows(frame, message, findings.fail)


def add_rows(frame: pl.DataFrame, message: str, add: Callable[[object, str], None]) -> None:
    """Add a finding for each row, by company, subject and period; of many the first few and their number."""
    names = [name for name in _NAMED_BY if name in frame.columns]
    for row in frame.head(_SHOWN).select(names).iter_rows():
        add(" ".join(str(value) for value in row if value is not None), message)
    if frame.height > _SHOWN:
        add(message.split(":")[0], f"{frame.height} rows in all: {message}")
