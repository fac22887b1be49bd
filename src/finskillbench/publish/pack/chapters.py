"""Chapters of a pack before they are rendered: paragraphs, lists and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from finskillbench.reports.tables.base import Cell, Column, Table

MOST_ROWS = 15
"""Rows of a table in the body; the appendix has longer ones in full."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: paragraphs, points of a list, tables, and tables that belong in the appendix."""

    name: str
    title: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    appendix: tuple[Table, ...] = ()

    def shortened(self) -> Chapter:
        """Return the chapter with its long tables cut in the body and whole in the appendix."""
        long = tuple(table for table in self.tables if len(table.rows) > MOST_ROWS)
        return replace(self, tables=tuple(map(_cut, self.tables)), appendix=(*long, *self.appendix))


def _cut(table: Table) -> Table:
    if len(table.rows) <= MOST_ROWS:
        return table
    note = f"The first {MOST_ROWS} of {len(table.rows)} rows; the appendix has all."
    return replace(table, rows=table.rows[:MOST_ROWS], notes=(*table.notes, note))


def facts_table(name: str, title: str, facts: Iterable[tuple[str, str]]) -> Table:
    """Facts by name, a line each."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(facts)
    return Table(name, title, (Column("fact", "Item"), Column("value", "Value")), rows)


def captioned(table: Table | None, title: str, population: str, *notes: str) -> tuple[Table, ...]:
    """A table under a formal title whose first note names its population and unit; nothing of an empty one."""
    if table is None or not table.rows:
        return ()
    return (replace(table, title=title, notes=(f"Population: {population}.", *notes)),)
