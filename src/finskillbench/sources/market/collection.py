"""Read a raw collection as one checked `MarketData`, including Kenneth R. French's daily factors.

Alternates replace configured names without usable prices or statements. Other invalid data raise `SourceError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.errors import InternalError, SourceError
from finskillbench.sources.companies.constituents import constituents_file, parse_constituents
from finskillbench.sources.companies.statements import Statements
from finskillbench.sources.companies.universe import CompanyUniverse, SecurityRecord, load_universe, universe_of
from finskillbench.sources.files import (
    DEFAULT_START,
    Problems,
    attempt,
    files_below,
    first_folder,
    parse_dates,
    parse_numbers,
    raise_or_collect,
    read_cells,
    read_text,
    ticker_of,
)
from finskillbench.sources.market.fred import load_fred
from finskillbench.sources.market.prices import SUFFIXES, has_ohlcv
from finskillbench.sources.market.splice import WRITE_ONE, Files, Selection, latest_first

__all__ = ["MarketData", "SecurityRecord", "Statements", "load_french", "load_market", "parse_french"]

_NAMES = {"mkt-rf": "mkt_rf", "smb": "smb", "hml": "hml", "rmw": "rmw", "cma": "cma", "rf": "rf", "mom": "mom"}
_MISSING_BELOW = -99.0
_MIN_ROWS_FOR_UNIT_CHECK = 60


def parse_french(path: Path, *, start: date = DEFAULT_START, problems: Problems = None) -> pl.DataFrame:
    """Read one daily factor file as decimals: date and factors by the project's names; -99.99 and -999 are null.

    The header starts with `Date,` or `,`; rows end at a blank line or the copyright. Dates are YYYYMMDD or ISO.

    Raises
    ------
    SourceError : no header, unknown factor, invalid row or dates, other text after the rows, figures not in percent.
    """
    lines = read_text(path).split("\n")
    head = next((i for i, line in enumerate(lines) if line.lower().startswith(("date,", ","))), None)
    if head is None:
        raise SourceError(path, "no header line such as 'Date,Mkt-RF,SMB,...'", line=1, remedy="download it again")
    raw = [cell.strip() for cell in lines[head].split(",")[1:]]
    columns = [_NAMES.get(cell.lower(), "") for cell in raw]
    if "" in columns or len(set(columns)) < len(columns):
        raise SourceError(path, f"unknown or repeated factors in {raw}", line=head + 1, remedy="use the daily file")
    end = next((i for i in range(head + 1, len(lines)) if not lines[i].strip()[:1].isdigit()), len(lines))
    for i in range(end, len(lines)):
        if lines[i].strip() and not lines[i].strip().lower().startswith("copyright"):
            raise SourceError(path, f"unexpected text after the rows: {lines[i].strip()[:40]!r}", line=i + 1)
    table = read_cells(path, "\n".join(lines[head + 1 : end]), ["date", *columns], head + 2, problems)
    dates = parse_dates(table, "date", ("%Y-%m-%d", "%Y%m%d"))
    values: dict[str, pl.Series] = {}
    for name in columns:
        numbers = parse_numbers(table, name)
        table.refuse(numbers.is_null(), f"{name} is empty", remedy="missing figures are -99.99")
        values[name] = numbers.set(numbers < _MISSING_BELOW, None)
    market = values.get("mkt_rf", values.get("mom"))
    deviation = market.std() if market is not None and len(market) >= _MIN_ROWS_FOR_UNIT_CHECK else None
    if isinstance(deviation, float) and deviation < 0.05:
        raise SourceError(
            path, "the figures look like decimals, not percent", line=head + 2, remedy="use the library's own file"
        )
    frame = pl.DataFrame({"date": dates, **values}).filter(dates >= start)
    return frame.with_columns(pl.exclude("date") / 100)


def load_french(folder: Path, *, start: date = DEFAULT_START) -> tuple[pl.DataFrame, Path]:
    """Read the daily factors and risk-free rate: date, mkt_rf, smb, hml, rmw, cma, mom, rf (decimals).

    Also return the file that ends first. A date within both spans that one file lacks is an error.
    """
    five_path = _the_file(folder, "5_factors")
    momentum_path = _the_file(folder, "momentum")
    five, momentum = parse_french(five_path, start=start), parse_french(momentum_path, start=start)
    for path, frame, wanted in ((five_path, five, (*FACTORS[:5], "rf")), (momentum_path, momentum, ("mom",))):
        absent = [name for name in wanted if name not in frame.columns]
        if absent:
            raise SourceError(path, f"no columns {', '.join(absent)}", remedy="use the daily 2x3 file of the library")
        if frame.is_empty():
            raise SourceError(path, f"no rows from {start} on", remedy="download a newer file")
    for path, frame, other in ((momentum_path, momentum, five), (five_path, five, momentum)):
        inside = other.filter(pl.col("date").is_between(frame["date"][0], frame["date"][-1]))
        holes = inside.join(frame, on="date", how="anti")["date"]
        if len(holes):
            raise SourceError(path, f"no row for {holes[0]}, which the other factor file has", remedy="download both")
    shortest = momentum_path if momentum["date"][-1] < five["date"][-1] else five_path
    return five.join(momentum, on="date", how="inner").sort("date").select("date", *FACTORS, "rf"), shortest


def _the_file(folder: Path, part: str) -> Path:
    kept = [f for f in files_below(folder, (".csv", ".csv.gz")) if part in f.name.lower() and "daily" in f.name.lower()]
    if len(kept) != 1:
        raise SourceError(
            folder,
            f"{len(kept)} daily files named *{part}*daily*.csv where one is expected",
            remedy="add the daily file of the data library" if not kept else "keep one of them",
        )
    return kept[0]


MAX_GAP = 30
"""Maximum sessions without prices inside a name's life; panels fill and count shorter gaps."""


@dataclass(frozen=True, slots=True)
class MarketData:
    """Source of the market panels.

    securities : sorted by symbol.
    prices : sorted by symbol and date: symbol, date, open, high, low, close, adj_close, volume (Float64), all but
        adj_close as traded; null where the provider gives no value or the traded one is unknown.
    splits : symbol -> date, price, shares: divisor of earlier prices and multiplier of earlier share counts, for splits
        and spin-offs.
    factors : date, mkt_rf, smb, hml, rmw, cma, mom, rf; daily decimals. macro : FRED id -> date, value, as published.
    statements : symbol -> published figures. notes : replaced, suspicious or missing data.
    files : series that limits the dates of an edition (`factors`, `DGS3MO`) -> file to extend.
    """

    securities: tuple[SecurityRecord, ...]
    prices: pl.DataFrame
    factors: pl.DataFrame
    macro: Mapping[str, pl.DataFrame]
    statements: Mapping[str, Statements]
    notes: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    splits: Mapping[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])


def load_market(raw_dir: Path, *, names: int | None = None, start: date = DEFAULT_START) -> MarketData:
    """Read and check a raw collection.

    Parameters
    ----------
    raw_dir : folder as documented in docs/raw-data.md. Without universe.json the universe is the published one, or if
        the files do not fill that, every constituent with prices and statements.
    names : size of the universe, split over sectors in proportion to the configured one; None keeps that.
    start : first day of prices, factors and macro series.

    Raises
    ------
    SourceError : an invalid file, or a sector that cannot supply its names.
    """
    market = read_market(raw_dir, names=names, start=start)
    if market is None:
        raise InternalError(f"{raw_dir}: the market was not read, and no problem was recorded")
    return market


def read_market(
    raw_dir: Path, *, names: int | None = None, start: date = DEFAULT_START, problems: Problems = None
) -> MarketData | None:
    """`load_market`, or with `problems` collect all errors and return None if there are any."""
    raw_dir = Path(raw_dir)
    if not raw_dir.is_dir():
        raise SourceError(raw_dir, "no such folder", remedy="name a raw collection")
    before = len(problems or ())
    configured = attempt(lambda: load_universe(raw_dir), problems)
    listed = attempt(lambda: _constituents(raw_dir), problems) or {}
    statements = _by_ticker(raw_dir, ("statements_derived", "statements"), (".json",), problems)
    collection = Files(
        prices=_by_ticker(raw_dir, ("prices",), SUFFIXES, problems),
        statements={ticker: paths[0] for ticker, paths in statements.items()},
        covers=_company_facts(raw_dir),
        start=start,
        problems=problems,
    )
    french = attempt(lambda: load_french(first_folder(raw_dir, "famafrench", "french"), start=start), problems)
    fred = attempt(lambda: load_fred(first_folder(raw_dir, "fred"), start=start), problems)
    if configured is None:
        return None
    universe = _supported(configured, listed, collection)
    _refuse_unknown(collection, configured.symbols() | set(listed), problems)
    last = attempt(lambda: _last_sessions(universe, collection), problems)
    if last is None:
        return None
    selection = Selection(universe, listed, collection, last)
    if universe is not configured:
        selection.notes.append(
            "There is no universe.json, and the files do not fill the published universe: all names of "
            "constituents.csv with prices and statements are taken, in its sectors."
        )
    selection.choose(names)
    if selection.prices:
        _refuse_gaps(pl.concat(_long(selection.prices)), collection)
    elif universe is not configured:
        raise_or_collect(
            SourceError(raw_dir, f"not one name can be used: {selection.notes[-1]}", remedy=WRITE_ONE), problems
        )
    if french is None or fred is None or len(problems or ()) > before:
        return None
    return _market(selection, french, fred, start)


def _long(prices: Mapping[str, pl.DataFrame]) -> list[pl.DataFrame]:
    return [prices[symbol].select(pl.lit(symbol).alias("symbol"), pl.all()) for symbol in sorted(prices)]


def _market(
    selection: Selection,
    french: tuple[pl.DataFrame, Path],
    fred: tuple[Mapping[str, pl.DataFrame], tuple[str, ...], Mapping[str, Path]],
    start: date,
) -> MarketData:
    (factors, shortest), (macro, macro_notes, macro_files) = french, fred
    symbols, notes = sorted(selection.securities), selection.notes
    securities = tuple(selection.securities[s] for s in symbols)
    if (unknown := sum(s.isin is None or s.cusip is None for s in securities)) > 0:
        notes.append(f"ISIN and CUSIP are not in the collection for {unknown} of {len(symbols)} names.")
    if holes := factors.null_count().sum_horizontal().item():
        notes.append(f"{holes} factor values are missing (-99.99) from {start} on.")
    return MarketData(
        securities=securities,
        prices=pl.concat(_long(selection.prices)),
        factors=factors,
        macro=macro,
        statements={s: selection.statements[s] for s in symbols},
        notes=(*notes, *macro_notes),
        files={"factors": shortest, "DGS3MO": macro_files["DGS3MO"]},
        splits={s: selection.splits[s] for s in symbols},
    )


def _supported(configured: CompanyUniverse, listed: Mapping[str, SecurityRecord], collection: Files) -> CompanyUniverse:
    """Return the configured universe, or one of the files if these do not fill the published one."""
    symbols = set(collection.prices) & set(collection.statements)
    filled = all(
        len(symbols.intersection((*names, *configured.alternates[sector]))) >= len(names)
        for sector, names in configured.names.items()
    )
    if configured.has_file or filled or not symbols.intersection(listed):
        return configured
    return universe_of(listed.values(), symbols, configured.path)


def _company_facts(raw_dir: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    if (raw_dir / "companyfacts").is_dir():
        for path in sorted((raw_dir / "companyfacts").rglob("*.json*")):
            found.setdefault(path.name.split(".")[0], []).append(path)
    return found


def _by_ticker(
    raw_dir: Path, folders: tuple[str, ...], suffixes: tuple[str, ...], problems: Problems
) -> dict[str, list[Path]]:
    """Return files by ticker; a ticker may have one file per sub-folder."""
    folder = attempt(lambda: first_folder(raw_dir, *folders), problems)
    if folder is None:
        return {}
    found: dict[str, list[Path]] = {}
    for path in files_below(folder, suffixes):
        earlier = found.setdefault(ticker_of(path), [])
        if any(other.parent == path.parent for other in earlier):
            twice = SourceError(path, f"a second file of {ticker_of(path)} in one folder", remedy="keep one")
            raise_or_collect(twice, problems)
            continue
        earlier.append(path)
    if not found:
        raise_or_collect(
            SourceError(folder, f"no {' or '.join(suffixes)} files", remedy="add one file per ticker"), problems
        )
    return found


def _refuse_unknown(collection: Files, known: set[str] | frozenset[str], problems: Problems) -> None:
    """Report price sets with volume and statements of unlisted tickers; an index series is allowed."""
    for symbol in sorted((set(collection.prices) | set(collection.statements)) - known):
        paths = [p for p in collection.prices.get(symbol, ()) if attempt(lambda p=p: has_ohlcv(p), problems)]
        paths += [collection.statements[symbol]] if symbol in collection.statements else []
        for path in paths:
            remedy = "rename the file or list the ticker in universe.json"
            raise_or_collect(SourceError(path, f"unknown ticker {symbol}", remedy=remedy), problems)


def _constituents(raw_dir: Path) -> Mapping[str, SecurityRecord]:
    path = constituents_file(raw_dir)
    return {} if path is None else parse_constituents(path)


def _last_sessions(universe: CompanyUniverse, collection: Files) -> date:
    """Return the session 30 before the last one of any configured name, which prices have to reach."""
    ends = [
        f.frame["date"].tail(MAX_GAP + 1)
        for listed in universe.names.values()
        for symbol in listed
        for f in collection.price_files(symbol)
    ]
    if not ends:
        raise SourceError(
            universe.path,
            f"no configured name has prices from {collection.start} on",
            remedy="add prices" if universe.has_file else WRITE_ONE,
        )
    return pl.concat(ends).unique().sort().tail(MAX_GAP + 1)[0]


def _refuse_gaps(prices: pl.DataFrame, collection: Files) -> None:
    """Report names without prices over more than 30 sessions inside their life."""
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
    for row in gaps.iter_rows(named=True):
        path, line = _row_of(row["symbol"], row["from"], collection)
        hole = SourceError(
            path,
            f"{row['symbol']} has no prices for {row['missing']} sessions between {row['from']} and {row['date']}",
            line=line,
            remedy="add the missing history, or remove the ticker from the universe",
        )
        raise_or_collect(hole, collection.problems)


def _row_of(symbol: str, day: date, collection: Files) -> tuple[Path, int]:
    """Return file and line of a price in the latest download that has it."""
    collection.parsed.pop(symbol, None)  # removed after joining
    for file in latest_first(collection.price_files(symbol)):
        row = file.frame["date"].index_of(day)
        if row is not None:
            return file.path, file.first_line + row
    raise InternalError(f"prices of {symbol} on {day} come from no file")
