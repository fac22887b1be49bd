"""The rows of runs, read from where a user says they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from finskillbench.errors import InputError
from finskillbench.runs.store.record import FILE, RunRecord, read_record
from finskillbench.runs.store.rows import ROWS, SCHEMA, from_frame


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows of one run; `path` is as it was named, and `record` is None where that is a table without its folder."""

    path: Path
    rows: pl.DataFrame
    record: RunRecord | None = None

    @property
    def has_trajectories(self) -> bool:
        """Whether `finskillbench show` can tell an episode of it."""
        return (self.path / "trajectories").is_dir()


def read_run(path: Path) -> RunRows:
    """Read a run folder, or a table of rows that stands by itself, such as `score --out` writes.

    Raises
    ------
    InputError : it is neither, has not finished, is damaged, or a row was altered after it was written.
    """
    if path.is_file():
        return RunRows(path, _table(path))
    if not (path / FILE).is_file():
        raise InputError(f"{path}: no run folder (it has no {FILE}) and no file; name what `finskillbench run` wrote")
    return RunRows(path, _table(path / ROWS), read_record(path))


def _table(path: Path) -> pl.DataFrame:
    try:
        rows = pl.read_parquet(path)
    except FileNotFoundError:
        raise InputError(
            f"{path.parent}: has no {path.name} yet; the command that started the run finishes it"
        ) from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: not a table of rows ({error}); name the rows.parquet of a run") from None
    if rows.schema == SCHEMA:  # else they come from another program, or an earlier version, and have no digests of ours
        try:
            from_frame(rows)
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: not a table of rows ({error}); name the rows.parquet of a run") from None
        except ValueError as error:
            raise InputError(f"{path}: {error}; judge the run again with finskillbench rescore") from None
    return rows
