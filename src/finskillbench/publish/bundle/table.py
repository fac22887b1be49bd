"""The rows of a stranger's bundle, read in batches: what unpacks to more than any run has is refused first.

Texts are read as dictionaries, so that one which many rows share stands in memory once, and are counted before they are
spelled out row by row.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finskillbench.errors import InputError
from finskillbench.publish.bundle.archive import Contents
from finskillbench.publish.bundle.manifest import ROWS
from finskillbench.runs.store.rows import SCHEMA, Row, from_frame

MOST_ROWS = 200_000
LARGEST_TABLE = 2**28
"""Bytes that the rows may unpack to, every text counted in every row."""
MOST_TEXT = 100_000
_BATCH = 1000


def read_rows(contents: Contents) -> list[Row]:
    """The rows of a bundle.

    Raises
    ------
    InputError : the table is damaged, has other columns, or is larger than any run.
    """
    try:
        return [row for frame in _frames(contents.read(ROWS)) for row in from_frame(frame)]
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - libraries raise anything on chosen bytes
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{contents.path}: {ROWS}: {reason[:200]}; submit the run again") from None


def _frames(data: bytes) -> Iterator[pl.DataFrame]:
    """The table in batches, each found small enough; a ValueError says what is not."""
    # By Arrow, which tells the sizes before it reads, and comes without types.
    parquet = cast("Any", pq)
    plain = parquet.ParquetFile(io.BytesIO(data))
    footer, schema = plain.metadata, plain.schema_arrow
    unpacked = sum(footer.row_group(place).total_byte_size for place in range(footer.num_row_groups))
    if footer.num_rows > MOST_ROWS or max(unpacked, 8 * footer.num_rows * footer.num_columns) > LARGEST_TABLE:
        raise ValueError(f"it declares {footer.num_rows:,} rows of {unpacked:,} bytes")
    columns = [footer.schema.column(place) for place in range(footer.num_columns)]
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    file, left = parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts), LARGEST_TABLE
    for batch in file.iter_batches(_BATCH):
        batch.validate(full=True)
        left -= sum(_spelled_out(column) for column in batch.columns)
        if left < 0:
            raise ValueError(f"its rows unpack to more than {LARGEST_TABLE:,} bytes")
        table = cast("Any", pa).Table.from_batches([batch]).cast(schema)
        frame = cast("pl.DataFrame", cast("Any", pl).from_arrow(table))
        if dict(frame.schema) != dict(SCHEMA):
            raise ValueError("its columns are not those of docs/rows.md")
        yield frame


def _spelled_out(column: Any) -> int:
    """Bytes of a column, with every text as often as it stands there; a ValueError where one is longer than any."""
    types = cast("Any", pa).types
    while types.is_list(column.type) or types.is_large_list(column.type):
        column = column.flatten()
    if not types.is_dictionary(column.type):
        return column.nbytes
    compute = cast("Any", pc)
    lengths = compute.binary_length(column.dictionary)
    if (compute.max(lengths).as_py() or 0) > MOST_TEXT:
        raise ValueError(f"holds a text of more than {MOST_TEXT:,} bytes")
    return column.indices.nbytes + (compute.sum(lengths.take(column.indices)).as_py() or 0)
