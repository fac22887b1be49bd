"""Facts panel by company for the checks, and the check of the segments panel."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import product
from typing import Any, NamedTuple

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.rederive.definitions import AXES, SEGMENT_GAP
from finskillbench.domains.fundamental.rederive.identities import Restated, restatements_of
from finskillbench.episode import Episode
from finskillbench.findings import Findings

_OPERAND = re.compile(r"(?:^| ([+-]) )(\S+) (\w+) (?:(\d{4}-\d\d-\d\d)\.\.)?(\d{4}-\d\d-\d\d)")

Period = tuple[str, date | None, date]
"""Metric, first and last day."""


class PanelRow(NamedTuple):
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
        return self.metric, self.start, self.end

    @property
    def where(self) -> str:
        return f"{self.metric} {self.start or ''}..{self.end} {self.filed}"


class _Operand(NamedTuple):
    sign: int
    accession: str
    period: Period


def parse_operands(parents: str) -> list[_Operand]:
    """Parse the operands in a text of parents; ValueError if it is malformed."""
    found, place = list[_Operand](), 0
    for match in _OPERAND.finditer(parents):
        if match.start() != place:
            break
        sign, accession, metric, start, end = match.groups()
        first = None if start is None else date.fromisoformat(start)
        found.append(_Operand(-1 if sign == "-" else 1, accession, (metric, first, date.fromisoformat(end))))
        place = match.end()
    if place != len(parents) or not found:
        raise ValueError(f"parents {parents[:60]!r} cannot be read")
    return found


class CompanyRows:
    """Figures of one company: stated or summed, and quarters derived as differences.

    filed, differences : by period, in order of filing. sums : with their operands. days : filing date by accession.
    """

    def __init__(self, symbol: str, rows: Iterable[PanelRow]) -> None:
        self.symbol = symbol
        self.filed: dict[Period, list[PanelRow]] = defaultdict(list)
        self.differences: dict[Period, list[PanelRow]] = defaultdict(list)
        self.sums: list[tuple[PanelRow, list[_Operand]]] = []
        self.days: dict[str, date] = {}
        self._restated: dict[str, Restated] = {}
        for row in sorted(rows, key=lambda row: row.filed):
            operands = parse_operands(row.parents) if row.derived else []
            if operands and all(term.period[0] == row.metric for term in operands):
                self.differences[row.period].append(row)
                continue
            self.filed[row.period].append(row)
            self.days[row.accession] = row.filed
            if operands:
                self.sums.append((row, operands))

    def restated(self, metric: str) -> Restated:
        if metric not in self._restated:
            versions = ((start, end, rows) for (name, start, end), rows in self.filed.items() if name == metric)
            self._restated[metric] = restatements_of(versions)
        return self._restated[metric]

    def known_on(self, period: Period, day: date) -> PanelRow | None:
        return current(self.filed.get(period, ()), day)


def current(rows: Sequence[PanelRow], day: date) -> PanelRow | None:
    """Return the last row filed up to a day; rows are in order of filing."""
    place = bisect_right(rows, day, key=lambda row: row.filed)
    return rows[place - 1] if place else None


def unchanged_since(rows: Sequence[PanelRow], row: PanelRow) -> date:
    """Return the day since which the value of a row has not changed."""
    day = row.filed
    for other in reversed(rows[: rows.index(row)]):
        if other.value != row.value:
            break
        day = other.filed
    return day


def by_company(facts: pl.DataFrame, findings: Findings) -> Iterator[CompanyRows]:
    """Yield the rows of each company; report a company whose rows cannot be read."""
    fields = facts.drop_nulls(["symbol", "metric", "end", "filed", "value"]).select("symbol", *PanelRow._fields)
    found: dict[str, list[PanelRow]] = defaultdict(list)
    for symbol, *row in fields.iter_rows():
        found[symbol].append(PanelRow(*row))
    for symbol, rows in found.items():
        with examining(symbol, findings):
            yield CompanyRows(symbol, rows)


_SHOWN = 10
"""Panel rows listed by name; the rest are counted."""
_NAMED_BY = ("symbol", "metric", "axis", "start", "end", "filed", "accession")


def period_end(episode: Episode) -> date:
    """Return the last day of an episode's period; KeyError or ValueError if it is absent or invalid."""
    field = "current_period_end" if episode.sub_task == "driver_decomposition" else "period_end"
    return date.fromisoformat(episode.input[field])


def fail_rows(frame: pl.DataFrame, message: str, findings: Findings) -> None:
    add_rows(frame, message, findings.fail)


def add_rows(frame: pl.DataFrame, message: str, add: Callable[[object, str], None]) -> None:
    """Add a finding for each of the first rows, and one with their total number."""
    names = [name for name in _NAMED_BY if name in frame.columns]
    for row in frame.head(_SHOWN).select(names).iter_rows():
        add(" ".join(str(value) for value in row if value is not None), message)
    if frame.height > _SHOWN:
        add(message.split(":")[0], f"{frame.height} rows in all: {message}")


_SAME = 1e-9
_Filed = tuple[date, date, date, dict[str, float]]
"""First day, last day, filing date, and revenue by member."""


def check_segments(subject: Subject, findings: Findings) -> None:
    """Check that the members of each breakdown are on one axis and add up to the revenue known at filing."""
    panels = subject.panels(findings)
    if panels is None:
        return
    table = panels.segments
    fail_rows(table.filter(~pl.col("axis").is_in(AXES)), "segments: unknown axis", findings)
    fail_rows(table.filter(pl.col("segment").fill_null("").str.strip_chars() == ""), "segments: has no name", findings)
    key = ["symbol", "axis", "start", "end", "accession"]
    twice = table.filter(pl.struct(*key, "segment").is_duplicated())
    fail_rows(twice, "segments: duplicate member", findings)
    by_symbol = {company.symbol: company for company in by_company(panels.facts, Findings())}
    for symbol, axis, start, end, accession, filed, members, total in (
        table.group_by(*key, maintain_order=True)
        .agg(pl.col("filed").first(), members=pl.len(), total=pl.col("value").sum())
        .select(*key, "filed", "members", "total")
        .iter_rows()
    ):
        where = f"{symbol} {axis} {start}..{end} {accession}"
        findings.expect(members > 1, where, "has one member only")
        company = by_symbol.get(symbol)
        period = ("revenue", start, end)
        known = None if company is None else company.known_on(period, filed)
        if company is not None and known is None:
            known = current(company.differences.get(period, ()), filed)
        if known is None:
            findings.add("without_total")
            continue
        gap = abs(total - known.value)
        findings.expect(
            gap <= SEGMENT_GAP * abs(known.value) + _SAME,
            where,
            f"its {members} members sum to {total:.12g}, revenue is {known.value:.12g}",
        )
        findings.add("breakdowns")
        findings.add("to_rounding", int(gap <= 1e-5 * abs(known.value)))
    _check_derived(table, findings)
    findings.figures["axes"] = dict(sorted(Counter(table["axis"]).items()))


def _check_derived(table: pl.DataFrame, findings: Findings) -> None:
    by_company: dict[tuple[str, str], list[_Filed]] = defaultdict(list)
    derived: list[tuple[str, str, date, date, date, dict[str, float]]] = []
    grouped: Mapping[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    columns = ("symbol", "axis", "start", "end", "filed", "accession", "derived", "segment", "value")
    for *source, name, value in table.select(columns).drop_nulls().iter_rows():
        grouped[tuple(source)][name] = value
    for (symbol, axis, start, end, filed, _, computed), members in grouped.items():
        if computed:
            derived.append((symbol, axis, start, end, filed, members))
        else:
            by_company[symbol, axis].append((start, end, filed, members))
    for symbol, axis, start, end, filed, members in derived:
        left = [
            {name: whole[name] - less[name] for name in members}
            for whole, less in _parents(by_company[symbol, axis], start, end, filed)
            if members.keys() <= whole.keys() and members.keys() <= less.keys()
        ]
        if not left:  # a parent did not add up, or names its members differently
            findings.add("derived_without_parents")
            continue
        agrees = any(
            all(abs(parts[name] - value) <= _SAME * max(1.0, abs(value)) + 0.5 for name, value in members.items())
            for parts in left
        )
        findings.expect(agrees, f"{symbol} {axis} {start}..{end} {filed}", "is not the difference of its parents")
        findings.add("derived")


def _parents(
    filed: list[_Filed], start: date, end: date, day: date
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Yield pairs of known breakdowns whose difference is a quarter: years to date, or a half and a quarter."""
    known = [one for one in filed if one[2] <= day]
    for (first, stop, on, whole), (begin, until, since, less) in product(known, repeat=2):
        years_to_date = first == begin and stop == end and until == start - timedelta(days=1)
        half = first == start and stop == until and begin == end + timedelta(days=1) and on == since
        if years_to_date or half:
            yield whole, less
