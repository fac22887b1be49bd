"""A figure: a drawing of a table, and what it shows in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from finskillbench.reports.figures.svg import Drawing, png
from finskillbench.reports.tables.base import Kind, Table

WIDE, NARROW = 860.0, 360.0
"""Widths that a figure is drawn at, in pixels: for windows, and for telephones."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of `table` at any width; `words` describe it to readers who cannot see it."""

    table: Table
    words: str
    draw: Callable[[float], Drawing]

    @property
    def varies(self) -> bool:
        """True if two rows differ in a drawn quantity; counts are drawn only where there is nothing else."""
        kinds = [column.kind for column in self.table.columns]
        measured = {kind for kind in kinds if kind not in (Kind.TEXT, Kind.COUNT)} or {Kind.COUNT}
        drawn = {
            tuple(cell for kind, cell in zip(kinds, row, strict=True) if kind in measured) for row in self.table.rows
        }
        return len(drawn) > 1

    @property
    def name(self) -> str:
        """What its files are called."""
        return self.table.name

    def svg(self) -> str:
        """The figure as a file of its own."""
        return self.draw(WIDE).file(self.table.title, self.words)

    def png(self) -> bytes:
        """The figure as a picture."""
        return png(self.svg())

    def inline(self) -> str:
        """The figure as a part of a page, at both widths; the style of the page shows one of them."""
        widths = {"wide": WIDE, "narrow": NARROW}
        return "".join(
            self.draw(width).inline(f"figure-{self.name}-{kind}", self.table.title, self.words, kind)
            for kind, width in widths.items()
        )
