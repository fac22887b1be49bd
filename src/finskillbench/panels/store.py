"""Panels on disk: Parquet with described columns, an npz per covariance, one JSON; the same bytes each time."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.errors import EditionError, FinSkillBenchError, InputError
from finskillbench.panels.columns import Column, column_of
from finskillbench.panels.filings import fundamentals
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
        "facts": fundamentals.FACTS_COLUMNS,
        "filings": fundamentals.FILINGS_COLUMNS,
        "segments": fundamentals.SEGMENTS_COLUMNS,
    }
)
DENSE_LIMIT = 252
"""Up to so many names a covariance file holds the dense `cov` too, for readers that know only that."""

_RATES = Column("decimal per year", "point in time", "DGS3MO, last observation on or before the date")
_COVARIANCE = Column("decimal squared per year", "252 sessions trailing", "loadings' loadings + diag(specific)")


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
        (staging / "panels.json").write_bytes(
            orjson.dumps(_rest(panels), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
        )
        staging.replace(folder)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror}); free space or choose another place"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_panels(folder: Path) -> Panels:
    """Read what `write_panels` wrote. EditionError names a file that is missing or cannot be read."""
    rest = _guarded(folder / "panels.json", _read_rest)
    tables = {name: _guarded(folder / f"{name}.parquet", pl.read_parquet) for name in TABLES}
    covariance = {
        day: _guarded(folder / "covariance" / f"{day}.npz", lambda path: read_covariance(path.read_bytes()))
        for day in sorted({*rest["month_ends"], *rest["regimes"]})
    }
    return Panels(covariance=covariance, **rest, **tables)


def covariance_bytes(covariance: Covariance) -> bytes:
    """An npz archive, the same bytes for the same numbers (numpy.savez would write the time of day into it)."""
    arrays: dict[str, np.ndarray] = {
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


def _rest(panels: Panels) -> dict[str, Any]:
    return {
        "symbols": list(panels.symbols),
        "sectors": dict(panels.sectors),
        "month_ends": [day.isoformat() for day in panels.month_ends],
        "regimes": {day.isoformat(): regime for day, regime in panels.regimes.items()},
        "risk_free": {
            **_RATES._asdict(),
            "values": {day.isoformat(): rate for day, rate in panels.risk_free.items()},
        },
        "covariance": _COVARIANCE._asdict(),
        "report": panels.report.to_json(),
    }


def _read_rest(path: Path) -> dict[str, Any]:
    """The fields of `Panels` that `_rest` wrote."""
    rest = orjson.loads(path.read_bytes())
    return {
        "symbols": tuple(rest["symbols"]),
        "sectors": rest["sectors"],
        "month_ends": tuple(date.fromisoformat(text) for text in rest["month_ends"]),
        "regimes": {date.fromisoformat(day): rest["regimes"][day] for day in sorted(rest["regimes"])},
        "risk_free": {date.fromisoformat(day): rate for day, rate in rest["risk_free"]["values"].items()},
        "report": PanelReport.from_json(rest["report"]),
    }


def _write_table(frame: pl.DataFrame, columns: Mapping[str, Column], path: Path) -> None:
    table = frame.to_arrow()
    fields = []
    for field in table.schema:
        described = column_of(columns, field.name)._asdict()
        text = pa.types.is_string_view(field.type) or pa.types.is_large_string(field.type)
        kind = pa.string() if text else field.type  # string views are not yet read everywhere
        fields.append(pa.field(field.name, kind, metadata=described))
    # Figures hardly repeat: dictionaries would cost time and gain nothing.
    pq.write_table(table.cast(pa.schema(fields)), path, compression="zstd", use_dictionary=False)


def _guarded(path: Path, read: Any) -> Any:
    """Read a file, naming it in whatever goes wrong."""
    if not path.is_file():
        raise EditionError(f"{path}: missing; build the edition again")
    try:
        return read(path)
    except FinSkillBenchError:
        raise
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise EditionError(f"{path}: cannot be read ({reason}); build the edition again") from error
