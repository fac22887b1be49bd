"""Flat rows: every value is plain, none is lost, and other readers find the meaning of each column."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.reports.test_read import row

from finskillbench.errors import InputError
from finskillbench.integrations.exports import FlatFormat, describe_columns, flat_rows, write_flat
from finskillbench.runs.store.rows import COLUMNS, to_frame


@pytest.fixture
def rows() -> pl.DataFrame:
    return to_frame([row()]).with_columns(skills_loaded=pl.Series([['a "b"', "c,d"]]))


def test_every_column_is_plain_and_described(rows: pl.DataFrame) -> None:
    flat = flat_rows(rows)
    assert not [name for name, kind in flat.schema.items() if kind.is_nested()]
    assert flat.width == rows.width + 2  # three profiles in place of one struct
    assert (flat["scores_certified"][0], flat["scores_strict"][0]) == (0.5, None)
    assert json.loads(flat["skills_loaded"][0]) == ['a "b"', "c,d"]
    assert list(describe_columns(rows)) == flat.columns
    assert describe_columns(rows)["latency_seconds"] == COLUMNS["latency_seconds"]
    assert describe_columns(rows)["scores_paper"].meaning == "under paper"


def test_csv_read_by_another_reader(rows: pl.DataFrame, tmp_path: Path) -> None:
    write_flat(rows, tmp_path / "rows.csv", FlatFormat.CSV)
    with (tmp_path / "rows.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["task_id"], line["scores_certified"], line["cost_usd"]) == ("t1", "0.5", "")
    assert json.loads(line["skills_loaded"]) == ['a "b"', "c,d"]


def test_parquet_tells_units(rows: pl.DataFrame, tmp_path: Path) -> None:
    write_flat(rows, tmp_path / "rows.parquet", FlatFormat.PARQUET)
    schema = pq.read_schema(tmp_path / "rows.parquet")
    assert schema.field("latency_seconds").metadata[b"unit"] == b"seconds"
    assert pl.read_parquet(tmp_path / "rows.parquet").equals(flat_rows(rows))


def test_a_folder_is_no_file(rows: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; name the file to write"):
        write_flat(rows, tmp_path, FlatFormat.CSV)
