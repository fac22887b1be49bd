"""Factor files: known days, prose around the rows, missing codes, and refusals."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.errors import SourceError
from finskillbench.sources.market.collection import load_french, parse_french

FIVE = "F-F_Research_Data_5_Factors_2x3_daily.csv"
MOMENTUM = "F-F_Momentum_Factor_daily.csv"
HEAD = "Prose about CRSP, with a comma.\n\n,Mkt-RF,SMB,HML,RMW,CMA,RF\n"
ROWS = "20200102,   0.86,  -0.97,  -0.34,   0.24,  -0.22,   0.01\n"
ROWS += "20200103,  -0.67,   0.30,   0.00,  -0.13,  -0.11,   0.01\n"
FOOT = "\nCopyright 2020 Eugene F. Fama and Kenneth R. French\n"
MOM = "Prose.\n\nDate,Mom\n2020-01-02,   1.30\n2020-01-03,  -0.20\n\nCopyright\n"


def _folder(folder: Path, five: str = HEAD + ROWS + FOOT, momentum: str = MOM) -> Path:
    (folder / FIVE).write_text(five)
    (folder / MOMENTUM).write_text(momentum)
    return folder


def test_percent_becomes_decimals_for_both_date_styles(tmp_path: Path) -> None:
    table, _ = load_french(_folder(tmp_path))
    assert table.columns == ["date", "mkt_rf", "smb", "hml", "rmw", "cma", "mom", "rf"]
    assert table.row(0) == pytest.approx(
        (date(2020, 1, 2), 0.0086, -0.0097, -0.0034, 0.0024, -0.0022, 0.0130, 0.0001), abs=1e-15
    )


def test_missing_codes_are_null(tmp_path: Path) -> None:
    _folder(tmp_path, (HEAD + ROWS + FOOT).replace("-0.97", "-99.99").replace("-0.13", "-999"))
    table, _ = load_french(tmp_path)
    assert table["smb"].to_list()[0] is None
    assert table["rmw"].to_list()[1] is None
    assert table["hml"].null_count() == 0


@pytest.mark.parametrize(
    ("change", "line", "word"),
    [
        (("20200103", "20200102"), 5, "duplicate date"),
        (("20200103", "20191231"), 5, "not sorted"),
        (("20200103", "20201303"), 5, "impossible date"),
        (("-0.67", "x"), 5, "not a number"),
        (("-0.67", "     "), 5, "empty"),
        (("-0.67,", ""), 5, "6 fields"),
        ((",SMB,HML", ",SMB,LIQ"), 3, "unknown or repeated"),
        (("Copyright", " Annual Factors:"), 7, "unexpected text"),
    ],
)
def test_refusals_name_file_and_line(tmp_path: Path, change: tuple[str, str], line: int, word: str) -> None:
    _folder(tmp_path, (HEAD + ROWS + FOOT).replace(*change))
    with pytest.raises(SourceError, match=word) as caught:
        load_french(tmp_path)
    assert FIVE in str(caught.value)
    assert f"line {line}:" in str(caught.value)


def test_decimals_are_not_taken_for_percent(tmp_path: Path) -> None:
    rows = "".join(f"2020{m:02d}{d:02d},0.00{d:02d},0,0,0,0,0\n" for m in range(1, 7) for d in range(1, 15))
    (tmp_path / FIVE).write_text(HEAD + rows)
    with pytest.raises(SourceError, match="not percent"):
        parse_french(tmp_path / FIVE)


def test_a_date_only_one_file_has_is_an_error(tmp_path: Path) -> None:
    _folder(tmp_path, HEAD + ROWS + ROWS.splitlines()[0].replace("20200102", "20200106") + "\n")
    table, shortest = load_french(tmp_path)
    assert table.height == 2  # beyond the other's end: simply not covered
    assert shortest == tmp_path / MOMENTUM
    _folder(
        tmp_path,
        HEAD + ROWS + ROWS.splitlines()[0].replace("20200102", "20200106") + "\n",
        MOM.replace("2020-01-03", "2020-01-06"),
    )
    with pytest.raises(SourceError, match="no row for 2020-01-03"):
        load_french(tmp_path)


def test_the_monthly_file_is_not_the_daily_one(tmp_path: Path) -> None:
    (tmp_path / MOMENTUM).write_text(MOM)
    (tmp_path / FIVE.replace("_daily", "")).write_text(HEAD + ROWS)
    with pytest.raises(SourceError, match="0 daily files"):
        load_french(tmp_path)


def test_known_days(realdata: Path) -> None:
    table, _ = load_french(realdata / "famafrench")
    assert table["date"][0] == date(2016, 1, 4)
    # 16 March 2020, the worst day since 1987; and the last row of the file.
    crash = table.filter(pl.col("date") == date(2020, 3, 16))
    assert crash["mkt_rf"][0] == pytest.approx(-0.12, abs=0.002)
    assert table.row(-1) == pytest.approx(
        (date(2026, 4, 30), 0.0113, 0.0079, -0.0071, -0.0097, 0.0056, 0.0217, 0.0001), abs=1e-15
    )
    assert table.null_count().sum_horizontal().item() == 0
