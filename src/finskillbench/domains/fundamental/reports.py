"""Filings as the fundamental subtasks see them: a periodic report with what was public on its day, derived twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from finskillbench.domains.building import load_catalog
from finskillbench.domains.fundamental.second import RawBook
from finskillbench.engines.accounting.drivers import Segments, segments_at
from finskillbench.engines.accounting.periods import QUARTER_APART, YEAR_APART, Duration, duration_of, earlier
from finskillbench.engines.accounting.statements import Statement, ledger
from finskillbench.panels import Panels
from finskillbench.panels.filings.query import FactStore
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.instance import Instance
from finskillbench.sources.edgar.metrics import CANONICAL_TAGS

_PERIODIC = ("10-Q", "10-K", "20-F", "40-F")
"""Forms that an episode can be about; an amendment only adds to what is known of one."""
_AXES = {
    "product_segment": ("ProductOrServiceAxis", "StatementBusinessSegmentsAxis"),
    "geographic_segment": ("StatementGeographicalAxis",),
}


@dataclass(frozen=True, slots=True)
class Report:
    """A periodic report: what episodes are about, as of the day it was filed."""

    symbol: str
    accession: str
    form: str
    period_end: date
    filed: date

    @property
    def annual(self) -> bool:
        """Whether the report covers a year."""
        return self.form != "10-Q"


@dataclass(frozen=True, slots=True)
class Figures:
    """One derivation of what was public when a report was filed; metrics that are not known are absent or None.

    reported : the period of the report's form, its quarter or its year. quarter : the quarter that ends with it.
    before, year_before : the quarter before, and the same quarter a year earlier, with the days on which they end.
    """

    reported: Mapping[str, float | None]
    quarter: Mapping[str, float | None]
    before: Mapping[str, float | None]
    before_end: date | None
    year_before: Mapping[str, float | None]
    year_before_end: date | None


@dataclass(frozen=True, slots=True)
class Case:
    """A report with what was public on the day of its filing, from the panels and from the raw files.

    reported, quarter, before, year_before : see `Figures`, as the engines take them. segments, segments_before : the
    breakdowns of the quarter's revenue and of that of the quarter before. raw, raw_segments : the second derivation's.
    """

    report: Report
    reported: Statement
    quarter: Statement
    before: Statement
    year_before: Statement
    segments: Segments
    segments_before: Segments
    raw: Figures
    raw_segments: SegmentBook


def opened(panels: Panels, filings: FilingsData, rng: np.random.Generator, history: timedelta) -> Iterator[Case]:
    """The reports of every company with their figures, in a random order in which companies take turns.

    history : how long before the end of a report's period facts count.
    """
    store = FactStore(panels.facts, panels.filings, panels.segments)
    metrics = load_catalog("metrics.json")["metrics"]
    raw: dict[str, tuple[RawBook, SegmentBook]] = {}
    for report in _reports(panels.filings, set(store.symbols) & set(filings.companies), rng):
        symbol, end = report.symbol, report.period_end
        if symbol not in raw:
            facts = filings.companies[symbol].facts
            rows = facts.filter(pl.col("tag").is_in(CANONICAL_TAGS)).iter_rows(named=True)
            filed = dict(panels.filings.filter(pl.col("symbol") == symbol).select("accession", "filed").iter_rows())
            raw[symbol] = RawBook(rows, metrics), SegmentBook(filings.instances.get(symbol, ()), filed, metrics)
        visible = store.visible(symbol, report.filed, end - history)
        book = ledger(visible["facts"], symbol)
        ends = book.ends(Duration.QUARTERLY)
        before, year_before = earlier(end, ends, QUARTER_APART), earlier(end, ends, YEAR_APART)
        quarter, same_quarter = book.compared(end, year_before)
        yield Case(
            report,
            book.statement(end, duration_of(report.form)),
            quarter,
            book.statement(before, Duration.QUARTERLY),
            same_quarter,
            segments_at(visible["segments"], symbol, end),
            {} if before is None else segments_at(visible["segments"], symbol, before),
            _figures(raw[symbol][0], report),
            raw[symbol][1],
        )


def _figures(book: RawBook, report: Report) -> Figures:
    """The second derivation's figures of a report."""
    end, as_of = report.period_end, report.filed
    before, year_before = book.quarter_before(end, as_of), book.year_before(end, as_of)
    quarter, same_quarter = book.compared(end, year_before, as_of)
    return Figures(
        reported=book.year(end, as_of) if report.annual else book.quarter(end, as_of),
        quarter=quarter,
        before={} if before is None else book.quarter(before, as_of),
        before_end=before,
        year_before=same_quarter,
        year_before_end=year_before,
    )


def _reports(filings: pl.DataFrame, symbols: set[str], rng: np.random.Generator) -> list[Report]:
    """The first report of each period of each company, in a random order in which companies take turns."""
    first: dict[tuple[str, date], Report] = {}
    columns = filings.select("symbol", "accession", "form", "period_end", "filed")
    for row in columns.filter(pl.col("form").is_in(_PERIODIC)).drop_nulls().sort("filed", "accession").iter_rows():
        report = Report(*row)
        if report.symbol in symbols and report.filed > report.period_end:
            first.setdefault((report.symbol, report.period_end), report)
    reports = list(first.values())
    turns: Counter[str] = Counter()
    order: list[tuple[int, int, Report]] = []
    for place in rng.permutation(len(reports)):
        report = reports[place]
        order.append((turns[report.symbol], len(order), report))
        turns[report.symbol] += 1
    return [report for *_, report in sorted(order, key=lambda entry: entry[:2])]


class SegmentBook:
    """Revenue by member of an axis, straight from the XBRL instances, read as `RawBook` reads company facts."""

    def __init__(self, instances: Iterable[Instance], filed: Mapping[str, date], metrics: Mapping[str, Any]) -> None:
        ranks = {alias["tag"]: rank for rank, alias in enumerate(metrics["revenue"]["aliases"])}
        rows: list[dict[str, Any]] = []
        self._members: dict[tuple[str, str], set[str]] = {}
        for instance in instances:
            day = filed.get(instance.accession or "")
            for fact in instance.facts:
                tag = f"{fact.taxonomy}:{fact.tag}"
                if day is None or len(fact.dimensions) != 1 or tag not in ranks or fact.start is None:
                    continue
                (axis, member) = fact.dimensions[0]
                kind = next((name for name, axes in _AXES.items() if axis.split(":")[-1] in axes), None)
                if kind is None:
                    continue
                key = f"{axis}|{member}"
                self._members.setdefault((kind, _plain(member.split(":")[-1])), set()).add(key)
                rows.append(
                    {
                        "taxonomy": key,
                        "tag": tag,
                        "unit": fact.unit,
                        "start": fact.start,
                        "end": fact.end,
                        "value": fact.value,
                        "accession": instance.accession,
                        "form": "10-Q",
                        "filed": day,
                    }
                )
        keys = {row["taxonomy"] for row in rows}
        entries = {
            key: {"kind": "flow", "unit": "USD", "aliases": [{"tag": f"{key}:{tag}"} for tag in ranks]} for key in keys
        }
        self._book = RawBook(rows, entries)

    def changes(self, kind: str, segment: str, now: date, before: date, as_of: date) -> list[float]:
        """The change of revenue of each member of that name on an axis of that kind, from quarter to quarter.

        Countries are tagged by their codes: a name that no member has may be that of any country.
        """
        named = self._members.get((kind, _plain(segment)))
        countries = {
            key for (axis, _), keys in self._members.items() for key in keys if axis == kind and "|country:" in key
        }
        found: list[float] = []
        for key in sorted(countries if named is None else named):
            this, that = (self._book.quarter(end, as_of)[key] for end in (now, before))
            if this is not None and that is not None:
                found.append(this - that)
        return found


def _plain(name: str) -> str:
    """Letters and digits of a member's name or label, without what taxonomies append."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for suffix in ("member", "segment", "segments"):
        plain = plain.removesuffix(suffix) or plain
    return plain
