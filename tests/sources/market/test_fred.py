"""FRED files: formats, vintages, blanks and refusals."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.errors import SourceError
from finskillbench.sources.market.fred import load_fred, parse_fred

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
    left_out = [note for note in notes if note.startswith("FRED DGS3MO") and "is left out" in note]
    assert ["b (" in left_out[0], "differs on 1 of 1 shared dates" in left_out[0]] == [True, True]
    assert ["a (" in left_out[1], "c (2020-01-02 to 2020-01-03) is kept" in left_out[1]] == [True, True]
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
    for name, first in (("VIXCLS", 20.70), ("BAMLH0A0HYM2", 7.10)):
        assert series[name]["date"][0] == date(2016, 1, 4)
        assert series[name]["value"][0] == first
        assert sum(note.startswith(f"FRED {name}") and "is joined by" in note for note in notes) >= 1
    assert any(note.startswith("FRED DTWEXBGS") and "it is revised" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "other", "values", "word"),
    [
        ("VIXCLS", "2020-01-02,20\n2020-01-03,21\n", [20, 21, 22], "is joined by 1 dates"),
        ("VIXCLS", "2020-01-02,20\n2020-01-03,21.004\n", [20, 21, 22], "is joined by 1 dates"),
        ("VIXCLS", "2020-01-02,20\n2020-01-03,21.5\n", [21, 22], "21.5, not 21"),
        ("VIXCLS", "2020-01-02,20\n", [21, 22], "shares no date"),
        ("UNRATE", "2020-01-02,20\n2020-01-03,21\n", [21, 22], "it is revised"),
    ],
)
def test_quotes_are_joined_and_revised_series_are_not(
    tmp_path: Path, name: str, other: str, values: list[float], word: str
) -> None:
    for folder, text in (
        ("a", f"observation_date,{name}\n2020-01-03,21\n2020-01-06,22\n"),
        ("b", f"date,value\n{other}"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.csv").write_text(text)
    (tmp_path / "DGS3MO.csv").write_text(BILLS)
    series, notes, _ = load_fred(tmp_path)
    assert series[name]["value"].to_list() == values
    assert [word in note for note in notes if note.startswith(f"FRED {name}")] == [True]


def test_the_file_to_extend_is_the_one_that_ends_last(tmp_path: Path) -> None:
    for folder, text in (("a", BILLS), ("b", "date,value\n2020-01-06,1.56\n2020-01-07,1.6\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "DGS3MO.csv").write_text(text)
    series, _, files = load_fred(tmp_path)
    assert series["DGS3MO"]["value"].to_list() == [1.54, 1.56, 1.6]
    assert files["DGS3MO"] == tmp_path / "b" / "DGS3MO.csv"
