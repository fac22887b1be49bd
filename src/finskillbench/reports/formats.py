"""Write a `Table` as text, CSV, JSON, LaTeX (booktabs) or Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import orjson

from finskillbench.csv_output import csv_text
from finskillbench.reports.tables.base import (
    WIDTH,
    Cell,
    Column,
    Estimate,
    Kind,
    Table,
    cell_text,
    render_text,
    render_texts,
    titled,
)
from finskillbench.runs.store.version import make_folder, write_atomic


def render_csv(table: Table) -> str:
    """Render CSV with a header, empty missing cells, and three columns per interval."""
    return csv_text(table.to_polars())


def to_json(table: Table) -> dict[str, object]:
    """Return JSON values: `name`, `title`, `columns`, `rows`, `notes`; intervals as objects `value`, `low`, `high`."""
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
    return orjson.dumps(to_json(table), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _value(cell: Cell) -> object:
    return cell._asdict() if isinstance(cell, Estimate) else cell


LATEX_ABSENT = "---"
_MINUS = re.compile(r"-(?=\d)")
_MARKS = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # at the start of a row it would be an argument of the line break before it
    "†": r"$\dagger$",
}


def render_latex(table: Table) -> str:
    """Render a `table` float with caption, label `tab:NAME` and notes; needs `\\usepackage{booktabs}`."""
    aligned = "".join("l" if column.kind is Kind.TEXT else "r" for column in table.columns)
    head = " & ".join(_escaped(titled(column)) for column in table.columns)
    rows = [" & ".join(map(_cell, table.columns, row)) for row in table.rows]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        f"\\caption{{{_escaped(table.title)}}}",
        f"\\label{{tab:{table.name}}}",
        f"\\begin{{tabular}}{{{aligned}}}",
        r"\toprule",
        f"{head} \\\\",
        r"\midrule",
        *(f"{row} \\\\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(f"\\par\\smallskip\\footnotesize {_escaped(footnote)}" for footnote in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(column: Column, cell: Cell) -> str:
    text = cell_text(column, cell, absent=LATEX_ABSENT)
    if column.kind is Kind.TEXT:
        return _escaped(text)
    # In LaTeX's default font encoding a bare < prints an inverted exclamation mark.
    return _MINUS.sub("$-$", text).replace("%", r"\%").replace("<", "$<$")


def _escaped(text: str) -> str:
    return "".join(_MARKS.get(mark, mark) for mark in text)


def render_markdown(table: Table) -> str:
    """Render a heading, the table, and its notes as paragraphs."""
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


class Format(StrEnum):
    """Output format of tables."""

    TABLE = "table"
    MARKDOWN = "md"
    CSV = "csv"
    LATEX = "latex"
    JSON = "json"


class _Writer(NamedTuple):
    suffix: str
    render: Callable[[Table], str]


_WRITERS = {
    Format.TABLE: _Writer(".txt", render_text),
    Format.MARKDOWN: _Writer(".md", render_markdown),
    Format.CSV: _Writer(".csv", render_csv),
    Format.LATEX: _Writer(".tex", render_latex),
    Format.JSON: _Writer(".json", render_json),
}


def render(tables: Sequence[Table], form: Format, width: int = WIDTH) -> str:
    """Render tables as one text: JSON is one array, several CSV tables have a line `# NAME` each."""
    match form:
        case Format.TABLE:
            return render_texts(tables, width)
        case Format.JSON:
            return orjson.dumps([to_json(table) for table in tables], option=orjson.OPT_INDENT_2).decode() + "\n"
        case Format.CSV if len(tables) > 1:
            return "\n".join(f"# {table.name}\n{render_csv(table)}" for table in tables)
        case _:
            return "\n".join(_WRITERS[form].render(table) for table in tables)


def write_tables(tables: Sequence[Table], form: Format, out: Path) -> list[Path]:
    """Write each table into a file named after it; creates the folder.

    Raises `InputError` if the folder or a file cannot be written.
    """
    make_folder(out)
    writer = _WRITERS[form]
    paths = [out / f"{table.name}{writer.suffix}" for table in tables]
    for path, table in zip(paths, tables, strict=True):
        write_atomic(path, writer.render(table).encode("utf-8", "replace"))
    return paths
