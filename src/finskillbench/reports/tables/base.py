"""A table of results before it is written down: typed columns, cells that may be absent, notes below.

What cannot be said is None, in every cell and at both ends of an interval; no NaN is ever stored. Every format, the
page and the exports write the same `Table`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import polars as pl

from finskillbench.errors import InternalError

ABSENT = "-"
"""What stands for a cell of which nothing can be said."""
_SLUG = re.compile(r"[a-z][a-z0-9_]*")


class Kind(StrEnum):
    """What a column holds, which decides how it is written and aligned."""

    TEXT = "text"
    COUNT = "count"
    """A whole number."""
    SCORE = "score"
    """A mean of scores, 0 to 1."""
    DIFFERENCE = "difference"
    """A difference of scores, written with its sign."""
    SHARE = "share"
    """A fraction, 0 to 1, written as a percentage."""
    NUMBER = "number"
    """Any other quantity, in the unit of its column."""


_DIGITS = {Kind.TEXT: 0, Kind.COUNT: 0, Kind.SCORE: 3, Kind.DIFFERENCE: 3, Kind.SHARE: 1, Kind.NUMBER: 2}


class Estimate(NamedTuple):
    """A value with its 95 % interval; both ends are None where none can be said."""

    value: float
    low: float | None = None
    high: float | None = None


Cell = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `name` for programs, `title` for readers, and the unit where it has one.

    With `interval`, its cells are `Estimate` or None. `digits` are the decimals it is written with, by default those of
    its kind (of a share, decimals of the percentage).
    """

    name: str
    title: str
    kind: Kind = Kind.TEXT
    unit: str = ""
    interval: bool = False
    digits: int | None = None

    @property
    def decimals(self) -> int:
        """Decimals that a value is written with."""
        return _DIGITS[self.kind] if self.digits is None else self.digits

    def takes(self, cell: Cell) -> bool:
        """Whether a cell is what the column says it holds."""
        if cell is None:
            return True
        if isinstance(cell, Estimate):
            ends = (cell.value, cell.low, cell.high)
            whole = (cell.low is None) == (cell.high is None)
            return self.interval and whole and all(end is None or math.isfinite(end) for end in ends)
        if self.interval:
            return False
        if self.kind is Kind.TEXT:
            return isinstance(cell, str)
        if self.kind is Kind.COUNT:
            return isinstance(cell, int)
        return not isinstance(cell, str) and math.isfinite(cell)


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A table: `name` is its slug, as in file names; `notes` are sentences that belong below it.

    `print` shows it as text, a notebook as HTML.

    Raises
    ------
    InternalError : a row or a cell does not fit the columns.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(map(_SLUG.fullmatch, (self.name, *(column.name for column in self.columns)))):
            raise InternalError(f"table {self.name}: its name and those of its columns must be slugs")
        for place, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InternalError(f"table {self.name}, row {place}: {len(row)} cells for {len(self.columns)} columns")
            for column, cell in zip(self.columns, row, strict=True):
                if not column.takes(cell):
                    raise InternalError(f"table {self.name}, row {place}, {column.name}: {cell!r} is no {column.kind}")

    def __repr__(self) -> str:
        return f"Table({self.name}: {len(self.rows)} rows, {', '.join(column.name for column in self.columns)})"

    def __str__(self) -> str:
        from finskillbench.reports.formats import render_text  # it reads tables

        return render_text(self)

    def _repr_html_(self) -> str:
        from finskillbench.reports.formats import render_html  # it reads tables

        return render_html(self)

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of a column.

        Raises
        ------
        KeyError : the table has none of that name.
        """
        for place, column in enumerate(self.columns):
            if column.name == name:
                return tuple(row[place] for row in self.rows)
        raise KeyError(name)

    def to_polars(self) -> pl.DataFrame:
        """One row for each row; a column with intervals is three, `name`, `name_low` and `name_high`."""
        series: list[pl.Series] = []
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            kind = {Kind.TEXT: pl.String(), Kind.COUNT: pl.Int64()}.get(column.kind, pl.Float64())
            if not column.interval:
                series.append(pl.Series(column.name, cells, kind))
                continue
            ends = [cell if isinstance(cell, Estimate) else (None, None, None) for cell in cells]
            for name, values in zip(
                interval_names(column), zip(*ends, strict=True) if ends else ((),) * 3, strict=True
            ):
                series.append(pl.Series(name, values, kind))
        return pl.DataFrame(series)


def interval_names(column: Column) -> tuple[str, str, str]:
    """What the value and the two ends of a column with intervals are called in flat formats."""
    return column.name, f"{column.name}_low", f"{column.name}_high"
