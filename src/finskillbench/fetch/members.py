"""Whose files are fetched: the published 30, the index, or the names of a user's own list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from finskillbench.arrays import SECTORS
from finskillbench.errors import InputError, SourceError
from finskillbench.fetch.client import Question
from finskillbench.fetch.configuration import Addresses, ContentError, Window, first_words, refuse_page
from finskillbench.fetch.edgar import tickers_in, tickers_item
from finskillbench.fetch.fetcher import Fetcher, Item
from finskillbench.sources.companies.constituents import parse_constituents
from finskillbench.sources.companies.universe import DEFAULT_UNIVERSE, Security, Universe, load_universe
from finskillbench.sources.files import read_text, symbol_of

PUBLISHED, INDEX = "sp500-30", "sp500"
CONSTITUENTS = "constituents/constituents.csv"
_HEADER = ("Symbol", "Security", "GICS Sector", "GICS Sub-Industry", "Date added", "CIK")


@dataclass(frozen=True, slots=True)
class Members:
    """The names to fetch, by symbol, each with its CIK; which of them only stand in for others; what is left out."""

    securities: Mapping[str, Security]
    alternates: frozenset[str]
    notes: tuple[str, ...]

    def universe(self, usable: Mapping[str, str | None], window: Window) -> bytes:
        """The `universe.json` of those that can be used, given with their exchanges."""
        sectors: dict[str, dict[str, list[str]]] = {}
        for sector in SECTORS:
            names = [symbol for symbol, one in self.securities.items() if one.sector == sector and symbol in usable]
            if names:
                sectors[sector] = {
                    "names": [symbol for symbol in names if symbol not in self.alternates],
                    "alternates": [symbol for symbol in names if symbol in self.alternates],
                }
        described: dict[str, object] = {}
        for symbol, exchange in usable.items():
            one = self.securities[symbol]
            fields = asdict(replace(one, exchange=exchange, sub_sector=one.sub_sector or one.sector))
            described[symbol] = {name: value for name, value in fields.items() if name != "symbol"}
        universe = {"snapshot": window.last.isoformat(), "sectors": _filled(sectors), "securities": described}
        return orjson.dumps(universe, option=orjson.OPT_INDENT_2) + b"\n"


def _filled(sectors: Mapping[str, dict[str, list[str]]]) -> Mapping[str, dict[str, list[str]]]:
    """A sector that has lost names takes its first alternates as names: every name listed is one that is there."""
    published = _published()
    for sector, lists in sectors.items():
        short = len(published.names.get(sector, ())) - len(lists["names"])
        if lists["alternates"]:
            lists["names"] += lists["alternates"][: max(short, 0)]
            lists["alternates"] = lists["alternates"][max(short, 0) :]
    return sectors


def _published() -> Universe:
    """The universe that ships with the project, which stands for a collection without one."""
    return load_universe(DEFAULT_UNIVERSE.parent / "published")


def read_members(fetcher: Fetcher, universe: str, window: Window, addresses: Addresses) -> Members:
    """Who is to be fetched.

    Parameters
    ----------
    universe : `sp500-30`, `sp500`, or the path of a file: a ticker a line, or CSV as of `constituents.csv`.

    Raises
    ------
    InputError : the file cannot be read or names nobody. SourceError : a list that cannot be trusted.
    DownloadError, OSError : as for `Fetcher.fetch`.
    """
    folder = fetcher.folder.path
    if universe not in (PUBLISHED, INDEX):
        return _own(fetcher, Path(universe), addresses)
    _download(fetcher, addresses)
    listed = parse_constituents(folder / CONSTITUENTS)
    if universe == INDEX:
        chosen = {
            symbol: one for symbol, one in listed.items() if one.date_added is None or one.date_added <= window.last
        }
        return _with_ciks(fetcher, chosen, frozenset(), addresses)
    published = _published()
    chosen: dict[str, Security] = {}
    for sector, names in published.names.items():
        for symbol in (*names, *published.alternates[sector]):
            chosen[symbol] = replace(listed.get(symbol) or Security(symbol, symbol), sector=sector)
    alternates = frozenset(symbol for names in published.alternates.values() for symbol in names)
    return _with_ciks(fetcher, chosen, alternates, addresses)


def _download(fetcher: Fetcher, addresses: Addresses) -> None:
    fetcher.fetch(Item(CONSTITUENTS, (Question("constituents", addresses.constituents, _constituents),)))
    entry = fetcher.folder.have(CONSTITUENTS)
    if entry is not None and entry.absent:
        raise SourceError(addresses.constituents, "not there", remedy="set addresses.constituents in the configuration")


def _constituents(body: bytes) -> None:
    refuse_page(body, "a list of constituents")
    head = body.partition(b"\n")[0].decode("utf-8-sig", "replace")
    columns = {cell.strip() for cell in head.split(",")}
    if not columns.issuperset(_HEADER):
        raise ContentError(f"no list of constituents: {first_words(body)!r}")
    if not body.endswith(b"\n"):
        raise ContentError("a list of constituents that is cut off")


def _own(fetcher: Fetcher, path: Path, addresses: Addresses) -> Members:
    """The names of a user's file; tickers alone are looked up in the list of constituents."""
    try:
        text = read_text(path)
    except SourceError as error:
        raise InputError(f"--universe {error}; or one of {PUBLISHED}, {INDEX}") from None
    head = {cell.strip() for cell in text.partition("\n")[0].split(",")}
    if head.issuperset(_HEADER):
        own = parse_constituents(path)
        fetcher.folder.write_own(CONSTITUENTS, path.name, text.encode())
        return _with_ciks(fetcher, own, frozenset(), addresses)
    tickers: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        ticker = symbol_of(line.partition("#")[0].strip())
        if not ticker:
            continue
        if not ticker.replace("-", "").isalnum() or ticker in tickers:
            what = "appears twice" if ticker in tickers else "is no ticker"
            raise InputError(f"{path}, line {number}: {ticker!r} {what}; write one ticker a line, each once")
        tickers[ticker] = number
    if not tickers:
        raise InputError(f"{path}: names nobody; write one ticker a line")
    _download(fetcher, addresses)
    listed = parse_constituents(fetcher.folder.path / CONSTITUENTS)
    unknown = [ticker for ticker in tickers if ticker not in listed]
    if unknown:
        first = unknown[0]
        raise InputError(
            f"{path}, line {tickers[first]}: {first} is not in the list of constituents, so its sector is unknown"
            f"{f' (and {len(unknown) - 1} more)' if len(unknown) > 1 else ''}; give a CSV with {', '.join(_HEADER)}"
        )
    return _with_ciks(fetcher, {ticker: listed[ticker] for ticker in tickers}, frozenset(), addresses)


def _with_ciks(
    fetcher: Fetcher, chosen: Mapping[str, Security], alternates: frozenset[str], addresses: Addresses
) -> Members:
    """The names with their CIKs, those that no list gives one left out and noted."""
    known: Mapping[str, str] = {}
    if any(one.cik is None for one in chosen.values()):
        entry = fetcher.fetch(tickers_item(addresses))
        known = {} if entry.absent else tickers_in(fetcher.folder.read(entry.path))
    securities: dict[str, Security] = {}
    notes: list[str] = []
    for symbol, one in chosen.items():
        cik = one.cik or known.get(symbol)
        if cik is None:
            notes.append(f"{symbol} is left out: neither the constituents nor the SEC's list of tickers know its CIK.")
        else:
            securities[symbol] = replace(one, cik=cik)
    return Members(securities, alternates, tuple(notes))
