"""Filings as the fundamental subtasks see them: a periodic report with what was public on its day, from both sides.

What the second derivation reads of each company, read from the raw files when it is asked for.

What the fundamental subtasks share: the catalog, the reports that episodes can be about, the pools drawn from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import numpy as np
import polars as pl

from finskillbench.domains.building import BuildContext, read_catalog
from finskillbench.domains.fundamental.objects.work import Said
from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.identities import LedgerSource
from finskillbench.domains.fundamental.rederive.segments import RawSegments
from finskillbench.domains.fundamental.rederive.witness import Witnesses
from finskillbench.engines.accounting.drivers import Segments, segments_at
from finskillbench.engines.accounting.periods import QUARTER_APART, YEAR_APART, Duration, duration_of, earlier
from finskillbench.engines.accounting.statements import Statement, ledger
from finskillbench.errors import InternalError
from finskillbench.panels import Panels
from finskillbench.panels.filings.query import FactStore, FiledStore
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.numerals import STATEMENT_TAGS

Value = TypeVar("Value")

_KEPT = 600
"""Companies whose figures are kept: the three subtasks ask for them in the same order, and one company's take a
megabyte. Where there are more, those of the others are read again for each subtask."""


class RawCompanies:
    """The figures and the breakdowns of revenue of companies by symbol, as `finskillbench...second` reads them."""

    def __init__(self, filings: FilingsData) -> None:
        self._filings = filings
        self.filed = _Kept(lambda symbol: AsFiled(filings.companies[symbol].facts.select(FiledRow._fields).iter_rows()))
        self.segments = _Kept(lambda symbol: RawSegments(filings.instances.get(symbol, ()), self._rows(symbol)))

    def _rows(self, symbol: str) -> list[dict[str, object]]:
        return self._filings.companies[symbol].facts.filter(pl.col("tag").is_in(STATEMENT_TAGS)).rows(named=True)


class _Kept(Generic[Value]):
    """Values by symbol, each made when it is asked for; the first ones are kept, and of the rest the last."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self._make = make
        self._first: dict[str, Value] = {}
        self._last: dict[str, Value] = {}

    def __getitem__(self, symbol: str) -> Value:
        if symbol in self._first:
            return self._first[symbol]
        if symbol not in self._last:
            self._last.clear()  # before the next is made: one of them is in memory at a time
            made = self._make(symbol)
            (self._first if len(self._first) < _KEPT else self._last)[symbol] = made
            return made
        return self._last[symbol]


_PERIODIC = ("10-Q", "10-K", "20-F", "40-F")
"""Forms that an episode can be about; an amendment only adds to what is known of one."""
_RARE = 0.1
"""Where a lesser share of the reports breaks revenue down these come first, so that a full pool misses none of them."""


@dataclass(frozen=True, slots=True)
class Report:
    """A periodic report: what episodes are about, as of the day it was filed.

    since : the end of the earliest period whose facts an episode is given.
    """

    symbol: str
    accession: str
    form: str
    period_end: date
    filed: date
    since: date

    @property
    def annual(self) -> bool:
        """Whether the report covers a year."""
        return self.form != "10-Q"


@dataclass(frozen=True, slots=True)
class Case:
    """A report with what was public on the day of its filing, from the panels and from the raw files.

    reported : the period of the report's form, its quarter or its year. quarter : the quarter that ends with it.
    before, year_before : the quarter before, and the same quarter a year earlier, without figures of another basis.
    segments, segments_before : revenue of the quarter and of the quarter before by axis and segment.
    said : what filings say of periods that end with these. source : the figures, as the independent derivation reads
    them. companies : the raw files that its witnesses read.
    """

    report: Report
    reported: Statement
    quarter: Statement
    before: Statement
    year_before: Statement
    segments: Segments
    segments_before: Segments
    said: Said
    source: LedgerSource
    companies: RawCompanies

    @property
    def witnesses(self) -> Witnesses:
        """What the company had filed by the day of the report."""
        return Witnesses(self.companies.filed[self.report.symbol], self.report.filed)

    @property
    def raw_segments(self) -> RawSegments:
        """The company's revenue by segment, as the second derivation reads it."""
        return self.companies.segments[self.report.symbol]


def opened(
    panels: Panels,
    filings: FilingsData,
    rng: np.random.Generator,
    history: timedelta,
    within: tuple[date, date] | None = None,
) -> Iterator[Case]:
    """The reports of every company with their figures, in a random order in which companies take turns.

    history : how long before the end of a report's period facts count. within : the first and the last filing day of
    the reports; None takes all.
    """
    store = FactStore(panels.tables.once("facts"), panels.filings, panels.segments)
    filed = FiledStore(panels.tables.once("filed"), panels.filings, panels.segments)
    companies = RawCompanies(filings)
    symbols = set(store.symbols) & set(filings.companies)
    for report in _reports(panels.filings, symbols, _broken_down(panels.segments), rng, history, within):
        symbol, end = report.symbol, report.period_end
        # An answer compares with the same quarter a year earlier; what ends before that day is of no figure in it.
        visible = store.visible(symbol, report.filed, max(report.since, end - timedelta(days=YEAR_APART[1])))
        figures = ledger(visible["facts"], symbol)
        ends = figures.ends(Duration.QUARTERLY)
        before = earlier(end, ends, QUARTER_APART)
        quarter, year_before = figures.compared(end, earlier(end, ends, YEAR_APART))
        year = [] if year_before.end is None else [year_before.end]
        source = LedgerSource.of(figures, end, [*year, *([] if before is None else [before])], year)
        yield Case(
            report,
            source.statements[duration_of(report.form), end],
            quarter,
            quarter.comparable(figures.statement(before, Duration.QUARTERLY)),
            year_before,
            segments_at(visible["segments"], symbol, end),
            {} if before is None else segments_at(visible["segments"], symbol, before),
            filed.said(symbol, report.filed, [day for day in (end, before, year_before.end) if day is not None]),
            source,
            companies,
        )


def _broken_down(segments: pl.DataFrame) -> set[tuple[str, date]]:
    """Companies and ends of the quarters of which revenue by segment is known, and of the quarter before too."""
    quarters = segments.filter(pl.col("duration") == Duration.QUARTERLY).select("symbol", "start", "end").unique()
    ends = set(quarters.select("symbol", "end").iter_rows())
    return {(symbol, end) for symbol, start, end in quarters.iter_rows() if (symbol, start - timedelta(1)) in ends}


def _reports(
    filings: pl.DataFrame,
    symbols: set[str],
    broken_down: set[tuple[str, date]],
    rng: np.random.Generator,
    history: timedelta,
    within: tuple[date, date] | None,
) -> list[Report]:
    """The first report of each period of each company, in a random order in which companies take turns."""
    first: dict[tuple[str, date], Report] = {}
    columns = filings.select("symbol", "accession", "form", "period_end", "filed")
    rows = columns.filter(pl.col("form").is_in(_PERIODIC)).drop_nulls().sort("filed", "accession").iter_rows()
    for symbol, accession, form, end, filed in rows:
        if symbol in symbols and filed > end:
            first.setdefault((symbol, end), Report(symbol, accession, form, end, filed, end - history))
    earliest, latest = within or (date.min, date.max)
    reports = [report for report in first.values() if earliest <= report.filed <= latest]
    turns: Counter[str] = Counter()
    order: list[tuple[bool, int, int, Report]] = []
    rare = sum((report.symbol, report.period_end) in broken_down for report in reports) < _RARE * len(reports)
    for place in rng.permutation(len(reports)):
        report = reports[int(place)]
        first_of_all = rare and (report.symbol, report.period_end) in broken_down
        order.append((not first_of_all, turns[report.symbol], len(order), report))
        turns[report.symbol] += 1
    return [report for *_, report in sorted(order, key=lambda entry: entry[:3])]


SKILL = "fundamental_analysis"
_POOL_PER_EPISODE = 20
"""Labels that are proved for each episode of an edition with fewer episodes than the catalog asks for."""


class _Catalog(TypedDict):
    """The configuration of the domain; its field `about` says what the others mean."""

    about: str
    episodes: dict[str, int]
    pool: dict[str, int]
    history_days: int
    least: dict[str, int]
    whole: dict[str, float]
    difficulty: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class FundamentalObjects:
    """What `prepare` hands to each subtask.

    cases : every report with its figures, in a random order in which companies take turns.
    entities : per company its CIK, its name in the facts, and its CIKs by the collection's lists of tickers.
    pools : per subtask, once it is built, what its episodes were drawn from and how often the two derivations agree.
    """

    catalog: _Catalog
    cases: Iterable[Case]
    entities: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    pools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


def prepare(context: BuildContext) -> FundamentalObjects:
    """The catalog and the reports, which are read when the first subtask asks for them and then kept."""
    catalog = msgspec.convert(read_catalog("finskillbench.domains.fundamental", "fundamental.json"), _Catalog)
    if context.episodes is not None:
        catalog["episodes"] = {name: context.most(count) for name, count in catalog["episodes"].items()}
        catalog["pool"] = dict.fromkeys(catalog["pool"], _POOL_PER_EPISODE * context.episodes)
    if context.filings is None:
        raise InternalError("fundamental analysis is prepared without the filings that its facts come from")
    history = timedelta(days=catalog["history_days"])
    cases = opened(context.panels, context.filings, context.generator(SKILL), history, context.filed)
    entities = {
        symbol: {"cik": one.cik, "entity": one.entity, "listed": list(context.filings.listed.get(symbol, ()))}
        for symbol, one in sorted(context.filings.filers.items())
    }
    return FundamentalObjects(catalog, _ReadOnce(cases), entities)


def parameters(objects: FundamentalObjects) -> dict[str, Any]:
    """What the manifest records of a build."""
    return {
        "fundamental": objects.catalog,
        "fundamental_pools": objects.pools,
        "fundamental_entities": objects.entities,
    }


class _ReadOnce(Iterable[Case]):
    """An iterable that takes each item from its source when it is first asked for, and keeps it."""

    def __init__(self, source: Iterator[Case]) -> None:
        self._source, self._items = source, list[Case]()

    def __iter__(self) -> Iterator[Case]:
        yield from self._items
        for item in self._source:
            self._items.append(item)
            yield item
