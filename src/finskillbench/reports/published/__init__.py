"""The paper's printed values (tables 2 to 7) next to ours.

`tables.json` holds them as printed, by our table and column names, with values that differ in the release's own
recomputation (`analysis/expected_results.json`). They are under the published scorers: profile `paper`.
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
"""As in JSON: the tuple is a value and the ends of its interval."""


class PublishedRow(msgspec.Struct, frozen=True):
    """One row: its key, and its cells by our column names."""

    key: Key
    cells: dict[str, Value]


class PublishedTable(msgspec.Struct, frozen=True):
    """One table of the paper; `keys` are the columns that identify its rows."""

    table: int
    keys: tuple[str, ...]
    rows: tuple[PublishedRow, ...]


class ReleaseDifference(msgspec.Struct, frozen=True):
    """A cell with another value in the release's recomputation."""

    table: str
    key: Key
    column: str
    value: Value


class _Published(msgspec.Struct, frozen=True):
    """All printed tables by our names, and differences in the release."""

    source: str
    tables: dict[str, PublishedTable]
    release: tuple[ReleaseDifference, ...]


class _Placed(NamedTuple):
    place: int
    column: Column


@cache
def paper_values() -> _Published:
    data = resources.files(__name__).joinpath("tables.json").read_bytes()
    return msgspec.json.decode(data, type=_Published)


def with_paper_columns(table: Table) -> Table:
    """Add a column of printed values after each column that the paper has; other tables are unchanged.

    Rows only in the paper come last. Models are matched by name without the provider.
    """
    known = paper_values().tables.get(table.name)
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
            cells: list[Cell] = [None] * len(places)
            for place, part in zip(key_places, row.key, strict=True):
                cells[place] = part
            rows.append(_joined(places, cells, row.cells, names))
    columns: list[Column] = []
    for _, column in places:
        columns.append(column)
        if column.name in names:
            columns.append(replace(column, name=f"{column.name}_paper", title=f"{column.title}, paper"))
    footnote = f"Paper: as printed in its table {known.table}; models are matched by name, without the provider."
    return Table(table.name, table.title, tuple(columns), tuple(rows), (*table.notes, footnote, *_otherwise(table)))


def to_cell(value: Value) -> Cell:
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
    differences = [
        f"{' '.join(part for part in each.key if part)}, {columns[each.column].title}: "
        f"{cell_text(columns[each.column], to_cell(each.value))}"
        for each in paper_values().release
        if each.table == table.name and each.column in columns
    ]
    return [f"The release's recomputation shows: {'; '.join(differences)}."] if differences else []


def _text(cell: Cell) -> str | None:
    return cell if isinstance(cell, str) else None


def _folded(key: Key) -> Key:
    """Normalise model names: without provider, case-insensitive."""
    return tuple(part.rsplit("/", 1)[-1].casefold() if part else None for part in key)
