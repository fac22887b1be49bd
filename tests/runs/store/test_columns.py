"""What a table of rows says of its columns, in the file and in the docs."""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from tests.runs.examples import row

from finskillbench.runs.store.rows import COLUMNS, SCHEMA, TIMINGS, to_frame, write_rows

PAGE = Path(__file__).parents[3] / "docs" / "rows.md"


def test_every_column_is_described_and_no_other() -> None:
    assert list(COLUMNS) == list(SCHEMA)
    assert set(TIMINGS) <= set(COLUMNS)
    assert all(column.meaning for column in COLUMNS.values())


def test_the_file_describes_its_columns_and_reads_as_it_was_written(tmp_path) -> None:
    path = tmp_path / "rows.parquet"
    frame = to_frame([row(0), row(1, score=None, started=None, ended=None, provider=None, commit="a" * 40)])
    write_rows(path, frame)
    fields = {field.name: field for field in pq.read_schema(path)}
    found = {
        name: (each.metadata[b"unit"].decode(), each.metadata[b"meaning"].decode()) for name, each in fields.items()
    }
    assert found == {name: tuple(column) for name, column in COLUMNS.items()}
    assert not any("view" in str(each.type) for each in fields.values())
    assert pl.read_parquet(path).equals(frame)
    assert pl.read_parquet(path).schema == pl.Schema(SCHEMA)


def test_the_docs_list_every_column() -> None:
    lines = [f"| `{name}` | {column.unit} | {column.meaning} |" for name, column in COLUMNS.items()]
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index("| column | unit |") :].split("\n\n")[0].splitlines()[2:] == lines
