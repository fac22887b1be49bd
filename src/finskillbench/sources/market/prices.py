"""Daily prices of Yahoo Finance and yfinance, in all of their header variants."""

import math
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources import files

SUFFIXES = (".csv", ".csv.gz")
MAX_VOLUME = 1e12
"""Maximum shares per session: the most traded names reach some 1e9, so larger values are damaged cells."""
SPIKE = 0.60
"""Minimum rise of a spike, or fall after one, that the next session reverts and is therefore a wrong price."""
REVERTED = 0.10
"""Maximum share of a spike (in logarithms) that remains after the next session: 5 % of the price at +60 %."""
RANGE_TOLERANCE = 1e-6
"""Relative distance of a close from [low, high] that the rounding of adjusted prices explains."""
_KNOWN = {
    "date": "date",
    "price": "date",  # index column of yfinance's multi-line header
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

    frame : date, open, high, low, close, adj_close, volume, dividends, splits, from `start` on; absent values are null.
    has_ohlcv : open, high, low and volume are present. first_line : line (1-based) of the frame's first row.
    """

    path: Path
    ticker: str
    frame: pl.DataFrame
    has_ohlcv: bool
    first_line: int


def has_ohlcv(path: Path) -> bool:
    """Return true if the header of a price file has open, high, low and volume."""
    columns, _ = _header(path, files.read_text(path), files.ticker_of(path))
    return {"open", "high", "low", "volume"} <= set(columns)


def parse_prices(path: Path, *, start: date = files.DEFAULT_START, problems: files.Problems = None) -> PriceFile:
    """Read one price file and check every cell.

    Without an `Adj Close` column the close is already adjusted (yfinance's auto_adjust). Open, high or low of 0
    (Yahoo's "not recorded") and an empty volume become null. Only order and duplicates are checked before `start`.

    Raises
    ------
    SourceError : wrong columns, invalid cell or date, a close missing, not positive or outside [low, high], high < low,
        a volume negative or beyond `MAX_VOLUME`, a one-day spike, another ticker's row.
    """
    ticker = files.ticker_of(path)
    text = files.read_text(path)
    columns, header = _header(path, text, ticker)
    body = text.split("\n", header)
    table = files.read_cells(path, body[header] if len(body) > header else "", columns, header + 1, problems)
    dates = files.parse_dates(table, "date")
    values = {name: files.parse_numbers(table, name) for name in columns if name not in ("date", "stockname")}
    if "stockname" in columns:
        table.refuse(
            table.cells["stockname"].str.to_uppercase().str.replace_all(".", "-", literal=True) != ticker,
            f"the row is not of {ticker} but of",
            value="stockname",
            remedy="one ticker per file, named after it",
        )
    inside = dates >= start
    values.setdefault("adj_close", values["close"])
    _check_values(table, values, inside)
    _refuse_spikes(table, dates, values, inside)
    complete = {"open", "high", "low", "volume"} <= set(values)
    frame = pl.DataFrame({"date": dates, **values}).filter(inside)
    frame = frame.with_columns(
        *(pl.lit(None, dtype=pl.Float64).alias(name) for name in _ORDER if name not in frame.columns)
    ).with_columns(pl.when(pl.col(name) > 0).then(pl.col(name)).alias(name) for name in ("open", "high", "low"))
    # Dates increase, so only rows at the front are omitted.
    first_line = table.first_line + len(dates) - frame.height
    return PriceFile(path, ticker, frame.select("date", *_ORDER), complete, first_line)


_ORDER = ("open", "high", "low", "close", "adj_close", "volume", "dividends", "splits")


def _header(path: Path, text: str, ticker: str) -> tuple[list[str], int]:
    """Return canonical column names and the number of header lines (1, or yfinance's 3)."""
    lines = text.split("\n", 3)[:3]
    raw = [cell.strip().strip('"') for cell in lines[0].rstrip("\r").split(",")]
    columns = [_KNOWN.get(cell.lower(), "") for cell in raw]
    for cell, column in zip(raw, columns, strict=True):
        if not column:
            raise SourceError(
                path, f"unknown column {cell!r}", line=1, remedy="expected Date,Open,High,Low,Close,Volume"
            )
    if len(set(columns)) < len(columns):
        raise SourceError(path, "a column appears twice in the header", line=1, remedy="one column per field")
    for needed in ("date", "close"):
        if needed not in columns:
            raise SourceError(path, f"no {needed} column", line=1, remedy="expected Date,Open,High,Low,Close,Volume")
    if raw[0].lower() != "price":
        return columns, 1
    tickers = lines[1].split(",")[1:] if len(lines) > 1 else []
    if {files.symbol_of(cell.strip()) for cell in tickers} != {ticker}:
        raise SourceError(path, f"the second header line does not name {ticker}", line=2, remedy="one ticker per file")
    if len(lines) < 3 or lines[2].strip().rstrip(",").lower() != "date":
        raise SourceError(path, "the third header line is not 'Date,,,'", line=3, remedy="download it again")
    return columns, 3


def _check_values(table: files.TextTable, values: dict[str, pl.Series], inside: pl.Series) -> None:
    for name in ("close", "adj_close"):
        problem = f"{name} is missing or not positive:"
        shown = name if name in table.cells.columns else "close"
        table.refuse(inside & values[name].is_null(), problem, value=shown, remedy="repair or delete the row")
        table.refuse(inside & (values[name] <= 0), problem, value=shown, remedy="repair or delete the row")
    for name in ("open", "high", "low", "volume", "dividends", "splits"):
        if name in values:
            table.refuse(inside & (values[name] < 0), f"{name} is negative:", value=name, remedy="repair the cell")
    if "high" in values and "low" in values:
        high, low = values["high"], values["low"]
        table.refuse(inside & (low > 0) & (high > 0) & (high < low), "high is below low", remedy="repair the row")
    for name, side, beyond in (("low", "below", -1.0), ("high", "above", 1.0)):
        if name in values:
            excess = beyond * (values["close"] / values[name] - 1)
            outside = inside & (values[name] > 0) & (excess > RANGE_TOLERANCE)
            table.refuse(outside, f"the close is {side} the day's {name}:", value="close", remedy="repair the row")
    if "volume" in values:
        table.refuse(
            inside & (values["volume"] > MAX_VOLUME),
            f"volume is beyond {MAX_VOLUME:.0e} shares:",
            value="volume",
            remedy="repair the cell, or empty it if the volume is unknown",
        )


def _refuse_spikes(table: files.TextTable, dates: pl.Series, values: dict[str, pl.Series], inside: pl.Series) -> None:
    """Report a close far from both of its neighbours, which agree: no real price moves like that.

    Lasting moves are kept as corporate actions or news (see `splice.repair_jumps` and the panels' jumps).
    """
    within = inside & inside.shift(1)
    for name in ("close", "adj_close"):
        logs = values[name].set(~inside, None).log()
        move = logs.diff()
        left = logs.shift(-1) - logs.shift(1)
        spikes = (within & (move.abs() > math.log(1 + SPIKE)) & (left.abs() <= REVERTED * move.abs())).fill_null(False)
        row = spikes.arg_max() if spikes.any() else None
        if row is not None:
            before, value, after = (values[name][place] for place in (row - 1, row, row + 1))
            what = (
                f"{name} of {dates[row]} is {value:g} between {before:g} on {dates[row - 1]} and {after:g} on "
                f"{dates[row + 1]}: a spike that the next session undoes"
            )
            files.raise_or_collect(table.error(row, what, remedy="repair or delete the row"), table.problems)
