"""Overview table of a run, scores of programs, and scores before and after training cut-offs."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.cutoffs import changes
from finskillbench.analysis.results import CURATED, REFERENCE, Comparison, Results, pairs
from finskillbench.episode import Profile
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, difference_text
from finskillbench.reports.tables.scores.grouped import condition_cells, headline_table
from finskillbench.reports.tables.scores.models import endings, mark_rows


def floors_table(results: Results, published: Results | None = None) -> Table:
    """Tabulate program scores by subtask and headline.

    `published` has the same rows under profile `paper`, whose scorers reward trivial answers; its floor is added.
    """
    wanted = (common.MARKS[2], common.NO_SKILL_MARK, *common.WRONG, common.MARKS[1], common.MARKS[0], common.NOTHING)
    run = common.available_marks(results, wanted)
    paid = (
        common.available_marks(published, common.MARKS[:1])
        if published and results.profile is not Profile.PAPER
        else []
    )
    columns = (
        Column("sub_task", "Subtask"),
        Column("episodes", "Episodes", Kind.COUNT),
        *common.mark_columns(run),
        *(Column(f"{mark.name}_paper", f"{mark.title}, paper", Kind.SCORE) for mark in paid),
    )
    sources: list[tuple[Results, common.Mark]] = [(results, mark) for mark in run]
    sources += [(published, mark) for mark in paid if published]
    found = [common.mark_means(*each, ("sub_task",), common.with_headline) for each in sources]
    programs = common.with_headline(results.episodes.filter("program"))
    count = dict(programs.group_by("sub_task").agg(pl.col("episode").n_unique()).iter_rows())
    rows: list[tuple[Cell, ...]] = [
        (name, count[name], *(each.get((name,)) for each in found))
        for name in [*common.order_of(results, "sub_task"), *common.headlines(results)]
        if name in count
    ]
    title = f"Scores of programs, profile {results.profile}"
    return Table("floors", title, columns, tuple(rows), (_meaning([*run, *paid]), *_worth(results)))


def _meaning(run: list[common.Mark]) -> str:
    descriptions = {
        "ceiling": "ceiling, baseline/reference with curated skills",
        "no_skill_baseline": "no skill, the same program without skills",
        "textbook": "textbook, the usual plug-in answer without the documents",
        "trapped": "trapped, which falls for every trap",
        "heuristic": "heuristic, the best fixed recipe",
        "floor": "floor, the best constant answer",
        "nop": "nulls, no answer at all",
    }
    meant = list(dict.fromkeys(descriptions[mark.name] for mark in run))
    paid = "; floor, paper: under the published scorers, which reward trivial answers" if len(meant) < len(run) else ""
    return f"Programs, not language models: {'; '.join(meant)}{paid}."


def _worth(results: Results) -> list[str]:
    """Note the effect of skills on the reference program, on the headline."""
    comparison = Comparison(CURATED, REFERENCE)
    if comparison not in results.comparisons:
        return []
    program = common.REFERENCE_PROGRAM
    paired = pairs(results, comparison).filter("headline", pl.col("model") == program)
    gap = common.gaps_of(paired).get(())
    if gap is None:
        return []
    return [f"Headline, {program}, {CURATED} - {REFERENCE}: {difference_text(gap.estimate)}. {common.PAIRED}"]


def overview_table(results: Results, published: Results | None = None) -> Table:
    """Tabulate a run: programs by subtask, one model by subtask and headline, or several models.

    `published` has the same rows under profile `paper`, for its floor.
    """
    if results.rows["program"].all() and len(results.models) > 1:
        return floors_table(results, published)
    models = common.hosted_models(results)
    if len(models) > 1:
        return _of_models(results)
    table = headline_table(results, f"Mean score of {models[0]}, profile {results.profile}")
    return Table(table.name, table.title, table.columns, table.rows, (*_answered(results), *table.notes))


def _of_models(results: Results) -> Table:
    """Tabulate the headline of several models."""
    mean = common.means(common.compared(results, results.episodes), ("model", "condition"))
    changes = [common.gaps(results, each, ("model",)) for each in results.comparisons]
    answered, mostly = endings(common.compared(results, results.rows))
    rows: list[tuple[Cell, ...]] = [
        (model, *condition_cells(results, (model,), mean, changes), answered.get(model), mostly.get(model))
        for model in common.hosted_models(results)
    ]
    columns = (
        Column("model", "Model"),
        Column("episodes", "Episodes", Kind.COUNT),
        *common.condition_columns(results),
        *common.comparison_columns(results),
        Column("answered", "Answered", Kind.SHARE),
        Column("mostly", "Otherwise mostly"),
    )
    rows += mark_rows(results, columns)
    return Table("overview", f"Mean score, profile {results.profile}", columns, tuple(rows), common.notes(results))


def _answered(results: Results) -> list[str]:
    """Note how often the only model answered, unless always."""
    planned = common.compared(results, results.rows, common.every_subtask)
    answered, mostly = endings(planned)
    (share,) = answered.values()
    if share == 1:
        return []
    otherwise = "".join(f", otherwise mostly {ending}" for ending in mostly.values())
    return [f"Answered: {100 * share:.0f} % of {planned.height} rows{otherwise}."]


_SIDES = (
    "Before: episodes up to the cut-off, whose answers a model may have read in training; after: later episodes, whose "
    "figures were not all published by then. A change below 0 may be contamination or harder later episodes; programs, "
    "which have no training data, distinguish the two if they were run."
)
_WEIGHED = (
    "Means weight subtasks equally, over those with at least two clusters on each side. The 95 % interval treats the "
    "sides as different episodes, clustered by company or mandate."
)
_FICTION = "For fictional companies, as in synthetic editions and suites of worlds, the cut-off has no meaning."


def contamination_table(results: Results) -> Table:
    """Tabulate by model, harness and condition; `results` have rows of `analysis.cutoffs.dated`."""
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("cutoff", "Cut-off"),
        Column("before", "Before", Kind.SCORE),
        Column("episodes_before", "Episodes", Kind.COUNT),
        Column("after", "After", Kind.SCORE),
        Column("episodes_after", "Episodes", Kind.COUNT),
        Column("change", "After - before", Kind.DIFFERENCE, interval=True),
        Column("sub_tasks", "Subtasks", Kind.COUNT),
    )
    footnotes = (*common.notes(results, differences=False), _SIDES, _WEIGHED, _FICTION)
    return common.table_from_frame(
        "contamination", "Scores before and after the cut-off", changes(results), columns, footnotes
    )
