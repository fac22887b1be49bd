"""How episodes came out: status, incidents and the causes of failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from finskillbench.analysis.results import distinct
from finskillbench.episode import Status
from finskillbench.reports.figures.bars import draw_shares
from finskillbench.reports.figures.base import Figure
from finskillbench.reports.page.view import View
from finskillbench.reports.page.words import slug
from finskillbench.reports.tables.base import Cell, Column, Kind, Table

_MOST = 7
"""Kinds that have a colour of their own; the rest are counted together."""
_NONE = "none"


def outcome_figures(view: View, causes: pl.DataFrame) -> Iterator[Figure]:
    """Status and incidents; causes of failures where some were found (columns entry, condition, cause)."""
    rows = view.rows.filter(pl.col("entry").is_in(view.entries))
    order = [each.value for each in Status]
    yield _bars(view, rows.select("entry", "condition", kind="status"), order, "status", "Status of episodes")
    if "incidents" in rows.columns:
        met = rows.select("entry", "condition", kind=pl.col("incidents").list.first().fill_null(_NONE))
        if met["kind"].n_unique() > 1:
            counts = met.filter(pl.col("kind") != _NONE)["kind"].value_counts(sort=True)
            yield _bars(
                view,
                met,
                [_NONE, *counts["kind"]],
                "incidents",
                "What went wrong on the way",
                "A row counts once, by its first incident; the list of episodes has all.",
            )
    found = causes.filter(pl.col("entry").is_in(view.entries)).select("entry", "condition", kind="cause")
    if not found.is_empty():
        order = found["kind"].value_counts(sort=True)["kind"].to_list()
        yield _bars(view, found, order, "causes", "Why episodes failed", "Causes are found by rule from trajectories.")


def _bars(view: View, rows: pl.DataFrame, order: Sequence[str], name: str, title: str, note: str = "") -> Figure:
    kinds = [kind for kind in order if kind in set(distinct(rows, "kind"))]
    drawn, rest = (kinds, []) if len(kinds) <= _MOST + 1 else (kinds[:_MOST], kinds[_MOST:])
    counted = rows.group_by("entry", "condition", "kind").len()
    counts = {(entry, condition, kind): number for entry, condition, kind, number in counted.iter_rows()}
    pairs = [
        (entry, condition)
        for entry in view.entries
        for condition in view.series
        if any((entry, condition, kind) in counts for kind in kinds)
    ]
    bars = [
        (
            f"{entry} · {condition}",
            [
                *(counts.get((entry, condition, kind), 0) for kind in drawn),
                *([sum(counts.get((entry, condition, kind), 0) for kind in rest)] if rest else []),
            ],
        )
        for entry, condition in pairs
        if entry in view.drawn
    ]
    series = [*drawn, *(["other"] if rest else [])]
    columns = (
        Column("model", "Model"),
        Column("condition", "Condition"),
        *(Column(slug(kind), kind, Kind.COUNT) for kind in kinds),
    )
    cells: list[tuple[Cell, ...]] = [
        (entry, condition, *(counts.get((entry, condition, kind), 0) for kind in kinds)) for entry, condition in pairs
    ]
    notes = [view.population(view.rows, view.entries), note, *view.drawn_note]
    table = Table(name, title, columns, tuple(cells), tuple(filter(None, notes)))
    whole = rows["kind"].value_counts(sort=True)
    parts = [f"{kind} {number:,}" for kind, number in whole.iter_rows()]
    words = f"Stacked bars for {len(bars)} pairs of model and condition. In all: {', '.join(parts)}."
    return Figure(table, words, partial(draw_shares, bars, series, "rows"))
