"""What each side reaches within a budget of output tokens, and how many times cheaper B reaches what A does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.repeats import TOKEN_BUDGETS, Measure, spending
from finskillbench.analysis.results import Comparison, Results
from finskillbench.analysis.savings import NEARLY, savings
from finskillbench.reports.compare.moves import key_columns
from finskillbench.reports.compare.paired import Paired
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table

_GROUP = "\n"
"""Between the keys of a group, in the place of the model's name."""


def within_table(paired: Paired) -> Table:
    """The mean score where the submission came within so many output tokens, and 0 where it did not, on both sides."""
    both = spending(_as_conditions(paired), Measure.TOKENS)
    rows: list[tuple[Cell, ...]] = []
    for budget in TOKEN_BUDGETS:
        reached = pl.when(pl.col("spent") <= budget).then("score").otherwise(0.0)
        sides = [
            both.filter(pl.col("condition") == side)
            .group_by("model", "episode", maintain_order=True)
            .agg(reached.mean().alias(side), pl.col("sub_task").first(), pl.col("cluster").first())
            for side in ("A", "B")
        ]
        joined = sides[0].join(sides[1].select("model", "episode", "B"), on=["model", "episode"], maintain_order="left")
        if joined.is_empty():
            continue
        joined = joined.with_columns(difference=pl.col("B") - pl.col("A"))
        means = joined.group_by("model", maintain_order=True).agg(pl.col("A", "B").mean())
        for line in estimate(joined, by=["model"]).join(means, on="model").iter_rows(named=True):
            change = Estimate(line["mean"], line["low"], line["high"])
            rows.append((int(budget), *_keys(line["model"], paired), line["pairs"], line["A"], line["B"], change))
    columns = (
        Column("budget", "Output tokens", Kind.COUNT),
        *key_columns(paired),
        Column("pairs", "Pairs", Kind.COUNT),
        Column("a", "A", Kind.SCORE),
        Column("b", "B", Kind.SCORE),
        Column("difference", "B - A", Kind.DIFFERENCE, interval=True),
    )
    note = "An answer that took more counts 0; output tokens are with reasoning, and episodes those of the headline."
    return Table("within", "Score within a budget of output tokens", columns, tuple(rows), (note,))


def cheaper_table(paired: Paired) -> Table:
    """How many times fewer output tokens B needs for nine tenths of what A reaches in the end."""
    columns = (
        *key_columns(paired),
        Column("target", "Score", Kind.SCORE),
        Column("a", "Tokens of A", Kind.COUNT),
        Column("b", "Tokens of B", Kind.COUNT),
        Column("times", "Times cheaper", Kind.NUMBER, interval=True),
    )
    note = f"The score is {NEARLY:.0%} of what A reaches in the end; above 1 B needs fewer tokens for it, below 1 more."
    return Table("cheaper", "Output tokens for the same score", columns, tuple(_savings(paired)), (note,))


def _savings(paired: Paired) -> Iterator[tuple[Cell, ...]]:
    for line in savings(_as_conditions(paired), Comparison("B", "A"), Measure.TOKENS).iter_rows(named=True):
        times = None if line["times"] is None else Estimate(line["times"], line["low"], line["high"])
        budgets = (_whole(line["reference_budget"]), _whole(line["treated_budget"]))
        yield (*_keys(line["model"], paired), line["target"], *budgets, times)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _as_conditions(paired: Paired) -> Results:
    """The rows of the headline's pairs as if the sides were two conditions, and each group of pairs a model."""
    keys = [*paired.sides.keys, "episode"]
    pairs = paired.frame.filter("headline").select(keys)
    group = pl.concat_str(paired.shown, separator=_GROUP) if paired.shown else pl.lit("")
    wanted = ("sub_task", "domain", "cluster", "program", "headline", "score", Measure.TOKENS.value)
    tables: list[pl.DataFrame] = []
    for name, side in (("A", paired.sides.a), ("B", paired.sides.b)):
        rows = side.results.rows.join(pairs, on=keys, how="semi", maintain_order="left")
        if Measure.TOKENS.value not in rows.columns:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Int64).alias(Measure.TOKENS.value))
        told = rows.select(
            group.alias("model"), pl.lit("").alias("harness"), pl.lit(name).alias("condition"), "episode", *wanted
        )
        tables.append(told)
    return replace(paired.sides.b.results, rows=pl.concat(tables), conditions=("A", "B"))


def _keys(group: str, paired: Paired) -> list[str]:
    return group.split(_GROUP) if paired.shown else []
