"""Index constituents with their sectors, and share counts on the basis of their date.

The latest vintage of a share count is restated for a split only as far back as later reports repeat it. Chipotle's
count of 2021 precedes its split of 2024, that of 2022 includes it. The next count shows which basis applies.
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
from finskillbench.sources import files
from finskillbench.sources.companies.universe import SecurityRecord

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
    """Return the list of constituents of a raw collection, if it exists."""
    paths = (raw_dir / "constituents" / "constituents.csv", raw_dir / "constituents.csv")
    return next((path for path in paths if path.is_file()), None)


def parse_constituents(path: Path, problems: files.Problems = None) -> dict[str, SecurityRecord]:
    """Read constituents by symbol (`BF-B`), with the project's sector names; SourceError for invalid rows."""
    reader = csv.DictReader(io.StringIO(files.read_text(path), newline=""), strict=True)
    found: dict[str, SecurityRecord] = {}
    try:
        absent = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
        if absent:
            remedy = "expected the S&P 500 list's columns"
            raise SourceError(path, f"no columns {', '.join(absent)}", line=1, remedy=remedy)
        for row in reader:
            try:
                one = _constituent(path, reader.line_num, row)
            except SourceError as error:
                files.raise_or_collect(error, problems)
                continue
            if one.symbol in found:
                twice = SourceError(path, f"{one.symbol} appears twice", line=reader.line_num, remedy="keep one row")
                files.raise_or_collect(twice, problems)
            found[one.symbol] = one
    except csv.Error as error:
        line = max(reader.line_num, 1)  # 0 while the header is read
        raise SourceError(path, f"not valid CSV ({error})", line=line, remedy="download it again") from None
    return found


def _constituent(path: Path, line: int, row: Mapping[str | None, str | None]) -> SecurityRecord:
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
    return SecurityRecord(
        symbol=files.symbol_of(cells["Symbol"]),
        name=cells["Security"],
        cik=cik.zfill(10) if cik else None,
        sector=sector,
        sub_sector=cells["GICS Sub-Industry"],
        date_added=added,
    )


BROKEN = 1.3
"""Factor between consecutive counts, without a split, that issues and buybacks do not explain: a merger of unknown
date.
"""
COVER_SCHEMA = {"end": pl.Date, "filed": pl.Date, "value": pl.Float64}
_TAG = "EntityCommonStockSharesOutstanding"
_FORMS = ("10-K", "10-Q", "10-K/A", "10-Q/A", "20-F", "40-F")


class _Counts(NamedTuple):
    """Counts by `end` on the basis of that day; ends after which the count is unknown until the next; notes."""

    table: pl.DataFrame
    broken: tuple[date, ...]
    notes: list[str]


def undo_split_restatement(symbol: str, counts: pl.DataFrame, latest: pl.DataFrame, splits: pl.DataFrame) -> _Counts:
    """Undo the restatement of counts (end, value) for later `splits` (date, `shares`).

    `latest` is the newest count (end, value), later than all splits; it may be empty.
    """
    factors = [(day, ratio) for day, ratio in splits.select("date", "shares").iter_rows() if ratio not in (None, 1.0)]
    rows: list[tuple[date, float]] = list(counts.select("end", "value").iter_rows())
    following: float | None = latest["value"][0] if latest.height else None
    restated: list[date] = []
    today: list[float] = []
    unrestated: list[float] = []
    for end, value in reversed(rows):
        later = [ratio for day, ratio in factors if day > end]
        # The count may already include any number of later splits; choose the one closest to the next count.
        candidates = [value * math.prod(later[after:]) for after in range(len(later) + 1)]
        near = following if following is not None else candidates[0]
        chosen = min(candidates, key=lambda count: abs(math.log(count / near)))
        if later and chosen != candidates[0]:
            restated.append(end)
        today.insert(0, chosen)
        unrestated.insert(0, chosen / math.prod(later))
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
    table = pl.DataFrame({"end": [end for end, _ in rows], "value": unrestated}, schema=counts.schema)
    return _Counts(table, broken, notes)


def cover_counts(path: Path) -> pl.DataFrame:
    """Read the shares outstanding on cover pages: `end`, `filed`, `value`; SourceError for invalid JSON."""
    record: Mapping[str, object] = files.json_object(files.read_json_file(path)) or {}
    for key in ("facts", "dei", _TAG, "units"):
        record = files.json_object(record.get(key)) or {}
    rows: list[tuple[date, date, float]] = []
    for entry in files.json_list(record.get("shares")) or []:
        fields = files.json_object(entry) or {}
        value, form = fields.get("val"), fields.get("form")
        try:
            days = [date.fromisoformat(str(fields.get(name))) for name in ("end", "filed")]
        except ValueError:
            continue
        if form in _FORMS and isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            rows.append((days[0], days[1], float(value)))
    return pl.DataFrame(rows, schema=COVER_SCHEMA, orient="row").sort("filed", "end")
