"""What models score on episodes before and after the day up to which their training data reach."""

from __future__ import annotations

from finskillbench.analysis.cutoffs import changes
from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.framed import CONDITION, HARNESS, MODEL, framed
from finskillbench.reports.tables.notes import notes

_SIDES = (
    "Before: asked as of the cut-off or an earlier day, so that a model may have read the answer in training; after: "
    "as of a later day, on figures that were not all out by then. A change below 0 may be contamination, or later "
    "episodes that are harder: programs, which have read nothing, tell the two apart where they were run."
)
_WEIGHED = (
    "Means weigh every subtask alike, of those with two clusters at least on either side. The 95 % interval takes the "
    "two sides for different episodes, and counts a company or mandate that lies on both once."
)
_FICTION = "Of fictional companies, as in synthetic editions and suites of worlds, days before and after are alike."


def contamination_table(results: Results) -> Table:
    """A row for each model, harness and condition; `results` are of rows as from `analysis.cutoffs.dated`."""
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("cutoff", "Cut-off"),
        Column("before", "Before", Kind.SCORE),
        Column("episodes_before", "Episodes", Kind.COUNT),
        Column("after", "After", Kind.SCORE),
        Column("episodes_after", "Episodes", Kind.COUNT),
        Column("change", "After - before", Kind.DIFFERENCE, interval=True),
        Column("sub_tasks", "Subtasks", Kind.COUNT),
    )
    said = (*notes(results, differences=False), _SIDES, _WEIGHED, _FICTION)
    return framed("contamination", "Scores before and after the cut-off", changes(results), columns, said)
