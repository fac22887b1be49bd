"""Statements and constituents: known figures, share-class symbols, refusals."""

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.arrays import SECTORS
from finskillbench.errors import SourceError
from finskillbench.sources.companies.constituents import parse_constituents
from finskillbench.sources.companies.statements import parse_statements

RECORD = {
    "symbol": "BF.B",
    "name": "Brown\u00a0Forman",
    "cik": "14693",
    "profile": {"exchange": "NYSE"},
    "annual": {"netIncome": [], "eps": [{"end": "2020-04-30", "v": 1.7}]},
    "quarterly": {"netIncome": [{"end": "2020-01-31", "v": 5}, {"end": "2020-04-30", "v": 6, "d": 1}], "eps": []},
    "balances": {"equity": [{"end": "2020-04-30", "v": -7}]},
    "dilutedShares": [{"end": "2020-04-30", "v": 480000000}],
    "sharesLatest": None,
}
LIST = "Symbol,Security,GICS Sector,GICS Sub-Industry,Headquarters Location,Date added,CIK,Founded\n"


def _write(folder: Path, text: str, name: str = "BF-B.json") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_share_class_symbols_meet(tmp_path: Path) -> None:
    facts, described = parse_statements(_write(tmp_path, json.dumps(RECORD)))
    assert facts.symbol == "BF-B"
    assert facts.net_income_quarterly.rows() == [(date(2020, 1, 31), 5.0), (date(2020, 4, 30), 6.0)]
    assert facts.equity["value"].to_list() == [-7.0]
    assert facts.shares_outstanding.is_empty()
    assert facts.shares_outstanding.schema == {"end": pl.Date, "value": pl.Float64}
    assert described == {"name": "Brown Forman", "cik": "14693", "exchange": "NYSE"}
    assert facts.gap() == "2 quarters of net income where 8 are needed"


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("symbol",), "BRK.B", "the symbol inside is 'BRK.B'"),
        (("quarterly",), None, "no object 'quarterly'"),
        (("quarterly", "eps"), None, "no list 'quarterly.eps'"),
        (("balances", "equity"), [{"end": "2020-04-30", "v": "7"}], r"balances.equity\[0\]"),
        (("balances", "equity"), [{"end": "2020-04-31", "v": 7}], "impossible end"),
        (("annual", "eps"), [{"end": "2020-04-30", "v": 1}, {"end": "2020-04-30", "v": 2}], "not after"),
        (("dilutedShares",), [{"end": "2020-04-30", "v": 0}], "not positive"),
        (("sharesLatest",), {"end": "2020-04-30", "v": None}, "no number"),
    ],
)
def test_refusals(tmp_path: Path, path: tuple[str, ...], value: object, word: str) -> None:
    record = json.loads(json.dumps(RECORD))
    target = record
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(SourceError, match=word) as caught:
        parse_statements(_write(tmp_path, json.dumps(record)))
    assert "BF-B.json, line 1:" in str(caught.value)


def test_truncated_json_names_the_line(tmp_path: Path) -> None:
    text = json.dumps(RECORD, indent=1)
    with pytest.raises(SourceError, match="not valid JSON") as caught:
        parse_statements(_write(tmp_path, "\n".join(text.splitlines()[:9])))
    assert "line 9:" in str(caught.value)


def test_known_figures(realdata: Path) -> None:
    facts, _ = parse_statements(realdata / "statements_derived" / "ABBV.json")
    assert facts.net_income_annual.filter(pl.col("end") == date(2025, 12, 31))["value"].item() == 4_226_000_000
    assert facts.shares_outstanding.row(0) == (date(2026, 7, 27), 1_767_117_285.0)


def test_constituents_use_the_projects_sectors(realdata: Path) -> None:
    listed = parse_constituents(realdata / "constituents" / "constituents.csv")
    assert len(listed) == 503
    assert {one.sector for one in listed.values()} == set(SECTORS)
    assert (listed["BF-B"].sector, listed["BF-B"].cik) == ("Consumer Defensive", "0000014693")
    assert listed["BF-B"].date_added == date(1982, 10, 31)


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ('XYZ,Some Co,Financial Services,Banks,"Reno, Nevada",2020-01-01,12,1990', "unknown GICS sector"),
        ('XYZ,Some Co,Financials,Banks,"Reno, Nevada",2020-13-01,12,1990', "impossible date"),
        ('XYZ,Some Co,Financials,Banks,"Reno, Nevada",2020-01-01,A12,1990', "not a CIK"),
        ('ABC,Some Co,Financials,Banks,"Reno, Nevada",2020-01-01,12,1990', "appears twice"),
        (',Some Co,Financials,Banks,"Reno, Nevada",2020-01-01,12,1990', "without symbol"),
    ],
)
def test_constituent_refusals(tmp_path: Path, row: str, word: str) -> None:
    first = 'ABC,First Co,Energy,Oil,"Tulsa, Oklahoma",2020-01-01,11,1990\n'
    with pytest.raises(SourceError, match=word) as caught:
        parse_constituents(_write(tmp_path, LIST + first + row + "\n", "constituents.csv"))
    assert "constituents.csv, line 3:" in str(caught.value)
