"""A table as Markdown, in the dialect that has tables (GitHub, CommonMark with pipes)."""

from __future__ import annotations

from finskillbench.reports.formats.cells import cell_text, titled
from finskillbench.reports.tables.base import Kind, Table


def render_markdown(table: Table) -> str:
    """A heading, the table, its notes as paragraphs."""
    head = [_markdown_escaped(titled(column)) for column in table.columns]
    ruler = [":---" if column.kind is Kind.TEXT else "---:" for column in table.columns]
    rows = [
        [_markdown_escaped(cell_text(column, cell)) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    lines = [f"| {' | '.join(row)} |" for row in (head, ruler, *rows)]
    return (
        "\n\n".join([f"## {_markdown_escaped(table.title)}", "\n".join(lines), *map(_markdown_escaped, table.notes)])
        + "\n"
    )


def _markdown_escaped(text: str) -> str:
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text
