"""A raw collection as one checked `MarketData`: who is in it, their prices, the factors, the macro series, the facts.

A configured name without usable prices or statements is replaced by the next alternate of its sector, and a note says
so; everything else that is wrong with a file is a `SourceError`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.errors import InternalError, SourceError
from finskillbench.sources.constituents import parse_constituents
from finskillbench.sources.files import DEFAULT_START, files_below, first_folder, ticker_of
from finskillbench.sources.fred import load_fred
from finskillbench.sources.french import load_french
from finskillbench.sources.prices import SUFFIXES, PriceFile, has_ohlcv, parse_prices
from finskillbench.sources.share_counts import cover_counts, on_own_basis
from finskillbench.sources.splice import latest_first, splice
from finskillbench.sources.statements import Statements, parse_statements
from finskillbench.sources.universe import Security, Universe, load_universe, sector_counts

__all__ = ["MarketData", "Security", "Statements", "load_market"]

MAX_GAP = 30
"""Sessions a name may be without prices inside its life; shorter gaps are filled and counted by the panels."""
MIN_SESSIONS = 120
"""Sessions below which a name has no rolling regression (spec: at least 120 observations)."""


@dataclass(frozen=True, slots=True)
class MarketData:
    """Everything the panels are built from.

    securities : sorted by symbol.
    prices : long, sorted by symbol and date: symbol, date, open, high, low, close, adj_close, volume (Float64), all but
        adj_close as traded; null where the provider recorded none, or does not say what was traded.
    splits : symbol -> date, price, shares: what splits and spin-offs divide earlier prices by and multiply earlier
        share counts with.
    factors : date, mkt_rf, smb, hml, rmw, cma, mom, rf; daily decimals.
    macro : FRED id -> date, value, as published.
    statements : symbol -> published figures.
    notes : what was replaced, suspicious or not covered, one sentence each.
    files : series that the dates of an edition depend on -> the file to extend where it ends too early: `factors`
        (of the factor files the one that ends first) and `DGS3MO`.
    """

    securities: tuple[Security, ...]
    prices: pl.DataFrame
    factors: pl.DataFrame
    macro: Mapping[str, pl.DataFrame]
    statements: Mapping[str, Statements]
    notes: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    splits: Mapping[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])


@dataclass(slots=True)
class _Collection:
    """Files of the raw folder by ticker, and what has been parsed of them so far."""

    prices: dict[str, list[Path]]
    statements: dict[str, Path]
    covers: dict[str, list[Path]]
    start: date
    parsed: dict[str, list[PriceFile]] = field(default_factory=dict)

    def price_files(self, symbol: str) -> list[PriceFile]:
        """Price sets of a symbol with OHLCV and at least one row in the window."""
        if symbol not in self.parsed:
            files = (parse_prices(path, start=self.start) for path in self.prices.get(symbol, ()))
            self.parsed[symbol] = [f for f in files if f.has_ohlcv and f.frame.height]
        return self.parsed[symbol]


def load_market(raw_dir: Path, *, names: int | None = None, start: date = DEFAULT_START) -> MarketData:
    """Read and check a raw collection.

    Parameters
    ----------
    raw_dir : folder with prices/, famafrench/ (or french/), fred/, statements_derived/ (or statements/) and, where
        there are any, constituents/constituents.csv and universe.json; files may lie one sub-folder deep.
    names : size of the universe, split over sectors in proportion to the configured one; None takes it as it is.
    start : first day of prices, factors and macro series.

    Raises
    ------
    SourceError : any file that cannot be trusted, or a sector that cannot supply its names.
    """
    raw_dir = Path(raw_dir)
    if not raw_dir.is_dir():
        raise SourceError(raw_dir, "no such folder", remedy="name a raw collection")
    universe = load_universe(raw_dir)
    listed = _constituents(raw_dir)
    statements = _by_ticker(first_folder(raw_dir, "statements_derived", "statements"), (".json",))
    collection = _Collection(
        prices=_by_ticker(first_folder(raw_dir, "prices"), SUFFIXES),
        statements={ticker: paths[0] for ticker, paths in statements.items()},
        covers=_company_facts(raw_dir),
        start=start,
    )
    _refuse_unknown(collection, universe.symbols() | set(listed))
    factors, shortest = load_french(first_folder(raw_dir, "famafrench", "french"), start=start)
    macro, macro_notes, macro_files = load_fred(first_folder(raw_dir, "fred"), start=start)
    selection = _Selection(universe, listed, collection, _last_sessions(universe, collection))
    selection.choose(names)
    symbols, notes = sorted(selection.securities), selection.notes
    prices = pl.concat([selection.prices[s].select(pl.lit(s).alias("symbol"), pl.all()) for s in symbols])
    _refuse_gaps(prices, collection)
    securities = tuple(selection.securities[s] for s in symbols)
    if (unknown := sum(s.isin is None or s.cusip is None for s in securities)) > 0:
        notes.append(f"ISIN and CUSIP are not in the collection for {unknown} of {len(symbols)} names.")
    if holes := factors.null_count().sum_horizontal().item():
        notes.append(f"{holes} factor values are missing (-99.99) from {start} on.")
    return MarketData(
        securities=securities,
        prices=prices,
        factors=factors,
        macro=macro,
        statements={s: selection.statements[s] for s in symbols},
        notes=(*notes, *macro_notes),
        files={"factors": shortest, "DGS3MO": macro_files["DGS3MO"]},
        splits={s: selection.splits[s] for s in symbols},
    )


@dataclass(slots=True)
class _Selection:
    """The names taken so far, each with its prices and statements; `last` is the session that prices have to reach."""

    universe: Universe
    listed: Mapping[str, Security]
    collection: _Collection
    last: date
    securities: dict[str, Security] = field(default_factory=dict[str, Security])
    prices: dict[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    statements: dict[str, Statements] = field(default_factory=dict[str, Statements])
    splits: dict[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    notes: list[str] = field(default_factory=list[str])

    def choose(self, names: int | None) -> None:
        """Fill each sector's quota from its names, then its alternates; note every replacement."""
        universe = self.universe
        sizes = {sector: len(listed) for sector, listed in universe.names.items()}
        quota = sizes if names is None else sector_counts(sizes, names)
        for sector, wanted in quota.items():
            configured = set(universe.names[sector][:wanted])
            waiting: list[tuple[str, str]] = []
            taken = 0
            for symbol in (*universe.names[sector], *universe.alternates[sector]):
                if taken == wanted:
                    break
                if (reason := self._take(symbol, sector)) is not None:
                    waiting.append((symbol, reason))
                    continue
                taken += 1
                if waiting and symbol not in configured:
                    replaced, why = waiting.pop(0)
                    self.notes.append(f"{replaced} ({sector}) has {why}; {symbol} takes its place.")
            if taken < wanted:
                why = "; ".join(f"{symbol} has {reason}" for symbol, reason in waiting) or "no further alternates"
                problem = f"{sector} supplies {taken} of {wanted} names ({why})"
                raise SourceError(universe.path, problem, remedy="add files or alternates, or ask for fewer names")

    def _take(self, symbol: str, sector: str) -> str | None:
        """Add the name; or say why it cannot be used."""
        files = self.collection.price_files(symbol)
        if not files:
            return "no prices with volume"
        if symbol not in self.collection.statements:
            return "no statements"
        facts, described = parse_statements(self.collection.statements[symbol])
        if (gap := facts.gap()) is not None:
            return gap
        frame, splits, found = splice(files)
        self.collection.parsed[symbol] = []  # 3,000 names need not lie in memory twice
        if frame.height < MIN_SESSIONS:
            return f"{frame.height} sessions of prices where {MIN_SESSIONS} are needed"
        if (ends := frame["date"][-1]) < self.last:
            return f"prices that end on {ends}"
        self.prices[symbol], self.splits[symbol] = frame, splits
        # The configured sector wins: the published universe follows Yahoo's classes, the index list GICS.
        if symbol in self.listed and (other := self.listed[symbol].sector) != sector:
            self.notes.append(f"{symbol}: taken as {sector} as configured; the constituents list says {other}.")
        security = self.securities[symbol] = self._security(symbol, sector, described)
        counts = on_own_basis(symbol, facts.diluted_shares, facts.shares_outstanding, splits)
        covers = [*self.collection.covers.get(symbol, ()), *self.collection.covers.get(f"CIK{security.cik}", ())]
        self.statements[symbol] = replace(
            facts,
            diluted_shares=counts.table,
            broken_shares=counts.broken,
            **({"cover_shares": max(map(cover_counts, covers), key=len)} if covers else {}),
        )
        found += counts.notes
        self.notes.extend(found)
        return None

    def _security(self, symbol: str, sector: str, described: Mapping[str, str]) -> Security:
        """The universe's own record, else that of the constituents, completed from the statements' header."""
        if symbol in self.universe.securities:
            return self.universe.securities[symbol]
        found = self.listed.get(symbol) or Security(symbol, described.get("name", symbol))
        cik = found.cik or described.get("cik")
        return replace(found, sector=sector, cik=cik.zfill(10) if cik else None, exchange=described.get("exchange"))


def _company_facts(raw_dir: Path) -> dict[str, list[Path]]:
    """Files of company facts by the name they go by, a ticker or `CIK` and ten digits."""
    found: dict[str, list[Path]] = {}
    if (raw_dir / "companyfacts").is_dir():
        for path in sorted((raw_dir / "companyfacts").rglob("*.json*")):
            found.setdefault(path.name.split(".")[0], []).append(path)
    return found


def _by_ticker(folder: Path, suffixes: tuple[str, ...]) -> dict[str, list[Path]]:
    """Files by ticker; a ticker may have one file per sub-folder, not two in one."""
    found: dict[str, list[Path]] = {}
    for path in files_below(folder, suffixes):
        earlier = found.setdefault(ticker_of(path), [])
        if any(other.parent == path.parent for other in earlier):
            raise SourceError(path, f"a second file of {ticker_of(path)} in one folder", remedy="keep one")
        earlier.append(path)
    if not found:
        raise SourceError(folder, f"no {' or '.join(suffixes)} files", remedy="add one file per ticker")
    return found


def _refuse_unknown(collection: _Collection, known: set[str] | frozenset[str]) -> None:
    """A price set with volume or a statement of a ticker nobody lists is a misnamed file; an index series is not."""
    for symbol in sorted((set(collection.prices) | set(collection.statements)) - known):
        paths = [p for p in collection.prices.get(symbol, ()) if has_ohlcv(p)]
        paths += [collection.statements[symbol]] if symbol in collection.statements else []
        for path in paths:
            raise SourceError(
                path, f"unknown ticker {symbol}", remedy="rename the file or list the ticker in universe.json"
            )


def _constituents(raw_dir: Path) -> Mapping[str, Security]:
    for path in (raw_dir / "constituents" / "constituents.csv", raw_dir / "constituents.csv"):
        if path.is_file():
            return parse_constituents(path)
    return {}


def _last_sessions(universe: Universe, collection: _Collection) -> date:
    """The session 30 before the last one of any configured name: whoever ends before it is no longer traded."""
    ends = [
        f.frame["date"].tail(MAX_GAP + 1)
        for listed in universe.names.values()
        for symbol in listed
        for f in collection.price_files(symbol)
    ]
    if not ends:
        raise SourceError(
            universe.path, f"no configured name has prices from {collection.start} on", remedy="add prices"
        )
    return pl.concat(ends).unique().sort().tail(MAX_GAP + 1)[0]


def _refuse_gaps(prices: pl.DataFrame, collection: _Collection) -> None:
    """Raise where a name has no prices over more than 30 sessions of the others, inside its life."""
    sessions = prices.select(pl.col("date").unique().sort()).with_row_index("session")
    gaps = (
        prices.select("symbol", "date")
        .join(sessions, on="date", how="left")
        .sort("symbol", "date")
        .with_columns(
            (pl.col("session").cast(pl.Int64).diff().over("symbol") - 1).alias("missing"),
            pl.col("date").shift(1).over("symbol").alias("from"),
        )
        .filter(pl.col("missing") > MAX_GAP)
    )
    if not gaps.is_empty():
        row = gaps.row(0, named=True)
        path, line = _row_of(row["symbol"], row["from"], collection)
        raise SourceError(
            path,
            f"{row['symbol']} has no prices for {row['missing']} sessions between {row['from']} and {row['date']}",
            line=line,
            remedy="add the missing history, or list the ticker no longer",
        )


def _row_of(symbol: str, day: date, collection: _Collection) -> tuple[Path, int]:
    """File and line of a price: of several downloads the latest that has it, as when they are joined."""
    collection.parsed.pop(symbol, None)  # forgotten once it was joined
    for file in latest_first(collection.price_files(symbol)):
        row = file.frame["date"].index_of(day)
        if row is not None:
            return file.path, file.first_line + row
    raise InternalError(f"prices of {symbol} on {day} come from no file")
