"""Holdings in CSV files: dates, symbols, and weights or quantities."""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePosixPath

from finskillbench.sources.catalog.document import Mistakes, decoded
from finskillbench.sources.files import symbol_of

CASH = "CASH"
"""Symbol of a cash row: a weight, or US dollars."""
COLUMNS = ("date", "symbol", "weight", "quantity", "nav", "mandate")
ADDS_UP = 5e-4
"""Tolerance of the sum of weights: the largest rounding error of several hundred weights of four decimals."""
MOST_ROWS = 20_000
_FEWEST = 3
_LARGEST = 1e13
"""Maximum of an amount in US dollars or shares."""
_SYMBOL = re.compile(r"[A-Z0-9][A-Z0-9-]{0,11}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,29}")


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One row: line, symbol, and weight (fraction of NAV) or quantity (shares)."""

    line: int
    symbol: str
    amount: float


@dataclass(frozen=True)
class HoldingsBook:
    """Holdings of a file on one date, at least `_FEWEST` names plus cash.

    rows : holdings; `quantities` if amounts are shares and not weights. cash : a fraction of NAV, or US dollars.
    nav : US dollars, None if not stated. mandate : id of the mandate, None if not stated.
    """

    file: str
    name: str
    as_of: date
    rows: tuple[HeldRow, ...] = field(repr=False)
    cash: float
    quantities: bool
    nav: float | None
    mandate: str | None

    @property
    def line(self) -> int:
        """Line of the first row."""
        return self.rows[0].line


def read_books(file: str, data: bytes) -> tuple[HoldingsBook, ...]:
    """Read the books of a file in order of date; CatalogError with all mistakes of the file."""
    mistakes = Mistakes(file)
    name = PurePosixPath(file).stem
    if not _NAME.fullmatch(name):
        mistakes.add(
            None,
            f"{name!r} is not a valid name of a book",
            "rename the file: up to 30 characters of A-Z, a-z, 0-9, _ and -",
        )
    text = decoded(data, mistakes)
    columns = _header(text.split("\n", 1)[0], mistakes)
    reader = csv.reader(text.rstrip("\n").split("\n"))
    next(reader)
    by_date: dict[date, list[tuple[int, dict[str, str]]]] = {}
    for cells in reader:
        line = reader.line_num
        if line > MOST_ROWS:
            raise mistakes.alone(line, f"more than {MOST_ROWS:,} rows", "split the file")
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(columns):
            problem = f"{len(cells)} fields where the header names {len(columns)}"
            mistakes.add(line, problem, "write numbers without commas, or correct the row")
            continue
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        day = _date(row["date"], line, mistakes)
        if day is not None:
            by_date.setdefault(day, []).append((line, row))
    if not by_date and not mistakes.found:
        mistakes.add(2, "no rows under the header", "add the holdings")
    books = [_book(file, name, day, by_date[day], mistakes) for day in sorted(by_date)]
    mistakes.raise_if_any()
    return tuple(book for book in books if book is not None)


def _header(line: str, mistakes: Mistakes) -> list[str]:
    """Parse the column names; raise at once if rows cannot be read without a correction."""
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if mark in line and "," not in line:
            raise mistakes.alone(1, f"fields are separated by {name}", "save as CSV with commas, and decimal points")
    columns = [cell.strip().strip('"').lower() for cell in line.split(",")]
    for name in columns:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, 1) or [f"one of {', '.join(COLUMNS)}"]
            mistakes.add(1, f"{name!r} is an unknown column", f"call it {near[0]}, or remove it")
        elif columns.count(name) > 1:
            mistakes.add(1, f"the column {name} is given twice", "keep one of them")
    for name in ("date", "symbol"):
        if name not in columns:
            mistakes.add(1, f"there is no column {name}", f"name the columns {', '.join(COLUMNS[:3])}")
    if not {"weight", "quantity"} & set(columns):
        mistakes.add(1, "there is neither a column weight nor a column quantity", "add one of them")
    if {"weight", "quantity"} <= set(columns):
        mistakes.add(1, "there are both weights and quantities", "keep one of the two columns")
    if {"nav", "quantity"} <= set(columns):
        mistakes.add(1, "the NAV follows from quantities and prices", "remove the column nav")
    mistakes.raise_if_any()
    return columns


def _date(text: str, line: int, mistakes: Mistakes) -> date | None:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            mistakes.add(line, f"date: there is no {text}", "correct it")
            return None
    mistakes.add(line, f"date: is {text!r}" if text else "date: is empty", "write YYYY-MM-DD")
    return None


def _number(column: str, text: str, line: int, mistakes: Mistakes) -> float | None:
    if not text:
        mistakes.add(line, f"{column}: is empty", "write the number, or delete the row")
    elif "%" in text:
        mistakes.add(line, f"{column}: is {text!r}", "write a fraction, 0.05 for 5 %")
    elif written := _separated(text):
        mistakes.add(line, f"{column}: is {text!r}", f"write {written}")
    elif re.fullmatch(r"\([\d.]+\)", text):
        mistakes.add(line, f"{column}: is {text!r}", "write a short position with a minus sign")
    elif re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text) and abs(number := float(text)) <= _LARGEST:
        return number
    else:
        mistakes.add(line, f"{column}: is {text!r}, not a number", "correct it")
    return None


def _separated(text: str) -> str | None:
    """Suggest spellings without separators, or None; a comma before three digits is ambiguous."""
    grouped = re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:[ ,'\u00a0\u202f]\d{3})+(?:\.\d+)?", text)
    decimal = re.fullmatch(r"[-+]?(?:\d*|\d{1,3}(?:[ .'\u00a0\u202f]\d{3})+),\d+", text)
    whole = re.sub(r"[ ,'\u00a0\u202f]", "", text)
    point = re.sub(r"[ .'\u00a0\u202f]", "", text).replace(",", ".")
    if decimal and not grouped:
        return f"{point}, with a decimal point"
    if decimal:
        return f"{whole} without a thousands separator, or {point} with a decimal point"
    return f"{whole}, without thousands separators" if grouped else None


def _book(
    file: str, name: str, day: date, rows: Sequence[tuple[int, dict[str, str]]], mistakes: Mistakes
) -> HoldingsBook | None:
    before = len(mistakes.found)
    amount = "quantity" if "quantity" in rows[0][1] else "weight"
    held: list[HeldRow] = []
    cash, lines = 0.0, dict[str, int]()
    for line, row in rows:
        symbol, number = _symbol(row["symbol"], line, mistakes), _number(amount, row[amount], line, mistakes)
        if symbol in lines:
            mistakes.add(line, f"symbol: {symbol} is in line {lines[symbol]} of {day} too", "combine the rows")
        if symbol is None or number is None:
            continue
        lines.setdefault(symbol, line)
        if symbol == CASH:
            cash = number
            if cash < 0:
                mistakes.add(line, f"{amount}: cash is {number:g}", "cash must not be negative; correct it")
        elif number:
            held.append(HeldRow(line, symbol, number))
    nav = _one_of(rows, "nav", day, mistakes)
    size = None if nav is None else _number("nav", nav[1], nav[0], mistakes)
    if nav is not None and size is not None and not 1e4 <= size <= _LARGEST:
        mistakes.add(nav[0], f"nav: is {size:g}", "write US dollars, 10,000 at least, without separators")
    mandate = _one_of(rows, "mandate", day, mistakes)
    if len(mistakes.found) > before:
        return None
    first = rows[0][0]
    if len(held) < _FEWEST:
        mistakes.add(first, f"{day} has {len(held)} holdings", f"a book has {_FEWEST} at least")
    elif amount == "weight":
        _check_sum(first, day, math.fsum(row.amount for row in held) + cash, CASH in lines, mistakes)
    if len(mistakes.found) > before:
        return None
    return HoldingsBook(
        file, name, day, tuple(held), cash, amount == "quantity", size, None if mandate is None else mandate[1]
    )


def _symbol(text: str, line: int, mistakes: Mistakes) -> str | None:
    symbol = symbol_of(text)
    if _SYMBOL.fullmatch(symbol):
        return symbol
    mistakes.add(line, f"symbol: is {text!r}" if text else "symbol: is empty", "write a ticker, or CASH")
    return None


def _one_of(
    rows: Sequence[tuple[int, dict[str, str]]], column: str, day: date, mistakes: Mistakes
) -> tuple[int, str] | None:
    """Return line and text of a column with one value per date; rows may leave it empty."""
    stated = [(line, row[column]) for line, row in rows if row.get(column)]
    for line, text in stated[1:]:
        if text != stated[0][1]:
            problem = f"{column}: is {text!r}, and {stated[0][1]!r} in line {stated[0][0]} of {day}"
            mistakes.add(line, problem, "use one value per date")
    return stated[0] if stated else None


def _check_sum(line: int, day: date, total: float, with_cash: bool, mistakes: Mistakes) -> None:
    if abs(total - 1) <= ADDS_UP:
        return
    if abs(total / 100 - 1) <= 0.02:
        mistakes.add(line, f"weight: those of {day} sum to {total:g}", "write fractions, 0.05 for 5 %")
    elif not with_cash and 0 < total < 1:
        mistakes.add(line, f"weight: those of {day} sum to {total:.6g}, not 1", f"add a row {CASH} with the rest")
    else:
        mistakes.add(line, f"weight: those of {day} sum to {total:.6g}, not 1", "correct them")
