"""Gates for continuous integration: a minimum score, and no regression.

A gate passes only if it would still pass with a score of 0 for every episode in error, and never for an unfinished run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import CURATED, Results, distinct_values
from finskillbench.domains.base import HEADLINE
from finskillbench.errors import InputError
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Column, Table


class ThresholdMeasure(StrEnum):
    """Quantity that a threshold bounds: from below, incidents from above."""

    MEAN = "mean"
    LOWER_BOUND = "lower_bound"
    COVERAGE = "coverage"
    INCIDENTS = "incidents"


OF_ROWS = (ThresholdMeasure.COVERAGE, ThresholdMeasure.INCIDENTS)
"""Measures that are shares of rows; the others are of scores."""


class Threshold(NamedTuple):
    """Limit of a measure on the headline, a domain or a subtask.

    `condition` None takes the usual one, `model` None each; `where` is the option or the line that states it.
    """

    part: str
    condition: str | None
    limit: float
    measure: ThresholdMeasure = ThresholdMeasure.MEAN
    model: str | None = None
    where: str = "--fail-under"


class Outcome(NamedTuple):
    """Verdict of a gate with its reason in one line."""

    holds: bool
    reason: str


class ThresholdResult(NamedTuple):
    """Verdict of a threshold for one model under one condition; `value` is None if not computable."""

    threshold: Threshold
    model: str
    condition: str
    value: float | None
    outcome: Outcome


def parse_floor(text: str) -> Threshold:
    """Parse a command-line threshold: `headline=0.6`, `risk_management@code_curated=0.5`.

    Raises
    ------
    InputError : wrong syntax, or the number is no score.
    """
    name, equals, number = text.rpartition("=")
    part, _, condition = name.partition("@")
    try:
        least = float(number)
    except ValueError:
        least = -1.0
    if not (equals and part and 0.0 <= least <= 1.0):
        raise InputError(
            f"--fail-under {text}: write headline=0.6, or a domain or subtask as in risk_management=0.6, with an "
            "optional @condition; the number is a mean score from 0 to 1"
        )
    return Threshold(part, condition or None, least)


def check_finished(runs: Iterable[RunRows]) -> list[Outcome]:
    """Return a failed gate for each unfinished run."""
    return [
        Outcome(False, f"{run.path} is not finished: {run.missing} episodes have no row yet; resume the run")
        for run in runs
        if run.missing
    ]


def check_thresholds(
    results: Results, thresholds: Sequence[Threshold], models: Collection[str] = ()
) -> list[ThresholdResult]:
    """Check models against thresholds.

    A threshold without a model applies to each of `models`; by default to every language model, else every program.

    Raises
    ------
    InputError : a threshold is on what was not run, or does not name the condition.
    """
    return [judged for each in thresholds for judged in _check(_bounded(results, each, models), each)]


def _bounded(results: Results, threshold: Threshold, models: Collection[str]) -> pl.DataFrame:
    if threshold.model is None:
        rows = results.rows.filter(pl.col("model").is_in(list(models)) if models else ~pl.col("program"))
        return results.rows if rows.is_empty() else rows
    if threshold.model not in results.models:
        there = ", ".join(results.models)
        raise InputError(f"{threshold.where}: no rows of model {threshold.model!r}; choose from {there}")
    return results.rows.filter(pl.col("model") == threshold.model)


def _check(rows: pl.DataFrame, threshold: Threshold) -> Iterator[ThresholdResult]:
    condition, name = _condition(rows, threshold), threshold.part
    part = pl.lit(value=True) if name == HEADLINE else pl.any_horizontal(pl.col("domain", "sub_task") == name)
    counted = pl.col("sub_task") == name if name in distinct_values(rows, "sub_task") else pl.col("headline")
    rows = rows.filter(pl.col("condition") == condition)
    chosen = rows.filter(part & counted)
    if chosen.is_empty():
        there = ", ".join([HEADLINE, *distinct_values(rows, "domain"), *distinct_values(rows, "sub_task")])
        raise InputError(f"{threshold.where}: no rows of {name} under {condition}; choose from {there}")
    for (model, harness), each in chosen.group_by("model", "harness", maintain_order=True):
        by = str(model) if rows["harness"].n_unique() == 1 else f"{model} in {harness}"
        judge = _judge_rows if threshold.measure in OF_ROWS else _judge_scores
        value, outcome = judge(f"{name} of {by} under {condition}", each, threshold)
        yield ThresholdResult(threshold, by, condition, value, outcome)


def _condition(rows: pl.DataFrame, threshold: Threshold) -> str:
    """Return the named condition; by default the only one, else the curated one."""
    there = distinct_values(rows, "condition")
    if threshold.condition is not None:
        if threshold.condition not in there:
            raise InputError(
                f"{threshold.where}: no rows under condition {threshold.condition!r}; choose from {', '.join(there)}"
            )
        return threshold.condition
    if len(there) == 1:
        return there[0]
    if CURATED in there:
        return CURATED
    raise InputError(f"{threshold.where}: name the condition of {threshold.part}, one of {', '.join(there)}")


def _judge_scores(what: str, rows: pl.DataFrame, threshold: Threshold) -> tuple[float | None, Outcome]:
    """Judge the mean or its lower bound, with unscored episodes counted as 0 as well."""
    episodes = rows.group_by("episode", maintain_order=True).agg(pl.mean("score"), pl.first("sub_task", "cluster"))
    known, absent, limit = episodes.drop_nulls("score"), episodes["score"].null_count(), threshold.limit
    if known.is_empty():
        return None, Outcome(False, f"{what}: none of {absent} episodes has a score")
    figure, name = (_mean, "") if threshold.measure is ThresholdMeasure.MEAN else (_lower, "the lower 95 % bound of ")
    value, worst = figure(known), figure(episodes.with_columns(pl.col("score").fill_null(0.0)))
    what = f"{name}{what}"
    if value is None or worst is None:
        return None, Outcome(False, f"{what} cannot be computed: too few clusters, or scores vary too little")
    if value < limit:
        return value, Outcome(False, f"{what} is {value:.4f}, below {limit:g}")
    if worst < limit:
        reason = (
            f"{what} is {value:.4f}, but {absent} of {episodes.height} episodes have no score: with 0 for these it is "
            f"{worst:.4f}, below {limit:g}"
        )
        return value, Outcome(False, reason)
    return value, Outcome(True, f"{what} is {value:.4f}, not below {limit:g}")


def _mean(episodes: pl.DataFrame) -> float:
    return float(episodes["score"].sum()) / episodes.height


def _lower(episodes: pl.DataFrame) -> float | None:
    return estimate_means(episodes, "score").row(0, named=True)["low"]


def _judge_rows(what: str, rows: pl.DataFrame, threshold: Threshold) -> tuple[float | None, Outcome]:
    """Judge the share of rows with a verdict, or of rows with an incident."""
    if threshold.measure is ThresholdMeasure.COVERAGE:
        share, name = rows.filter(~pl.col("failed")).height / rows.height, "have a verdict"
        holds = share >= threshold.limit
    elif "incidents" not in rows.columns or rows["incidents"].has_nulls():
        return None, Outcome(False, f"incidents of {what} are not recorded in every row")
    else:
        share, name = rows.filter(pl.col("incidents").list.len() > 0).height / rows.height, "have an incident"
        holds = share <= threshold.limit
    reason = f"{100 * share:.2f} % of {rows.height} rows of {what} {name}, limit {100 * threshold.limit:g} %"
    return share, Outcome(holds, reason)


def gates_table(outcomes: Sequence[Outcome]) -> Table:
    columns = (Column("gate", "Gate"), Column("reason", "Reason"))
    rows = tuple(("holds" if each.holds else "fails", each.reason) for each in outcomes)
    return Table("gates", "Gates", columns, rows)
