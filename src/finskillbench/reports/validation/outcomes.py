"""What came out: results, stability, floors and ceilings, and how far all of it hangs on choices."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from finskillbench.analysis.intervals import Method, Weighting, estimate
from finskillbench.analysis.results import Results, collect, pairs
from finskillbench.episode import Profile
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table
from finskillbench.reports.tables.common import compared, contenders
from finskillbench.reports.tables.episodes.conduct import repeats_table
from finskillbench.reports.tables.episodes.resources import model_resources_table
from finskillbench.reports.tables.scores.effects import significance_table
from finskillbench.reports.tables.scores.floors import floors_table
from finskillbench.reports.tables.scores.grouped import domains_table, subtasks_table
from finskillbench.reports.tables.scores.models import models_table
from finskillbench.reports.tables.scores.pooled import pooled_table
from finskillbench.reports.validation.chapters import Chapter, present


def results_chapter(results: Results) -> Chapter:
    """Outcomes analysis: every result with its interval."""
    words = (
        "Scores lie between 0 and 1. Episodes in error have no score and enter no mean. Differences are paired: "
        "the same episodes under both conditions. 95 % intervals are clustered by what episodes share and exact "
        "enough for few clusters (CR2 with Satterthwaite's degrees of freedom); where none can be said, a dash "
        "stands in its place.",
    )
    tables = (pooled_table, models_table, domains_table, subtasks_table, significance_table, model_resources_table)
    return Chapter("results", "Outcomes: results with intervals", words, tables=present(*(t(results) for t in tables)))


def stability_chapter(results: Results) -> Chapter:
    """How far a result would be the same again."""
    table = repeats_table(results)
    if table is None:
        told = "Not assessed: no episode was run more than once. Run with --epochs 3 or more to see how much is chance."
    else:
        told = (
            "Repeats of the same episode tell chance from skill: the variance within episodes, the chance that "
            "one of k repeats is right, and that all are."
        )
    return Chapter("stability", "Stability over repeats", (told,), tables=present(table))


def floors_chapter(results: Results, published: Results | None) -> Chapter:
    """What programs come to on the same episodes."""
    if not results.rows["program"].any():
        told = "Not run: without the programs baseline/... nobody knows what a score is worth."
        return Chapter("floors", "Floors and ceilings", (told,))
    told = "A score means something only beside what needs no model: constants, fixed recipes, the procedure itself."
    return Chapter("floors", "Floors and ceilings", (told,), tables=present(floors_table(results, published)))


def sensitivity_chapter(rows: pl.DataFrame, results: Results) -> Chapter:
    """How far the headline hangs on the profile, on single models, on weights and on how intervals are made."""
    words = (
        "What a reader might have chosen otherwise, on the headline: the scoring profile, one model less, weights of "
        "subtasks, and the way in which intervals are made.",
    )
    return Chapter(
        "sensitivity", "Sensitivity", words, tables=present(_profiles(rows, results), _differences(rows, results))
    )


def _profiles(rows: pl.DataFrame, results: Results) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for profile in Profile:
        of = results if profile is results.profile else collect(rows, profile, results.excluded)
        means = estimate(compared(of, of.episodes), "score", ["condition"], bounds=(0.0, 1.0))
        for line in means.iter_rows(named=True):
            score = Estimate(line["mean"], line["low"], line["high"])
            lines.append((profile.value, line["condition"], line["pairs"], score))
    columns = (
        Column("profile", "Profile"),
        Column("condition", "Condition"),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("mean", "Mean", Kind.SCORE, interval=True),
    )
    note = "A subtask that does not define a profile is taken in the next of certified, strict and paper that it has."
    return Table("profiles", "The headline under each scoring profile", columns, tuple(lines), (note,))


def _differences(rows: pl.DataFrame, results: Results) -> Table:
    columns = (
        Column("choice", "Choice"),
        Column("comparison", "Comparison"),
        Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    lines = (
        (choice, f"{comparison.treated} - {comparison.reference}", *said)
        for choice, of, method, weighting in _choices(rows, results)
        for comparison in of.comparisons
        for said in _said(compared(of, pairs(of, comparison)), method, weighting)
    )
    return Table("choices", "The headline difference under other choices", columns, tuple(lines))


def _choices(rows: pl.DataFrame, results: Results) -> Iterator[tuple[str, Results, Method, Weighting]]:
    yield "as reported", results, Method.T, Weighting.MICRO
    yield "every subtask weighs alike", results, Method.T, Weighting.MACRO
    yield "percentile bootstrap of clusters", results, Method.PERCENTILE, Weighting.MICRO
    yield "BCa bootstrap of clusters", results, Method.BCA, Weighting.MICRO
    models = contenders(results)
    for model in models if len(models) > 1 else ():
        without = collect(rows, results.profile, (*results.excluded, model))
        yield f"without {model}", without, Method.T, Weighting.MICRO


def _said(frame: pl.DataFrame, method: Method, weighting: Weighting) -> Iterator[tuple[Estimate, int]]:
    if not frame.is_empty():
        line = estimate(frame, method=method, weighting=weighting).row(0, named=True)
        yield Estimate(line["mean"], line["low"], line["high"]), line["pairs"]
