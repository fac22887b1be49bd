"""Periodic reports with the facts public at filing, from the panels and from the raw files."""

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
from finskillbench.domains.fundamental.objects.work import FiledValues
from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.identities import LedgerSource
from finskillbench.domains.fundamental.rederive.segments import RawSegments
from finskillbench.domains.fundamental.rederive.witness import Witnesses
from finskillbench.engines.accounting.drivers import Segments, segments_at
from finskillbench.engines.accounting.periods import QUARTER_APART, YEAR_APART, Duration, duration_of, earlier
from finskillbench.engines.accounting.statements import Statement, company_facts
from finskillbench.errors import InternalError
from finskillbench.panels import Panels
from finskillbench.panels.filings.query import FactStore, FiledStore
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.numerals import STATEMENT_TAGS

Value = TypeVar("Value")

_KEPT = 600
"""Companies kept in memory, about 1 MB each; further ones are read again for each subtask."""


class RawCompanies:
    """Filed figures and revenue breakdowns by symbol, as the independent derivation reads them."""

    def __init__(self, filings: FilingsData) -> None:
        self._filings = filings
        self.filed = _Kept(lambda symbol: AsFiled(filings.companies[symbol].facts.select(FiledRow._fields).iter_rows()))
        self.segments = _Kept(lambda symbol: RawSegments(filings.instances.get(symbol, ()), self._rows(symbol)))

    def _rows(self, symbol: str) -> list[dict[str, object]]:
        return self._filings.companies[symbol].facts.filter(pl.col("tag").is_in(STATEMENT_TAGS)).rows(named=True)


class _Kept(Generic[Value]):
    """Values by symbol, computed on access; the first `_KEPT` are cached, and the last of the rest."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self._make = make
        self._first: dict[str, Value] = {}
        self._last: dict[str, Value] = {}

    def __getitem__(self, symbol: str) -> Value:
        if symbol in self._first:
            return self._first[symbol]
        if symbol not in self._last:
            self._last.clear()  # free the last one first: only one is in memory at a time
            made = self._make(symbol)
            (self._first if len(self._first) < _KEPT else self._last)[symbol] = made
            return made
        return self._last[symbol]


_PERIODIC = ("10-Q", "10-K", "20-F", "40-F")
"""Forms of reports for episodes; amendments only add facts."""
_RARE = 0.1
"""Share of reports with revenue by segment below which these come first, so that a full pool includes them."""


@dataclass(frozen=True, slots=True)
class PeriodicReport:
    """Periodic report as of its filing date; the episode holds facts of periods that end on or after `since`."""

    symbol: str
    accession: str
    form: str
    period_end: date
    filed: date
    since: date

    @property
    def annual(self) -> bool:
        return self.form != "10-Q"


@dataclass(frozen=True, slots=True)
class ReportCase:
    """Report with the facts public on its filing date, from the panels and from the raw files.

    reported : period of the form. quarter : quarter ending the same day. before, year_before : preceding quarters,
        without
    figures on another basis. segments, segments_before : revenue of both quarters by axis and segment. filed_values :
    figures filed for these period ends. source, companies : inputs of the independent derivation and its witnesses.
    """

    report: PeriodicReport
    reported: Statement
    quarter: Statement
    before: Statement
    year_before: Statement
    segments: Segments
    segments_before: Segments
    filed_values: FiledValues
    source: LedgerSource
    companies: RawCompanies

    @property
    def witnesses(self) -> Witnesses:
        return Witnesses(self.companies.filed[self.report.symbol], self.report.filed)

    @property
    def raw_segments(self) -> RawSegments:
        return self.companies.segments[self.report.symbol]


def iterate_cases(
    panels: Panels,
    filings: FilingsData,
    rng: np.random.Generator,
    history: timedelta,
    within: tuple[date, date] | None = None,
) -> Iterator[ReportCase]:
    """Yield all reports with their figures in random order, alternating between companies.

    history : how far back from a report's period end facts count. within : first and last filing date; None takes all.
    """
    store = FactStore(panels.tables.read_uncached("facts"), panels.filings, panels.segments)
    filed = FiledStore(panels.tables.read_uncached("filed"), panels.filings, panels.segments)
    companies = RawCompanies(filings)
    symbols = set(store.symbols) & set(filings.companies)
    for report in _reports(panels.filings, symbols, _broken_down(panels.segments), rng, history, within):
        symbol, end = report.symbol, report.period_end
        # Answers compare with the same quarter a year earlier; periods that end before it are not used.
        visible = store.visible(symbol, report.filed, max(report.since, end - timedelta(days=YEAR_APART[1])))
        figures = company_facts(visible["facts"], symbol)
        ends = figures.ends(Duration.QUARTERLY)
        before = earlier(end, ends, QUARTER_APART)
        quarter, year_before = figures.compared(end, earlier(end, ends, YEAR_APART))
        year = [] if year_before.end is None else [year_before.end]
        source = LedgerSource.of(figures, end, [*year, *([] if before is None else [before])], year)
        yield ReportCase(
            report,
            source.statements[duration_of(report.form), end],
            quarter,
            quarter.comparable(figures.statement(before, Duration.QUARTERLY)),
            year_before,
            segments_at(visible["segments"], symbol, end),
            {} if before is None else segments_at(visible["segments"], symbol, before),
            filed.values_by_tag(
                symbol, report.filed, [day for day in (end, before, year_before.end) if day is not None]
            ),
            source,
            companies,
        )


def _broken_down(segments: pl.DataFrame) -> set[tuple[str, date]]:
    """Return companies and ends of quarters with revenue by segment in that quarter and the one before."""
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
) -> list[PeriodicReport]:
    """Return the first report of each period in random order, alternating between companies."""
    first: dict[tuple[str, date], PeriodicReport] = {}
    columns = filings.select("symbol", "accession", "form", "period_end", "filed")
    rows = columns.filter(pl.col("form").is_in(_PERIODIC)).drop_nulls().sort("filed", "accession").iter_rows()
    for symbol, accession, form, end, filed in rows:
        if symbol in symbols and filed > end:
            first.setdefault((symbol, end), PeriodicReport(symbol, accession, form, end, filed, end - history))
    earliest, latest = within or (date.min, date.max)
    reports = [report for report in first.values() if earliest <= report.filed <= latest]
    turns: Counter[str] = Counter()
    order: list[tuple[bool, int, int, PeriodicReport]] = []
    rare = sum((report.symbol, report.period_end) in broken_down for report in reports) < _RARE * len(reports)
    for place in rng.permutation(len(reports)):
        report = reports[int(place)]
        first_of_all = rare and (report.symbol, report.period_end) in broken_down
        order.append((not first_of_all, turns[report.symbol], len(order), report))
        turns[report.symbol] += 1
    return [report for *_, report in sorted(order, key=lambda entry: entry[:3])]


SKILL = "fundamental_analysis"
_POOL_PER_EPISODE = 20
"""Labels proved per episode in editions smaller than the catalog's."""


class _Catalog(TypedDict):
    about: str
    episodes: dict[str, int]
    pool: dict[str, int]
    history_days: int
    least: dict[str, int]
    whole: dict[str, float]
    difficulty: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class FundamentalObjects:
    """Catalog and reports shared by the fundamental subtasks.

    entities : per company its CIK, its name in the facts, and its CIKs in ticker lists. pools : statistics per subtask.
    """

    catalog: _Catalog
    cases: Iterable[ReportCase]
    entities: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    pools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


def prepare_fundamental(context: BuildContext) -> FundamentalObjects:
    """Read the catalog and prepare the reports, which are loaded on first use and cached."""
    catalog = msgspec.convert(read_catalog("finskillbench.domains.fundamental", "fundamental.json"), _Catalog)
    if context.episodes is not None:
        catalog["episodes"] = {name: context.most(count) for name, count in catalog["episodes"].items()}
        catalog["pool"] = dict.fromkeys(catalog["pool"], _POOL_PER_EPISODE * context.episodes)
    if context.filings is None:
        raise InternalError("fundamental analysis needs filings, but the build context has none")
    history = timedelta(days=catalog["history_days"])
    cases = iterate_cases(context.panels, context.filings, context.generator(SKILL), history, context.filed)
    entities = {
        symbol: {"cik": one.cik, "entity": one.entity, "listed": list(context.filings.listed.get(symbol, ()))}
        for symbol, one in sorted(context.filings.filers.items())
    }
    return FundamentalObjects(catalog, _ReadOnce(cases), entities)


def parameters(shared: FundamentalObjects) -> dict[str, Any]:
    return {"fundamental": shared.catalog, "fundamental_pools": shared.pools, "fundamental_entities": shared.entities}


class _ReadOnce(Iterable[ReportCase]):
    """Iterable that reads items on first use and caches them."""

    def __init__(self, source: Iterator[ReportCase]) -> None:
        self._source, self._items = source, list[ReportCase]()

    def __iter__(self) -> Iterator[ReportCase]:
        yield from self._items
        for item in self._source:
            self._items.append(item)
            yield item
