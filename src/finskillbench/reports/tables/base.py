"""Table of results: typed columns, optional cells, notes; each format writes it in its own way.

Unavailable values and interval ends are None; NaN is never stored.
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
from finskillbench.notebook import Markup, drawn_interval, html_table

ABSENT = "-"
"""Text of an unavailable cell."""
_SLUG = re.compile(r"[a-z][a-z0-9_]*")


class Kind(StrEnum):
    """Kind of a column; determines format and alignment."""

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
    """A value with its 95 % interval; both ends are None if unavailable."""

    value: float
    low: float | None = None
    high: float | None = None


Cell = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `name` for programs, `title` for readers, optional unit.

    With `interval`, cells are `Estimate` or None. `digits` defaults to the decimals of the kind (for a share, decimals
    of the percentage).
    """

    name: str
    title: str
    kind: Kind = Kind.TEXT
    unit: str = ""
    interval: bool = False
    digits: int | None = None

    @property
    def decimals(self) -> int:
        return _DIGITS[self.kind] if self.digits is None else self.digits

    def takes(self, cell: Cell) -> bool:
        """Return True if a cell fits the column."""
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


def columns_of(kind: Kind, *, interval: bool = False, digits: int | None = None, **titles: str) -> tuple[Column, ...]:
    """Columns of one kind, from names to titles."""
    return tuple(Column(name, title, kind, interval=interval, digits=digits) for name, title in titles.items())


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A table: `name` is its slug, as in file names; `notes` are sentences below it.

    `print` shows it as text, a notebook as HTML. A row or cell that does not fit the columns raises `InternalError`.
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
        """Return the cells of a column; raises `KeyError` for an unknown name."""
        for place, column in enumerate(self.columns):
            if column.name == name:
                return tuple(row[place] for row in self.rows)
        raise KeyError(name)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a frame; an interval column becomes `name`, `name_low` and `name_high`."""
        series: list[pl.Series] = []
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            kind = {Kind.TEXT: pl.String(), Kind.COUNT: pl.Int64()}.get(column.kind, pl.Float64())
            if not column.interval:
                series.append(pl.Series(column.name, cells, kind))
                continue
            ends = [cell if isinstance(cell, Estimate) else (None, None, None) for cell in cells]
            parts = zip(*ends, strict=True) if ends else ((),) * 3
            for name, values in zip(interval_names(column), parts, strict=True):
                series.append(pl.Series(name, values, kind))
        return pl.DataFrame(series)


def interval_names(column: Column) -> tuple[str, str, str]:
    """Return the flat column names of a value and its interval ends."""
    return column.name, f"{column.name}_low", f"{column.name}_high"


_LEAST = 0.1
"""Minimum extent of the axis, so that negligible differences look negligible."""

WIDTH = 100
"""Default terminal width."""

NARROWEST = 40

_GAP = "  "

_MOST = 32
"""Text cells longer than this are wrapped in narrow output."""


def cell_text(column: Column, cell: Cell, *, absent: str = ABSENT) -> str:
    """Format one cell: `absent` if unavailable; an interval follows its value, "[n/a]" if there is none."""
    if cell is None:
        return absent
    if isinstance(cell, str):
        return "".join(each if each.isprintable() else "?" for each in " ".join(cell.split()))
    if not isinstance(cell, Estimate):
        return _number(column, cell, column.decimals)
    if cell.low is None or cell.high is None or cell.low == cell.high:  # zero width does not mean certainty
        return f"{_number(column, cell.value, column.decimals)} [n/a]"
    decimals = _enough(column, cell.low, cell.high)
    value, low, high = (_number(column, each, decimals) for each in (cell.value, cell.low, cell.high))
    return f"{value} [{low}, {high}]"


def difference_text(difference: Estimate | None) -> str:
    """Format a difference of scores outside of a table."""
    return cell_text(Column("difference", "Difference", Kind.DIFFERENCE, interval=True), difference)


def titled(column: Column) -> str:
    """Return the title of a column with its unit."""
    return f"{column.title} ({column.unit})" if column.unit else column.title


def _enough(column: Column, low: float, high: float) -> int:
    """Return decimals that distinguish the two ends of an interval."""
    decimals = column.decimals
    while decimals < 12 and _number(column, low, decimals) == _number(column, high, decimals):
        decimals += 1
    return decimals


def _number(column: Column, value: float, decimals: int) -> str:
    value += 0.0  # avoid negative zero
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
    """Render the table with intervals of differences drawn on one axis, and the notes."""
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
    """Render several tables; common notes appear once, below the last."""
    first = tables[0].notes if len(tables) > 1 else ()
    shared = [each for each in first if all(each in table.notes for table in tables)]
    bare = [replace(table, notes=tuple(each for each in table.notes if each not in shared)) for table in tables]
    parts = [render_text(table, width) for table in bare]
    if shared:
        parts.append("\n".join(_wrapped(each, width) for each in shared) + "\n")
    return "\n\n".join(parts)


def render_text(table: Table, width: int = WIDTH) -> str:
    """Render the table with title and notes, in lines of at most `width` characters (at least 40).

    A table of one row is transposed. A wide table is split into blocks of columns, each with the key columns.
    """
    width = max(width, NARROWEST)
    texts = [[cell_text(column, cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]
    parts = [_wrapped(table.title, width)]
    if len(texts) == 1 and len(table.columns) > 2:
        parts.append(_transposed(table.columns, texts[0], width))
    elif texts:
        parts += _blocks(table.columns, texts, width)
    parts += ["\n".join(_wrapped(footnote, width) for footnote in table.notes)] if table.notes else []
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
    """Split columns into blocks that fit the width, each preceded by the key columns."""
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
    """Return the leading text columns within half of the width; at least one."""
    keys, taken = [0], widths[0]
    for place in range(1, len(columns)):
        taken += len(_GAP) + widths[place]
        if columns[place].kind is not Kind.TEXT or taken > width // 2:
            break
        keys.append(place)
    return keys


def _least_width(column: Column, texts: Sequence[str], width: int) -> int:
    """Return the widest cell or title word, at most what fits next to the first column."""
    longest_word = max(map(len, titled(column).split()))
    natural = max(longest_word, *map(len, texts))
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
    """Render the lines of one row, whose cells may be wrapped."""
    lines: list[str] = []
    for depth in range(max(map(len, cells))):
        texts = [cell[depth] if depth < len(cell) else "" for cell in cells]
        placed = [t.ljust(w) if flush else t.rjust(w) for t, w, flush in zip(texts, widths, left, strict=True)]
        lines.append(_GAP.join(placed).rstrip())
    return lines
