"""Validity: the work behind subtasks, what is not covered, demands of the literature, saturation.

`templates/validity.toml` holds the statements, which docs/validity.md repeats.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl

from finskillbench.analysis.results import CURATED, Results
from finskillbench.publish.pack.chapters import captioned
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Kind, Table

NEAR_CEILING = 0.05
"""A model whose mean score is at most this far below the ceiling has reached it."""
_STATEMENTS = Path(__file__).with_name("templates") / "validity.toml"
_TITLES = {
    "work": ("Professional work and its subtasks", {"task": "Work", "subtasks": "Subtasks", "source": "Sources"}),
    "gap": ("What is not covered", {"text": "Not covered"}),
    "demand": (
        "Demands of the literature on benchmarks",
        {"source": "Source", "text": "Demand", "state": "State", "evidence": "Evidence, or what is missing"},
    ),
}


def statement_tables() -> tuple[Table, ...]:
    """Return the tables of work, gaps and demands."""
    statements = tomllib.loads(_STATEMENTS.read_text(encoding="utf-8"))
    return tuple(
        Table(
            name,
            title,
            tuple(Column(key, text) for key, text in columns.items()),
            tuple(tuple(entry[key] for key in columns) for entry in statements[name]),
        )
        for name, (title, columns) in _TITLES.items()
    )


def saturation_table(results: Results) -> Table:
    """Tabulate by subtask how many models have reached the ceiling.

    The ceiling is the mean score of the reference program with curated skills, 1 where it was not run. Models count
    under their best condition.
    """
    scores = common.with_headline(results.episodes).group_by("sub_task", "model", "condition").agg(pl.mean("score"))
    program = (pl.col("model") == common.REFERENCE_PROGRAM) & (pl.col("condition") == CURATED)
    ceilings = dict(scores.filter(program).select("sub_task", "score").iter_rows())
    best = scores.filter(pl.col("model").is_in(common.hosted_models(results))).group_by("sub_task", "model").max()
    rows: list[tuple[Cell, ...]] = []
    for name in [*common.order_of(results, "sub_task"), *common.headlines(results)]:
        means = best.filter(pl.col("sub_task") == name)["score"].to_list()
        ceiling = ceilings.get(name, 1.0)
        if means:
            reached = sum(mean >= ceiling - NEAR_CEILING for mean in means)
            rows.append((name, len(means), max(means), ceiling, reached / len(means)))
    columns = (
        Column("sub_task", "Subtask"),
        Column("models", "Models", Kind.COUNT),
        Column("best", "Best model", Kind.SCORE),
        Column("ceiling", "Ceiling", Kind.SCORE),
        Column("saturated", "Share of models at the ceiling", Kind.SHARE),
    )
    return Table("saturation", "", columns, tuple(rows))


def validity_tables(results: Results) -> tuple[Table, ...]:
    """Return the tables on validity for the appendix: the saturation of these runs, then the statements."""
    saturation = captioned(
        saturation_table(results),
        "Saturation",
        "mean scores of each model under its best condition, repeats averaged",
        f"At the ceiling: at most {NEAR_CEILING} below the reference program with curated skills, 1 where it was not "
        "run. A subtask on which most models are there no longer separates them.",
    )
    return (*saturation, *statement_tables())
