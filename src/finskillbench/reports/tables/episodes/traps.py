"""What skills protect against: traps that were avoided, and cases of which every part is right."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.inference.proportions import proportions
from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.common import every_subtask
from finskillbench.reports.tables.framed import CONDITION, HARNESS, MODEL, framed, of_contenders
from finskillbench.reports.tables.notes import notes

_GROUP = ("model", "harness", "condition")
_TRAPS = (
    "A trap is a mistake that a case invites; places are the traps and controls of all cases. Avoided: the answer is "
    "not that of somebody who made it; fallen: it is; the rest cannot be said from the answer."
)
_SIGNED = "Signed: every part of the case is right, so that a professional could put a name to it."


def traps_table(results: Results) -> Table | None:
    """How often each kind of trap was avoided, by model and condition; None where no row tells of any."""
    if "traps" not in results.rows.columns:
        return None
    told = of_contenders(results, every_subtask).rows.select(*_GROUP, "sub_task", "traps").explode("traps").drop_nulls()
    if told.is_empty():
        return None
    name, came_of = (pl.col("traps").str.split("=").list.get(place) for place in (0, -1))
    frame = (
        told.with_columns(kind=name.str.split("@").list.first(), came_of=came_of)
        .group_by(*_GROUP, "sub_task", "kind", maintain_order=True)
        .agg(
            places=pl.len(),
            avoided=(pl.col("came_of") == "avoided").mean(),
            fallen=(pl.col("came_of") == "fallen").mean(),
        )
        .sort(*_GROUP, "sub_task", "kind")
    )
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("sub_task", "Subtask"),
        Column("kind", "Trap"),
        Column("places", "Places", Kind.COUNT),
        Column("avoided", "Avoided", Kind.SHARE),
        Column("fallen", "Fallen", Kind.SHARE),
    )
    return framed("traps", "Traps avoided", frame, columns, (*notes(results, differences=False), _TRAPS))


def signed_table(results: Results) -> Table | None:
    """The share of cases that could be signed, by model and condition; None where no case has parts."""
    if "signed" not in results.rows.columns:
        return None
    rows = of_contenders(results, every_subtask).rows.filter(pl.col("signed").is_not_null())
    if rows.is_empty():
        return None
    frame = proportions(rows, "signed", [*_GROUP, "sub_task"])
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("sub_task", "Subtask"),
        Column("successes", "Signed", Kind.COUNT),
        Column("trials", "Of", Kind.COUNT),
        Column("share", "Share", Kind.SHARE, interval=True),
    )
    return framed("signed", "Cases signed", frame, columns, (*notes(results, differences=False), _SIGNED))
