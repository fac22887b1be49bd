"""Filling a raw collection from the public sources, from the lists of names to the statements of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from finskillbench.errors import DownloadError, InputError, SourceError
from finskillbench.fetch import edgar
from finskillbench.fetch.fetcher import Fetcher, Item
from finskillbench.fetch.http.addresses import Configuration
from finskillbench.fetch.http.client import Client
from finskillbench.fetch.members import PUBLISHED, Members, read_members
from finskillbench.fetch.prices.providers import (
    Provider,
    copy_own,
    key_of,
    own_files,
    path_of,
    price_items,
)
from finskillbench.fetch.series import factor_items, series_items
from finskillbench.fetch.statements import derive_statements
from finskillbench.fetch.store.folder import Folder, opened
from finskillbench.fetch.window import Window
from finskillbench.sources.companies.statements import parse_statements
from finskillbench.sources.companies.universe import Security
from finskillbench.sources.fetched import Asked, Entry, Origin
from finskillbench.sources.market.prices import parse_prices
from finskillbench.sources.market.splice import MIN_SESSIONS

Progress = Callable[[str, int, int | None], None]
_FEW = 5
"""Failures of single files after which a source is not asked for others."""
_GRACE = timedelta(days=10)
"""A name whose prices end so long before the window does is no longer traded."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection holds now: files, their bytes, usable names, and what is lacking and why."""

    files: int
    bytes: int
    names: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be fetched.

    universe : `sp500-30`, `sp500` or a file. prices_dir : of `csv`, the user's own folder. agent : what the SEC is
    told: a name and an address to write to. refresh : ask of everything that may change whether it has.
    """

    window: Window
    universe: str = PUBLISHED
    prices: Provider = "yahoo"
    prices_dir: Path | None = None
    agent: str = ""
    refresh: bool = False
    configuration: Configuration = field(default_factory=Configuration)


def fetch_collection(out: Path, wish: Wish, progress: Progress = lambda stage, done, total: None) -> Collected:
    """Fill `out` with what is wished for; what is there is not asked for again.

    Raises
    ------
    InputError : no user agent or key, or a folder that holds something else.
    DownloadError : a source refuses, or does not give what it should. What came is kept.
    SourceError : a list of names that cannot be trusted. OSError : the disk is full or fails.
    """
    refuse_agent(wish.agent)
    key = key_of(wish.prices)
    own = own_files(wish.prices_dir) if wish.prices == "csv" and wish.prices_dir is not None else {}
    if wish.prices == "csv" and wish.prices_dir is None:
        raise InputError("--prices csv needs --prices-dir DIR, the folder of your own price files")
    asked = Asked(
        start=f"{wish.window.first:%Y-%m}",
        end=f"{wish.window.last:%Y-%m}",
        universe=Path(wish.universe).name,
        prices=wish.prices,
    )
    with opened(out, asked) as folder, Client(wish.configuration, wish.agent) as client:
        fetcher = Fetcher(folder, client, since=wish.window.last.isoformat(), refresh=wish.refresh)
        return _Collection(fetcher, wish, progress).fill(key, own)


def refuse_agent(agent: str) -> None:
    """Refuse what does not tell the SEC whom to write to.

    Raises
    ------
    InputError : saying what is wanted.
    """
    name, at, host = agent.strip().rpartition(" ")[2].partition("@")
    if not at or not name or "." not in host.strip(".") or not agent.isascii() or not agent.isprintable():
        raise InputError(
            'the SEC wants to know who asks: --user-agent "Your Name you@example.com", '
            "or the environment variable FINSKILLBENCH_USER_AGENT"
        )


class _Collection:
    """One fetch: stages that depend on each other, of things that do not."""

    def __init__(self, fetcher: Fetcher, wish: Wish, progress: Progress) -> None:
        self._fetcher, self._wish, self._progress = fetcher, wish, progress
        self._folder: Folder = fetcher.folder
        self._addresses = wish.configuration.addresses
        self._notes: list[str] = []

    def fill(self, key: str, own: dict[str, Path]) -> Collected:
        window, addresses = self._wish.window, self._addresses
        self._progress("reading who is in the universe", 0, None)
        members = read_members(self._fetcher, self._wish.universe, window, addresses)
        self._notes += members.notes
        ciks = sorted({int(one.cik) for one in members.securities.values() if one.cik})
        series = [*factor_items(addresses), *series_items(window, addresses)]
        self._all("fetching factors and rates", [partial(self._item, item) for item in series])
        self._refuse_absent(series)
        self._all("fetching prices", [partial(self._prices, symbol, key, own) for symbol in members.securities])
        self._all(
            "fetching company facts and lists of filings",
            [
                partial(self._item, item)
                for cik in ciks
                for item in (edgar.submissions_item(cik, addresses), edgar.facts_item(cik, addresses))
            ],
        )
        pages = [item for cik in ciks for item in self._pages(cik)]
        self._all("fetching older lists of filings", [partial(self._item, item) for item in pages])
        self._all("fetching XBRL documents", list(self._instances(members, ciks)))
        usable = self._usable(members)
        body = members.universe(usable, window)
        self._folder.write(Entry("universe.json", retrieved=Client.now()), body)
        self._folder.finish()
        entries = self._folder.journal.entries.values()
        return Collected(
            files=sum(not entry.absent for entry in entries),
            bytes=sum(entry.bytes for entry in entries),
            names=len(usable),
            notes=tuple(self._notes),
        )

    def _item(self, item: Item) -> None:
        self._fetcher.fetch(item)

    def _prices(self, symbol: str, key: str, own: dict[str, Path]) -> None:
        if self._wish.prices == "csv":
            copy_own(self._folder, symbol, own.get(symbol))
        else:
            item = price_items(self._wish.prices, self._wish.window, self._addresses, key)
            self._fetcher.fetch(item(symbol))

    def _refuse_absent(self, items: Iterable[Item]) -> None:
        """Refuse a collection without factors or the risk-free rate; other series are left out by a build."""
        for item in items:
            entry = self._folder.have(item.path)
            if entry is None or not entry.absent:
                continue
            if item.path.startswith("famafrench/") or item.path == "fred/DGS3MO.csv":
                raise DownloadError(f"{entry.absent}; nothing can be built without {item.path}: check the address")
            self._notes.append(f"{item.path} is left out: {entry.absent}.")

    def _pages(self, cik: int) -> list[Item]:
        path = edgar.submissions_path(cik)
        if not self._there(path):
            return []
        table = edgar.unpacked(self._folder.read(path))
        return list(edgar.page_items(table, self._wish.window, self._addresses))

    def _instances(self, members: Members, ciks: Sequence[int]) -> Iterable[Callable[[], object]]:
        """What fetches each report's document, of the first symbol of each filer."""
        symbols = {int(one.cik): symbol for symbol, one in reversed(list(members.securities.items())) if one.cik}
        for cik in ciks:
            tables = [edgar.submissions_path(cik), *(page.path for page in self._pages(cik))]
            found = {
                report.accession: report
                for path in tables
                if self._there(path)
                for report in edgar.reports(edgar.unpacked(self._folder.read(path)), self._wish.window)
            }
            for report in found.values():
                yield partial(edgar.fetch_instance, self._fetcher, symbols[cik], cik, report, self._addresses)

    def _there(self, path: str) -> bool:
        entry = self._folder.have(path)
        return entry is not None and not entry.absent

    def _usable(self, members: Members) -> dict[str, str | None]:
        """Names with prices and statements, by symbol, with their exchanges; a note says why one is left out."""
        usable: dict[str, str | None] = {}
        for done, (symbol, one) in enumerate(members.securities.items()):
            self._progress("deriving statements", done, len(members.securities))
            submissions = edgar.submissions_path(int(one.cik or 0))
            exchange = None
            if self._there(submissions):
                exchange = edgar.exchange_in(edgar.unpacked(self._folder.read(submissions)))
            lacking = self._lacking(symbol, replace(one, exchange=exchange))
            if lacking:
                self._notes.append(f"{symbol} is left out: {lacking}.")
            else:
                usable[symbol] = exchange
        return usable

    def _lacking(self, symbol: str, one: Security) -> str:
        """Why a name cannot be used; empty where it can. Its statements are derived on the way."""
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
        return f"its prices end on {last}" if last + _GRACE < self._wish.window.last else ""

    def _statements(self, symbol: str, one: Security, facts: str) -> None:
        """Derive the statements of a name, unless they are of the facts that are there."""
        source, path = self._folder.have(facts), _statements_path(symbol)
        origins = (Origin(facts, source.sha256 if source else ""),)
        entry = self._folder.have(path)
        if entry is not None and entry.origins == origins:
            self._folder.keep(path)
            return
        body = derive_statements(self._folder.path / facts, one)
        self._folder.write(Entry(path, retrieved=Client.now(), origins=origins), body)

    def _all(self, stage: str, steps: Sequence[Callable[[], object]]) -> None:
        """Take all steps, several at a time; after a few failures, or one without hope, no further ones.

        Raises
        ------
        DownloadError : the first that failed, with how many others did.
        """
        failed: list[DownloadError] = []
        self._progress(stage, 0, len(steps))
        pool = ThreadPoolExecutor(self._wish.configuration.requests.workers)
        try:
            futures: list[Future[object]] = [pool.submit(step) for step in steps]
            for done, future in enumerate(as_completed(futures), 1):
                try:
                    future.result()
                except DownloadError as error:
                    failed.append(error)
                    if error.hopeless or len(failed) >= _FEW:
                        break
                self._progress(stage, done, len(steps))
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
