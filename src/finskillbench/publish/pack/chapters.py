"""Chapters of a pack before they are rendered, and the chapter of acceptance criteria."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from finskillbench.reports.compare.gates import OF_ROWS, ThresholdMeasure, ThresholdResult
from finskillbench.reports.tables.base import Cell, Column, Kind, Table

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


_NAMES = {
    ThresholdMeasure.MEAN: "Mean score, at least",
    ThresholdMeasure.LOWER_BOUND: "Lower 95 % bound of the mean score, at least",
    ThresholdMeasure.COVERAGE: "Share of rows with a verdict, at least",
    ThresholdMeasure.INCIDENTS: "Share of rows with an incident, at most",
}


def criteria_chapter(judged: Sequence[ThresholdResult] | None) -> Chapter:
    """Acceptance criteria and which of them are met; None where none were supplied."""
    if judged is None:
        words = (
            "No acceptance criteria were supplied (--criteria FILE). This pack states no pass or fail of the models."
        )
        return Chapter("criteria", "Acceptance criteria", (words,))
    words = (
        f"{criteria_met(judged)} The firm supplied the criteria. A criterion on a mean or its bound is met only if "
        "it would also be met had every episode without a verdict scored 0. A value that cannot be computed fails."
    )
    rows = tuple(
        (
            each.threshold.part,
            each.model,
            each.condition,
            _NAMES[each.threshold.measure],
            each.threshold.limit,
            each.value,
            "PASS" if each.outcome.holds else "FAIL",
            _remark(each),
        )
        for each in judged
    )
    columns = (
        Column("part", "Part"),
        Column("model", "Model"),
        Column("condition", "Condition"),
        Column("measure", "Measure"),
        Column("limit", "Limit", Kind.NUMBER, digits=4),
        Column("value", "Measured", Kind.NUMBER, digits=4),
        Column("outcome", "Outcome"),
        Column("remark", "Remark"),
    )
    population = "episodes (means, bounds) or rows (shares) of the part, model and condition; unit: fraction, 0 to 1"
    table = Table("criteria", "", columns, rows)
    return Chapter(
        "criteria", "Acceptance criteria", (words,), tables=captioned(table, "Criteria and outcomes", population)
    )


def criteria_met(judged: Sequence[ThresholdResult] | None) -> str:
    """Number of criteria that are met, in a sentence."""
    if judged is None:
        return "None supplied."
    met = sum(each.outcome.holds for each in judged)
    return f"{'PASS' if met == len(judged) else 'FAIL'}: {met} of {len(judged)} criteria are met."


def _remark(judged: ThresholdResult) -> str:
    """The reason of a failure that the measured value does not show."""
    if judged.value is not None and judged.threshold.measure in OF_ROWS:
        return ""
    shown = judged.value is not None and judged.value < judged.threshold.limit
    return "" if judged.outcome.holds or shown else judged.outcome.reason
