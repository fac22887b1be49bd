"""A figure: a drawing of a table, and what it shows in words."""

from __future__ import annotations

from dataclasses import dataclass

from finskillbench.reports.figures.svg import Drawing, png
from finskillbench.reports.tables.base import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """`drawing` shows `table`; `words` say what somebody who cannot see it should know."""

    table: Table
    words: str
    drawing: Drawing

    @property
    def name(self) -> str:
        """What its files are called."""
        return self.table.name

    def svg(self) -> str:
        """The figure as a file of its own."""
        return self.drawing.file(self.table.title, self.words)

    def png(self) -> bytes:
        """The figure as a picture."""
        return png(self.svg())

    def inline(self) -> str:
        """The figure as a part of a page."""
        return self.drawing.inline(f"figure-{self.name}", self.table.title, self.words)
