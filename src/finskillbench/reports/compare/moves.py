"""Tables of changes between two sides: scores, resources per episode, and score within a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import TOKEN_BUDGETS, SpendingMeasure, spending
from finskillbench.analysis.results import Comparison, Results
from finskillbench.analysis.savings import NEARLY, savings
from finskillbench.reports.compare.noise import make_group, noise_tables
from finskillbench.reports.compare.paired import LEAST_CHANGE, RESOURCES, TITLES, Paired
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of


class Cut(StrEnum):
    """Breakdown of table lines, in addition to model, harness and condition."""

    HEADLINE = "headline"
    DOMAIN = "domain"
    SUBTASK = "subtask"
    DIFFICULTY = "difficulty"
    MODEL = "model"
    CONDITION = "condition"


DEFAULT_CUTS = (Cut.HEADLINE, Cut.DOMAIN, Cut.SUBTASK)
_PARTS = {Cut.DOMAIN: "domain", Cut.SUBTASK: "sub_task", Cut.DIFFICULTY: "difficulty"}
_SCORES = (
    *columns_of(Kind.COUNT, pairs="Pairs", only_a="Only A", only_b="Only B"),
    *columns_of(Kind.SCORE, a="A", b="B"),
    Column("difference", "B - A", Kind.DIFFERENCE, interval=True),
    *columns_of(Kind.COUNT, better="Better", worse="Worse"),
)
_AMOUNTS = (
    Column("pairs", "Pairs", Kind.COUNT),
    *columns_of(Kind.NUMBER, a="A", b="B"),
    Column("difference", "B - A", Kind.NUMBER, interval=True),
    Column("ratio", "B / A", Kind.NUMBER, digits=3),
)


def score_changes_table(paired: Paired, cuts: Sequence[Cut] = DEFAULT_CUTS) -> Table:
    """Tabulate scores of both sides and their difference with its interval, one line per part and group.

    Domains, difficulties, models and conditions cover headline subtasks only; each subtask has its own line.
    """
    rows: list[tuple[Cell, ...]] = []
    for cut in cuts:
        frame, alone = (_of(cut, each) for each in (paired.frame, paired.alone))
        by = _by(cut, paired)
        for line in _scores(frame, alone, by):
            group = [line.get(name) for name in paired.shown]
            name = "all" if cut not in _PARTS else line[_PARTS[cut]]
            difference = Estimate(line["mean"], line["low"], line["high"])
            counts = [line[each.name] for each in _SCORES if each.name != "difference"]
            rows.append((cut.value, name, *group, *counts[:5], difference, *counts[5:]))
    columns = (Column("by", "By"), Column("part", "Part"), *key_columns(paired), *_SCORES)
    a, b = paired.sides.a.name, paired.sides.b.name
    common = [f"{TITLES[name]}: {value}." for name, value in paired.common.items() if name != "harness"]
    notes = (*common, *paired.sides.notes, _INTERVALS)
    return Table("moved", f"Scores on the same episodes: A is {a}, B is {b}", columns, tuple(rows), notes)


_INTERVALS = (
    "Better and worse count the episodes whose score changed. Intervals are 95 %, clustered by what episodes share "
    "(market date, mandate, company); there is none with too few clusters or changes."
)


def readable_table(table: Table) -> Table:
    """Drop lines without changes and columns without information.

    Notes state the number of dropped lines and the common model or condition.
    """
    changes = [i for i, column in enumerate(table.columns) if column.name in ("difference", "times")]
    counts = [i for i, column in enumerate(table.columns) if column.name in ("better", "worse")]
    if not changes:
        return table
    rows = [row for row in table.rows if any(row[i] for i in counts) or not all(_is_nothing(row[i]) for i in changes)]
    remarks: list[str] = []
    if left := len(table.rows) - len(rows):
        remarks.append(f"{left} of {len(table.rows)} lines without changes are omitted (--all shows them).")
    kept: list[int] = []
    for i, column in enumerate(table.columns):
        values = {row[i] for row in rows}
        if column.name in TITLES and len(values) == 1:
            remarks.append(f"{column.title}: {values.pop()}.")
        elif column.name not in ("only_a", "only_b") or values - {0}:
            kept.append(i)
    columns = tuple(table.columns[i] for i in kept)
    cells = tuple(tuple(row[i] for i in kept) for row in rows)
    return Table(table.name, table.title, columns, cells, (*remarks, *table.notes))


def key_columns(paired: Paired) -> tuple[Column, ...]:
    return tuple(Column(name, TITLES[name]) for name in paired.shown)


def _is_nothing(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, Estimate) and abs(cell.value) <= LEAST_CHANGE)


def resource_changes_table(paired: Paired) -> Table:
    """Tabulate mean resources per episode on each side, and their difference with its interval.

    Resources that are zero on both sides, or unknown, have no line.
    """
    rows: list[tuple[Cell, ...]] = []
    unknown: list[str] = []
    for name, (title, scale) in RESOURCES.items():
        frame = paired.frame.with_columns(a=pl.col(f"a_{name}") * scale, b=pl.col(f"b_{name}") * scale)
        known = frame.filter(pl.col("a").is_not_null() & pl.col("b").is_not_null())
        if not known.select(pl.any_horizontal("a", "b").any()).item():
            continue
        if missing := frame.height - known.height:
            unknown.append(f"{title} {missing:,} of {frame.height:,}")
        known = known.with_columns(change=pl.col("b") - pl.col("a"))
        for line in _grouped(known, paired.shown, "change", a=pl.col("a").mean(), b=pl.col("b").mean()):
            group = [line[key] for key in paired.shown]
            change = Estimate(line["mean"], line["low"], line["high"])
            ratio = line["b"] / line["a"] if line["a"] else None
            rows.append((title, *group, line["pairs"], line["a"], line["b"], change, ratio))
    columns = (Column("what", "Mean per episode"), *key_columns(paired), *_AMOUNTS)
    notes = [f"Pairs omitted because one side is unknown: {', '.join(unknown)}."] if unknown else []
    return Table("took", "Resources per episode", columns, tuple(rows), tuple(notes))


def noise_of(paired: Paired, gain: float | None = None) -> list[Table]:
    """Tabulate the noise of headline episodes by group, and with a gain the sample sizes."""
    frame = paired.frame.filter("headline")
    sides = paired.sides
    rows = (sides.a.results.rows, sides.b.results.rows)
    parts = frame.partition_by(paired.shown, as_dict=True) if paired.shown else {(): frame}
    groups = [make_group(tuple(map(str, keys)), part, *rows) for keys, part in parts.items()]
    return noise_tables(groups, (sides.a.name, sides.b.name), key_columns(paired), gain)


def _of(cut: Cut, frame: pl.DataFrame) -> pl.DataFrame:
    if cut is Cut.SUBTASK:
        return frame
    frame = frame.filter("headline")
    if cut is Cut.CONDITION and not frame["program"].all():
        return frame.filter(~pl.col("program"))  # means of models and programs together are meaningless
    return frame


def _by(cut: Cut, paired: Paired) -> list[str]:
    if cut in (Cut.MODEL, Cut.CONDITION):
        return [name for name in paired.shown if name == cut.value]
    return [*paired.shown, _PARTS[cut]] if cut in _PARTS else paired.shown


def _scores(frame: pl.DataFrame, alone: pl.DataFrame, by: list[str]) -> Iterator[dict[str, Any]]:
    change = pl.col("difference")
    only = {(*each[by].row(0),): each["side"] for _, each in alone.group_by(by)} if by else {(): alone["side"]}
    means = {"a": pl.mean("reference"), "b": pl.mean("treated")}
    counts = {"better": (change > LEAST_CHANGE).sum(), "worse": (change < -LEAST_CHANGE).sum()}
    for line in _grouped(frame, by, "difference", **means, **counts):
        sides = only.get(tuple(line[name] for name in by), pl.Series(dtype=pl.String))
        yield {**line, "only_a": (sides == "A").sum(), "only_b": (sides == "B").sum()}


def _grouped(frame: pl.DataFrame, by: list[str], value: str, **sums: pl.Expr) -> Iterator[dict[str, Any]]:
    """Estimate a column's mean for each group of a frame, and add further aggregates."""
    if frame.is_empty():
        return
    keys = by or ["_"]
    frame = frame.with_columns(_=pl.lit(0))
    sums_by_key = frame.group_by(keys, maintain_order=True).agg(**sums)
    estimates = estimate_means(frame, value, keys)
    yield from estimates.join(sums_by_key, on=keys, maintain_order="left").iter_rows(named=True)


_GROUP = "\n"
"""Separator of group keys in the model column."""


def within_budget_table(paired: Paired) -> Table:
    """Tabulate mean scores within token budgets; an episode over budget counts as 0."""
    both = spending(_as_conditions(paired), SpendingMeasure.TOKENS)
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
        for line in estimate_means(joined, by=["model"]).join(means, on="model").iter_rows(named=True):
            change = Estimate(line["mean"], line["low"], line["high"])
            rows.append((int(budget), *_keys(line["model"], paired), line["pairs"], line["A"], line["B"], change))
    columns = (
        Column("budget", "Output tokens", Kind.COUNT),
        *key_columns(paired),
        Column("pairs", "Pairs", Kind.COUNT),
        *columns_of(Kind.SCORE, a="A", b="B"),
        Column("difference", "B - A", Kind.DIFFERENCE, interval=True),
    )
    footnote = (
        "An answer over budget counts as 0; output tokens include reasoning, and episodes are those of the headline."
    )
    return Table("within", "Score within a budget of output tokens", columns, tuple(rows), (footnote,))


def cheaper_table(paired: Paired) -> Table:
    """Tabulate the ratio of output tokens to reach nine tenths of A's final score."""
    columns = (
        *key_columns(paired),
        Column("target", "Score", Kind.SCORE),
        *columns_of(Kind.COUNT, a="Tokens of A", b="Tokens of B"),
        Column("times", "Times cheaper", Kind.NUMBER, interval=True),
    )
    footnote = f"The score is {NEARLY:.0%} of A's final score; above 1 B needs fewer tokens for it, below 1 more."
    return Table("cheaper", "Output tokens for the same score", columns, tuple(_savings(paired)), (footnote,))


def _savings(paired: Paired) -> Iterator[tuple[Cell, ...]]:
    for line in savings(_as_conditions(paired), Comparison("B", "A"), SpendingMeasure.TOKENS).iter_rows(named=True):
        times = None if line["times"] is None else Estimate(line["times"], line["low"], line["high"])
        budgets = (_whole(line["reference_budget"]), _whole(line["treated_budget"]))
        yield (*_keys(line["model"], paired), line["target"], *budgets, times)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _as_conditions(paired: Paired) -> Results:
    """Return headline pairs as two conditions A and B, with each group of pairs as a model."""
    keys = [*paired.sides.keys, "episode"]
    pairs = paired.frame.filter("headline").select(keys)
    group = pl.concat_str(paired.shown, separator=_GROUP) if paired.shown else pl.lit("")
    wanted = ("sub_task", "domain", "cluster", "program", "headline", "score", SpendingMeasure.TOKENS.value)
    tables: list[pl.DataFrame] = []
    for name, side in (("A", paired.sides.a), ("B", paired.sides.b)):
        rows = side.results.rows.join(pairs, on=keys, how="semi", maintain_order="left")
        if SpendingMeasure.TOKENS.value not in rows.columns:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Int64).alias(SpendingMeasure.TOKENS.value))
        names = (group.alias("model"), pl.lit("").alias("harness"), pl.lit(name).alias("condition"))
        tables.append(rows.select(*names, "episode", *wanted))
    return replace(paired.sides.b.results, rows=pl.concat(tables), conditions=("A", "B"))


def _keys(group: str, paired: Paired) -> list[str]:
    return group.split(_GROUP) if paired.shown else []
