"""Facts that an episode holds by reference: resolved to what was public by its day, from the edition's panels."""

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from finskillbench.edition.load import Edition
from finskillbench.edition.references import FACTS, References
from finskillbench.errors import EditionError
from finskillbench.panels.filings.statements import FundamentalPanels

EMPTY = FundamentalPanels.empty().tables
HELD = {"ref": FACTS, "symbol": "ACME", "as_of": "2024-05-02", "since": "2023-01-01"}


def _row(end: date, filed: date, value: float, **fields: Any) -> dict[str, Any]:
    constant = dict.fromkeys(("unit", "tag", "taxonomy", "form", "fiscal_period", "parents"), "x")
    return {
        **constant,
        "symbol": "ACME",
        "metric": "total_assets",
        "end": end,
        "filed": filed,
        "value": value,
        "accession": "a",
        "duration": "instant",
        "derived": False,
        **fields,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "panels").mkdir()
    facts = [
        _row(date(2022, 12, 31), date(2023, 2, 1), 1.0),
        _row(date(2023, 3, 31), date(2023, 5, 1), 2.0),
        _row(date(2023, 3, 31), date(2024, 5, 3), 3.0),
        _row(date(2024, 3, 31), date(2024, 5, 2), 4.0),
    ]
    split = {"axis": "product_segment", "segment": "Toys", "start": date(2024, 1, 1)}
    segments = [_row(date(2024, 3, 31), day, 5.0, **split) for day in (date(2024, 5, 2), date(2024, 6, 2))]
    pl.DataFrame(facts, schema=EMPTY["facts"].schema).write_parquet(tmp_path / FACTS)
    EMPTY["filings"].write_parquet(tmp_path / "panels/filings.parquet")
    names = EMPTY["segments"].columns
    table = pl.DataFrame([{name: row[name] for name in names} for row in segments], schema=EMPTY["segments"].schema)
    table.write_parquet(tmp_path / "panels/segments.parquet")
    return tmp_path


def test_a_reference_becomes_what_was_public(folder: Path) -> None:
    references = References(folder, {FACTS: ""})
    found = references.resolved(HELD)
    assert [(row["end"], row["value"]) for row in found["facts"]] == [("2024-03-31", 4.0), ("2023-03-31", 2.0)]
    assert [(row["segment"], row["filed"]) for row in found["segments"]] == [("Toys", "2024-05-02")]
    assert references.resolved(dict(HELD)) is found
    later = references.resolved({**HELD, "as_of": "2024-05-03", "since": "2023-03-31"})
    assert [row["value"] for row in later["facts"]] == [4.0, 3.0]


def test_an_agent_reads_the_same_reference_as_it_was_filed(folder: Path) -> None:
    days = date(2023, 5, 1), date(2024, 5, 2), date(2024, 5, 3)
    names = EMPTY["filed"].columns
    rows = [_row(date(2023, 3, 31), day, float(day.year), tag="Revenues", fiscal_year=2023, start=None) for day in days]
    table = pl.DataFrame([{name: row[name] for name in names} for row in rows], schema=EMPTY["filed"].schema)
    table.write_parquet(folder / "panels/filed.parquet")
    filings = Edition(folder, {"files": {FACTS: ""}}).filings
    assert filings is not None
    found = filings.as_filed({**HELD, "since": "2023-01-01"})
    assert [(row["tag"], row["filed"]) for row in found["facts"]] == [("Revenues", str(day)) for day in days[:2]]
    assert [row["segment"] for row in found["segments"]] == ["Toys"]


def test_a_release_without_panels_keeps_its_reference_and_serves_no_queries(folder: Path) -> None:
    assert References(folder, {}).resolved(HELD) == HELD
    assert Edition(folder, {"files": {}}).filings is None
    assert Edition(folder, {"files": {FACTS: ""}}).filings is not None


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"symbol": "NOPE"}, "no facts of 'NOPE'"),
        ({"as_of": "yesterday"}, "lacks the date as_of; rebuild the edition"),
        ({"since": None}, "lacks the date since; rebuild the edition"),
    ],
)
def test_a_reference_that_cannot_be_resolved_names_the_file(folder: Path, held: dict[str, Any], words: str) -> None:
    with pytest.raises(EditionError, match=rf"facts\.parquet.*{words}"):
        References(folder, {FACTS: ""}).resolved({**HELD, **held})


@pytest.mark.parametrize("name", ["facts", "filings", "segments"])
def test_a_panel_that_is_missing_or_damaged_is_named(folder: Path, name: str) -> None:
    path = folder / "panels" / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(EditionError, match=rf"{name}\.parquet: cannot be read \(.*\); rebuild the edition"):
        References(folder, {FACTS: ""}).resolved(HELD)
    path.unlink()
    with pytest.raises(EditionError, match=rf"{name}\.parquet: missing; rebuild the edition"):
        References(folder, {FACTS: ""}).resolved(HELD)
