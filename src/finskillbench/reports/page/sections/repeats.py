"""What repeats of an episode tell: the chance that one, and that every one, of k repeats has a full score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.repeats import passes
from finskillbench.analysis.results import EPISODE
from finskillbench.reports.figures.base import Figure
from finskillbench.reports.figures.curves import Curve, draw_panels
from finskillbench.reports.page.view import View
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table

_MOST = 8
_COLUMNS = (
    Column("model", "Model"),
    Column("condition", "Condition"),
    Column("k", "k", Kind.COUNT),
    Column("pass_hat", "pass^k: all k", Kind.SCORE, interval=True),
    Column("pass_at", "pass@k: at least one", Kind.SCORE, interval=True),
)


def repeat_figures(view: View) -> Iterator[Figure]:
    """One figure where every model and condition ran some episode at least twice; else none."""
    runs = view.rows.group_by(EPISODE).len().group_by("model", "condition").agg(pl.col("len").max())
    most = min([*runs["len"].to_list(), _MOST])
    if most < 2:
        return
    found: dict[tuple[str, str, int], list[Estimate | None]] = {}
    entries = view.rows.select("model", "harness", "entry").unique()
    for k in range(1, most + 1):
        chances = passes(view.results, k).filter("headline").join(entries, on=["model", "harness"], how="left")
        for value in ("pass_hat", "pass_at"):
            lines = estimate(chances, value, ["entry", "condition"], bounds=(0.0, 1.0))
            for entry, condition, mean, low, high in lines.select(
                "entry", "condition", "mean", "low", "high"
            ).iter_rows():
                cells = found.setdefault((entry, condition, k), [])
                cells.append(None if mean is None else Estimate(mean, low, high))
    rows: list[tuple[Cell, ...]] = [
        (*key, *cells) for key, cells in sorted(found.items(), key=lambda one: one[0]) if key[0] in view.entries
    ]
    panels: list[tuple[str, Sequence[Curve]]] = []
    for entry in view.drawn:
        curves: list[Curve] = []
        for series, condition in enumerate(view.series):
            known = [(k, found.get((entry, condition, k), [None])[0]) for k in range(1, most + 1)]
            line = [(k, each) for k, each in known if each is not None]
            points = [(float(k), each.value) for k, each in line]
            if points:
                curves.append(Curve(series, points, [each.low for _, each in line], [each.high for _, each in line]))
        panels.append((entry, curves))
    notes = (view.population(view.rows.filter("headline"), view.entries), *view.drawn_note)
    table = Table("pass_k", "pass^k: all of k repeats have a full score", _COLUMNS, tuple(rows), notes)
    words = (
        f"A panel for each model ({len(panels)}): the chance that all of k repeats are right, for k from 1 to {most}."
    )
    yield Figure(table, words, partial(draw_panels, panels, view.series, "k, repeats of an episode"))
