"""The episodes that both sides have a score for: scores, and what they took."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from finskillbench.analysis.results import EPISODE, distinct
from finskillbench.errors import InputError
from finskillbench.reports.compare.sides import DIMENSIONS, Side, Sides

RESOURCES = (
    "turns",
    "tool_calls",
    "total_input_tokens",
    "total_output_tokens",
    "total_reasoning_tokens",
    "latency_seconds",
    "cost_usd",
)
"""Columns of rows that say what an episode took; rows of other programs may lack some."""
LEAST_CHANGE = 1e-9
"""A score that moves by less has not moved."""


@dataclass(frozen=True)
class Paired:
    """Two sides on the same episodes.

    `frame` has a line for each pair: the keys of `Sides.keys`, `episode`, `sub_task`, `domain`, `difficulty`,
    `cluster`, `headline` and `program`; `reference` (A), `treated` (B) and `difference` (B - A), means over repeats;
    and each of `RESOURCES` as `a_NAME` and `b_NAME`, null where it is not known.
    `alone` has the episodes that only one side has a score for, with `side` "A" or "B".
    """

    sides: Sides
    frame: pl.DataFrame
    alone: pl.DataFrame

    @cached_property
    def shown(self) -> list[str]:
        """The keys in which groups of pairs differ, and by which lines are told apart."""
        return [name for name in self.sides.keys if self.frame[name].n_unique() > 1]

    @cached_property
    def common(self) -> dict[str, str]:
        """The keys that all pairs have in common, with their value."""
        return {name: self.frame[name][0] for name in self.sides.keys if name not in self.shown}


def make_pairs(sides: Sides) -> Paired:
    """Pair two sides.

    Raises
    ------
    InputError : no episode has a score on both.
    """
    keys = [*sides.keys, "episode"]
    a, b = _episodes(sides.a, "a"), _episodes(sides.b, "b")
    own = [name for name in (*EPISODE, "program") if name not in keys]
    paired = (
        b.rename({"score": "treated", "program": "b_program"})
        .drop([name for name in own if name != "program"])
        .join(
            a.select(*keys, "program", *_resources("a"), reference="score"),
            on=keys,
            how="inner",
            maintain_order="left",
        )
        .with_columns(
            program=pl.col("program") & pl.col("b_program"), difference=pl.col("treated") - pl.col("reference")
        )
        .drop("b_program")
    )
    if paired.is_empty():
        raise InputError(_why_none(sides))
    described = ("domain", "sub_task", "difficulty", "cluster", "program", "headline")
    alone = [
        each.join(other, on=keys, how="anti").select(*keys, *described, side=pl.lit(side))
        for side, each, other in (("A", a, b), ("B", b, a))
    ]
    return Paired(sides, paired, pl.concat(alone))


def _episodes(side: Side, mark: str) -> pl.DataFrame:
    """The episodes of a side with what each took, on average over its repeats that have a score."""
    rows = side.results.rows.filter(pl.col("score").is_not_null())
    absent = {name: pl.lit(None, dtype=pl.Float64) for name in RESOURCES if name not in rows.columns}
    took = (
        rows.with_columns(**absent)
        .group_by(EPISODE, maintain_order=True)
        .agg(
            pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).mean()).alias(f"{mark}_{name}")
            for name in RESOURCES
        )
    )
    return side.results.episodes.drop("repeats").join(took, on=list(EPISODE), how="left", maintain_order="left")


def _resources(mark: str) -> list[str]:
    return [f"{mark}_{name}" for name in RESOURCES]


def _why_none(sides: Sides) -> str:
    """The first thing that the sides have nothing of in common, and what to do about it."""
    a, b = sides.a.results.episodes, sides.b.results.episodes
    for side, episodes in (("A", a), ("B", b)):
        if episodes.is_empty():
            return f"no episode of {side} has a score; the command that started the run runs those in error again"
    for name in sides.keys:
        there = distinct(a, name), distinct(b, name)
        if not {*there[0]} & {*there[1]}:
            told = f"A has the {name} {', '.join(there[0])}, B {', '.join(there[1])}"
            remedy = f"; to compare these: --over {name} {there[0][0]!r} {there[1][0]!r}"
            return f"the sides have no {name} in common: {told}{remedy if name in DIMENSIONS else ''}"
    return "no episode has a score on both sides; run the same subtasks with the same --limit on both"
