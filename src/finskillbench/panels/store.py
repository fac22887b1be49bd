"""Panels on disk: Parquet, one npz per covariance and one JSON, byte-identical for equal data."""

import io
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec
import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.errors import EditionError, InputError
from finskillbench.panels.columns import PanelColumn, describe_column
from finskillbench.panels.filings import facts, quarters, statements
from finskillbench.panels.filings.segments import revenue as segments
from finskillbench.panels.filings.statements import SCHEMAS, FundamentalPanels, fundamentals_in_parts
from finskillbench.panels.market import benchmark_weights, macro, prices, regimes, sessions, share_counts
from finskillbench.panels.market.estimates import factor_exposures, views
from finskillbench.panels.reading import read_arrays, read_json_as, read_schema, read_table
from finskillbench.panels.tables import PanelReport, Panels, Tables
from finskillbench.sources.edgar.collection import FilingsData

TABLES: Mapping[str, Mapping[str, PanelColumn]] = MappingProxyType(
    {
        "prices": prices.COLUMNS,
        "returns": regimes.COLUMNS,
        "factors": sessions.COLUMNS,
        "factor_exposures": factor_exposures.COLUMNS,
        "benchmark_weights": benchmark_weights.COLUMNS,
        "views": views.COLUMNS,
        "liquidity": share_counts.COLUMNS,
        "macro": macro.COLUMNS,
        "facts": facts.COLUMNS,
        "filings": quarters.COLUMNS,
        "segments": segments.COLUMNS,
        "filed": statements.COLUMNS,
    }
)
DENSE_LIMIT = 252
"""Maximum number of names for which a covariance file also holds the dense `cov`, for simple readers."""


class _RiskFree(msgspec.Struct):
    values: Mapping[date, float]
    unit: str = "decimal per year"
    horizon: str = "point in time"
    meaning: str = "DGS3MO, last observation on or before the date"


class _Rest(msgspec.Struct):
    """Content of `panels.json`; `covariance` describes the files of that folder."""

    symbols: tuple[str, ...]
    sectors: Mapping[str, str]
    month_ends: tuple[date, ...]
    regimes: Mapping[date, str]
    risk_free: _RiskFree
    report: PanelReport
    covariance: Mapping[str, str] = msgspec.field(
        default_factory=PanelColumn(
            "decimal squared per year", "252 sessions trailing", "loadings' loadings + diag(specific)"
        ).metadata
    )


def write_panels(panels: Panels, folder: Path) -> None:
    """Write a folder of panels atomically, by renaming a temporary folder.

    `<table>.parquet` for each of `TABLES`; `covariance/YYYY-MM-DD.npz` with `symbols`, `loadings`, `specific` and, for
    at most 252 names, the dense `cov` (numpy.load without pickle); `panels.json` with symbols, sectors, month-ends,
    regimes, rates and the report. Raises InputError if the folder exists and is not empty, or cannot be written.
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
            if name in panels.tables.files:
                shutil.copyfile(panels.tables.files[name], staging / f"{name}.parquet")
            else:
                _write_table(panels.tables[name], columns, staging / f"{name}.parquet")
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
    """Read a folder of panels, tables on first use; EditionError names a missing, damaged or wrongly typed file."""
    rest = read_json_as(folder / "panels.json", _Rest)
    files = {name: folder / f"{name}.parquet" for name in TABLES}
    for name, path in files.items():
        _refuse_other_types(path, name, read_schema(path))
    covariance = {
        day: read_covariance_file(folder / "covariance" / f"{day}.npz")
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
        tables=Tables({}, files),
    )


def read_panel_table(folder: Path, name: str) -> pl.DataFrame:
    """Read one table from a folder of panels; EditionError names a damaged file or a column of a wrong type."""
    path = folder / f"{name}.parquet"
    table = read_table(path)
    _refuse_other_types(path, name, table.schema)
    return table


def _refuse_other_types(path: Path, name: str, schema: pl.Schema) -> None:
    described = TABLES[name]
    for column, kind in schema.items():
        field = column.partition(":")[0]
        if field in described and kind != described[field].kind:
            wanted = described[field].kind.__name__
            raise EditionError(f"{path}: {column} is {kind}, not {wanted}; rebuild the edition")


def covariance_bytes(covariance: Covariance) -> bytes:
    """Return an npz archive without timestamps, so that equal numbers give equal bytes."""
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


def read_covariance_file(path: Path) -> Covariance:
    """Read a covariance written by `covariance_bytes`; EditionError names the file and the wrong array."""
    arrays = read_arrays(path)
    try:
        covariance = Covariance(tuple(arrays["symbols"].tolist()), arrays["loadings"], arrays["specific"])
    except KeyError as error:
        raise EditionError(f"{path}: no array {error}; rebuild the edition") from None
    except InputError as error:
        raise EditionError(f"{path}: {error}; rebuild the edition") from None
    return covariance


def write_filings(filings: FilingsData, folder: Path) -> FundamentalPanels:
    """Write the panels of companies' filings into a folder, part by part: 3,000 companies need several gigabytes.

    Raises SourceError naming company, tag and accession, where the files cannot carry a panel.
    """
    files = {name: folder / f"{name}.parquet" for name in SCHEMAS}
    notes, unusable = list(filings.notes), list(filings.unusable)
    with ExitStack() as stack:
        writers: dict[str, Any] = {}
        for part in fundamentals_in_parts(filings) if filings.companies else (FundamentalPanels.empty(),):
            notes += part.notes
            unusable += part.unusable
            for name, path in files.items():
                table = _described(part.tables[name], TABLES[name])
                if name not in writers:
                    writers[name] = stack.enter_context(_writer(path, table.schema))
                writers[name].write_table(table)
    return FundamentalPanels(Tables({}, files), tuple(notes), tuple(unusable))


def _write_table(frame: pl.DataFrame, columns: Mapping[str, PanelColumn], path: Path) -> None:
    table = _described(frame, columns)
    with _writer(path, table.schema) as writer:
        writer.write_table(table)


def _described(frame: pl.DataFrame, columns: Mapping[str, PanelColumn]) -> Any:
    """Return an Arrow table with column descriptions in the field metadata."""
    # pyarrow has no types
    arrow, table = cast("Any", pa), cast("Any", frame.to_arrow())
    fields: list[Any] = []
    for field in table.schema:
        # Some readers do not support string views yet.
        kind = arrow.string() if str(field.type) in ("string_view", "large_string") else field.type
        fields.append(arrow.field(field.name, kind, metadata=describe_column(columns, field.name).metadata()))
    return table.cast(arrow.schema(fields))


def _writer(path: Path, schema: Any) -> Any:
    # Figures rarely repeat: dictionaries would only cost time.
    return cast("Any", pq).ParquetWriter(path, schema, compression="zstd", use_dictionary=False)
