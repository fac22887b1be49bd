"""Daily prices as Yahoo Finance and yfinance write them, in every header variant seen in the wild."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.files import (
    DEFAULT_START,
    TextTable,
    parse_dates,
    parse_numbers,
    read_cells,
    read_text,
    ticker_of,
)

SUFFIXES = (".csv", ".csv.gz")
_KNOWN = {
    "date": "date",
    "price": "date",  # yfinance's multi-header calls the index column "Price"
    "open": "open",
    "high": "high",
    "low": "low",
    "close": "close",
    "adj close": "adj_close",
    "adj_close": "adj_close",
    "adjclose": "adj_close",
    "volume": "volume",
    "dividends": "dividends",
    "stock splits": "splits",
    "capital gains": "capital_gains",
    "stockname": "stockname",
    "symbol": "stockname",
    "ticker": "stockname",
}


@dataclass(frozen=True, slots=True)
class PriceFile:
    """One checked price file.

    frame : date, open, high, low, close, adj_close, volume, dividends, splits, from `start` on; open, high,
        low, volume, dividends and splits are null where the file does not give them.
    has_ohlcv : the file carries open, high, low and volume; a close-only file does not count as a price set.
    """

    path: Path
    ticker: str
    frame: pl.DataFrame
    has_ohlcv: bool


def has_ohlcv(path: Path) -> bool:
    """Whether the header of a price file promises open, high, low and volume."""
    columns, _ = _header(path, read_text(path), ticker_of(path))
    return {"open", "high", "low", "volume"} <= set(columns)


def parse_prices(path: Path, *, start: date = DEFAULT_START) -> PriceFile:
    """Read one price file and check every cell of it.

    Without an `Adj Close` column the close is already adjusted (yfinance's auto_adjust). Open, high or low of 0
    (Yahoo's "not recorded") become null. Order and duplicates are checked over the whole file, values from `start`.

    Raises
    ------
    SourceError : unreadable file or cell, wrong columns, duplicate or unsorted dates, a close that is missing
        or not positive, high < low, negative volume, a row naming another ticker.
    """
    ticker = ticker_of(path)
    text = read_text(path)
    columns, header_lines = _header(path, text, ticker)
    body = text.split("\n", header_lines)
    table = read_cells(path, body[header_lines] if len(body) > header_lines else "", columns, header_lines + 1)
    dates = parse_dates(table, "date")
    values = {name: parse_numbers(table, name) for name in columns if name not in ("date", "stockname")}
    if "stockname" in columns:
        table.refuse(
            table.cells["stockname"].str.to_uppercase().str.replace_all(".", "-", literal=True) != ticker,
            f"the row is not of {ticker} but of",
            value="stockname",
            mend="one ticker per file, named after it",
        )
    inside = dates >= start
    values.setdefault("adj_close", values["close"])
    _check_values(table, values, inside)
    complete = {"open", "high", "low", "volume"} <= set(values)
    frame = pl.DataFrame({"date": dates, **values}).filter(inside)
    frame = frame.with_columns(
        *(pl.lit(None, dtype=pl.Float64).alias(name) for name in _ORDER if name not in frame.columns),
    ).with_columns(pl.when(pl.col(name) > 0).then(pl.col(name)).alias(name) for name in ("open", "high", "low"))
    return PriceFile(path, ticker, frame.select("date", *_ORDER), complete)


_ORDER = ("open", "high", "low", "close", "adj_close", "volume", "dividends", "splits")


def _header(path: Path, text: str, ticker: str) -> tuple[list[str], int]:
    """Canonical column names and the number of header lines (1, or yfinance's broken 3)."""
    lines = text.split("\n", 3)[:3]
    raw = [cell.strip().strip('"') for cell in lines[0].rstrip("\r").split(",")]
    columns = [_KNOWN.get(cell.lower(), "") for cell in raw]
    for cell, column in zip(raw, columns, strict=True):
        if not column:
            raise SourceError(path, f"unknown column {cell!r}", line=1, mend="expected Date,Open,High,Low,Close,Volume")
    if len(set(columns)) < len(columns):
        raise SourceError(path, "a column appears twice in the header", line=1, mend="one column per field")
    for needed in ("date", "close"):
        if needed not in columns:
            raise SourceError(path, f"no {needed} column", line=1, mend="expected Date,Open,High,Low,Close,Volume")
    if raw[0].lower() != "price":
        return columns, 1
    tickers = {cell.strip().upper().replace(".", "-") for cell in lines[1].split(",")[1:]} if len(lines) > 1 else set()
    if tickers != {ticker}:
        raise SourceError(path, f"the second header line does not name {ticker}", line=2, mend="one ticker per file")
    if len(lines) < 3 or lines[2].strip().rstrip(",").lower() != "date":
        raise SourceError(path, "the third header line is not 'Date,,,'", line=3, mend="download it again")
    return columns, 3


def _check_values(table: TextTable, values: dict[str, pl.Series], inside: pl.Series) -> None:
    for name in ("close", "adj_close"):
        problem = f"{name} is missing or not positive:"
        shown = name if name in table.cells.columns else "close"
        table.refuse(inside & values[name].is_null(), problem, value=shown, mend="repair or delete the row")
        table.refuse(inside & (values[name] <= 0), problem, value=shown, mend="repair or delete the row")
    for name in ("open", "high", "low", "volume", "dividends", "splits"):
        if name in values:
            table.refuse(inside & (values[name] < 0), f"{name} is negative:", value=name, mend="repair the cell")
    if "high" in values and "low" in values:
        high, low = values["high"], values["low"]
        table.refuse(inside & (low > 0) & (high > 0) & (high < low), "high is below low", mend="repair the row")
