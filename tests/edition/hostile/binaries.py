"""Covariances and tables that are damaged, of other types, or unpack to more than any machine holds."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.edition.hostile.small import COVARIANCE

Alter = Callable[[Path], None]
FACTS = "panels/facts.parquet"
Arrays = dict[str, Any]


def _cut(name: str, share: float) -> Alter:
    def alter(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return alter


def _arrays(change: Callable[[Arrays], Any]) -> Alter:
    def alter(folder: Path) -> None:
        with np.load(folder / COVARIANCE) as stored:
            arrays = dict(stored)
        change(arrays)
        np.savez(folder / COVARIANCE, **arrays)

    return alter


def _member(header: bytes, zeros: int = 0, *, unpacked: int | None = None, method: int = zipfile.ZIP_DEFLATED) -> Alter:
    """An archive with one array: what its header declares, so many zero bytes, and what the archive says they are."""

    def alter(folder: Path) -> None:
        path = folder / COVARIANCE
        with zipfile.ZipFile(path, "w", method) as archive, archive.open("cov.npy", "w", force_zip64=True) as member:
            member.write(header)
            for _ in range(zeros // 2**20):
                member.write(bytes(2**20))
        if unpacked is not None:
            content = bytearray(path.read_bytes())
            place = content.rindex(b"PK\x01\x02") + 24
            content[place : place + 4] = struct.pack("<I", unpacked)
            path.write_bytes(content)

    return alter


def _header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _pickled() -> bytes:
    content = io.BytesIO()
    np.save(content, np.array([print], dtype=object), allow_pickle=True)
    return content.getvalue()


ON_ARRAYS: Mapping[str, Alter] = {
    "half a covariance": _cut(COVARIANCE, 0.5),
    "an empty covariance": _cut(COVARIANCE, 0),
    "a covariance that is text": lambda folder: (folder / COVARIANCE).write_text("0.04"),  # type: ignore[dict-item]
    "a covariance of another size": _arrays(lambda arrays: arrays.update(cov=arrays["cov"][:3, :3])),
    "a covariance of texts": _arrays(lambda arrays: arrays.update(cov=arrays["cov"].astype(str))),
    "a covariance of infinities": _arrays(lambda arrays: arrays.update(cov=arrays["cov"] * math.inf)),
    "a covariance with a NaN": _arrays(lambda arrays: arrays["cov"].__setitem__((0, 0), math.nan)),
    "a covariance of complex numbers": _arrays(lambda arrays: arrays.update(cov=arrays["cov"] * 1j)),
    "a covariance of zeros": _arrays(lambda arrays: arrays.update(cov=0 * arrays["cov"])),
    "a covariance that is negative": _arrays(lambda arrays: arrays.update(cov=-arrays["cov"])),
    "a covariance of huge numbers": _arrays(lambda arrays: arrays.update(cov=1e300 * arrays["cov"])),
    "a covariance that is not symmetric": _arrays(lambda arrays: arrays.update(cov=np.triu(arrays["cov"]))),
    "no covariance in the archive": _arrays(lambda arrays: (arrays.pop("cov"), arrays.pop("loadings"))),
    "no symbols": _arrays(lambda arrays: arrays.pop("symbols")),
    "a symbol that occurs twice": _arrays(lambda arrays: arrays["symbols"].__setitem__(0, arrays["symbols"][1])),
    "fewer symbols": _arrays(lambda arrays: arrays.update(symbols=arrays["symbols"][:2])),
    "an archive of gigabytes": _member(_header("(65536, 32768)"), unpacked=2**32 - 2),
    "an archive that says it is small": _member(_header("(2097152,)"), 2**24, unpacked=64),
    "a header of a huge array": _member(_header("(1000000, 1000000)")),
    "a header of more than memory": _member(_header("(99999999999999, 99999999999999)")),
    "a header of nothing, often": _member(_header("(1000000000000, 0)")),
    "a header of empty texts": _member(_header("(1000000000000,)", "<U0")),
    "a header of a negative shape": _member(_header("(-1, 5)")),
    "a header that is no text": _member(b"\x93NUMPY\x01\x00\xff\xff" + bytes(2**16)),
    "a header of brackets": _member(_header("(" * 9000 + ")" * 9000)),
    "a pickled object": _member(_pickled()),
    "an archive packed in another way": _member(_header("(1,)"), method=zipfile.ZIP_LZMA),
}


def _table(change: Callable[[pl.DataFrame], pl.DataFrame], name: str = FACTS) -> Alter:
    return lambda folder: change(pl.read_parquet(folder / name)).write_parquet(folder / name)


def _constant(rows: int) -> Alter:
    """A column of one number, so often: a few bytes of Parquet."""

    def alter(folder: Path) -> None:
        arrow, parquet = cast("Any", pa), cast("Any", pq)
        part = arrow.table({"value": arrow.array(np.zeros(2**24))})
        with parquet.ParquetWriter(folder / FACTS, part.schema, compression="zstd") as writer:
            for _ in range(rows // 2**24):
                writer.write_table(part)

    return alter


def _of_days(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(filed=pl.lit(2**30, pl.Int32).cast(pl.Date))


ON_TABLES: Mapping[str, Alter] = {
    "half a table": _cut(FACTS, 0.5),
    "an empty table file": _cut(FACTS, 0),
    "a table that is text": lambda folder: (folder / FACTS).write_text("PAR1PAR1"),  # type: ignore[dict-item]
    "a table without rows": _table(lambda frame: frame.clear()),
    "a table without a column": _table(lambda frame: frame.drop("filed")),
    "a table of other names": _table(lambda frame: frame.rename({name: f"x{name}" for name in frame.columns})),
    "a table of texts": _table(lambda frame: frame.cast(pl.String)),
    "values that are lists": _table(lambda frame: frame.with_columns(value=pl.concat_list("value"))),
    "values that are infinite": _table(lambda frame: frame.with_columns(value=pl.lit(math.inf))),
    "values that are NaN": _table(lambda frame: frame.with_columns(value=pl.lit(math.nan))),
    "days of no calendar": _table(_of_days),
    "days after all": _table(lambda frame: frame.with_columns(filed=pl.lit(date(9999, 12, 31)))),
    "no symbols of companies": _table(lambda frame: frame.with_columns(symbol=pl.lit(None, pl.String))),
    "a table of one number, often": _constant(2**26),
    "no filings": lambda folder: (folder / "panels/filings.parquet").unlink(),
    "no segments": lambda folder: (folder / "panels/segments.parquet").unlink(),
    "filings that are facts": lambda folder: (folder / FACTS).rename(folder / "panels/filings.parquet"),  # type: ignore
}
