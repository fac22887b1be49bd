"""Fill a raw collection from the public sources, from lists of companies to statements.

No source serves statements, so they are derived from company facts in the format of `sources.companies.statements`.
Each figure is that of the latest filing that states it. A quarter that no report states alone, mostly the fourth, is
the difference of two periods with the same first day (`"d": 1`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import polars as pl

from finskillbench.errors import DownloadError, InputError, SourceError
from finskillbench.fetch import edgar
from finskillbench.fetch.client import Client
from finskillbench.fetch.configuration import Configuration, Window
from finskillbench.fetch.edgar import factor_items, series_items
from finskillbench.fetch.fetcher import Fetcher, FetchItem, Folder, open_folder
from finskillbench.fetch.members import PUBLISHED, Members, read_members
from finskillbench.fetch.prices import USER_FILES, PriceProvider, copy_user_file, path_of, provider, user_files
from finskillbench.sources.companies.statements import parse_statements
from finskillbench.sources.companies.universe import SecurityRecord
from finskillbench.sources.edgar.companyfacts import parse_companyfacts
from finskillbench.sources.fetched import Entry, FetchRequest, Origin
from finskillbench.sources.market.prices import parse_prices
from finskillbench.sources.market.splice import MIN_SESSIONS

_NET_INCOME = ("NetIncomeLoss", "ProfitLoss", "NetIncomeLossAvailableToCommonStockholdersBasic")
_EPS = ("EarningsPerShareDiluted", "EarningsPerShareBasicAndDiluted", "EarningsPerShareBasic")
_EQUITY = ("StockholdersEquity", "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest")
_DILUTED = (
    "WeightedAverageNumberOfDilutedSharesOutstanding",
    "WeightedAverageNumberOfShareOutstandingBasicAndDiluted",
    "WeightedAverageNumberOfSharesOutstandingBasic",
)
_COVER = ("EntityCommonStockSharesOutstanding",)
_TAGS = frozenset((*_NET_INCOME, *_EPS, *_EQUITY, *_DILUTED, *_COVER))
_FORMS = ("10-K", "10-Q", "10-K/A", "10-Q/A", "10-KT", "10-QT", "20-F", "40-F", "20-F/A", "40-F/A")
_QUARTER, _YEAR = (75, 125), (345, 385)
"""Days of a quarter (12 to 17 weeks, both of which Costco has) and of a year (52 or 53 weeks)."""

_Periods: TypeAlias = Mapping[tuple[date | None, date], float]
"""Figures by first day (None for an instant) and last day."""


def derive_statements(facts: Path, security: SecurityRecord) -> bytes:
    """Derive a company's statements from its company facts, as JSON; SourceError if these are invalid."""
    filer = parse_companyfacts(facts, tags=_TAGS)
    rows = filer.facts.filter(pl.col("form").is_in(_FORMS)).sort("filed", "accession", maintain_order=True)
    income, eps = _figures(rows, _NET_INCOME, "USD"), _figures(rows, _EPS, "USD/shares")
    equity = {end: value for (start, end), value in _figures(rows, _EQUITY, "USD").items() if start is None}
    years = _of_duration(income, _YEAR)
    fiscal = {end: value for end, value in equity.items() if end in years}
    covers = {end: value for (_, end), value in _figures(rows, _COVER, "shares").items() if value > 0}
    diluted = {
        end: value for end, value in _of_duration(_figures(rows, _DILUTED, "shares"), _YEAR).items() if value > 0
    }
    record: dict[str, Any] = {
        "symbol": security.symbol,
        "name": filer.entity or security.name,
        "cik": f"{filer.cik:010d}",
        "profile": {"exchange": security.exchange},
        "annual": {"netIncome": _entries(years), "eps": _entries(_of_duration(eps, _YEAR))},
        "quarterly": {
            "netIncome": _entries(_of_duration(income, _QUARTER), _differences(income)),
            "eps": _entries(_of_duration(eps, _QUARTER)),
        },
        "balances": {"equity": _entries(fiscal or equity)},
        "dilutedShares": _entries(diluted),
    }
    if covers:
        last = max(covers)
        record["sharesLatest"] = {"end": last.isoformat(), "v": covers[last]}
    return orjson.dumps(record)


def _figures(rows: pl.DataFrame, tags: Sequence[str], unit: str) -> _Periods:
    found: dict[tuple[date | None, date], float] = {}
    for tag in reversed(tags):
        of_tag = rows.filter((pl.col("tag") == tag) & (pl.col("unit") == unit))
        found |= {(start, end): value for start, end, value in of_tag.select("start", "end", "value").iter_rows()}
    return found


def _of_duration(figures: _Periods, days: tuple[int, int]) -> dict[date, float]:
    """Select figures of periods with a length in days, by their last day."""
    shortest, longest = days
    return {
        end: value
        for (start, end), value in sorted(figures.items(), key=lambda item: item[0][1])
        if start is not None and shortest <= (end - start).days + 1 <= longest
    }


def _differences(figures: _Periods) -> dict[date, float]:
    """Derive quarters, by last day, as differences of two periods with the same first day."""
    by_start: dict[date, list[tuple[date, float]]] = {}
    for (start, end), value in figures.items():
        if start is not None:
            by_start.setdefault(start, []).append((end, value))
    shortest, longest = _QUARTER
    return {
        end: value - earlier
        for ends in by_start.values()
        for end, value in ends
        for before, earlier in ends
        if shortest <= (end - before).days <= longest
    }


def _entries(stated: Mapping[date, float], derived: Mapping[date, float] | None = None) -> list[dict[str, Any]]:
    """List figures by last day, as integers where possible; derived ones fill gaps."""
    entries: dict[date, dict[str, Any]] = {}
    for end, value in (derived or {}).items():
        entries[end] = {"end": end.isoformat(), "v": _number(value), "d": 1}
    for end, value in stated.items():
        entries[end] = {"end": end.isoformat(), "v": _number(value)}
    return [entries[end] for end in sorted(entries)]


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value


Progress = Callable[[str, int, int | None], None]
_MAX_FAILURES = 5
"""Failures of single files after which a source is abandoned."""
_GRACE = timedelta(days=10)
"""A security whose prices end so long before the window does is no longer traded."""


@dataclass(frozen=True, slots=True)
class FetchSummary:
    """Totals of a collection: files, bytes, usable securities, and notes on what is missing."""

    files: int
    bytes: int
    names: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of one fetch.

    universe : `sp500-30`, `sp500` or a file. prices_dir : the user's folder, for prices `csv`.
    agent : name and email address for the SEC. refresh : check every file that may change.
    """

    window: Window
    universe: str = PUBLISHED
    prices: str = "yahoo"
    prices_dir: Path | None = None
    agent: str = ""
    refresh: bool = False
    configuration: Configuration = field(default_factory=Configuration)


def fetch_collection(
    out: Path, options: FetchOptions, progress: Progress = lambda phase, done, total: None
) -> FetchSummary:
    """Fill `out` with the requested files that are not there yet; downloaded files are kept after an error.

    Raises
    ------
    InputError : no user agent or key, or a folder with other content. SourceError : an invalid list of companies.
    DownloadError : a source rejects requests or sends invalid data. OSError : the disk is full or fails.
    """
    check_user_agent(options.agent)
    if options.prices == USER_FILES:
        if options.prices_dir is None:
            raise InputError("--prices csv needs --prices-dir DIR, the folder of your price files")
        prices = user_files(options.prices_dir)
    else:
        prices = provider(options.prices)
        prices.secret()  # A missing key is reported before any request.
    request = FetchRequest(
        start=f"{options.window.first:%Y-%m}",
        end=f"{options.window.last:%Y-%m}",
        universe=Path(options.universe).name,
        prices=options.prices,
    )
    with open_folder(out, request) as folder, Client(options.configuration, options.agent) as client:
        fetcher = Fetcher(folder, client, since=options.window.last.isoformat(), refresh=options.refresh)
        return _Collection(fetcher, options, progress).fill(prices)


def check_user_agent(agent: str) -> None:
    """Raise InputError unless a user agent has an email address, as the SEC requires."""
    name, at, host = agent.strip().rpartition(" ")[2].partition("@")
    if not at or not name or "." not in host.strip(".") or not agent.isascii() or not agent.isprintable():
        raise InputError(
            'the SEC requires a name and an email address: give --user-agent "Your Name you@example.com", '
            "or set the environment variable FINSKILLBENCH_USER_AGENT"
        )


class _Collection:
    """One fetch: sequential phases whose steps run in parallel."""

    def __init__(self, fetcher: Fetcher, options: FetchOptions, progress: Progress) -> None:
        self._fetcher, self._options, self._progress = fetcher, options, progress
        self._folder: Folder = fetcher.folder
        self._addresses = options.configuration.addresses
        self._notes: list[str] = []

    def fill(self, prices: PriceProvider | dict[str, Path]) -> FetchSummary:
        window, addresses = self._options.window, self._addresses
        self._progress("reading the universe", 0, None)
        members = read_members(self._fetcher, self._options.universe, window, addresses)
        self._notes += members.notes
        ciks = sorted({int(one.cik) for one in members.securities.values() if one.cik})
        series = [*factor_items(addresses), *series_items(window, addresses)]
        self._run_parallel("fetching factors and rates", [partial(self._fetch_item, item) for item in series])
        self._refuse_absent(series)
        self._run_parallel("fetching prices", [partial(self._prices, symbol, prices) for symbol in members.securities])
        self._run_parallel(
            "fetching company facts and lists of filings",
            [
                partial(self._fetch_item, item)
                for cik in ciks
                for item in (edgar.submissions_item(cik, addresses), edgar.facts_item(cik, addresses))
            ],
        )
        pages = [item for cik in ciks for item in self._pages(cik)]
        self._run_parallel("fetching older lists of filings", [partial(self._fetch_item, item) for item in pages])
        self._run_parallel("fetching XBRL documents", list(self._instances(members, ciks)))
        usable = self._usable(members)
        body = members.universe(usable, window)
        self._folder.write(Entry("universe.json", retrieved=Client.now()), body)
        self._folder.finish()
        entries = self._folder.journal.entries.values()
        return FetchSummary(
            files=sum(not entry.absent for entry in entries),
            bytes=sum(entry.bytes for entry in entries),
            names=len(usable),
            notes=tuple(self._notes),
        )

    def _fetch_item(self, item: FetchItem) -> None:
        self._fetcher.fetch(item)

    def _prices(self, symbol: str, prices: PriceProvider | dict[str, Path]) -> None:
        if isinstance(prices, PriceProvider):
            self._fetch_item(prices.item(symbol, self._options.window, self._addresses))
        else:
            copy_user_file(self._folder, symbol, prices.get(symbol))

    def _refuse_absent(self, items: Iterable[FetchItem]) -> None:
        """Refuse a collection without factors or the risk-free rate; note other missing series."""
        for item in items:
            entry = self._folder.have(item.path)
            if entry is None or not entry.absent:
                continue
            if item.path.startswith("famafrench/") or item.path == "fred/DGS3MO.csv":
                raise DownloadError(f"{entry.absent}; no edition can be built without {item.path}; check the address")
            self._notes.append(f"{item.path} is left out: {entry.absent}.")

    def _pages(self, cik: int) -> list[FetchItem]:
        path = edgar.submissions_path(cik)
        if not self._exists(path):
            return []
        table = edgar.unpacked(self._folder.read(path))
        return list(edgar.page_items(table, self._options.window, self._addresses))

    def _instances(self, members: Members, ciks: Sequence[int]) -> Iterable[Callable[[], object]]:
        """Yield a download step for each report, under the first symbol of its filer."""
        symbols = {int(one.cik): symbol for symbol, one in reversed(list(members.securities.items())) if one.cik}
        for cik in ciks:
            tables = [edgar.submissions_path(cik), *(page.path for page in self._pages(cik))]
            found = {
                report.accession: report
                for path in tables
                if self._exists(path)
                for report in edgar.reports(edgar.unpacked(self._folder.read(path)), self._options.window)
            }
            for report in found.values():
                yield partial(edgar.fetch_instance, self._fetcher, symbols[cik], cik, report, self._addresses)

    def _exists(self, path: str) -> bool:
        entry = self._folder.have(path)
        return entry is not None and not entry.absent

    def _usable(self, members: Members) -> dict[str, str | None]:
        """Return usable symbols with their exchanges; note the reason for each other symbol."""
        usable: dict[str, str | None] = {}
        for done, (symbol, one) in enumerate(members.securities.items()):
            self._progress("deriving statements", done, len(members.securities))
            submissions = edgar.submissions_path(int(one.cik or 0))
            exchange = None
            if self._exists(submissions):
                exchange = edgar.exchange_in(edgar.unpacked(self._folder.read(submissions)))
            reason = self._unusable_reason(symbol, replace(one, exchange=exchange))
            if reason:
                self._notes.append(f"{symbol} is left out: {reason}.")
            else:
                usable[symbol] = exchange
        return usable

    def _unusable_reason(self, symbol: str, one: SecurityRecord) -> str:
        """Derive the statements of a security; return why it cannot be used, or an empty text."""
        facts, prices = edgar.facts_path(int(one.cik or 0)), path_of(symbol)
        for path in (prices, facts):
            entry = self._folder.have(path)
            if entry is None or entry.absent:
                return entry.absent if entry is not None else f"no {path}"
        try:
            self._statements(symbol, one, facts)
            gap = parse_statements(self._folder.path / _statements_path(symbol))[0].gap()
            table = parse_prices(self._folder.path / prices).frame
        except SourceError as error:
            return f"{error}"
        if gap is not None:
            return gap
        if table.height < MIN_SESSIONS:
            return f"{table.height} sessions of prices where {MIN_SESSIONS} are needed"
        last: date = table["date"][-1]
        return f"its prices end on {last}" if last + _GRACE < self._options.window.last else ""

    def _statements(self, symbol: str, one: SecurityRecord, facts: str) -> None:
        source, path = self._folder.have(facts), _statements_path(symbol)
        origins = (Origin(facts, source.sha256 if source else ""),)
        entry = self._folder.have(path)
        if entry is not None and entry.origins == origins:
            self._folder.keep(path)
            return
        body = derive_statements(self._folder.path / facts, one)
        self._folder.write(Entry(path, retrieved=Client.now(), origins=origins), body)

    def _run_parallel(self, phase: str, steps: Sequence[Callable[[], object]]) -> None:
        """Run all steps in parallel; stop after a few failures or a permanent one and raise the first."""
        failed: list[DownloadError] = []
        self._progress(phase, 0, len(steps))
        pool = ThreadPoolExecutor(self._options.configuration.requests.workers)
        try:
            futures: list[Future[object]] = [pool.submit(step) for step in steps]
            for done, future in enumerate(as_completed(futures), 1):
                try:
                    future.result()
                except DownloadError as error:
                    failed.append(error)
                    if error.permanent or len(failed) >= _MAX_FAILURES:
                        break
                self._progress(phase, done, len(steps))
        except BaseException:
            self._fetcher.client.stop()
            raise
        finally:
            if failed:
                self._fetcher.client.stop()
            pool.shutdown(wait=True, cancel_futures=True)
        if failed:
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise DownloadError(f"{failed[0]}{more}")


def _statements_path(symbol: str) -> str:
    return f"statements_derived/{symbol}.json"
