"""The values that the paper prints in its tables 2 to 7, and ours beside them.

`tables.json` holds them as printed, by the names of our tables and columns, with what the release's own recomputation
(`analysis/expected_results.json`) displays otherwise. They are under the published scorers: profile `paper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec

from finskillbench.reports.tables.base import Cell, Column, Estimate, Table, cell_text

Key = tuple[str | None, ...]
Value = str | int | float | tuple[float, float | None, float | None]
"""As JSON has it: the three are a value and the ends of its interval."""


class PublishedRow(msgspec.Struct, frozen=True):
    """One row: what it is of, and its cells by the names of our columns."""

    key: Key
    cells: dict[str, Value]


class PublishedTable(msgspec.Struct, frozen=True):
    """One table of the paper; `keys` are the columns that tell its rows apart."""

    table: int
    keys: tuple[str, ...]
    rows: tuple[PublishedRow, ...]


class Otherwise(msgspec.Struct, frozen=True):
    """A cell for which the release's recomputation displays another value."""

    table: str
    key: Key
    column: str
    value: Value


class _Published(msgspec.Struct, frozen=True):
    """Everything that was printed: tables by the names of ours, and where the release differs."""

    source: str
    tables: dict[str, PublishedTable]
    release: tuple[Otherwise, ...]


class _Placed(NamedTuple):
    place: int
    column: Column


@cache
def published() -> _Published:
    """The printed values."""
    data = resources.files(__name__).joinpath("tables.json").read_bytes()
    return msgspec.json.decode(data, type=_Published)


def beside(table: Table) -> Table:
    """The table with a column of printed values behind each column that the paper has; a table that it has not stays.

    Rows that the paper has and ours does not stand last. Models are matched by their names without the provider.
    """
    known = published().tables.get(table.name)
    if known is None:
        return table
    names = {name for row in known.rows for name in row.cells}
    printed = {_folded(row.key): row for row in known.rows}
    places = [_Placed(place, column) for place, column in enumerate(table.columns)]
    key_places = [place for name in known.keys for place, column in places if column.name == name]
    matched: set[Key] = set()
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        key = _folded(tuple(_text(row[place]) for place in key_places))
        matched.add(key)
        rows.append(_joined(places, row, printed[key].cells if key in printed else {}, names))
    for row in known.rows:
        if _folded(row.key) not in matched:
            own: list[Cell] = [None] * len(places)
            for place, part in zip(key_places, row.key, strict=True):
                own[place] = part
            rows.append(_joined(places, own, row.cells, names))
    columns: list[Column] = []
    for _, column in places:
        columns.append(column)
        if column.name in names:
            columns.append(replace(column, name=f"{column.name}_paper", title=f"{column.title}, paper"))
    note = f"Paper: as printed in its table {known.table}; models are matched by name, without the provider."
    return Table(table.name, table.title, tuple(columns), tuple(rows), (*table.notes, note, *_otherwise(table)))


def to_cell(value: Value) -> Cell:
    """A printed value as our tables hold it."""
    return Estimate(*value) if isinstance(value, tuple) else value


def _joined(
    places: list[_Placed], row: tuple[Cell, ...] | list[Cell], printed: Mapping[str, Value], names: set[str]
) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for place, column in places:
        cells.append(row[place])
        if column.name in names:
            cells.append(to_cell(printed[column.name]) if column.name in printed else None)
    return tuple(cells)


def _otherwise(table: Table) -> list[str]:
    columns = {column.name: column for column in table.columns}
    told = [
        f"{' '.join(part for part in each.key if part)}, {columns[each.column].title}: "
        f"{cell_text(columns[each.column], to_cell(each.value))}"
        for each in published().release
        if each.table == table.name and each.column in columns
    ]
    return [f"The release's own recomputation displays otherwise: {'; '.join(told)}."] if told else []


def _text(cell: Cell) -> str | None:
    return cell if isinstance(cell, str) else None


def _folded(key: Key) -> Key:
    """Models by their names without the provider, whatever their case."""
    return tuple(part.rsplit("/", 1)[-1].casefold() if part else None for part in key)
