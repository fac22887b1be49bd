"""A `Table` written down: as text for a terminal, and as the formats that papers and programs read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import orjson

from finskillbench.reports.formats.flat import render_csv, render_json, to_json
from finskillbench.reports.formats.latex import render_latex
from finskillbench.reports.formats.markdown import render_markdown
from finskillbench.reports.formats.text import WIDTH, render_text, render_texts
from finskillbench.reports.tables.base import Table
from finskillbench.runs.store.files import make_folder, write_beside


class Format(StrEnum):
    """How tables can be written."""

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
    """Tables as one text: JSON is one array, CSV has a line `# NAME` before each table where there are several."""
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
    """Write each table into a file of its own, named after it, in a folder that is made if absent.

    Raises
    ------
    InputError : the folder or a file cannot be written.
    """
    make_folder(out)
    writer = _WRITERS[form]
    paths = [out / f"{table.name}{writer.suffix}" for table in tables]
    for path, table in zip(paths, tables, strict=True):
        write_beside(path, writer.render(table).encode("utf-8", "replace"))
    return paths
