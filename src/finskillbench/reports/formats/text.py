"""A table as plain text that never has a line longer than the width it is given."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from finskillbench.reports.formats.cells import cell_text, titled
from finskillbench.reports.tables.base import Column, Kind, Table

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
