"""The files that go with a run into a tracker: its rows, its tables, and what somebody attaches."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from finskillbench.errors import InputError
from finskillbench.integrations.exports.flat import Flat, write_flat
from finskillbench.reports.formats import Format, write_tables
from finskillbench.reports.report import report


@contextmanager
def gathered(rows: pl.DataFrame, attach: Sequence[Path]) -> Generator[Path]:
    """A folder with `rows.csv`, the tables of the report as CSV in `tables`, and copies of what is attached.

    Raises
    ------
    InputError : something to attach is not there.
    """
    for path in attach:
        if not path.exists():
            raise InputError(f"--attach {path}: is not there; name a file or a folder, such as that of a report")
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_flat(rows, folder / "rows.csv", Flat.CSV)
        write_tables(report(rows).tables(), Format.CSV, folder / "tables")
        for path in attach:
            if path.is_dir():
                shutil.copytree(path, folder / path.resolve().name)
            else:
                shutil.copy(path, folder / path.name)
        yield folder
