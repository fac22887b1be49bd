"""FRED files: formats, vintages, blanks and refusals."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.errors import SourceError
from finskillbench.sources.fred import load_fred, parse_fred

BILLS = "observation_date,DGS3MO\n2020-01-01,\n2020-01-02,1.54\n2020-01-03,.\n2020-01-06,1.56\n"


def test_blanks_and_dots_are_holidays(tmp_path: Path) -> None:
    (tmp_path / "DGS3MO.csv").write_text(BILLS)
    assert parse_fred(tmp_path / "DGS3MO.csv").frame.rows() == [(date(2020, 1, 2), 1.54), (date(2020, 1, 6), 1.56)]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("observation_date,DGS10\n2020-01-02,1\n", 1, "header"),
        ("when,what\n2020-01-02,1\n", 1, "header"),
        ("observation_date,DGS3MO\n2020-01-02,1.5\n2020-01-03,n/a\n", 3, "not a number"),
        ("observation_date,DGS3MO\n2020-01-02,1.5\n2020-01-02,1.5\n", 3, "duplicate"),
        ("observation_date,DGS3MO\n2020-01-02,1.5\n2020-01-01,1.5\n", 3, "not sorted"),
        ("observation_date,DGS3MO\n2020-01-02,1.5\n2020-01-03\n", 3, "1 fields"),
    ],
)
def test_refusals(tmp_path: Path, text: str, line: int, word: str) -> None:
    (tmp_path / "DGS3MO.csv").write_text(text)
    with pytest.raises(SourceError, match=word) as caught:
        parse_fred(tmp_path / "DGS3MO.csv")
    assert f"DGS3MO.csv, line {line}:" in str(caught.value)


def test_raw_vintages_win_then_the_latest(tmp_path: Path) -> None:
    files = {
        "a": "date,value\n2020-01-02,9\n2020-03-02,9\n",
        "b": "observation_date,DGS3MO\n2020-01-02,1\n",
        "c": "observation_date,DGS3MO\n2020-01-02,2\n2020-01-03,2\n",
    }
    for folder, text in files.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "DGS3MO.csv").write_text(text)
    series, notes, files = load_fred(tmp_path)
    assert series["DGS3MO"]["value"].to_list() == [2.0, 2.0]
    assert any("DGS3MO" in note and "c " in note and "3 vintages" in note for note in notes)
    assert any("VIXCLS" in note for note in notes)
    assert files == {"DGS3MO": tmp_path / "c" / "DGS3MO.csv"}


def test_the_risk_free_rate_is_required(tmp_path: Path) -> None:
    (tmp_path / "DGS10.csv").write_text("date,value\n2020-01-02,1.9\n")
    with pytest.raises(SourceError, match=r"add DGS3MO\.csv"):
        load_fred(tmp_path)


def test_known_values(realdata: Path) -> None:
    series, notes, _ = load_fred(realdata / "fred")
    assert series["CPIAUCSL"].filter(pl.col("date") == date(2026, 4, 1))["value"].item() == 332.407
    assert series["DGS3MO"].row(-1) == (date(2026, 5, 22), 3.68)
    assert any("DGS10" in note and "seho4080" in note for note in notes)
