"""What programs score on each subtask: the ceiling, the yardstick and the floors of every report."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.results import CURATED, REFERENCE, Comparison, Results, pairs
from finskillbench.episode import Profile
from finskillbench.reports.formats.cells import difference_text
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import REFERENCE_PROGRAM, gaps_of, headlines, order_of, with_headline
from finskillbench.reports.tables.notes import PAIRED
from finskillbench.reports.tables.programs import (
    BY_HAND,
    MARKS,
    NOTHING,
    WRONG,
    Mark,
    mark_columns,
    mark_means,
    marks_run,
)


def floors_table(results: Results, published: Results | None = None) -> Table:
    """A row for each subtask and the headline.

    Parameters
    ----------
    results : with rows of baseline programs.
    published : the same rows under the profile `paper`, whose scorers pay trivial answers; their floor belongs beside
        every score that is read under them.
    """
    wanted = (MARKS[2], BY_HAND, *WRONG, MARKS[1], MARKS[0], NOTHING)
    run = marks_run(results, wanted)
    paid = marks_run(published, MARKS[:1]) if published and results.profile is not Profile.PAPER else []
    columns = (
        Column("sub_task", "Subtask"),
        Column("episodes", "Episodes", Kind.COUNT),
        *mark_columns(run),
        *(Column(f"{mark.name}_paper", f"{mark.title}, paper", Kind.SCORE) for mark in paid),
    )
    sources: list[tuple[Results, Mark]] = [(results, mark) for mark in run]
    sources += [(published, mark) for mark in paid if published]
    found = [mark_means(*each, ("sub_task",), with_headline) for each in sources]
    programs = with_headline(results.episodes.filter("program"))
    count = dict(programs.group_by("sub_task").agg(pl.col("episode").n_unique()).iter_rows())
    rows: list[tuple[Cell, ...]] = [
        (name, count[name], *(each.get((name,)) for each in found))
        for name in [*order_of(results, "sub_task"), *headlines(results)]
        if name in count
    ]
    title = f"What programs score, profile {results.profile}"
    return Table("floors", title, columns, tuple(rows), (_meaning([*run, *paid]), *_worth(results)))


def _meaning(run: list[Mark]) -> str:
    told = {
        "ceiling": "ceiling, baseline/reference with curated skills",
        "by_hand": "by hand, the same without skills",
        "textbook": "textbook, the usual plug-in answer without the documents",
        "trapped": "trapped, who falls for every trap",
        "heuristic": "heuristic, the best fixed recipe",
        "floor": "floor, the best constant answer",
        "nop": "nulls, no answer at all",
    }
    meant = list(dict.fromkeys(told[mark.name] for mark in run))
    paid = "; floor, paper: that of the published scorers, which pay trivial answers" if len(meant) < len(run) else ""
    return f"Programs, not language models: {'; '.join(meant)}{paid}."


def _worth(results: Results) -> list[str]:
    """What the skills are worth to the reference program, on the headline."""
    comparison = Comparison(CURATED, REFERENCE)
    if comparison not in results.comparisons:
        return []
    paired = pairs(results, comparison).filter("headline", pl.col("model") == REFERENCE_PROGRAM)
    gap = gaps_of(paired).get(())
    if gap is None:
        return []
    return [f"Headline, {REFERENCE_PROGRAM}, {CURATED} - {REFERENCE}: {difference_text(gap.estimate)}. {PAIRED}"]
