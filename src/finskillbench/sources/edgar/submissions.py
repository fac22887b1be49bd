"""EDGAR submissions: who a filer is and the list of its filings, one JSON file per company, with pages beside it."""

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS
from finskillbench.sources.files import (
    ACCESSION,
    as_list,
    as_object,
    cik_of,
    date_column,
    one_line,
    read_record,
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

    cik, name, tickers, sic : identity; tickers with dashes for share classes.
    filings : FILINGS_SCHEMA, every form, sorted by filed and accession; period_end is the report date, null where the
        form has none; accepted is UTC, to the second.
    notes : what the file leaves out, one sentence each.
    """

    cik: int
    name: str
    tickers: tuple[str, ...]
    sic: str | None
    filings: pl.DataFrame
    notes: tuple[str, ...]
    file: Path


def parse_submissions(path: Path) -> Submissions:
    """Read one filer's submissions, plain or gzipped.

    The SEC serves about the latest thousand filings here and names further files for the rest: those that lie beside
    it are read too, the others are counted by a note. A periodic report of a period that ends after it was filed
    (a mistyped date) is left out and noted.

    Raises
    ------
    SourceError : truncated or malformed JSON, no `filings.recent`, arrays of different lengths, a filing without form
        or date, a malformed accession, or one accession twice.
    """
    record = read_record(path)
    cik = cik_of(path, record.get("cik"))
    filings = as_object(record.get("filings")) or {}
    recent = as_object(filings.get("recent"))
    if recent is None:
        raise SourceError(path, "no object 'filings.recent'", remedy="expected one filer's EDGAR submissions")
    frame = _filings(path, recent, "filings.recent")
    older = 0
    for page in map(as_object, as_list(filings.get("files")) or ()):
        beside = _page_beside(path, (page or {}).get("name"))
        if beside is None:
            older += 1
        else:
            frame = pl.concat([frame, _filings(beside, read_record(beside), "the page")])
    # A filing may have moved to a page after the list was served.
    frame = frame.unique("accession", keep="first", maintain_order=True)
    early = pl.col("form").is_in(PERIODIC_FORMS) & (pl.col("filed") < pl.col("period_end")).fill_null(value=False)
    notes = [
        f"{path.name}: {row['accession']} is listed for a period that ends {row['period_end']}, after it was filed "
        f"({row['filed']}): left out."
        for row in frame.filter(early).iter_rows(named=True)
    ]
    if older:
        notes.append(f"{path.name}: {older} further files hold older filings.")
    tickers = [one for one in as_list(record.get("tickers")) or () if isinstance(one, str) and one]
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
    """Whether a file is a page of older filings, which belongs to the filer's list beside it."""
    return _PAGE.search(path.name) is not None


def _page_beside(path: Path, name: object) -> Path | None:
    """The page of that name, plain or gzipped, in the folder of the list."""
    if not isinstance(name, str) or _PAGE.search(name) is None or "/" in name:
        return None
    return next((page for page in (path.with_name(name), path.with_name(f"{name}.gz")) if page.is_file()), None)


def _filings(path: Path, recent: dict[str, object], named: str) -> pl.DataFrame:
    """The list of filings (FILINGS_SCHEMA) in the file's order, checked."""
    columns: dict[str, list[object]] = {}
    for column, key in _KEYS.items():
        values = as_list(recent.get(key))
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
