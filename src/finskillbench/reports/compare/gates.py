"""Gates for continuous integration: a floor under a score, and no regression.

A gate vouches for what nobody has seen only where that cannot matter: it holds if it would still hold had every episode
that ended in an error scored 0, and none holds of a run that is not finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.results import CURATED, Results, distinct
from finskillbench.errors import InputError
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Column, Table

HEADLINE = "headline"


class Floor(NamedTuple):
    """The least mean score of the headline, of a domain or of a subtask; `condition` None takes the usual one."""

    part: str
    condition: str | None
    least: float


class Outcome(NamedTuple):
    """Whether a gate holds, and in one line why."""

    holds: bool
    told: str


def parse_floor(text: str) -> Floor:
    """A floor as it is written on a command line: `headline=0.6`, `risk_management@code_curated=0.5`.

    Raises
    ------
    InputError : it is not written so, or the number is no score.
    """
    name, equals, number = text.rpartition("=")
    part, _, condition = name.partition("@")
    try:
        least = float(number)
    except ValueError:
        least = -1.0
    if not (equals and part and 0.0 <= least <= 1.0):
        raise InputError(
            f"--fail-under {text}: write it as headline=0.6, with a domain or subtask as risk_management=0.6, "
            "and a condition behind an @; the number is a mean score from 0 to 1"
        )
    return Floor(part, condition or None, least)


def check_finished(runs: Iterable[RunRows]) -> list[Outcome]:
    """A gate that does not hold for each run that is not finished, since no gate can vouch for it."""
    return [
        Outcome(False, f"{run.path} is not finished: {run.missing} episodes have no row yet; resume the run")
        for run in runs
        if run.missing
    ]


def check_floors(results: Results, floors: Sequence[Floor]) -> list[Outcome]:
    """Hold the mean scores of every model against floors.

    A floor is under every language model; where only programs ran, under each of those.

    Raises
    ------
    InputError : a floor is under what was not run, or does not tell the condition.
    """
    rows = results.rows
    if not rows["program"].all():
        rows = rows.filter(~pl.col("program"))
    return [outcome for floor in floors for outcome in _check_floor(rows, floor)]


def _check_floor(rows: pl.DataFrame, floor: Floor) -> Iterator[Outcome]:
    condition = _condition(rows, floor)
    part = (
        pl.lit(value=True) if floor.part == HEADLINE else pl.any_horizontal(pl.col("domain", "sub_task") == floor.part)
    )
    counted = pl.col("sub_task") == floor.part if floor.part in distinct(rows, "sub_task") else pl.col("headline")
    rows = rows.filter(pl.col("condition") == condition)
    chosen = rows.filter(part & counted)
    if chosen.is_empty():
        there = ", ".join([HEADLINE, *distinct(rows, "domain"), *distinct(rows, "sub_task")])
        raise InputError(f"--fail-under {floor.part}: nothing of it was run under {condition}; there are {there}")
    episodes = chosen.group_by("model", "harness", "episode", maintain_order=True).agg(pl.col("score").mean())
    for (model, harness), each in episodes.group_by("model", "harness", maintain_order=True):
        by = (
            f"{model} under {condition}"
            if rows["harness"].n_unique() == 1
            else f"{model} in {harness} under {condition}"
        )
        yield _judge(f"{floor.part} of {by}", each["score"], floor.least)


def _condition(rows: pl.DataFrame, floor: Floor) -> str:
    """The condition that is named; else the only one, else the curated one, which is what a skill is offered by."""
    there = distinct(rows, "condition")
    if floor.condition is not None:
        if floor.condition not in there:
            raise InputError(f"--fail-under: nothing was run under {floor.condition!r}; there are {', '.join(there)}")
        return floor.condition
    if len(there) == 1:
        return there[0]
    if CURATED in there:
        return CURATED
    raise InputError(f"--fail-under {floor.part}: name one of {', '.join(there)} behind an @")


def _judge(what: str, scores: pl.Series, least: float) -> Outcome:
    known, absent = scores.drop_nulls(), scores.null_count()
    if known.is_empty():
        return Outcome(False, f"{what}: none of {absent} episodes has a score")
    mean = known.sum() / known.len()
    worst = known.sum() / scores.len()
    if mean < least:
        return Outcome(False, f"{what} is {mean:.4f}, below {least:g}")
    if worst < least:
        return Outcome(
            False,
            f"{what} is {mean:.4f}, but {absent} of {scores.len()} episodes have no score: with 0 for these it is "
            f"{worst:.4f}, below {least:g}",
        )
    return Outcome(True, f"{what} is {mean:.4f}, not below {least:g}")


def gates_table(outcomes: Sequence[Outcome]) -> Table:
    """What gates found."""
    columns = (Column("gate", "Gate"), Column("told", "Because"))
    return Table("gates", "Gates", columns, tuple(("holds" if each.holds else "fails", each.told) for each in outcomes))
