"""Submissions as the SEC serves them."""

import gzip
import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.submissions import FILINGS_SCHEMA, is_page, parse_submissions

RECENT: dict[str, list[Any]] = {
    "accessionNumber": ["0000000001-23-000002", "0000000001-23-000001"],
    "form": ["4", "10-Q"],
    "filingDate": ["2023-05-02", "2023-05-01"],
    "reportDate": ["", "2023-03-31"],
    "acceptanceDateTime": ["2023-05-02T18:30:01.000Z", "2023-05-01T16:00:00.000Z"],
}


def written(folder: Path, recent: object, **changes: Any) -> Path:
    record = {"cik": "0000000001", "name": "One Inc.", "tickers": ["ONE.A", "ONE-A"], "sic": "3571"}
    path = folder / "CIK0000000001.json"
    path.write_text(json.dumps(record | {"filings": {"recent": recent, "files": []}} | changes))
    return path


def test_filings_come_out_sorted(tmp_path: Path) -> None:
    filer = parse_submissions(written(tmp_path, RECENT))
    assert (filer.cik, filer.name, filer.tickers, filer.sic, filer.notes) == (1, "One Inc.", ("ONE-A",), "3571", ())
    assert dict(filer.filings.schema) == FILINGS_SCHEMA
    assert filer.filings.rows() == [
        ("0000000001-23-000001", "10-Q", date(2023, 5, 1), date(2023, 3, 31), datetime(2023, 5, 1, 16)),
        ("0000000001-23-000002", "4", date(2023, 5, 2), None, datetime(2023, 5, 2, 18, 30, 1)),
    ]


def test_a_report_for_a_period_to_come_is_left_out_and_noted(tmp_path: Path) -> None:
    """Of other forms the report date may be of an event to come, such as a meeting."""
    filer = parse_submissions(written(tmp_path, RECENT | {"reportDate": ["2023-06-30", "2023-06-30"]}))
    assert filer.filings["form"].to_list() == ["4"]
    assert filer.notes == (
        "CIK0000000001.json: 0000000001-23-000001 is listed for a period that ends 2023-06-30, after it was filed "
        "(2023-05-01): left out.",
    )


def test_further_files_are_noted(tmp_path: Path) -> None:
    path = written(tmp_path, RECENT, filings={"recent": RECENT, "files": [{"name": "x"}]})
    assert parse_submissions(path).notes == ("CIK0000000001.json: 1 further files hold older filings.",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"form": ["10-Q"]}, "filings.recent.form has 1 entries and accessionNumber 2"),
        ({"form": None}, "no list 'filings.recent.form'"),
        ({"form": ["10-Q", ""]}, r"filings.recent\[1\] \(0000000001-23-000001\): form is ''"),
        ({"filingDate": ["2023-05-02", ""]}, "no filing date"),
        ({"filingDate": ["2023-05-02", "May"]}, "filed is 'May', not YYYY-MM-DD"),
        ({"accessionNumber": ["0000000001-23-000001"] * 2}, "the accession appears twice"),
        ({"accessionNumber": ["1", "0000000001-23-000001"]}, "the accession is not of the form"),
    ],
)
def test_what_cannot_be_trusted_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SourceError, match=words):
        parse_submissions(written(tmp_path, RECENT | changes))


def test_without_filings_it_is_no_submissions_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no object 'filings\.recent'"):
        parse_submissions(written(tmp_path, []))


def test_real_files_are_read(realdata: Path) -> None:
    paths = sorted((realdata / "submissions").rglob("*.json.gz"))
    filers = [parse_submissions(path) for path in paths]
    assert len(filers) == len(paths) > 70
    apple = next(filer for filer in filers if filer.cik == 320193)
    assert apple.tickers == ("AAPL",)
    annual = apple.filings.row(by_predicate=pl.col("accession") == "0000320193-23-000106", named=True)
    assert (annual["form"], annual["filed"], annual["period_end"]) == ("10-K", date(2023, 11, 3), date(2023, 9, 30))


def test_pages_that_lie_beside_are_read(tmp_path: Path) -> None:
    """Plain or gzipped; a filing that is in the list already counts once, and a page that is not there is noted."""
    older = {name: [values[1], values[0]] for name, values in RECENT.items()}
    older["accessionNumber"] = ["0000000001-23-000001", "0000000001-13-000009"]
    older["filingDate"] = ["2023-05-01", "2013-05-01"]
    page = "CIK0000000001-submissions-00{}.json"
    files = [{"name": page.format(number), "filingCount": 2} for number in (1, 2)]
    path = written(tmp_path, RECENT, filings={"recent": RECENT, "files": files})
    (tmp_path / f"{page.format(1)}.gz").write_bytes(gzip.compress(json.dumps(older).encode()))
    filer = parse_submissions(path)
    assert filer.filings["accession"].to_list() == [
        "0000000001-13-000009",
        "0000000001-23-000001",
        "0000000001-23-000002",
    ]
    assert filer.notes == ("CIK0000000001.json: 1 further files hold older filings.",)
    del older["form"]
    (tmp_path / page.format(2)).write_text(json.dumps(older))
    with pytest.raises(SourceError, match=r"-submissions-002\.json: no list 'the page\.form'"):
        parse_submissions(path)
    assert sorted(one.name for one in tmp_path.iterdir() if is_page(one)) == [f"{page.format(1)}.gz", page.format(2)]
