"""Who is in the index: the constituents list with its GICS sectors, in the project's sector vocabulary.

Share counts on the basis of their own date: published series restate earlier years for a split, or do not.

A series of the latest vintage restates a count for a split only as far back as later reports repeat it: Chipotle's 2021
stands before its split of 2024 and 2022 after it. Which of the two a count is, the next one tells.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.companies.universe import Security
from finskillbench.sources.files import Problems, as_list, as_object, read_json, read_text, symbol_of, tell

GICS_SECTORS: Mapping[str, str] = {
    "Information Technology": "Technology",
    "Financials": "Financial Services",
    "Industrials": "Industrials",
    "Health Care": "Healthcare",
    "Consumer Discretionary": "Consumer Cyclical",
    "Consumer Staples": "Consumer Defensive",
    "Energy": "Energy",
    "Real Estate": "Real Estate",
    "Materials": "Basic Materials",
    "Utilities": "Utilities",
    "Communication Services": "Communication Services",
}

_NEEDED = ("Symbol", "Security", "GICS Sector", "GICS Sub-Industry", "Date added", "CIK")


def constituents_file(raw_dir: Path) -> Path | None:
    """The list of constituents of a raw collection, where there is one."""
    paths = (raw_dir / "constituents" / "constituents.csv", raw_dir / "constituents.csv")
    return next((path for path in paths if path.is_file()), None)


def parse_constituents(path: Path, problems: Problems = None) -> dict[str, Security]:
    """Constituents by symbol (share classes with a dash: `BF-B`), their sectors in the project's vocabulary.

    Raises
    ------
    SourceError : unreadable, missing columns, unknown GICS sector, repeated symbol, impossible date or CIK.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    found: dict[str, Security] = {}
    try:
        absent = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
        if absent:
            remedy = "expected the S&P 500 list's columns"
            raise SourceError(path, f"no columns {', '.join(absent)}", line=1, remedy=remedy)
        for row in reader:
            try:
                one = _constituent(path, reader.line_num, row)
            except SourceError as error:
                tell(error, problems)
                continue
            if one.symbol in found:
                twice = SourceError(path, f"{one.symbol} appears twice", line=reader.line_num, remedy="keep one row")
                tell(twice, problems)
            found[one.symbol] = one
    except csv.Error as error:
        line = max(reader.line_num, 1)  # 0 while the header is read
        raise SourceError(path, f"not valid CSV ({error})", line=line, remedy="download it again") from None
    return found


def _constituent(path: Path, line: int, row: Mapping[str | None, str | None]) -> Security:
    cells = {name: (row.get(name) or "").strip() for name in _NEEDED}
    if None in row or not cells["Symbol"] or not cells["Security"]:
        raise SourceError(path, "a row without symbol or name, or with too many fields", line=line, remedy="repair it")
    sector = GICS_SECTORS.get(cells["GICS Sector"])
    if sector is None:
        raise SourceError(path, f"unknown GICS sector {cells['GICS Sector']!r}", line=line, remedy="use the GICS names")
    cik = cells["CIK"]
    if cik and not (cik.isascii() and cik.isdigit() and len(cik) <= 10):
        raise SourceError(path, f"{cik!r} is not a CIK", line=line, remedy="up to ten digits")
    try:
        added = date.fromisoformat(cells["Date added"]) if cells["Date added"] else None
    except ValueError:
        raise SourceError(path, f"impossible date {cells['Date added']!r}", line=line, remedy="YYYY-MM-DD") from None
    return Security(
        symbol=symbol_of(cells["Symbol"]),
        name=cells["Security"],
        cik=cik.zfill(10) if cik else None,
        sector=sector,
        sub_sector=cells["GICS Sub-Industry"],
        date_added=added,
    )


BROKEN = 1.3
"""Two counts in a row that differ by more than this factor, no split apart, were not earned by issues and buybacks: a
merger lies between them, at a date that they do not tell."""
COVER_SCHEMA = {"end": pl.Date, "filed": pl.Date, "value": pl.Float64}
_TAG = "EntityCommonStockSharesOutstanding"
_FORMS = ("10-K", "10-Q", "10-K/A", "10-Q/A", "20-F", "40-F")


class _Counts(NamedTuple):
    """Counts by `end` on the basis of that day; the ends from which on the count is unknown until the next; notes."""

    table: pl.DataFrame
    broken: tuple[date, ...]
    notes: list[str]


def on_own_basis(symbol: str, counts: pl.DataFrame, latest: pl.DataFrame, splits: pl.DataFrame) -> _Counts:
    """Undo the restatement of counts (end, value) for the splits after their end.

    Parameters
    ----------
    latest : the newest count (end, value), later than all splits; may be empty. splits : date and factor `shares`.
    """
    factors = [(day, ratio) for day, ratio in splits.select("date", "shares").iter_rows() if ratio not in (None, 1.0)]
    rows: list[tuple[date, float]] = list(counts.select("end", "value").iter_rows())
    following: float | None = latest["value"][0] if latest.height else None
    restated: list[date] = []
    today: list[float] = []
    own: list[float] = []
    for end, value in reversed(rows):
        later = [ratio for day, ratio in factors if day > end]
        # As reported after the first so many of the later splits; on today's basis the next count is near.
        candidates = [value * math.prod(later[after:]) for after in range(len(later) + 1)]
        near = following if following is not None else candidates[0]
        chosen = min(candidates, key=lambda count: abs(math.log(count / near)))
        if later and chosen != candidates[0]:
            restated.append(end)
        today.insert(0, chosen)
        own.insert(0, chosen / math.prod(later))
        following = chosen
    pairs = zip(rows, today, today[1:], strict=False)
    broken = tuple(end for (end, _), one, two in pairs if abs(math.log(two / one)) > math.log(BROKEN))
    notes: list[str] = []
    if restated:
        notes.append(
            f"{symbol}: share counts of {min(restated)} to {max(restated)} are restated for later splits; undone."
        )
    notes += [
        f"{symbol}: its share count changes by more than {BROKEN:g}x after {end} without a split; it is left out "
        "until the next count is known."
        for end in broken
    ]
    table = pl.DataFrame({"end": [end for end, _ in rows], "value": own}, schema=counts.schema)
    return _Counts(table, broken, notes)


def cover_counts(path: Path) -> pl.DataFrame:
    """Shares outstanding on the cover pages of a company's reports: `end`, `filed`, `value`, as filed, by both dates.

    Raises
    ------
    SourceError : the file is no JSON.
    """
    record: Mapping[str, object] = as_object(read_json(path)) or {}
    for key in ("facts", "dei", _TAG, "units"):
        record = as_object(record.get(key)) or {}
    rows: list[tuple[date, date, float]] = []
    for entry in as_list(record.get("shares")) or []:
        fields = as_object(entry) or {}
        value, form = fields.get("val"), fields.get("form")
        try:
            days = [date.fromisoformat(str(fields.get(name))) for name in ("end", "filed")]
        except ValueError:
            continue
        if form in _FORMS and isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            rows.append((days[0], days[1], float(value)))
    return pl.DataFrame(rows, schema=COVER_SCHEMA, orient="row").sort("filed", "end")
