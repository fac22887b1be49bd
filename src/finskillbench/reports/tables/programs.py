"""Ceiling, yardstick and floors: what baseline programs score where models are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.results import CURATED, REFERENCE, Results
from finskillbench.reports.tables.base import Column, Kind
from finskillbench.reports.tables.common import Group, Scope, headline_only, macro_means, means


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
