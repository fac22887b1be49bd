"""A table of results before it is written down: typed columns, cells that may be absent, notes below.

What cannot be said is None, in every cell and at both ends of an interval; no NaN is ever stored. Every format, the
page and the exports write the same `Table`.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from typing import NamedTuple

import polars as pl

from finskillbench.errors import InternalError
from finskillbench.notebook import Markup, drawn_interval
from finskillbench.notebook import table as html_table

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

        return render_text(self)

    def _repr_html_(self) -> str:

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


_LEAST = 0.1
"""The axis reaches at least so far, so that differences of nothing look like nothing."""

WIDTH = 100
"""Where nobody says how wide the terminal is."""

NARROWEST = 40

_GAP = "  "

_MOST = 32
"""Characters of a text beyond which it is broken where the width is short."""


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
