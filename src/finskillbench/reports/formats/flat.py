"""A table for programs: as CSV with every figure in full, and as JSON with its columns and notes."""

from __future__ import annotations

import orjson

from finskillbench.csv_output import csv_text
from finskillbench.reports.tables.base import Cell, Estimate, Table


def render_csv(table: Table) -> str:
    """A header and a line for each row, absences empty; a column with intervals is three."""
    return csv_text(table.to_polars())


def to_json(table: Table) -> dict[str, object]:
    """JSON values: `name`, `title`, `columns`, `rows` in the order of the columns, `notes`; absences are null, and a
    cell with an interval is an object of `value`, `low` and `high`.
    """
    columns = [
        {
            "name": column.name,
            "title": column.title,
            "kind": column.kind.value,
            "unit": column.unit,
            "interval": column.interval,
            "digits": column.decimals,
        }
        for column in table.columns
    ]
    rows = [[_value(cell) for cell in row] for row in table.rows]
    return {"name": table.name, "title": table.title, "columns": columns, "rows": rows, "notes": list(table.notes)}


def render_json(table: Table) -> str:
    """`to_json`, indented."""
    return orjson.dumps(to_json(table), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _value(cell: Cell) -> object:
    return cell._asdict() if isinstance(cell, Estimate) else cell
