"""What the differences hang on: chance, the level without skills, documents and scripts, skills and code."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.arms import DOCUMENTS_AND_SCRIPTS, SKILLS_AND_CODE, effects
from finskillbench.analysis.inference.multiplicity import adjust
from finskillbench.analysis.inference.power import detectable
from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.results import Results, pairs
from finskillbench.analysis.strata import by_cell
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.common import compared, every_subtask
from finskillbench.reports.tables.framed import HARNESS, MODEL, framed, of_contenders
from finskillbench.reports.tables.notes import notes

_COMPARED = Column("comparison", "Difference of")
_CHANGE = Column("mean", "Difference", Kind.DIFFERENCE, interval=True)
_PAIRS = (Column("pairs", "Pairs", Kind.COUNT), Column("clusters", "Clusters", Kind.COUNT))
_CHANCE = (
    "p: two-sided clustered t test; Holm: adjusted so that any false finding among the subtasks of a comparison has a "
    "chance of 5 %; FDR: after Benjamini and Hochberg, so that 5 % of the findings are false. Detectable: the least "
    "true difference that would have been found in 80 of 100 such runs."
)
_SILENT = (
    "{} of {} differences vary too little over clusters for a p-value: they are in no family that p-values are "
    "adjusted for, and may be the surest of all; finskillbench compare --fail-on-regression has a sign test for them."
)
_LEVEL = (
    "Strata are of the mean score without the treatment of a model on a subtask, not of single episodes: of these, "
    "those that did poorly by bad luck would seem to gain."
)
_ARMS = (
    "An ingredient's effect is the mean of what it adds alone and beside the other; the interaction is what both bring "
    "beyond the sum of what each brings alone. Over episodes that were scored under all four conditions."
)


def significance_table(results: Results) -> Table | None:
    """The differences of each subtask with p-values, also adjusted for their number; None without comparisons."""
    frames = [
        detectable(
            adjust(estimate(compared(results, pairs(results, each), every_subtask), by=["sub_task"]))
        ).with_columns(comparison=pl.lit(f"{each.treated} - {each.reference}"))
        for each in results.comparisons
    ]
    if not frames:
        return None
    columns = (
        _COMPARED,
        Column("sub_task", "Subtask"),
        _CHANGE,
        *_PAIRS,
        Column("effective_clusters", "Effective clusters", Kind.NUMBER, digits=1),
        Column("p", "p", Kind.NUMBER, digits=4),
        Column("p_holm", "p, Holm", Kind.NUMBER, digits=4),
        Column("p_fdr", "p, FDR", Kind.NUMBER, digits=4),
        Column("detectable", "Detectable", Kind.SCORE),
    )
    title = "Differences by subtask, and what chance would bring"
    found = pl.concat(frames)
    silent = found.filter(pl.col("mean").is_not_null() & pl.col("p").is_null()).height
    said = (*notes(results), _CHANCE, *([_SILENT.format(silent, found.height)] if silent else []))
    return framed("significance", title, found, columns, said)


def strata_table(results: Results) -> Table | None:
    """The differences by the level without the treatment, as the paper recommends; None without comparisons."""
    frames = [
        estimate(by_cell(compared(results, pairs(results, each))), by=["stratum"])
        .sort("stratum")
        .with_columns(comparison=pl.lit(f"{each.treated} - {each.reference}"))
        for each in results.comparisons
    ]
    if not frames:
        return None
    columns = (_COMPARED, Column("stratum", "Score without"), _CHANGE, *_PAIRS)
    title = "Differences by the level without the treatment"
    return framed("strata", title, pl.concat(frames), columns, (*notes(results), _LEVEL))


def arms_table(results: Results) -> Table | None:
    """Two ingredients and their interaction; None where none of the designs has all four of its conditions."""
    chosen = of_contenders(results)
    frames = [
        effects(chosen, each).with_columns(design=pl.lit(f"{each.first} x {each.second}"))
        for each in (DOCUMENTS_AND_SCRIPTS, SKILLS_AND_CODE)
        if {*each.conditions} <= {*results.conditions}
    ]
    frames = [frame for frame in frames if frame.height]
    if not frames:
        return None
    columns = (*(MODEL, HARNESS), Column("design", "Design"), Column("effect", "Effect"), _CHANGE, *_PAIRS)
    title = "Two ingredients, alone and together"
    return framed("arms", title, pl.concat(frames), columns, (*notes(results, differences=False), _ARMS))
