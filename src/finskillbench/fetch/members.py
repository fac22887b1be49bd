"""Select the companies to fetch: the published 30, the index, or a user's list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from finskillbench.arrays import SECTORS
from finskillbench.errors import InputError, SourceError
from finskillbench.fetch.client import SourceRequest
from finskillbench.fetch.configuration import Addresses, ContentError, Window, excerpt, refuse_page
from finskillbench.fetch.edgar import tickers_in, tickers_item
from finskillbench.fetch.fetcher import Fetcher, FetchItem
from finskillbench.sources.companies.constituents import parse_constituents
from finskillbench.sources.companies.universe import DEFAULT_UNIVERSE, CompanyUniverse, SecurityRecord, load_universe
from finskillbench.sources.files import read_text, symbol_of

PUBLISHED, INDEX = "sp500-30", "sp500"
CONSTITUENTS = "constituents/constituents.csv"
_HEADER = ("Symbol", "Security", "GICS Sector", "GICS Sub-Industry", "Date added", "CIK")


@dataclass(frozen=True, slots=True)
class Members:
    """Securities to fetch, by symbol, with CIKs; the alternates among them; notes on omitted ones."""

    securities: Mapping[str, SecurityRecord]
    alternates: frozenset[str]
    notes: tuple[str, ...]

    def universe(self, usable: Mapping[str, str | None], window: Window) -> bytes:
        """Return the `universe.json` of the usable symbols, given with their exchanges."""
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
    """Promote alternates in sectors that have lost names, so that every listed name is available."""
    published = _published()
    for sector, lists in sectors.items():
        short = len(published.names.get(sector, ())) - len(lists["names"])
        if lists["alternates"]:
            lists["names"] += lists["alternates"][: max(short, 0)]
            lists["alternates"] = lists["alternates"][max(short, 0) :]
    return sectors


def _published() -> CompanyUniverse:
    return load_universe(DEFAULT_UNIVERSE.parent / "published")


def read_members(fetcher: Fetcher, universe: str, window: Window, addresses: Addresses) -> Members:
    """Select the companies to fetch.

    Parameters
    ----------
    universe : `sp500-30`, `sp500`, or the path of a file: one ticker per line, or CSV like `constituents.csv`.

    Raises
    ------
    InputError : the file is unreadable or has no companies.
    SourceError : an invalid list of constituents.
    DownloadError, OSError : as in `Fetcher.fetch`.
    """
    folder = fetcher.folder.path
    if universe not in (PUBLISHED, INDEX):
        return _read_user_list(fetcher, Path(universe), addresses)
    _download(fetcher, addresses)
    listed = parse_constituents(folder / CONSTITUENTS)
    if universe == INDEX:
        chosen = {name: one for name, one in listed.items() if one.date_added is None or one.date_added <= window.last}
        return _with_ciks(fetcher, chosen, frozenset(), addresses)
    published = _published()
    chosen: dict[str, SecurityRecord] = {}
    for sector, names in published.names.items():
        for symbol in (*names, *published.alternates[sector]):
            chosen[symbol] = replace(listed.get(symbol) or SecurityRecord(symbol, symbol), sector=sector)
    alternates = frozenset(symbol for names in published.alternates.values() for symbol in names)
    return _with_ciks(fetcher, chosen, alternates, addresses)


def _download(fetcher: Fetcher, addresses: Addresses) -> None:
    fetcher.fetch(FetchItem(CONSTITUENTS, (SourceRequest("constituents", addresses.constituents, _constituents),)))
    entry = fetcher.folder.have(CONSTITUENTS)
    if entry is not None and entry.absent:
        raise SourceError(addresses.constituents, "not found", remedy="set addresses.constituents in the configuration")


def _constituents(body: bytes) -> None:
    refuse_page(body, "a list of constituents")
    head = body.partition(b"\n")[0].decode("utf-8-sig", "replace")
    columns = {cell.strip() for cell in head.split(",")}
    if not columns.issuperset(_HEADER):
        raise ContentError(f"not a list of constituents: {excerpt(body)!r}")
    if not body.endswith(b"\n"):
        raise ContentError("a list of constituents that is cut off")


def _read_user_list(fetcher: Fetcher, path: Path, addresses: Addresses) -> Members:
    """Read a user's list; look up plain tickers in the list of constituents."""
    try:
        text = read_text(path)
    except SourceError as error:
        raise InputError(f"--universe {error}; or one of {PUBLISHED}, {INDEX}") from None
    head = {cell.strip() for cell in text.partition("\n")[0].split(",")}
    if head.issuperset(_HEADER):
        listed = parse_constituents(path)
        fetcher.folder.write_user_file(CONSTITUENTS, path.name, text.encode())
        return _with_ciks(fetcher, listed, frozenset(), addresses)
    tickers: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        ticker = symbol_of(line.partition("#")[0].strip())
        if not ticker:
            continue
        if not ticker.replace("-", "").isalnum() or ticker in tickers:
            what = "appears twice" if ticker in tickers else "is not a ticker"
            raise InputError(f"{path}, line {number}: {ticker!r} {what}; write one ticker per line, without repeats")
        tickers[ticker] = number
    if not tickers:
        raise InputError(f"{path}: has no tickers; write one per line")
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
    fetcher: Fetcher, chosen: Mapping[str, SecurityRecord], alternates: frozenset[str], addresses: Addresses
) -> Members:
    """Add missing CIKs from the SEC's list; omit and note securities without one."""
    known: Mapping[str, str] = {}
    if any(one.cik is None for one in chosen.values()):
        entry = fetcher.fetch(tickers_item(addresses))
        known = {} if entry.absent else tickers_in(fetcher.folder.read(entry.path))
    securities: dict[str, SecurityRecord] = {}
    notes: list[str] = []
    for symbol, one in chosen.items():
        cik = one.cik or known.get(symbol)
        if cik is None:
            notes.append(f"{symbol} is left out: neither the constituents nor the SEC's list of tickers know its CIK.")
        else:
            securities[symbol] = replace(one, cik=cik)
    return Members(securities, alternates, tuple(notes))
