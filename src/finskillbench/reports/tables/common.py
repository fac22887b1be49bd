"""What several tables share: who is compared and on which episodes, means, paired differences, names of columns.

Tables of frames that the analysis has made already.

Ceiling, yardstick and floors: what baseline programs score where models are compared.

Sentences below a table: what a reader must know before believing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.intervals import Weighting, estimate
from finskillbench.analysis.results import CURATED, REFERENCE, Comparison, Results, distinct, pairs
from finskillbench.domains.base import HEADLINE
from finskillbench.reports.release import EDITION, NOTE
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, interval_names

Group = tuple[str, ...]
"""The values of the columns that groups are told apart by."""
Scope = Callable[[pl.DataFrame], pl.DataFrame]
"""Which subtasks are counted."""
REFERENCE_PROGRAM = "baseline/reference"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and the episodes behind it."""

    value: float
    episodes: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A mean with its interval, the episodes or pairs behind it, and the clusters: how many, and how many of one size
    would say as much.
    """

    estimate: Estimate
    pairs: int
    clusters: int
    effective_clusters: float


def headline_only(frame: pl.DataFrame) -> pl.DataFrame:
    """The lines on subtasks that count towards the headline."""
    return frame.filter("headline")


def every_subtask(frame: pl.DataFrame) -> pl.DataFrame:
    """All lines."""
    return frame


def with_headline(frame: pl.DataFrame) -> pl.DataFrame:
    """All lines, those that count towards the headline once more as a subtask of that name, and likewise those of each
    suite that has a headline of its own.

    `stratum` is the subtask that a line is of, also where it stands for the headline: an interval of `gaps_of` is that
    of a mean over these strata.
    """
    frame = frame.with_columns(stratum=pl.col("sub_task"))
    counted = headline_only(frame).with_columns(sub_task=pl.lit(HEADLINE))
    own = frame.filter(pl.col("suite") != "", ~pl.col("headline")).with_columns(sub_task=pl.col("suite"))
    return pl.concat([frame, counted, own])


def headlines(results: Results) -> list[str]:
    """The rows that sum up others: the headline, and those of suites that have their own."""
    return [HEADLINE, *(name for name in distinct(results.rows, "suite") if name)]


def hosted_models(results: Results) -> list[str]:
    """The models that tables compare: the language models, or where there is none the program in their place."""
    models = distinct(results.rows.filter(~pl.col("program")), "model")
    programs = [model for model in results.models if model not in models]
    return models or ([REFERENCE_PROGRAM] if REFERENCE_PROGRAM in programs else programs[:1])


def compared(results: Results, frame: pl.DataFrame, scope: Scope = headline_only) -> pl.DataFrame:
    """The lines of contenders."""
    return scope(frame.filter(pl.col("model").is_in(hosted_models(results))))


def means(frame: pl.DataFrame, by: Sequence[str]) -> dict[Group, Mean]:
    """Mean score of each group, every line weighing alike."""
    grouped = frame.group_by(by or [pl.lit(0)], maintain_order=True).agg(pl.col("score").mean(), episodes=pl.len())
    return _to_means(grouped, by)


def macro_means(frame: pl.DataFrame, by: Sequence[str]) -> dict[Group, Mean]:
    """Mean score of each group, every subtask weighing alike."""
    parts = frame.group_by(*by, "sub_task", maintain_order=True).agg(pl.col("score").mean(), episodes=pl.len())
    grouped = parts.group_by(by or [pl.lit(0)], maintain_order=True).agg(pl.col("score").mean(), pl.sum("episodes"))
    return _to_means(grouped, by)


def gaps(
    results: Results,
    comparison: Comparison,
    by: Sequence[str] = (),
    *,
    scope: Scope = headline_only,
    weighting: Weighting = Weighting.MICRO,
) -> dict[Group, Gap]:
    """What one condition changed against another on the same episodes, by group."""
    return gaps_of(compared(results, pairs(results, comparison), scope), by, weighting=weighting)


def gaps_of(
    frame: pl.DataFrame, by: Sequence[str] = (), *, value: str = "difference", weighting: Weighting = Weighting.MICRO
) -> dict[Group, Gap]:
    """The mean of a column with its interval, by group; a group without a value is absent."""
    if frame.is_empty():
        return {}
    said = estimate(frame, value, by, weighting=weighting, part="stratum" if "stratum" in frame.columns else "sub_task")
    figures = said.select("mean", "low", "high", "pairs", "clusters", "effective_clusters")
    return {
        group: Gap(Estimate(mean, low, high), count, clusters, effective)
        for group, (mean, low, high, count, clusters, effective) in zip(
            _groups(said, by), figures.iter_rows(), strict=True
        )
        if mean is not None
    }


def order_of(results: Results, by: str) -> list[str]:
    """The values of a column in the order in which tables list them."""
    if by == "sub_task":
        return results.sub_tasks
    if by == "domain":
        place = {name: number for number, name in enumerate(results.sub_tasks)}
        homes = results.rows.select("sub_task", "domain").unique().rows()
        return list(dict.fromkeys(home for _, home in sorted(homes, key=lambda each: place[each[0]])))
    levels = ["easy", "medium", "hard"]
    return sorted(distinct(results.rows, by), key=lambda name: levels.index(name) if name in levels else len(levels))


def falling(cell: Cell) -> float:
    """A sorting key: the greatest difference first, what cannot be said last."""
    return -cell.value if isinstance(cell, Estimate) else 2.0


def condition_columns(results: Results) -> list[Column]:
    """A column of means for each condition."""
    return [Column(f"mean_{slug(name)}", name, Kind.SCORE) for name in results.conditions]


def comparison_columns(results: Results) -> list[Column]:
    """A column of differences for each comparison."""
    return [
        Column(
            f"{slug(each.treated)}_minus_{slug(each.reference)}",
            f"{each.treated} - {each.reference}",
            Kind.DIFFERENCE,
            interval=True,
        )
        for each in results.comparisons
    ]


def slug(text: str) -> str:
    """A name as columns and files have it."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "x"


def _to_means(grouped: pl.DataFrame, by: Sequence[str]) -> dict[Group, Mean]:
    figures = grouped.select("score", "episodes").iter_rows()
    return {
        group: Mean(mean, count)
        for group, (mean, count) in zip(_groups(grouped, by), figures, strict=True)
        if mean is not None
    }


def _groups(frame: pl.DataFrame, by: Sequence[str]) -> list[Group]:
    return frame.select(by).rows() if by else [()] * frame.height


MODEL = Column("model", "Model")
HARNESS = Column("harness", "Harness")
CONDITION = Column("condition", "Condition")


def framed(name: str, title: str, frame: pl.DataFrame, columns: Sequence[Column], notes: Sequence[str]) -> Table:
    """A table of the columns of a frame that have these names.

    A column with intervals takes its ends from `NAME_low` and `NAME_high`, or where there are none from `low` and
    `high`. Of several harnesses there is a column; of one there is none.
    """
    shown = [column for column in columns if column.name != HARNESS.name or frame[HARNESS.name].n_unique() > 1]
    cells = [_cells(frame, column) for column in shown]
    return Table(name, title, tuple(shown), tuple(zip(*cells, strict=True)), tuple(notes))


def without_baselines(results: Results, scope: Scope = headline_only) -> Results:
    """The results of the models that tables compare, on the subtasks that a table counts."""
    rows, episodes = (compared(results, frame, scope) for frame in (results.rows, results.episodes))
    return replace(results, rows=rows, episodes=episodes)


def _cells(frame: pl.DataFrame, column: Column) -> list[Cell]:
    values = frame[column.name]
    if not column.interval:
        if column.kind is Kind.TEXT:
            return values.cast(pl.String).to_list()
        return values.cast(pl.Int64 if column.kind is Kind.COUNT else pl.Float64).to_list()
    _, *own = interval_names(column)
    low, high = (frame[name] for name in (own if own[0] in frame.columns else ("low", "high")))
    return [
        None if value is None else Estimate(value, *((None, None) if None in (below, above) else (below, above)))
        for value, below, above in zip(values.to_list(), low.to_list(), high.to_list(), strict=True)
    ]


class Mark(NamedTuple):
    """A program under a condition, and what it stands for."""

    name: str
    title: str
    model: str
    condition: str


MARKS = (
    Mark("floor", "Floor", "baseline/trivial", REFERENCE),
    Mark("heuristic", "Heuristic", "baseline/heuristic", REFERENCE),
    Mark("ceiling", "Ceiling", "baseline/reference", CURATED),
)
"""The best constant answer, the best fixed recipe, and what following the curated skills comes to."""
BY_HAND = Mark("by_hand", "By hand", "baseline/reference", REFERENCE)
NOTHING = Mark("nop", "Nulls", "baseline/nop", REFERENCE)
WRONG = (
    Mark("textbook", "Textbook", "baseline/textbook", CURATED),
    Mark("trapped", "Trapped", "baseline/trapped", CURATED),
)
"""Programs that go wrong in ways that professionals know."""


def marks_run(results: Results, marks: Sequence[Mark] = MARKS) -> list[Mark]:
    """The marks that the rows have."""
    present = set(results.episodes.select("model", "condition").unique().iter_rows())
    return [mark for mark in marks if (mark.model, mark.condition) in present]


def mark_columns(marks: Sequence[Mark]) -> list[Column]:
    """A column for each mark."""
    return [Column(mark.name, mark.title, Kind.SCORE) for mark in marks]


def mark_means(
    results: Results, mark: Mark, by: Sequence[str], scope: Scope = headline_only, *, macro: bool = False
) -> dict[Group, float]:
    """The means of one mark by group."""
    chosen = results.episodes.filter(pl.col("model") == mark.model, pl.col("condition") == mark.condition)
    found = (macro_means if macro else means)(scope(chosen), by)
    return {group: mean.value for group, mean in found.items()}


PAIRED = (
    "Differences are paired by episode, with 95 % intervals that count what episodes share (market date, mandate, "
    "scenario, company) once; no interval where fewer than three such clusters were run or too little varies."
)


def notes(results: Results, *, differences: bool = True) -> tuple[str, ...]:
    """Who was left out, what was mixed, what failed, and what an interval is."""
    told = [*warnings(results), *_place(results), *_profiles(results)]
    if differences and results.comparisons:
        told.append(PAIRED)
    elif differences:
        told.append(f"No differences: they are against {REFERENCE}, and the rows have no two conditions to compare.")
    return tuple(told)


def warnings(results: Results) -> list[str]:
    """What makes figures of a report other than they seem: models left out, what was mixed, what is in no mean."""
    return [*_left_out(results), *_mixed(results), *_errors(results), *_uneven(results), *_reused(results)]


def _left_out(results: Results) -> list[str]:
    return [f"Without {', '.join(results.excluded)}."] if results.excluded else []


def _place(results: Results) -> list[str]:
    """Programs in the place of models."""
    if not results.rows["program"].all():
        return []
    return [f"No language model was run: {hosted_models(results)[0]}, a program, stands in its place."]


def _profiles(results: Results) -> list[str]:
    told: list[str] = []
    other = [
        f"{name} ({profile.value})" for name, profile in results.profiles.items() if profile is not results.profile
    ]
    if other:
        told.append(f"No {results.profile} scores for: {', '.join(other)}.")
    if above := distinct(results.rows.filter(pl.col("score") > 1.0), "sub_task"):
        told.append(f"{', '.join(sorted(above))}: scores may exceed 1, as the paper's formula for ranked lists has it.")
    beside = distinct(results.rows.filter(~pl.col("headline")), "sub_task")
    if beside:
        told.append(f"Not in the headline: {', '.join(sorted(beside))}.")
    return told


def _mixed(results: Results) -> list[str]:
    """Rows that do not belong together without a word."""
    told: list[str] = []
    for column, what in (("edition", "editions"), ("scorer_version", "scorers")):
        found = [value[:8] or "not told" for value in distinct(results.rows, column)]
        if len(found) > 1:
            told.append(f"The rows are of several {what}: {', '.join(found)}.")
    compared = results.rows.filter(pl.col("model").is_in(hosted_models(results)))
    harnesses = distinct(compared, "harness")
    if len(harnesses) > 1:
        told.append(
            f"The rows are of several harnesses: {', '.join(harnesses)}; only tables that name them keep them apart."
        )
    if EDITION in distinct(results.rows, "edition"):
        told.append(NOTE)
    if {"code_version", "commit"} <= set(results.rows.columns):
        made = results.rows.group_by("code_version", "commit").len().sort("code_version", "commit")
        if made.height > 1:
            each = [
                f"{count} by {version or 'not told'} ({commit or 'no commit'})"
                for version, commit, count in made.iter_rows()
            ]
            told.append(f"The rows were made by several versions of this program: {', '.join(each)}.")
    return told


def _errors(results: Results) -> list[str]:
    failed = int(results.rows["failed"].sum())
    if not failed:
        return []
    everything = results.rows.height
    if failed == everything:
        return [f"All {everything} rows ended in an error: there is no score. Run again to repeat them."]
    return [f"{failed} of {everything} rows ended in an error and are in no mean; run again to repeat them."]


def _reused(results: Results) -> list[str]:
    """Answers that are no draws of their own."""
    if not {"reused_calls", "saved_usd", "turns"} <= set(results.rows.columns):
        return []
    reused, saved = int(results.rows["reused_calls"].sum()), float(results.rows["saved_usd"].sum())
    if not reused:
        return []
    return [
        f"{reused:,} of {int(results.rows['turns'].sum()):,} model calls were answered from a response cache: rows "
        f"that share answers are no draws of their own, their seconds are not the model's, and {saved:,.2f} US dollars "
        "of the costs were not paid."
    ]


def _uneven(results: Results) -> list[str]:
    """Conditions whose means are over other episodes."""
    scored = compared(results, results.episodes).select("model", "harness", "episode", "condition").unique()
    counts = dict(scored.group_by("condition").len().iter_rows())
    every = scored.select("model", "harness", "episode").n_unique()
    if all(counts.get(name, 0) == every for name in results.conditions):
        return []
    each = ", ".join(f"{name} {counts.get(name, 0):,}" for name in results.conditions)
    return [f"Means of conditions are not over the same episodes ({each}); differences are."]
