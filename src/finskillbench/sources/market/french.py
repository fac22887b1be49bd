"""Daily factors of Kenneth R. French's data library: five factors and momentum, in percent, with prose around."""

from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.errors import SourceError
from finskillbench.sources.files import (
    DEFAULT_START,
    Problems,
    files_below,
    parse_dates,
    parse_numbers,
    read_cells,
    read_text,
)

_NAMES = {"mkt-rf": "mkt_rf", "smb": "smb", "hml": "hml", "rmw": "rmw", "cma": "cma", "rf": "rf", "mom": "mom"}
_MISSING_BELOW = -99.0
_MIN_ROWS_FOR_UNIT_CHECK = 60


def parse_french(path: Path, *, start: date = DEFAULT_START, problems: Problems = None) -> pl.DataFrame:
    """One daily file as decimals: date and its factors by the project's names; -99.99 and -999 are null.

    The header is the first line starting with `Date,` or `,`; rows end at a blank line or the copyright.
    Dates come as YYYYMMDD or ISO.

    Raises
    ------
    SourceError : no header, unknown factor, unreadable row, duplicate or unsorted dates, text after the rows
        that is not the copyright, figures that are not in percent.
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
    """Daily five factors, momentum and the risk-free rate: date, mkt_rf, smb, hml, rmw, cma, mom, rf (decimals).

    Also the file that ends first, and so decides where the table ends. Only dates both files cover are kept; a date
    one of them lacks inside the other's span is an error.
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
    found = [
        f for f in files_below(folder, (".csv", ".csv.gz")) if part in f.name.lower() and "daily" in f.name.lower()
    ]
    if len(found) != 1:
        raise SourceError(
            folder,
            f"{len(found)} daily files named *{part}*daily*.csv where one is expected",
            remedy="add the daily file of the data library" if not found else "keep one of them",
        )
    return found[0]
