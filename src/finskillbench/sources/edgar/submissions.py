"""EDGAR submissions: identity and filings of one filer as JSON, with pages of older filings."""

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS
from finskillbench.sources.files import (
    ACCESSION,
    cik_of,
    date_column,
    json_list,
    json_object,
    one_line,
    read_json_object,
    refuse_rows,
    symbol_of,
    text_column,
)

FILINGS_SCHEMA = {
    "accession": pl.String,
    "form": pl.String,
    "filed": pl.Date,
    "period_end": pl.Date,
    "accepted": pl.Datetime("us"),
}

_KEYS = {
    "accession": "accessionNumber",
    "form": "form",
    "filed": "filingDate",
    "period_end": "reportDate",
    "accepted": "acceptanceDateTime",
}


_PAGE = re.compile(r"-submissions-\d{3}\.json(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Submissions:
    """One filer.

    filings : FILINGS_SCHEMA, every form, sorted by filed and accession; period_end is the report date, null if absent;
        accepted is UTC, to the second. notes : omitted filings.
    """

    cik: int
    name: str
    tickers: tuple[str, ...]
    sic: str | None
    filings: pl.DataFrame
    notes: tuple[str, ...]
    file: Path


def parse_submissions(path: Path) -> Submissions:
    """Read one filer's submissions, plain or gzipped, with pages of older filings in the same folder.

    A periodic report whose period ends after its filing (a mistyped date) is omitted and noted.

    Raises
    ------
    SourceError : malformed JSON, no `filings.recent`, unequal arrays, a filing without form or date, an invalid
        accession.
    """
    record = read_json_object(path)
    cik = cik_of(path, record.get("cik"))
    filings = json_object(record.get("filings")) or {}
    recent = json_object(filings.get("recent"))
    if recent is None:
        raise SourceError(path, "no object 'filings.recent'", remedy="expected one filer's EDGAR submissions")
    frame = _filings(path, recent, "filings.recent")
    older = 0
    for page in map(json_object, json_list(filings.get("files")) or ()):
        page_path = _page_path(path, (page or {}).get("name"))
        if page_path is None:
            older += 1
        else:
            frame = pl.concat([frame, _filings(page_path, read_json_object(page_path), "the page")])
    # A filing may move to a page after the list was served.
    frame = frame.unique("accession", keep="first", maintain_order=True)
    early = pl.col("form").is_in(PERIODIC_FORMS) & (pl.col("filed") < pl.col("period_end")).fill_null(value=False)
    notes = [
        f"{path.name}: {row['accession']} is listed for a period that ends {row['period_end']}, after it was filed "
        f"({row['filed']}): left out."
        for row in frame.filter(early).iter_rows(named=True)
    ]
    if older:
        notes.append(f"{path.name}: {older} further files hold older filings.")
    tickers = [one for one in json_list(record.get("tickers")) or () if isinstance(one, str) and one]
    return Submissions(
        cik=cik,
        name=one_line(record.get("name")),
        tickers=tuple(dict.fromkeys(map(symbol_of, tickers))),
        sic=str(sic) if (sic := record.get("sic")) else None,
        filings=frame.filter(~early).sort("filed", "accession"),
        notes=tuple(notes),
        file=path,
    )


def is_page(path: Path) -> bool:
    """Return true if a file is a page of older filings."""
    return _PAGE.search(path.name) is not None


def _page_path(path: Path, name: object) -> Path | None:
    if not isinstance(name, str) or _PAGE.search(name) is None or "/" in name:
        return None
    return next((page for page in (path.with_name(name), path.with_name(f"{name}.gz")) if page.is_file()), None)


def _filings(path: Path, recent: dict[str, object], named: str) -> pl.DataFrame:
    """Return the list of filings (FILINGS_SCHEMA) in the file's order, checked."""
    columns: dict[str, list[object]] = {}
    for column, key in _KEYS.items():
        values = json_list(recent.get(key))
        if values is None:
            raise SourceError(path, f"no list '{named}.{key}'", remedy="download it again")
        columns[column] = values
        if len(values) != (wanted := len(columns["accession"])):
            problem = f"{named}.{key} has {len(values)} entries and accessionNumber {wanted}"
            raise SourceError(path, problem, remedy="download it again")

    def refuse(row: int, problem: str) -> SourceError:
        where = f"{named}[{row}] ({columns['accession'][row]})"
        return SourceError(path, f"{where}: {problem}", remedy="remove the filing")

    moments = [moment.replace("Z", "")[:19] if isinstance(moment, str) else None for moment in columns["accepted"]]
    accepted = pl.Series("accepted", moments, dtype=pl.String)
    frame = pl.DataFrame(
        [
            text_column("accession", columns["accession"], refuse),
            text_column("form", columns["form"], refuse),
            date_column("filed", columns["filed"], refuse),
            date_column("period_end", columns["period_end"], refuse),
            accepted.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False),
        ]
    )
    refuse_rows(
        refuse,
        (~frame["accession"].str.contains(ACCESSION), "the accession is not of the form 0000000000-00-000000"),
        (frame["filed"].is_null(), "no filing date"),
        (frame["accession"].is_duplicated(), "the accession appears twice"),
    )
    return frame
