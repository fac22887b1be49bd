"""EDGAR submissions: who a filer is and the list of its filings, one JSON file per company."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.records import ACCESSION, cik_of, date_column, read_record, text_column

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

    The SEC serves about the latest thousand filings here and names further files for the rest, which a note counts.

    Raises
    ------
    SourceError : truncated or malformed JSON, no `filings.recent`, arrays of different lengths, a filing without form
        or date, a malformed accession, or one accession twice.
    """
    record = read_record(path)
    cik = cik_of(path, record)
    filings = record.get("filings")
    recent = filings.get("recent") if isinstance(filings, dict) else None
    if not isinstance(filings, dict) or not isinstance(recent, dict):
        raise SourceError(path, "no object 'filings.recent'", remedy="expected one filer's EDGAR submissions")
    columns: dict[str, list] = {}
    for column, key in _KEYS.items():
        values = recent.get(key)
        if not isinstance(values, list):
            raise SourceError(path, f"no list 'filings.recent.{key}'", remedy="download it again")
        columns[column] = values
        if len(values) != len(columns["accession"]):
            raise SourceError(
                path,
                f"filings.recent.{key} has {len(values)} entries and accessionNumber {len(columns['accession'])}",
                remedy="download it again",
            )

    def refuse(row: int, problem: str) -> SourceError:
        where = f"filings.recent[{row}] ({columns['accession'][row]})"
        return SourceError(path, f"{where}: {problem}", remedy="remove the filing")

    moments = [moment.replace("Z", "")[:19] if isinstance(moment, str) else None for moment in columns["accepted"]]
    frame = pl.DataFrame(
        [
            text_column(columns["accession"], refuse, name="accession"),
            text_column(columns["form"], refuse, name="form"),
            date_column(columns["filed"], refuse, name="filed"),
            date_column(columns["period_end"], refuse, name="period_end"),
            pl.Series("accepted", moments, dtype=pl.String).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False),
        ],
    ).cast(FILINGS_SCHEMA)  # pyright: ignore[reportArgumentType] - a mapping of names to types
    for mask, problem in (
        (~frame["accession"].str.contains(ACCESSION), "the accession is not of the form 0000000000-00-000000"),
        (frame["filed"].is_null(), "no filing date"),
        (frame["accession"].is_duplicated(), "the accession appears twice"),
    ):
        if mask.any():
            raise refuse(mask.arg_max() or 0, problem)
    further = filings.get("files")
    older = len(further) if isinstance(further, list) else 0
    tickers = record.get("tickers")
    name = record.get("name")
    sic = record.get("sic")
    return Submissions(
        cik=cik,
        name=" ".join(name.split()) if isinstance(name, str) else "",
        tickers=tuple(
            dict.fromkeys(
                ticker.upper().replace(".", "-")
                for ticker in (tickers if isinstance(tickers, list) else [])
                if isinstance(ticker, str) and ticker
            )
        ),
        sic=str(sic) if sic else None,
        filings=frame.sort("filed", "accession"),
        notes=(f"{path.name}: {older} further files hold older filings.",) if older else (),
        file=path,
    )
