"""Read tables and arrays from files that may be damaged or malicious, with limits on their declared sizes."""

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

_ALWAYS_ALLOWED = 2**26
_MAX_UNPACKED = 2**32
"""Maximum unpacked bytes of a file; the facts of 3,000 names take a fifth."""
_MAX_RATIO = 64
"""Maximum ratio of unpacked to packed size for larger files; builds stay below 20."""
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS: Mapping[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_table(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a Parquet file; EditionError if it is damaged, lacks one of `columns` or unpacks to too many bytes."""
    with _edition_errors(path):
        # Arrow states sizes before reading and raises on damaged bytes, where Polars writes to stderr.
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
                raise ValueError(f"{name} holds a date outside the years 1 to 9999")
        return frame


def read_schema(path: Path) -> pl.Schema:
    """Read the columns and types of a Parquet file without rows; EditionError if its footer is damaged."""
    with _edition_errors(path):
        file = cast("Any", pq.ParquetFile(path))
        return cast("pl.DataFrame", cast("Any", pl).from_arrow(file.schema_arrow.empty_table())).schema


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz archive by name.

    Raises EditionError if it is damaged, holds other data than numbers and texts, or unpacks to too many bytes.
    """
    with _edition_errors(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _refuse_bomb(path, sum(member.file_size for member in members))
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def read_json_as(path: Path, kind: type[Read]) -> Read:
    """Decode a JSON file as the given type; EditionError names the file and the first wrong field."""
    with _edition_errors(path):
        if (size := path.stat().st_size) > _ALWAYS_ALLOWED:
            raise ValueError(f"it has {size:,} bytes; the limit is {_ALWAYS_ALLOWED:,}")
        return msgspec.json.decode(path.read_bytes(), type=kind)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.compress_type not in _PLAIN:
        raise ValueError(f"{member.filename} uses an unsupported compression")
    with archive.open(member) as packed:
        content = io.BytesIO(packed.read(member.file_size))  # the size limits what is unpacked
    shape, _, kind = _HEADERS[np.lib.format.read_magic(content)](content)
    stated, held = math.prod(shape) * kind.itemsize, len(content.getvalue()) - content.tell()
    if kind.kind not in "fiuU" or min(shape, default=1) <= 0 or stated != held or not held:
        raise ValueError(f"{member.filename} declares {kind} of shape {shape} and holds {held} bytes")
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)


def _refuse_bomb(path: Path, unpacked: int) -> None:
    most = min(_MAX_UNPACKED, max(_ALWAYS_ALLOWED, _MAX_RATIO * path.stat().st_size))
    if unpacked > most:
        raise ValueError(f"it unpacks to {unpacked:,} bytes; the limit is {most:,}")


@contextmanager
def _edition_errors(path: Path) -> Generator[None]:
    """Convert every error into an EditionError that names the file; the libraries raise any type on damaged bytes."""
    if not path.is_file():
        raise EditionError(f"{path}: missing; rebuild the edition")
    try:
        yield
    except FinSkillBenchError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise EditionError(f"{path}: cannot be read ({reason}); rebuild the edition") from error
