"""Panels on disk: Parquet with described columns, an npz per covariance, one JSON; the same bytes each time."""

import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.errors import EditionError, FinSkillBenchError, InputError
from finskillbench.panels.columns import Column, column_of
from finskillbench.panels.filings import facts, filed, periodic, segments
from finskillbench.panels.market import (
    benchmark_weights,
    factor_exposures,
    factors,
    liquidity,
    macro,
    prices,
    returns,
    views,
)
from finskillbench.panels.report import PanelReport
from finskillbench.panels.tables import Panels

TABLES: Mapping[str, Mapping[str, Column]] = MappingProxyType(
    {
        "prices": prices.COLUMNS,
        "returns": returns.COLUMNS,
        "factors": factors.COLUMNS,
        "factor_exposures": factor_exposures.COLUMNS,
        "benchmark_weights": benchmark_weights.COLUMNS,
        "views": views.COLUMNS,
        "liquidity": liquidity.COLUMNS,
        "macro": macro.COLUMNS,
        "facts": facts.COLUMNS,
        "filings": periodic.COLUMNS,
        "segments": segments.COLUMNS,
        "filed": filed.COLUMNS,
    }
)
Read = TypeVar("Read")

DENSE_LIMIT = 252
"""Up to so many names a covariance file holds the dense `cov` too, for readers that know only that."""


class _RiskFree(msgspec.Struct):
    values: Mapping[date, float]
    unit: str = "decimal per year"
    horizon: str = "point in time"
    meaning: str = "DGS3MO, last observation on or before the date"


class _Rest(msgspec.Struct):
    """`panels.json`: what is no table. `covariance` describes the files of that folder."""

    symbols: tuple[str, ...]
    sectors: Mapping[str, str]
    month_ends: tuple[date, ...]
    regimes: Mapping[date, str]
    risk_free: _RiskFree
    report: PanelReport
    covariance: Mapping[str, str] = msgspec.field(
        default_factory=Column(
            "decimal squared per year", "252 sessions trailing", "loadings' loadings + diag(specific)"
        ).metadata
    )


def write_panels(panels: Panels, folder: Path) -> None:
    """Write a folder of panels, beside its place first and then renamed.

    `<table>.parquet` for each of `TABLES`, each field with `unit`, `horizon` and `meaning` in its metadata;
    `covariance/YYYY-MM-DD.npz` with `symbols`, `loadings`, `specific` and, for at most 252 names, the dense `cov`
    (numpy.load without pickle); `panels.json` with symbols, sectors, month-ends, regimes, rates and the report.

    Raises
    ------
    InputError : if the folder exists and is not empty, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not an empty folder; choose another place for the panels")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise InputError(f"{folder.parent}: cannot be written ({error.strerror}); choose another place") from error
    try:
        staging.chmod(0o755)
        for name, columns in TABLES.items():
            _write_table(getattr(panels, name), columns, staging / f"{name}.parquet")
        (staging / "covariance").mkdir()
        for day, covariance in panels.covariance.items():
            (staging / "covariance" / f"{day}.npz").write_bytes(covariance_bytes(covariance))
        rest = _Rest(
            panels.symbols,
            panels.sectors,
            panels.month_ends,
            panels.regimes,
            _RiskFree(panels.risk_free),
            panels.report,
        )
        content = msgspec.to_builtins(rest, str_keys=True)
        (staging / "panels.json").write_bytes(orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2))
        staging.replace(folder)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror}); free space or choose another place"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_panels(folder: Path) -> Panels:
    """Read what `write_panels` wrote. EditionError names a file that is missing or cannot be read."""
    rest = _guarded(folder / "panels.json", lambda path: msgspec.json.decode(path.read_bytes(), type=_Rest))
    tables = {name: _guarded(folder / f"{name}.parquet", pl.read_parquet) for name in TABLES}
    covariance = {
        day: _guarded(folder / "covariance" / f"{day}.npz", lambda path: read_covariance(path.read_bytes()))
        for day in sorted({*rest.month_ends, *rest.regimes})
    }
    return Panels(
        symbols=rest.symbols,
        sectors=rest.sectors,
        month_ends=rest.month_ends,
        regimes=rest.regimes,
        risk_free=rest.risk_free.values,
        report=rest.report,
        covariance=covariance,
        **tables,
    )


def covariance_bytes(covariance: Covariance) -> bytes:
    """An npz archive, the same bytes for the same numbers (numpy.savez would write the time of day into it)."""
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "symbols": np.array(covariance.symbols, dtype=np.str_),
        "loadings": covariance.loadings,
        "specific": covariance.specific,
    }
    if len(covariance.symbols) <= DENSE_LIMIT:
        arrays["cov"] = covariance.matrix()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue())
    return archive.getvalue()


def read_covariance(content: bytes) -> Covariance:
    """The inverse of `covariance_bytes`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Covariance(tuple(arrays["symbols"].tolist()), arrays["loadings"], arrays["specific"])


def _write_table(frame: pl.DataFrame, columns: Mapping[str, Column], path: Path) -> None:
    # pyarrow comes without types.
    arrow, parquet, table = cast("Any", pa), cast("Any", pq), cast("Any", frame.to_arrow())
    fields: list[Any] = []
    for field in table.schema:
        # String views are not yet read everywhere.
        kind = arrow.string() if str(field.type) in ("string_view", "large_string") else field.type
        fields.append(arrow.field(field.name, kind, metadata=column_of(columns, field.name).metadata()))
    # Figures hardly repeat: dictionaries would cost time and gain nothing.
    parquet.write_table(table.cast(arrow.schema(fields)), path, compression="zstd", use_dictionary=False)


def _guarded(path: Path, read: Callable[[Path], Read]) -> Read:
    """Read a file, naming it in whatever goes wrong."""
    if not path.is_file():
        raise EditionError(f"{path}: missing; build the edition again")
    try:
        return read(path)
    except FinSkillBenchError:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise EditionError(f"{path}: cannot be read ({reason}); build the edition again") from error
