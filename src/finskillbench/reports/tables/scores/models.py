"""Table 5 of the paper: the models, unweighted over subtasks, then over conditions; and how their episodes ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from finskillbench.analysis.intervals import Weighting
from finskillbench.analysis.results import Results
from finskillbench.episode import Status
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import (
    Group,
    Mean,
    compared,
    comparison_columns,
    condition_columns,
    contenders,
    falling,
    gaps,
    macro_means,
    means,
)
from finskillbench.reports.tables.notes import notes
from finskillbench.reports.tables.programs import mark_means, marks_run
from finskillbench.reports.tables.scores.grouped import REMARKS, remarks

_MOSTLY = 0.5
"""A way to end that at least half of a model's rows share is named."""
_WEIGHED = (
    "Means weigh every subtask alike, then every condition. Answered: rows whose submission was scored; a model that "
    "submits nothing that can be read is not one that answers wrongly."
)


def models_table(results: Results) -> Table:
    """One row for each model, the one that gains most first, then the floors and the ceiling of the programs."""
    episodes = compared(results, results.episodes)
    mean = macro_means(episodes, ("model", "condition"))
    changes = [gaps(results, each, ("model",), weighting=Weighting.MACRO) for each in results.comparisons]
    planned = compared(results, results.rows)
    answered, mostly = endings(planned)
    said = remarks(results, planned, "model", means(episodes, ("model", "condition")))
    rows: list[tuple[Cell, ...]] = [
        (
            model,
            _overall(results, model, mean),
            *_of_conditions(results, model, mean),
            *(each[model,].estimate if (model,) in each else None for each in changes),
            answered.get(model),
            mostly.get(model),
            *([said.get(model, "")] if said else []),
        )
        for model in contenders(results)
    ]
    if changes:
        first = 2 + len(results.conditions)
        rows.sort(key=lambda row: falling(row[first]))
    columns = (
        Column("model", "Model"),
        Column("overall", "Overall", Kind.SCORE),
        *condition_columns(results),
        *comparison_columns(results),
        Column("answered", "Answered", Kind.SHARE),
        Column("mostly", "Otherwise mostly"),
        *([REMARKS] if said else []),
    )
    rows += mark_rows(results, columns, macro=True)
    return Table("models", "Mean score by model", columns, tuple(rows), (*notes(results), _WEIGHED))


def endings(rows: pl.DataFrame) -> tuple[dict[str, float], dict[str, str]]:
    """By model, the share of its rows that were scored, and the other ending that at least half of its rows have."""
    shares = (
        rows.group_by("model", "status", maintain_order=True)
        .agg(count=pl.len())
        .with_columns(share=pl.col("count") / pl.col("count").sum().over("model"))
    )
    scored, mostly = dict.fromkeys(shares["model"].to_list(), 0.0), dict[str, str]()
    for model, status, _, share in shares.iter_rows():
        if status == Status.SCORED:
            scored[model] = share
        elif share >= _MOSTLY:
            mostly[model] = f"{status} {100 * share:.0f} %"
    return scored, mostly


def _of_conditions(results: Results, model: str, mean: Mapping[Group, Mean]) -> list[float | None]:
    found = [mean.get((model, condition)) for condition in results.conditions]
    return [each.value if each else None for each in found]


def _overall(results: Results, model: str, mean: Mapping[Group, Mean]) -> float | None:
    """The mean of the conditions; None where one of them has no score."""
    found = [each for each in _of_conditions(results, model, mean) if each is not None]
    return math.fsum(found) / len(found) if len(found) == len(results.conditions) else None


def mark_rows(results: Results, columns: Sequence[Column], *, macro: bool = False) -> list[tuple[Cell, ...]]:
    """The programs beside language models, each under the condition that it stands for; absent in other columns."""
    if results.rows["program"].all():
        return []
    rows: list[tuple[Cell, ...]] = []
    for mark in marks_run(results):
        value = mark_means(results, mark, (), macro=macro).get(())
        told: dict[str, Cell] = {"model": f"{mark.title.lower()} ({mark.model})", f"mean_{mark.condition}": value}
        rows.append(tuple(told.get(column.name) for column in columns))
    return rows
