"""Tables of item statistics and of scores estimated from a short form."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.results import LEAST, Results, collect
from finskillbench.analysis.short_form import OVERALL, ShortForm, item_statistics, population_of, short_form_estimates
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of


def items_table(results: Results) -> Table:
    """Tabulate the item statistics of each episode of the headline.

    Raises `InputError` if no language model has a complete run.
    """
    found = population_of(results)
    count = len(found.scores)
    columns = (
        *columns_of(Kind.TEXT, sub_task="Subtask", episode="Episode"),
        *(Column("models", "Models", Kind.COUNT), Column("difficulty", "Difficulty", Kind.SCORE)),
        *columns_of(Kind.NUMBER, discrimination="Discrimination", redundancy="Redundancy"),
        *columns_of(Kind.TEXT, redundant_with="With", flag="Flag"),
    )
    error = f", whose standard error is about {(count - 2) ** -0.5:.2f}" if count > 2 else ""
    note = (
        f"{count} models with complete runs, mean over {', '.join(found.conditions)}. Difficulty: mean score. "
        "Discrimination: correlation of the score with the mean of all other episodes. Redundancy: largest correlation "
        f"with another episode of the subtask. Correlations over models{error}."
    )
    notes = (note, *common.notes(results, differences=False))
    return common.table_from_frame("items", "Item statistics", item_statistics(found), columns, notes)


def short_form_table(rows: pl.DataFrame, form: ShortForm) -> Table:
    """Tabulate scores estimated from the rows of a short form; no interval below 95 % of its episodes."""
    estimates: list[tuple[Cell, ...]] = []
    for *key, episodes, estimate in short_form_estimates(collect(rows, form.profile), form).iter_rows():
        wanted = len(form.weights) * (len(form.conditions) if key[-1] == OVERALL else 1)
        known = form.accuracy.get(key[-1]) if episodes >= LEAST * wanted else None
        inside = known is not None and known.lowest_score <= estimate <= known.highest_score
        ends = (max(0.0, estimate - known.half_width), min(1.0, estimate + known.half_width)) if known else ()
        remark = "outside the form's models" if key[-1] in form.accuracy else "a condition without short form"
        remark = f"{episodes} of {wanted} episodes" if episodes < LEAST * wanted else remark
        estimates.append((*key, episodes, Estimate(estimate, *ends), "" if inside else remark))
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("estimate", "Estimate", Kind.SCORE, interval=True),
        Column("remarks", "Remarks"),
    )
    note = (
        f"Short form of {len(form.weights)} episodes, chosen from {form.models} models, profile {form.profile}. "
        f"{OVERALL}: mean over {', '.join(form.conditions)}. Subtasks weigh alike. Intervals have the size of the "
        "errors of models left out of the choice. Outside the scores of those models, and under other conditions, the "
        "error is unknown: run all episodes."
    )
    return Table("short_form", "Scores estimated from a short form", columns, tuple(estimates), (note,))
