"""Shared parts of tables: compared models, means, paired differences, reference programs, columns and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.intervals import Weighting, estimate_means
from finskillbench.analysis.results import CURATED, REFERENCE, Comparison, Results, distinct_values, pairs
from finskillbench.domains.base import HEADLINE
from finskillbench.reports.release import EDITION, RELEASE_FOOTNOTE
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, interval_names

Group = tuple[str, ...]
"""Values of the grouping columns."""
Scope = Callable[[pl.DataFrame], pl.DataFrame]
"""Selection of the subtasks that count."""
REFERENCE_PROGRAM = "baseline/reference"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and its number of episodes."""

    value: float
    episodes: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A mean with its interval, number of episodes or pairs, clusters, and effective clusters (of equal size)."""

    estimate: Estimate
    pairs: int
    clusters: int
    effective_clusters: float


def headline_only(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter("headline")


def every_subtask(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def with_headline(frame: pl.DataFrame) -> pl.DataFrame:
    """Repeat lines that count towards the headline, or a suite's headline, as a subtask of that name.

    `stratum` keeps the original subtask; intervals of `gaps_of` average over these strata.
    """
    frame = frame.with_columns(stratum=pl.col("sub_task"))
    counted = headline_only(frame).with_columns(sub_task=pl.lit(HEADLINE))
    suite_headlines = frame.filter("suite_headline", ~pl.col("headline")).with_columns(sub_task=pl.col("suite"))
    return pl.concat([frame, counted, suite_headlines])


def headlines(results: Results) -> list[str]:
    """Return the summary rows: the headline, and suites with their own."""
    return [HEADLINE, *(name for name in distinct_values(results.rows, "suite") if name)]


def hosted_models(results: Results) -> list[str]:
    """Return the compared language models, or the reference program if there are none."""
    models = distinct_values(results.rows.filter(~pl.col("program")), "model")
    programs = [model for model in results.models if model not in models]
    return models or ([REFERENCE_PROGRAM] if REFERENCE_PROGRAM in programs else programs[:1])


def compared(results: Results, frame: pl.DataFrame, scope: Scope = headline_only) -> pl.DataFrame:
    """Return the lines of the compared models."""
    return scope(frame.filter(pl.col("model").is_in(hosted_models(results))))


def means(frame: pl.DataFrame, by: Sequence[str]) -> dict[Group, Mean]:
    """Return the mean score of each group, with equal weight per line."""
    grouped = frame.group_by(by or [pl.lit(0)], maintain_order=True).agg(pl.col("score").mean(), episodes=pl.len())
    return _to_means(grouped, by)


def macro_means(frame: pl.DataFrame, by: Sequence[str]) -> dict[Group, Mean]:
    """Return the mean score of each group, with equal weight per subtask."""
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
    """Return paired differences of a comparison, by group."""
    return gaps_of(compared(results, pairs(results, comparison), scope), by, weighting=weighting)


def gaps_of(
    frame: pl.DataFrame, by: Sequence[str] = (), *, value: str = "difference", weighting: Weighting = Weighting.MICRO
) -> dict[Group, Gap]:
    """Return the mean of a column with its interval, by group; groups without a value are absent."""
    if frame.is_empty():
        return {}
    part = "stratum" if "stratum" in frame.columns else "sub_task"
    estimates = estimate_means(frame, value, by, weighting=weighting, part=part)
    figures = estimates.select("mean", "low", "high", "pairs", "clusters", "effective_clusters")
    return {
        group: Gap(Estimate(mean, low, high), count, clusters, effective)
        for group, (mean, low, high, count, clusters, effective) in zip(
            _groups(estimates, by), figures.iter_rows(), strict=True
        )
        if mean is not None
    }


def order_of(results: Results, by: str) -> list[str]:
    """Return the values of a column in table order."""
    if by == "sub_task":
        return results.sub_tasks
    if by == "domain":
        place = {name: number for number, name in enumerate(results.sub_tasks)}
        homes = results.rows.select("sub_task", "domain").unique().rows()
        return list(dict.fromkeys(home for _, home in sorted(homes, key=lambda each: place[each[0]])))
    levels, names = ["easy", "medium", "hard"], distinct_values(results.rows, by)
    return sorted(names, key=lambda name: levels.index(name) if name in levels else len(levels))


def descending_key(cell: Cell) -> float:
    """Sort the greatest difference first, unavailable ones last."""
    return -cell.value if isinstance(cell, Estimate) else 2.0


def condition_columns(results: Results) -> list[Column]:
    return [Column(f"mean_{slug(name)}", name, Kind.SCORE) for name in results.conditions]


def comparison_columns(results: Results) -> list[Column]:
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
    """Convert a name for columns and files."""
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


def table_from_frame(
    name: str, title: str, frame: pl.DataFrame, columns: Sequence[Column], notes: Sequence[str]
) -> Table:
    """Make a table from the columns of a frame with these names.

    Interval ends are `NAME_low` and `NAME_high`, else `low` and `high`. The harness column appears only if there are
    several.
    """
    shown = [column for column in columns if column.name != HARNESS.name or frame[HARNESS.name].n_unique() > 1]
    cells = [_cells(frame, column) for column in shown]
    return Table(name, title, tuple(shown), tuple(zip(*cells, strict=True)), tuple(notes))


def of_comparisons(
    results: Results, make: Callable[[Comparison], pl.DataFrame], separator: str = " - "
) -> pl.DataFrame | None:
    """Rows of each comparison, with its name in the column `comparison`; None without any rows."""
    named = {f"{each.treated}{separator}{each.reference}": make(each) for each in results.comparisons}
    frames = [frame.with_columns(comparison=pl.lit(name)) for name, frame in named.items() if frame.height]
    return pl.concat(frames) if frames else None


def without_baselines(results: Results, scope: Scope = headline_only) -> Results:
    """Restrict results to the compared models and the subtasks in scope."""
    rows, episodes = (compared(results, frame, scope) for frame in (results.rows, results.episodes))
    return replace(results, rows=rows, episodes=episodes)


def _cells(frame: pl.DataFrame, column: Column) -> list[Cell]:
    values = frame[column.name]
    if not column.interval:
        if column.kind is Kind.TEXT:
            return values.cast(pl.String).to_list()
        return values.cast(pl.Int64 if column.kind is Kind.COUNT else pl.Float64).to_list()
    _, *bounds = interval_names(column)
    low, high = (frame[name] for name in (bounds if bounds[0] in frame.columns else ("low", "high")))
    return [
        None if value is None else Estimate(value, *((None, None) if None in (below, above) else (below, above)))
        for value, below, above in zip(values.to_list(), low.to_list(), high.to_list(), strict=True)
    ]


class Mark(NamedTuple):
    """A reference program under a condition, with its meaning."""

    name: str
    title: str
    model: str
    condition: str


MARKS = (
    Mark("floor", "Floor", "baseline/trivial", REFERENCE),
    Mark("heuristic", "Heuristic", "baseline/heuristic", REFERENCE),
    Mark("ceiling", "Ceiling", "baseline/reference", CURATED),
)
"""The best constant answer, the best fixed recipe, and a program that follows the curated skills."""
NO_SKILL_MARK = Mark("no_skill_baseline", "No skill", "baseline/reference", REFERENCE)
NOTHING = Mark("nop", "Nulls", "baseline/nop", REFERENCE)
WRONG = (
    Mark("textbook", "Textbook", "baseline/textbook", CURATED),
    Mark("trapped", "Trapped", "baseline/trapped", CURATED),
)
"""Programs that make well-known professional mistakes."""


def available_marks(results: Results, marks: Sequence[Mark] = MARKS) -> list[Mark]:
    """Return the marks with rows."""
    present = set(results.episodes.select("model", "condition").unique().iter_rows())
    return [mark for mark in marks if (mark.model, mark.condition) in present]


def mark_columns(marks: Sequence[Mark]) -> list[Column]:
    return [Column(mark.name, mark.title, Kind.SCORE) for mark in marks]


def mark_means(
    results: Results, mark: Mark, by: Sequence[str], scope: Scope = headline_only, *, macro: bool = False
) -> dict[Group, float]:
    """Return the means of one mark by group."""
    chosen = results.episodes.filter(pl.col("model") == mark.model, pl.col("condition") == mark.condition)
    found = (macro_means if macro else means)(scope(chosen), by)
    return {group: mean.value for group, mean in found.items()}


PAIRED = (
    "Differences are paired by episode, with 95 % intervals clustered by what episodes share (market date, mandate, "
    "scenario, company); there is no interval with fewer than three clusters or too little variation."
)


def notes(results: Results, *, differences: bool = True) -> tuple[str, ...]:
    """Return table notes on exclusions, mixed rows, failures and intervals."""
    sentences = [*warnings(results), *_place(results), *_profiles(results)]
    if differences and results.comparisons:
        sentences.append(PAIRED)
    elif differences:
        sentences.append(f"No differences: the rows have no two conditions to compare ({REFERENCE} is the reference).")
    return tuple(sentences)


def warnings(results: Results) -> list[str]:
    """Return notes on what affects the figures: excluded models, mixed rows, rows outside of means."""
    return [*_left_out(results), *_mixed(results), *_errors(results), *_uneven(results), *_reused(results)]


def _left_out(results: Results) -> list[str]:
    return [f"Without {', '.join(results.excluded)}."] if results.excluded else []


def _place(results: Results) -> list[str]:
    """Note that a program replaces models."""
    if not results.rows["program"].all():
        return []
    return [f"No language model was run: {hosted_models(results)[0]}, a program, replaces it."]


def _profiles(results: Results) -> list[str]:
    sentences: list[str] = []
    if other := results.other_profiles:
        sentences.append(f"No {results.profile} scores for: {', '.join(other)}.")
    if above := distinct_values(results.rows.filter(pl.col("score") > 1.0), "sub_task"):
        sentences.append(f"{', '.join(sorted(above))}: scores may exceed 1 by the paper's formula for ranked lists.")
    aside = distinct_values(results.rows.filter(~pl.col("headline")), "sub_task")
    if aside:
        sentences.append(f"Not in the headline: {', '.join(sorted(aside))}.")
    return sentences


def _mixed(results: Results) -> list[str]:
    """Note rows of different editions, scorers, harnesses or versions."""
    sentences: list[str] = []
    for column, what in (("edition", "editions"), ("scorer_version", "scorers")):
        found = [value[:8] or "unknown" for value in distinct_values(results.rows, column)]
        if len(found) > 1:
            sentences.append(f"The rows have several {what}: {', '.join(found)}.")
    compared = results.rows.filter(pl.col("model").is_in(hosted_models(results)))
    harnesses = distinct_values(compared, "harness")
    if len(harnesses) > 1:
        sentences.append(
            f"The rows have several harnesses: {', '.join(harnesses)}; only tables with a harness column separate them."
        )
    if EDITION in distinct_values(results.rows, "edition"):
        sentences.append(RELEASE_FOOTNOTE)
    if {"code_version", "commit"} <= set(results.rows.columns):
        made = results.rows.group_by("code_version", "commit").len().sort("code_version", "commit")
        if made.height > 1:
            each = [
                f"{count} by {name or 'unknown'} ({commit or 'no commit'})" for name, commit, count in made.iter_rows()
            ]
            sentences.append(f"The rows were made by several versions of this program: {', '.join(each)}.")
    return sentences


def _errors(results: Results) -> list[str]:
    failed = int(results.rows["failed"].sum())
    if not failed:
        return []
    everything = results.rows.height
    if failed == everything:
        return [f"All {everything} rows ended in an error: there is no score. Run again to repeat them."]
    return [f"{failed} of {everything} rows ended in an error and are excluded from means; run again to repeat them."]


def _reused(results: Results) -> list[str]:
    """Note answers from a cache, which are no independent draws."""
    if not {"reused_calls", "saved_usd", "turns"} <= set(results.rows.columns):
        return []
    reused, saved = int(results.rows["reused_calls"].sum()), float(results.rows["saved_usd"].sum())
    if not reused:
        return []
    return [
        f"{reused:,} of {int(results.rows['turns'].sum()):,} model calls were answered from a response cache: rows "
        f"that share answers are not independent, their seconds are not the model's, and {saved:,.2f} US dollars "
        "of the costs were not paid."
    ]


def _uneven(results: Results) -> list[str]:
    """Note conditions whose means are over different episodes."""
    scored = compared(results, results.episodes).select("model", "harness", "episode", "condition").unique()
    counts = dict(scored.group_by("condition").len().iter_rows())
    every = scored.select("model", "harness", "episode").n_unique()
    if all(counts.get(name, 0) == every for name in results.conditions):
        return []
    each = ", ".join(f"{name} {counts.get(name, 0):,}" for name in results.conditions)
    return [f"Means of conditions are over different episodes ({each}); differences are over the same ones."]
