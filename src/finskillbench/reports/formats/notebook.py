"""A table as a notebook shows it, each interval drawn beside its figures on one axis."""

from __future__ import annotations

from html import escape

from finskillbench.notebook import Markup, drawn_interval
from finskillbench.notebook import table as html_table
from finskillbench.reports.formats.cells import cell_text, titled
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table

_LEAST = 0.1
"""The axis reaches at least so far, so that differences of nothing look like nothing."""


def render_html(table: Table) -> str:
    """The table, its intervals of differences on one axis, and the notes."""
    drawn = [
        cell
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if isinstance(cell, Estimate) and column.kind is Kind.DIFFERENCE
    ]
    extent = max([_LEAST, *(abs(end) for cell in drawn for end in cell if end is not None)])
    rows = [[_html_cell(*each, extent) for each in zip(table.columns, row, strict=True)] for row in table.rows]
    caption = f"{table.title}; differences from {-extent:+.2f} to {extent:+.2f}" if drawn else table.title
    return html_table([titled(column) for column in table.columns], rows, caption=caption, notes=table.notes)


def _html_cell(column: Column, cell: Cell, extent: float) -> str:
    text = cell_text(column, cell)
    if not isinstance(cell, Estimate) or column.kind is not Kind.DIFFERENCE:
        return text
    interval = None if cell.low is None or cell.high is None else (cell.low, cell.high)
    return Markup(f"{drawn_interval(cell.value, interval, extent)} {escape(text)}")
