"""`finskillbench data doctor` and `data template`."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest
from tests.editions import one_process
from tests.sampling import thorough

from finskillbench import cli

MARKET = ("prices", "famafrench", "fred", "statements_derived")
NOTHING = (
    "no episode can be built; BELZO cannot be used: CIK9910000323.json has no figure of a metric in USD for the "
    "period of a 10-Q, 10-K, 20-F or 40-F; add the facts of its periodic reports, or remove the file. "
)
"""Message of both commands on the filings of the template, which are excerpts."""


@pytest.fixture
def raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The template."""
    assert cli.main(["data", "template", str(tmp_path / "raw")]) == 0
    assert "prices/yahoo/BELZO.csv" in capsys.readouterr().out.splitlines()
    return tmp_path / "raw"


def _doctor(raw: Path) -> list[dict[str, object]]:
    """The findings of a collection."""
    report = raw.parent / "report.json"
    assert cli.main(["data", "doctor", str(raw), "--json", str(report)]) == 1
    return [one for kind in orjson.loads(report.read_bytes())["files"] for one in kind["findings"]]


@pytest.mark.slow
def test_the_template_is_sound_and_too_small(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *market, filings = _doctor(raw)
    assert [one["where"] for one in market] == ["universe.json"] * 2
    assert all("5 sessions of prices where 120 are needed" in str(one["message"]) for one in market)
    assert str(filings["message"]).startswith(NOTHING)
    shown = capsys.readouterr().out
    assert "portfolio construction: not built: universe.json: Technology supplies 0 of 1 names" in shown
    assert f"fundamental analysis: not built: {raw}: no episode can be built" in shown


@thorough
@pytest.mark.slow
def test_a_build_of_the_template_fails_with_one_line_per_shortage(
    raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["data", "build", "--source", "raw-dir", "--raw-dir", str(raw), "--out", str(raw.parent / "edition")]
    with one_process():
        assert cli.main(build) == 2
    assert "universe.json: Technology supplies 0 of 1 names (BELZO has 5 sessions" in capsys.readouterr().err
    for folder in MARKET:
        shutil.rmtree(raw / folder)
    with one_process():
        assert cli.main(build) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {raw}: {NOTHING}")
    assert "Portfolio construction is left out" in error
    assert "normalization: 0 episodes instead of 244" in error


def test_all_findings_are_reported_together(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two mistakes in one file, one each in others, an unlisted file, a series that is absent."""
    price = raw / "prices" / "yahoo" / "BELZO.csv"
    lines = price.read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([cells[0], "dear", *cells[2:]])
    cells = lines[3].split(",")
    lines[3] = ",".join([*cells[:5], "-5", *cells[6:]])
    price.write_text("\n".join(lines))
    shutil.copy(raw / "prices" / "yahoo" / "CORRA.csv", raw / "prices" / "yahoo" / "CORA.csv")
    (raw / "fred" / "DGS3MO.csv").unlink()
    statements = raw / "statements_derived" / "CORRA.json"
    statements.write_text(statements.read_text().replace('"2024-06-30"', '"2024-06-31"').replace('"equity"', '"book"'))
    facts = next((raw / "companyfacts").iterdir())
    facts.write_text(facts.read_text().replace('"2025-08-11"', '"yesterday"'))
    listed = raw / "constituents" / "constituents.csv"
    listed.write_text(listed.read_text().replace("Consumer Discretionary", "Toys"))
    found = {f"{one['where']}: {one['message']}" for one in _doctor(raw)}
    for part in (
        "prices/yahoo/BELZO.csv, line 2: open is not a number: 'dear'; repair the cell",
        "prices/yahoo/BELZO.csv, line 4: volume is negative: '-5'; repair the cell",
        "prices/yahoo/CORA.csv: unknown ticker CORA; rename the file or list the ticker in universe.json",
        "fred: no DGS3MO with observations",
        "statements_derived/CORRA.json: quarterly.netIncome[2] has an impossible end: '2024-06-31'",
        "statements_derived/CORRA.json: quarterly.eps[2] has an impossible end: '2024-06-31'",
        "statements_derived/CORRA.json: no list 'balances.equity'",
        "filed is 'yesterday', not YYYY-MM-DD",
        "constituents/constituents.csv, line 3: unknown GICS sector 'Toys'; use the GICS names",
    ):
        assert any(part in one for one in found), part
    shown = capsys.readouterr().out
    assert "      format: Date,Open,High,Low,Close,Volume\n" in shown


@pytest.mark.slow
def test_missing_folders_are_reported_by_file(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in MARKET:
        shutil.rmtree(raw / folder)
    (filings,) = _doctor(raw)
    assert str(filings["message"]).startswith(NOTHING)
    shown = capsys.readouterr().out
    assert "SKIP  prices/[SET/]TICKER.csv[.gz]: 0 files\n" in shown
    assert "risk management: not built: there is no prices/[SET/]TICKER.csv[.gz]" in shown
    shutil.rmtree(raw / "companyfacts")
    (found,) = _doctor(raw)
    assert (found["state"], str(found["where"]).partition("/")[0]) == ("WARN", "companyfacts")
    for folder in ("submissions", "xbrl"):
        shutil.rmtree(raw / folder)
    states = {str(one["where"]).partition("/")[0]: one["state"] for one in _doctor(raw)}
    assert states == dict.fromkeys((*MARKET, "companyfacts"), "WARN")


@pytest.mark.slow
def test_a_part_of_a_half_is_a_finding(raw: Path) -> None:
    shutil.rmtree(raw / "fred")
    shutil.rmtree(raw / "famafrench")
    findings = {f"{one['where']}: {one['message']}" for one in _doctor(raw)}
    assert any(one.startswith("fred/[SET/]SERIES.csv[.gz]: is missing; needed for portfolio") for one in findings)
    assert any(one.startswith("famafrench/*momentum*daily*.csv[.gz]: is missing; needed for") for one in findings)


def test_company_facts_that_are_no_json_are_one_finding(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file, both halves and the build say the same of it."""
    facts = sorted((raw / "companyfacts").iterdir())[0]
    facts.write_text(facts.read_text()[:-40])
    found = [f"{one['where']}: {one['message']}" for one in _doctor(raw)]
    (message,) = [one for one in found if one.startswith(f"companyfacts/{facts.name}: not valid JSON")]
    assert f"fundamental analysis: not built: {message}\n" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_a_finding_and_no_end(raw: Path) -> None:
    listed = raw / "constituents" / "constituents.csv"
    listed.write_text('"' + listed.read_text())
    (raw / "xbrl" / "BELZO" / "0000000000-00-000000.xml").write_bytes(b"\x1f\x8b")
    found = [f"{one['where']}: {one['message']}" for one in _doctor(raw)]
    assert any(one.startswith("constituents/constituents.csv, line 1: not valid CSV") for one in found)


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "doctor", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'none'}: no such folder; name a raw collection\n"
    (tmp_path / "empty").mkdir()
    build = ["data", "build", "--source", "raw-dir", "--raw-dir", str(tmp_path / "empty"), "--out", "x"]
    assert cli.main(build) == 2
    assert "there is neither a folder prices nor a folder companyfacts; add one" in capsys.readouterr().err
