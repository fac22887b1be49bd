"""Rows with plain columns: no lists and no structs, so that every spreadsheet and every database reads them.

The columns are those of `rows.parquet` (docs/rows.md), but `scores` is a column for each profile, and a list its items
as a JSON array.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.csv_output import csv_text
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.errors import InputError
from finskillbench.runs.store.columns import COLUMNS, Column
from finskillbench.runs.store.files import write_beside

_SEPARATOR = "_"


class Flat(StrEnum):
    """The formats of a flat file."""

    PARQUET = "parquet"
    CSV = "csv"


def flat_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a plain value in each column: `scores` as `scores_paper` and so on, lists as JSON."""
    columns: list[pl.Series] = []
    for series in rows:
        if isinstance(series.dtype, pl.Struct):
            fields = series.struct.unnest()
            columns += [fields[name].alias(f"{series.name}{_SEPARATOR}{name}") for name in fields.columns]
        elif isinstance(series.dtype, pl.List):
            texts = [None if each is None else orjson.dumps(each).decode() for each in series.to_list()]
            columns.append(pl.Series(series.name, texts, pl.String))
        else:
            columns.append(series)
    return pl.DataFrame(columns)


def described(rows: pl.DataFrame) -> dict[str, Column]:
    """Unit and meaning of each column of `flat_rows(rows)`, as far as they are known."""
    known: dict[str, Column] = {}
    for name, kind in rows.schema.items():
        column = COLUMNS.get(name, Column("", ""))
        if isinstance(kind, pl.Struct):
            known |= {f"{name}_{field.name}": Column(column.unit, f"under {field.name}") for field in kind.fields}
        elif isinstance(kind, pl.List):
            known[name] = Column("JSON", column.meaning)
        else:
            known[name] = column
    return known


def write_flat(rows: pl.DataFrame, path: Path, form: Flat) -> None:
    """Write the flat rows; a Parquet file has unit and meaning of each column in its metadata.

    Raises
    ------
    InputError : the file cannot be written, or would lie in an edition.
    """
    refuse_inside_edition(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write")
    write_beside(path, _WRITERS[form](rows))


def _csv(rows: pl.DataFrame) -> bytes:
    return csv_text(flat_rows(rows)).encode("utf-8", "surrogatepass")


def _parquet(rows: pl.DataFrame) -> bytes:
    # pyarrow comes without types.
    arrow, parquet = cast("Any", pa), cast("Any", pq)
    table = cast("Any", flat_rows(rows).to_arrow(compat_level=pl.CompatLevel.oldest()))
    meanings = described(rows)
    fields = [field.with_metadata(meanings[field.name].metadata()) for field in table.schema]
    buffer = io.BytesIO()
    parquet.write_table(table.cast(arrow.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


_WRITERS: Mapping[Flat, Callable[[pl.DataFrame], bytes]] = {Flat.CSV: _csv, Flat.PARQUET: _parquet}
