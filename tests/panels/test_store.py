# pyright: basic
"""Panels on disk: round trip, the same bytes, units on every column, and clear refusals."""

import json
import os
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from finskillbench.engines.statistics.covariance import ledoit_wolf
from finskillbench.errors import EditionError, InputError
from finskillbench.panels import Panels, build_panels, read_panels, write_panels
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.panels.store import DENSE_LIMIT, TABLES, covariance_bytes, read_covariance_file
from finskillbench.panels.tables import Jump, Tables
from finskillbench.sources.market.collection import MarketData


@pytest.fixture(scope="module")
def panels(lab: SimpleNamespace, market: MarketData) -> Panels:
    """With a gap before the covariance windows and a jump, so that the report has something to keep."""
    holed = lab.without(market, "N002", date(2022, 12, 10), date(2022, 12, 28))
    built = build_panels(holed)
    report = replace(built.report, jumps=(Jump("N000", date(2023, 1, 4), -0.45),))
    assert report.gaps
    return replace(built, report=report, tables=Tables(_filed()).merged_over(built.tables))


def _filed() -> dict[str, pl.DataFrame]:
    """A row of each fundamental panel: an instant that was derived, its filing, and a member of an axis."""
    empty, end, filed = FundamentalPanels.empty().tables, date(2024, 3, 31), date(2024, 5, 2)
    period = {"end": end, "filed": filed, "value": 5.0, "derived": True, "accession": "a"}
    fact = period | {"symbol": "ZED", "metric": "total_liabilities", "fiscal_year": 2024, "parents": "a assets"}
    member = period | {"symbol": "ZED", "axis": "product_segment", "segment": "Toys", "start": date(2024, 1, 1)}
    filing = {"symbol": "ZED", "accession": "a", "form": "10-Q", "period_end": end, "filed": filed}
    rows = {"facts": fact, "filings": filing, "segments": member}
    return {name: pl.DataFrame([row], schema=empty[name].schema) for name, row in rows.items()}


@pytest.fixture
def folder(panels: Panels, tmp_path: Path) -> Path:
    write_panels(panels, tmp_path / "panels")
    return tmp_path / "panels"


def test_round_trip_restores_every_bit(panels: Panels, folder: Path) -> None:
    again = read_panels(folder)
    for name in TABLES:
        assert getattr(again, name).equals(getattr(panels, name)), name
        assert getattr(again, name).schema == getattr(panels, name).schema
    assert (again.symbols, again.sectors, again.month_ends) == (panels.symbols, panels.sectors, panels.month_ends)
    assert again.risk_free == panels.risk_free
    assert list(again.regimes.items()) == list(panels.regimes.items())
    assert again.report == panels.report
    for day, covariance in panels.covariance.items():
        np.testing.assert_array_equal(again.covariance[day].loadings, covariance.loadings)
        np.testing.assert_array_equal(again.covariance[day].specific, covariance.specific)
        assert again.covariance[day].symbols == covariance.symbols


def test_the_same_panels_give_the_same_bytes(panels: Panels, folder: Path, tmp_path: Path) -> None:
    write_panels(panels, tmp_path / "again")
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert len(files) == len(TABLES) + len({*panels.month_ends, *panels.risk_dates}) + 1
    for file in files:
        assert (folder / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file
    with zipfile.ZipFile(folder / "covariance" / f"{panels.month_ends[0]}.npz") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "panels"]


def test_every_column_carries_unit_horizon_and_meaning(folder: Path) -> None:
    for name in TABLES:
        schema = pq.read_schema(folder / f"{name}.parquet")
        for field in schema:
            described = {key: field.metadata[key].decode() for key in (b"unit", b"horizon", b"meaning")}
            assert all(described.values()), (name, field.name)
    views = pq.read_schema(folder / "views.parquet")
    assert views.field("expected_return").metadata[b"unit"] == b"decimal per year"
    assert views.field("expected_return").metadata[b"horizon"] == b"1 year ahead"
    prices = pq.read_schema(folder / "prices.parquet")
    assert prices.field("adj_close:N003").metadata[b"unit"] == b"USD per share"
    assert prices.field("volume:N003").metadata[b"unit"] == b"shares"
    facts, segments = (pq.read_schema(folder / f"{name}.parquet") for name in ("facts", "segments"))
    assert facts.field("value").metadata[b"unit"] == b"as in the column unit"
    assert segments.field("value").metadata[b"unit"] == b"USD"
    assert json.loads((folder / "panels.json").read_text())["risk_free"]["unit"] == "decimal per year"


def test_covariance_files_are_read_by_plain_numpy(panels: Panels, folder: Path) -> None:
    day = panels.month_ends[-1]
    with np.load(folder / "covariance" / f"{day}.npz", allow_pickle=False) as arrays:
        assert sorted(arrays.files) == ["cov", "loadings", "specific", "symbols"]
        assert tuple(arrays["symbols"]) == panels.symbols
        np.testing.assert_array_equal(arrays["cov"], panels.covariance[day].matrix())
    n = DENSE_LIMIT + 1
    rng = np.random.default_rng(1)
    large = ledoit_wolf(rng.standard_normal((20, n)), tuple(f"S{i}" for i in range(n))).covariance
    content = covariance_bytes(large)
    assert len(content) < 8 * n * n
    (folder / "large.npz").write_bytes(content)
    np.testing.assert_array_equal(read_covariance_file(folder / "large.npz").loadings, large.loadings)


def test_a_market_without_filings_has_fundamental_panels_without_rows(market: MarketData, tmp_path: Path) -> None:
    write_panels(build_panels(market), tmp_path / "panels")
    again = read_panels(tmp_path / "panels")
    for name in ("facts", "filings", "segments"):
        assert getattr(again, name).equals(FundamentalPanels.empty().tables[name])
        assert getattr(again, name).schema == FundamentalPanels.empty().tables[name].schema


def test_the_report_says_what_the_build_found(panels: Panels) -> None:
    assert panels.report.notes[0] == "A note of the sources."
    assert any("N002 has no price for 13 sessions after 2022-12-09" in note for note in panels.report.notes)


def test_writing_refuses_what_is_there_and_leaves_nothing_behind(panels: Panels, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an empty folder"):
        write_panels(panels, folder)
    (tmp_path / "empty").mkdir()
    write_panels(panels, tmp_path / "empty")
    assert read_panels(tmp_path / "empty").symbols == panels.symbols
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        write_panels(panels, tmp_path / "file" / "panels")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "panels"]


def test_a_table_is_read_when_it_is_asked_for_and_once(panels: Panels, folder: Path) -> None:
    again = read_panels(folder)
    (folder / "views.parquet").unlink()
    with pytest.raises(EditionError, match=r"views\.parquet: missing"):
        _ = again.views
    assert again.returns is again.returns
    (folder / "returns.parquet").unlink()
    assert again.returns.equals(panels.returns)
    with pytest.raises(EditionError, match=r"returns\.parquet: missing"):
        _ = again.tables.unread()["returns"]


def test_rows_that_are_damaged_are_told_when_they_are_read(folder: Path) -> None:
    """The end of the file, which says what its columns are, is whole."""
    path = folder / "returns.parquet"
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    path.write_bytes(content)
    again = read_panels(folder)
    with pytest.raises(EditionError, match=r"returns\.parquet: cannot be read"):
        _ = again.returns


def test_reading_names_the_file_that_is_missing_or_damaged(panels: Panels, folder: Path) -> None:
    day = panels.month_ends[4]
    cases = ("views.parquet", f"covariance/{day}.npz", "panels.json")
    for name in cases:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(EditionError, match=f"{name}: cannot be read"):
            read_panels(folder)
        (folder / name).unlink()
        with pytest.raises(EditionError, match=f"{name}: missing"):
            read_panels(folder)
        (folder / name).write_bytes(content)
    content = (folder / "panels.json").read_bytes()
    (folder / "panels.json").write_text(json.dumps({"symbols": ["N000"]}))
    with pytest.raises(EditionError, match=r"panels\.json: cannot be read"):
        read_panels(folder)
    os.truncate(folder / "panels.json", 2**27)
    with pytest.raises(EditionError, match=r"panels\.json: cannot be read \(it has 134,217,728 bytes"):
        read_panels(folder)
    (folder / "panels.json").write_bytes(content)
    assert read_panels(folder).symbols == panels.symbols
