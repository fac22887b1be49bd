"""FRED series from `fredgraph.csv` downloads or date,value files, and the choice among vintages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

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

SERIES = (
    "DFF",
    "FEDFUNDS",
    "DGS3MO",
    "DGS2",
    "DGS10",
    "T10Y2Y",
    "CPIAUCSL",
    "UNRATE",
    "VIXCLS",
    "BAMLH0A0HYM2",
    "DTWEXBGS",
)
"""Series of the panels; the policy rate may be DFF or FEDFUNDS."""

NEVER_REVISED = frozenset({"DFF", "DGS3MO", "DGS2", "DGS10", "T10Y2Y", "VIXCLS", "BAMLH0A0HYM2"})
"""Daily market quotes, whose downloads differ in coverage only and can be joined. Other series are restated by later
vintages, so a join of two would be neither.
"""
ROUNDING = 0.005
"""Tolerance between extracts: half of the last digit that FRED prints for the series of `NEVER_REVISED`."""


@dataclass(frozen=True, slots=True)
class FredFile:
    """One vintage of one series: date and value as published (most are percent), without holidays."""

    path: Path
    series: str
    frame: pl.DataFrame
    raw: bool
    """The file is a fredgraph download (`observation_date`), not an extract."""


def parse_fred(path: Path, *, start: date = DEFAULT_START, problems: Problems = None) -> FredFile:
    """Read one FRED file without holidays (blanks and '.'); SourceError if it is invalid."""
    series = path.name.split(".")[0].upper()
    text = read_text(path)
    header, _, body = text.partition("\n")
    names = [cell.strip() for cell in header.split(",")]
    raw = names[0].lower() == "observation_date"
    if names not in (["observation_date", series], ["date", "value"], ["DATE", series]):
        raise SourceError(
            path,
            f"the header is {header.strip()!r}",
            line=1,
            remedy=f"expected 'observation_date,{series}' or 'date,value'",
        )
    table = read_cells(path, body, ["date", "value"], 2, problems)
    dates = parse_dates(table, "date")
    values = parse_numbers(table, "value", missing=(".",))
    frame = pl.DataFrame({"date": dates, "value": values}).filter(pl.col("date") >= start).drop_nulls("value")
    return FredFile(path, series, frame, raw)


def load_fred(
    folder: Path, *, start: date = DEFAULT_START
) -> tuple[Mapping[str, pl.DataFrame], tuple[str, ...], Mapping[str, Path]]:
    """Read every known series of a folder; return series, notes, and the file of each that ends last.

    Fredgraph downloads take precedence over extracts, then the latest last observation, then the first path. A series
    of `NEVER_REVISED` also takes missing dates from vintages that agree on all shared dates.

    Raises
    ------
    SourceError : no DGS3MO (the risk-free rate), or a file that cannot be read.
    """
    vintages: dict[str, list[FredFile]] = {}
    for path in files_below(folder, (".csv", ".csv.gz")):
        if path.name.split(".")[0].upper() in SERIES:
            parsed = parse_fred(path, start=start)
            if not parsed.frame.is_empty():
                vintages.setdefault(parsed.series, []).append(parsed)
    if "DGS3MO" not in vintages:
        raise SourceError(
            folder,
            f"no DGS3MO with observations from {start} on",
            remedy="add DGS3MO.csv from FRED (fredgraph.csv?id=DGS3MO): it is the risk-free rate",
        )
    chosen: dict[str, pl.DataFrame] = {}
    paths: dict[str, Path] = {}
    notes: list[str] = []
    for series in SERIES:
        files = sorted(vintages.get(series, []), key=lambda f: (f.raw, f.frame["date"][-1]), reverse=True)
        if not files:
            other = {"DFF": "FEDFUNDS", "FEDFUNDS": "DFF"}.get(series)
            if other not in vintages:
                notes.append(f"FRED {series}: no file, the series is left out.")
            continue
        if series in NEVER_REVISED:
            chosen[series], paths[series], found = _joined(files)
            notes += found
            continue
        chosen[series], paths[series] = files[0].frame, files[0].path
        if len(files) > 1:
            notes.append(f"FRED {series}: {_span(files[0])} was taken of {len(files)} vintages; it is revised.")
    return chosen, tuple(notes), paths


def _joined(files: Sequence[FredFile]) -> tuple[pl.DataFrame, Path, list[str]]:
    """Extend the first vintage by the dates of consistent ones; return it, the file that ends last, and notes."""
    first = files[0]
    frame, path = first.frame, first.path
    notes: list[str] = []
    for other in files[1:]:
        common = frame.join(other.frame, on="date", how="inner", suffix="_other")
        differing = common.filter((pl.col("value") - pl.col("value_other")).abs() > ROUNDING + 1e-9)
        if common.is_empty() or not differing.is_empty():
            what = "shares no date with the others"
            if not differing.is_empty():
                day, used, value = differing.row(0)
                what = f"differs on {differing.height} of {common.height} shared dates ({day}: {value:g}, not {used:g})"
            notes.append(f"FRED {first.series}: {_span(other)} {what} and is left out; {_span(first)} is kept.")
            continue
        added = other.frame.join(frame, on="date", how="anti")
        if added.is_empty():
            continue
        if added["date"][-1] > frame["date"][-1]:
            path = other.path
        frame = pl.concat([frame, added]).sort("date")
        notes.append(
            f"FRED {first.series}: {_span(first)} is joined by {added.height} dates from {added['date'][0]} to "
            f"{added['date'][-1]} of {_span(other)}, equal on {common.height} shared dates."
        )
    return frame, path, notes


def _span(file: FredFile) -> str:
    return f"{file.path.parent.name} ({file.frame['date'][0]} to {file.frame['date'][-1]})"
