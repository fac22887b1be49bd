"""Who is in the index: the constituents list with its GICS sectors, in the project's sector vocabulary."""

import csv
import io
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from finskillbench.errors import SourceError
from finskillbench.sources.companies.universe import Security
from finskillbench.sources.files import Problems, read_text, symbol_of, tell

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
