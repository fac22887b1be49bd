"""Tables and arrays of files that may be damaged or made to harm: what they declare is bounded before it is read."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from finskillbench.errors import EditionError, FinSkillBenchError

Read = TypeVar("Read")

_ALWAYS = 2**26
"""Bytes that any file may unpack to."""
_LARGEST = 2**32
"""Bytes that no file may unpack to; the facts of 3,000 names are a fifth of it."""
_DENSEST = 64
"""How many times its size a larger file may unpack to; what a build writes unpacks to less than 20 times."""
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
"""The first and the last day that Python knows, as Parquet counts them."""
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS: Mapping[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_table(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """A Parquet file as a table; of its columns those named, or all.

    Raises
    ------
    EditionError : naming the file, which cannot be read, lacks a column or unpacks to more than it may.
    """
    with _naming(path):
        # By Arrow, which tells the sizes before it reads; on damaged bytes it raises where Polars writes to stderr.
        file = cast("Any", pq.ParquetFile(path))
        footer = file.metadata
        unpacked = sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))
        _refuse_bomb(path, max(unpacked, 8 * footer.num_rows * footer.num_columns))
        if lacking := [name for name in columns or () if name not in file.schema_arrow.names]:
            raise ValueError(f"it has no column {lacking[0]}")
        table = file.read(None if columns is None else list(columns))
        table.validate(full=True)
        frame = cast("pl.DataFrame", cast("Any", pl).from_arrow(table))
        for name, kind in frame.schema.items():
            if kind == pl.Date and not frame[name].to_physical().drop_nulls().is_between(_FIRST_DAY, _LAST_DAY).all():
                raise ValueError(f"{name} holds a day of no calendar")
        return frame


def read_schema(path: Path) -> pl.Schema:
    """The columns of a Parquet file and their types, without its rows.

    Raises
    ------
    EditionError : naming the file, whose end cannot be read.
    """
    with _naming(path):
        file = cast("Any", pq.ParquetFile(path))
        return cast("pl.DataFrame", cast("Any", pl).from_arrow(file.schema_arrow.empty_table())).schema


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an npz archive by name.

    Raises
    ------
    EditionError : naming the file, which cannot be read, holds other things than arrays of numbers and texts, or
        unpacks to more than it may.
    """
    with _naming(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _refuse_bomb(path, sum(member.file_size for member in members))
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def read_json(path: Path, kind: type[Read]) -> Read:
    """A JSON file as a structure of a type.

    Raises
    ------
    EditionError : naming the file, and the first field that is missing or wrong.
    """
    with _naming(path):
        if (size := path.stat().st_size) > _ALWAYS:
            raise ValueError(f"it has {size:,} bytes, more than the {_ALWAYS:,} it may")
        return msgspec.json.decode(path.read_bytes(), type=kind)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.compress_type not in _PLAIN:
        raise ValueError(f"{member.filename} is compressed in a way that no build uses")
    with archive.open(member) as packed:
        content = io.BytesIO(packed.read(member.file_size))  # at most so much is unpacked, whatever there is
    shape, _, kind = _HEADERS[np.lib.format.read_magic(content)](content)
    stated, held = math.prod(shape) * kind.itemsize, len(content.getvalue()) - content.tell()
    if kind.kind not in "fiuU" or min(shape, default=1) <= 0 or stated != held or not held:
        raise ValueError(f"{member.filename} declares {kind} of shape {shape} and holds {held} bytes")
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)


def _refuse_bomb(path: Path, unpacked: int) -> None:
    most = min(_LARGEST, max(_ALWAYS, _DENSEST * path.stat().st_size))
    if unpacked > most:
        raise ValueError(f"it unpacks to {unpacked:,} bytes, more than the {most:,} it may")


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Name a file in whatever goes wrong: the libraries raise anything on bytes that somebody chose."""
    if not path.is_file():
        raise EditionError(f"{path}: missing; build the edition again")
    try:
        yield
    except FinSkillBenchError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise EditionError(f"{path}: cannot be read ({reason}); rebuild the edition") from error
