"""Write bundles as reproducible ZIP archives, and read untrusted ones safely.

Names are checked before reading, nothing is extracted to disk, and declared sizes are limited before decompression.
Rows are read in batches with dictionary-encoded texts, whose full size is checked before they are expanded.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finskillbench.edition.store import new_folder
from finskillbench.errors import InputError
from finskillbench.publish.bundle import ANSWERS, LARGEST_MANIFEST, MANIFEST, ROWS, SIGNATURE, TRAJECTORIES
from finskillbench.runs.store.rows import SCHEMA, Row, from_frame
from finskillbench.runs.store.version import make_folder, write_atomic

LIMITS: Mapping[str, int] = {MANIFEST: LARGEST_MANIFEST, SIGNATURE: 2**16, ROWS: 2**28, ANSWERS: 2**28}
"""Maximum bytes of each file."""
LARGEST_TRAJECTORY = 2**27
MOST_FILES = 50_000
LARGEST_BUNDLE = 2**32
"""Maximum bytes of all files together."""
_TRAJECTORY = re.compile(rf"{TRAJECTORIES}/[A-Za-z0-9_-][A-Za-z0-9._-]{{0,300}}/[A-Za-z0-9_-][A-Za-z0-9._-]{{0,200}}")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 2**20
_UNICODE_PATH = 0x7075


@dataclass(frozen=True, slots=True)
class Contents:
    """Files of an open bundle with their declared bytes; `archive` is None for a folder."""

    path: Path
    sizes: Mapping[str, int]
    archive: zipfile.ZipFile | None

    def read(self, name: str) -> bytes:
        """Return the content of a file; InputError if it is missing, damaged or larger than declared."""
        return b"".join(self.chunks(name))

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a file in chunks; InputError as for `read`."""
        if name not in self.sizes:
            raise InputError(f"{self.path}: has no {name}; make the bundle again with finskillbench submit")
        left = self.sizes[name]
        try:
            with (self.path / name).open("rb") if self.archive is None else self.archive.open(name) as file:
                yield from _bounded(file, left)
        except (OSError, KeyError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{self.path}: {name} cannot be read ({error}); send the bundle again") from None


def write_bundle(files: Mapping[str, bytes], out: Path) -> None:
    """Write a bundle completely or not at all, as a ZIP archive or folder; InputError if `out` exists."""
    if out.suffix != ".zip":
        with new_folder(out) as folder:
            for name, data in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
        return
    if out.exists():
        raise InputError(f"{out}: already exists; remove it or choose another --out")
    make_folder(out.parent)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            # Compressed files are stored, because a second compression does not shrink them.
            packed = name == ROWS or name.startswith(TRAJECTORIES)
            member = zipfile.ZipInfo(name, _EPOCH)
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            member.create_system = 3
            kind = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            archive.writestr(member, files[name], compress_type=kind, compresslevel=6)
    write_atomic(out, buffer.getvalue())


@contextmanager
def open_bundle(path: Path) -> Generator[Contents]:
    """Open a bundle, a ZIP archive or a folder; InputError for unknown, unsafe, duplicate or oversized files."""
    with ExitStack() as stack:
        archive = None if path.is_dir() else stack.enter_context(_archive(path))
        listed = _of_folder(path) if archive is None else (_member(path, each) for each in archive.infolist())
        yield Contents(path, _checked_sizes(path, listed), archive)


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); name a bundle") from None
    except (ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path}: not a ZIP archive ({error}); name a bundle written by finskillbench submit"
        ) from None


def _checked_sizes(path: Path, listed: Iterable[tuple[str, int]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, size in listed:
        if name in sizes:
            raise InputError(f"{path}: contains {name!a} twice; make the bundle again with finskillbench submit")
        sizes[name] = size
        _refuse_name(path, name)
        if size > LIMITS.get(name, LARGEST_TRAJECTORY):
            raise InputError(f"{path}: {name} declares {size:,} bytes, more than a bundle may have; it is not read")
    if len(sizes) > MOST_FILES or sum(sizes.values()) > LARGEST_BUNDLE:
        raise InputError(f"{path}: declares {len(sizes):,} files of {sum(sizes.values()):,} bytes; it is not read")
    return sizes


def _member(path: Path, member: zipfile.ZipInfo) -> tuple[str, int]:
    kind = stat.S_IFMT(member.external_attr >> 16)
    # Python 3.12 reads a second name that an archive may contain, 3.11 does not.
    if member.filename != member.orig_filename or _UNICODE_PATH in _extras(member.extra):
        raise InputError(f"{path}: {member.orig_filename!a} has a second name; make the bundle again")
    if member.is_dir() or kind not in (0, stat.S_IFREG):
        raise InputError(f"{path}: {member.filename!a} is not a regular file; make the bundle again")
    if member.flag_bits & 1 or member.compress_type not in _PLAIN:
        raise InputError(
            f"{path}: {member.filename!a} is encrypted or has an unsupported compression; make the bundle again"
        )
    return member.orig_filename, member.file_size


def _extras(data: bytes) -> Iterator[int]:
    while len(data) >= 4:
        yield int.from_bytes(data[:2], "little")
        data = data[4 + int.from_bytes(data[2:4], "little") :]


def _of_folder(path: Path) -> Iterator[tuple[str, int]]:
    for parent, folders, files in os.walk(path):
        for entry in (Path(parent, name) for name in sorted([*folders, *files])):
            state = entry.lstat()
            if stat.S_ISREG(state.st_mode):
                yield entry.relative_to(path).as_posix(), state.st_size
            elif not stat.S_ISDIR(state.st_mode):
                raise InputError(f"{path}: {entry.name!a} is not a regular file; make the bundle again")


def _refuse_name(path: Path, name: str) -> None:
    if name not in LIMITS and not _TRAJECTORY.fullmatch(name):
        raise InputError(f"{path}: {name[:80]!a} is not a file of a bundle; make it again with finskillbench submit")


def _bounded(file: IO[bytes], left: int) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise ValueError("it is longer than declared")
        yield chunk
    if left:
        raise ValueError("it is shorter than declared")


MOST_ROWS = 200_000
LARGEST_TABLE = 2**28
"""Maximum bytes of unpacked rows, with every text counted in every row."""
MOST_TEXT = 100_000
_BATCH = 1000


def read_rows(contents: Contents) -> list[Row]:
    """Read the rows of a bundle; InputError if the table is damaged, has other columns or is too large."""
    try:
        return [row for frame in _frames(contents.read(ROWS)) for row in from_frame(frame)]
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - libraries raise anything on chosen bytes
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{contents.path}: {ROWS}: {reason[:200]}; submit the run again") from None


def _frames(data: bytes) -> Iterator[pl.DataFrame]:
    """Yield the table in batches after checking their size; ValueError if they are too large."""
    # Arrow has sizes before reading, but no type stubs.
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
    """Return the bytes of a column with every text repeated; ValueError if one is too long."""
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
