"""A `Table` written down: as text for a terminal, and as the formats that papers and programs read.

Cells in words: the same figures in every format that people read.

A table for programs: as CSV with every figure in full, and as JSON with its columns and notes.

A table as LaTeX with the rules of the package booktabs, for a paper to include.

A table as Markdown, in the dialect that has tables (GitHub, CommonMark with pipes).

A table as a notebook shows it, each interval drawn beside its figures on one axis.

A table as plain text that never has a line longer than the width it is given.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import NamedTuple

import orjson

from finskillbench.csv_output import csv_text
from finskillbench.notebook import Markup, drawn_interval
from finskillbench.notebook import table as html_table
from finskillbench.reports.tables.base import ABSENT, Cell, Column, Estimate, Kind, Table
from finskillbench.runs.store.version import make_folder, write_beside


def cell_text(column: Column, cell: Cell, *, absent: str = ABSENT) -> str:
    """One cell as text: `absent` for an unknown value; an interval follows its value, "[n/a]" stands for none."""
    if cell is None:
        return absent
    if isinstance(cell, str):
        return "".join(each if each.isprintable() else "?" for each in " ".join(cell.split()))
    if not isinstance(cell, Estimate):
        return _number(column, cell, column.decimals)
    if cell.low is None or cell.high is None or cell.low == cell.high:  # a width of nothing is no certainty
        return f"{_number(column, cell.value, column.decimals)} [n/a]"
    decimals = _enough(column, cell.low, cell.high)
    value, low, high = (_number(column, each, decimals) for each in (cell.value, cell.low, cell.high))
    return f"{value} [{low}, {high}]"


def difference_text(difference: Estimate | None) -> str:
    """A difference of scores outside of a table."""
    return cell_text(Column("difference", "Difference", Kind.DIFFERENCE, interval=True), difference)


def titled(column: Column) -> str:
    """The title of a column with its unit."""
    return f"{column.title} ({column.unit})" if column.unit else column.title


def _enough(column: Column, low: float, high: float) -> int:
    """Decimals with which the two ends of an interval are not the same: one that has width must show it."""
    decimals = column.decimals
    while decimals < 12 and _number(column, low, decimals) == _number(column, high, decimals):
        decimals += 1
    return decimals


def _number(column: Column, value: float, decimals: int) -> str:
    value += 0.0  # a negative zero is none
    match column.kind:
        case Kind.COUNT:
            return f"{value:,.0f}"
        case Kind.DIFFERENCE:
            return f"{value:+.{decimals}f}"
        case Kind.SHARE:
            return f"{100 * value:.{decimals}f} %"
        case Kind.NUMBER if 0.0 < value < 0.5 * 10.0**-decimals:
            return f"<{10.0**-decimals:.{decimals}f}"
        case _:
            return f"{value:,.{decimals}f}"


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


LATEX_ABSENT = "---"
_MINUS = re.compile(r"-(?=\d)")
"""A hyphen before a figure, which is to be a minus sign."""
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
    """A `table` float with its caption, its label `tab:NAME` and its notes; needs `\\usepackage{booktabs}`."""
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
        *(f"\\par\\smallskip\\footnotesize {_escaped(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(column: Column, cell: Cell) -> str:
    text = cell_text(column, cell, absent=LATEX_ABSENT)
    if column.kind is Kind.TEXT:
        return _escaped(text)
    # In LaTeX's own encoding of letters a bare < is an inverted exclamation mark.
    return _MINUS.sub("$-$", text).replace("%", r"\%").replace("<", "$<$")


def _escaped(text: str) -> str:
    return "".join(_MARKS.get(mark, mark) for mark in text)


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


WIDTH = 100
"""Where nobody says how wide the terminal is."""
NARROWEST = 40
_GAP = "  "
_MOST = 32
"""Characters of a text beyond which it is broken where the width is short."""


def render_texts(tables: Sequence[Table], width: int = WIDTH) -> str:
    """Several tables, one below the other; a note that belongs to all of them stands once, below the last."""
    shared = (
        [note for note in tables[0].notes if all(note in table.notes for table in tables)] if len(tables) > 1 else []
    )
    bare = [replace(table, notes=tuple(note for note in table.notes if note not in shared)) for table in tables]
    parts = [render_text(table, width) for table in bare]
    return "\n\n".join([*parts, *(["\n".join(_wrapped(note, width) for note in shared) + "\n"] if shared else [])])


def render_text(table: Table, width: int = WIDTH) -> str:
    """The table under its title, its notes below it, in lines of at most `width` characters (at least 40).

    A table of one row is shown transposed, a line for each column. One that is too wide is broken into blocks of
    columns, each with the columns that name a row before it.
    """
    width = max(width, NARROWEST)
    texts = [[cell_text(column, cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]
    parts = [_wrapped(table.title, width)]
    if len(texts) == 1 and len(table.columns) > 2:
        parts.append(_transposed(table.columns, texts[0], width))
    elif texts:
        parts += _blocks(table.columns, texts, width)
    parts += ["\n".join(_wrapped(note, width) for note in table.notes)] if table.notes else []
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)


def _transposed(columns: Sequence[Column], texts: Sequence[str], width: int) -> str:
    titles = [titled(column) for column in columns]
    left = min(max(map(len, titles)), width // 2)
    lines: list[str] = []
    for title, text in zip(titles, texts, strict=True):
        lines += _line([_broken(title, left), _broken(text, width - left - len(_GAP))], [left, 0], [True, True])
    return "\n".join(lines)


def _blocks(columns: Sequence[Column], texts: Sequence[Sequence[str]], width: int) -> list[str]:
    """The columns from left to right, as many at once as the width takes, each time behind those that name a row."""
    cells = [[row[place] for row in texts] for place in range(len(columns))]
    widths = [max(map(len, [titled(column), *of_column])) for column, of_column in zip(columns, cells, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widths = [_least_width(column, of_column, width) for column, of_column in zip(columns, cells, strict=True)]
    keys = _keys(columns, widths, width)
    blocks: list[list[int]] = [[*keys]]
    for place in range(len(keys), len(columns)):
        taken = sum(widths[each] + len(_GAP) for each in blocks[-1])
        if len(blocks[-1]) > len(keys) and taken + widths[place] > width:
            blocks.append([*keys])
        blocks[-1].append(place)
    return [_block([columns[i] for i in block], [[row[i] for i in block] for row in texts], [widths[i] for i in block])
            for block in blocks]  # fmt: skip


def _keys(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """The first columns, as far as they are texts and leave half of the width; at least one."""
    keys, taken = [0], widths[0]
    for place in range(1, len(columns)):
        taken += len(_GAP) + widths[place]
        if columns[place].kind is not Kind.TEXT or taken > width // 2:
            break
        keys.append(place)
    return keys


def _least_width(column: Column, texts: Sequence[str], width: int) -> int:
    """The widest cell, or the longest word of the title, which is broken; at most what fits beside the first column."""
    words = max(map(len, titled(column).split()))
    natural = max(words, *map(len, texts))
    most = (width - len(_GAP)) // 2
    return min(natural, most if column.kind is not Kind.TEXT else min(most, _MOST))


def _block(columns: Sequence[Column], texts: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    left = [column.kind is Kind.TEXT for column in columns]
    head = [_broken(titled(column), width) for column, width in zip(columns, widths, strict=True)]
    deepest = max(map(len, head))
    lines = _line([[""] * (deepest - len(each)) + each for each in head], widths, left)
    lines.append(_GAP.join("-" * width for width in widths))
    for row in texts:
        lines += _line([_broken(text, width) for text, width in zip(row, widths, strict=True)], widths, left)
    return "\n".join(lines)


def _broken(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _line(cells: Sequence[Sequence[str]], widths: Sequence[int], left: Sequence[bool]) -> list[str]:
    """The lines of one row, whose cells may be broken over several."""
    lines: list[str] = []
    for depth in range(max(map(len, cells))):
        texts = [cell[depth] if depth < len(cell) else "" for cell in cells]
        placed = [t.ljust(w) if flush else t.rjust(w) for t, w, flush in zip(texts, widths, left, strict=True)]
        lines.append(_GAP.join(placed).rstrip())
    return lines


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
