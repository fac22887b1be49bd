"""A pack before it is written down: chapters of paragraphs, lists and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from finskillbench.reports.tables.base import Cell, Column, Table


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: what it says, then points of a list, then its tables in order."""

    name: str
    title: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def facts_table(name: str, title: str, facts: Iterable[tuple[str, str]]) -> Table:
    """Facts by name, a line each."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(facts)
    return Table(name, title, (Column("fact", "What"), Column("value", "Value")), rows)


def present(*tables: Table | None) -> tuple[Table, ...]:
    """The tables that have something to say, each note below the first of them alone."""
    kept, told = list[Table](), set[str]()
    for table in tables:
        if table is not None and table.rows:
            kept.append(replace(table, notes=tuple(note for note in table.notes if note not in told)))
            told.update(table.notes)
    return tuple(kept)
