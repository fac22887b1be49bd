"""The episodes that both sides have a score for: scores, and what they took.

The flips: episodes whose score moved, each with the command that shows it.

Whether B is worse than A beyond chance, in the headline or in any subtask.

Each group and part is a hypothesis "B is not worse than A by more than the margin". Its p-value is two-sided, so that a
single one is rejected exactly where its 95 % interval lies below -margin: from t with the clustered standard error
where an interval can be said, else from the sign test over the clusters that moved. Holm's procedure holds the chance
that any is rejected by mistake to 5 %, however they depend on each other. A part in which no score moved cannot be
rejected and is no hypothesis (Tarone 1990).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl
from scipy.special import stdtr

from finskillbench.analysis.inference import Signs, cluster_signs, holm
from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.results import EPISODE, distinct
from finskillbench.domains.base import HEADLINE
from finskillbench.errors import InputError
from finskillbench.reports.compare.gates import Outcome
from finskillbench.reports.compare.sides import DIMENSIONS, Side, Sides
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.runs.plan.items import Item

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


_TITLES = {"model": "Model", "harness": "Harness", "condition": "Condition"}


@dataclass(frozen=True, slots=True)
class _Flip:
    """An episode whose score moved from `a` to `b`.

    `keys` are what tells its group from others (`Paired.shown`). `show_a` and `show_b` are the commands that show it on
    each side, of repeats the one that moved most; None where a run has no trajectories.
    """

    task_id: str
    sub_task: str
    keys: Mapping[str, str]
    a: float
    b: float
    show_a: str | None
    show_b: str | None

    @property
    def change(self) -> float:
        """How much, and which way."""
        return self.b - self.a


def find_flips(paired: Paired) -> list[_Flip]:
    """All flips, from what fell most to what rose most."""
    moved = paired.frame.filter(pl.col("difference").abs() > LEAST_CHANGE).sort(
        "difference", "sub_task", "episode", *paired.sides.keys
    )
    keys = [*paired.sides.keys, "episode"]
    a, b = paired.sides.a, paired.sides.b
    telling = [_telling(moved, side, keys, higher) for side, higher in ((a, True), (b, False))]
    return [
        _Flip(
            task_id=row_b["task_id"],
            sub_task=line["sub_task"],
            keys={name: line[name] for name in paired.shown},
            a=line["reference"],
            b=line["treated"],
            show_a=_command(paired.sides.runs, row_a),
            show_b=_command(paired.sides.runs, row_b),
        )
        for line, row_a, row_b in zip(moved.iter_rows(named=True), *telling, strict=True)
    ]


def _telling(moved: pl.DataFrame, side: Side, keys: list[str], high_where_fallen: bool) -> list[dict[str, Any]]:
    """The row of each flip on one side, of several repeats the one that moved most."""
    rows = side.results.rows.filter(pl.col("score").is_not_null())
    known = [*EPISODE, "task_id", "run", "run_idx", "entry_model", "entry_arguments", "score"]
    fallen = pl.col("difference") < 0
    towards = pl.when(fallen == high_where_fallen).then(-pl.col("score")).otherwise(pl.col("score"))
    joined = moved.with_row_index("_place").select("_place", *keys, "difference")
    return (
        joined.join(rows.select(known), on=keys, how="left")
        .sort("_place", towards, "run_idx")
        .unique("_place", keep="first", maintain_order=True)
        .to_dicts()
    )


def _command(runs: Mapping[str, RunRows], row: Mapping[str, Any]) -> str | None:
    """The command that shows the episode of a row; by its file where the model has several entries in the run."""
    run = runs[row["run"]]
    if not run.has_trajectories:
        return None
    item = Item(row["entry_model"], row["entry_arguments"], row["condition"], row["task_id"], row["run_idx"])
    if _has_entries(run, item.model) > 1:
        words = ("finskillbench", "show", str(run.path / item.trajectory))
    else:
        chosen = ("--model", item.model, "--condition", item.condition)
        repeat = ("--run-idx", str(item.run_idx)) if run.rows["run_idx"].max() else ()
        words = ("finskillbench", "show", str(run.path), item.task_id, *chosen, *repeat)
    return shlex.join(words)


def _has_entries(run: RunRows, model: str) -> int:
    return run.rows.filter(pl.col("model") == model)["arguments"].n_unique()


def flips_table(flips: list[_Flip]) -> Table:
    """The flips with their commands, as many as are given."""
    shown = list(flips[0].keys) if flips else []
    rows: list[tuple[Cell, ...]] = [
        (flip.sub_task, flip.task_id, *flip.keys.values(), flip.a, flip.b, flip.change, flip.show_a, flip.show_b)
        for flip in flips
    ]
    columns = (
        Column("sub_task", "Subtask"),
        Column("task_id", "Episode"),
        *(Column(name, _TITLES[name]) for name in shown),
        Column("a", "A", Kind.SCORE),
        Column("b", "B", Kind.SCORE),
        Column("change", "B - A", Kind.DIFFERENCE),
        Column("show_a", "Shown by (A)"),
        Column("show_b", "Shown by (B)"),
    )
    return Table("flips", "Episodes whose score moved, the worst first", columns, tuple(rows))


LEVEL = 0.05


class Hypothesis(NamedTuple):
    """One part of one group: the mean difference, its interval where one can be said, and the p-value against it."""

    part: str
    group: tuple[str, ...]
    mean: float
    low: float | None
    high: float | None
    p: float


class Rejected(NamedTuple):
    """A hypothesis that does not hold, with its p-value adjusted for all that were asked."""

    hypothesis: Hypothesis
    adjusted: float
    asked: int


def regressions(paired: Paired, margin: float = 0.0) -> list[Rejected]:
    """What fell by more than a margin beyond chance, the surest first.

    Parameters
    ----------
    margin : how much of a mean score may be lost, 0 or more.
    """
    return _rejected(list(_hypotheses(paired.frame, paired.shown, margin)))


def check_regression(paired: Paired, margin: float = 0.0) -> Outcome:
    """The gate: nothing regressed, not even had the episodes of B that ended in an error scored 0.

    Episodes of A that B was never asked for are told.
    """
    found = regressions(paired, margin)
    if found:
        first = found[0]
        more = f"; {len(found) - 1} more fell too" if len(found) > 1 else ""
        return Outcome(False, f"{_told(first, margin)}{more}")
    failed = _failed_in_b(paired)
    if failed.height:
        frame = pl.concat([paired.frame.select(failed.columns), failed])
        if worst := _rejected(list(_hypotheses(frame, paired.shown, margin))):
            return Outcome(
                False,
                f"{failed.height} episodes with a score in A ended in an error in B: with 0 for these, "
                f"{_told(worst[0], margin)}",
            )
    absent = _absent_in_b(paired)
    unseen = f"; {absent} of the {paired.sides.a.results.episodes.height} episodes of A are not in B" if absent else ""
    return Outcome(True, f"nothing fell by more than {margin:g} beyond chance{unseen}")


def _told(found: Rejected, margin: float) -> str:
    each = found.hypothesis
    where = f" ({', '.join(each.group)})" if each.group else ""
    interval = "" if each.low is None else f" [{each.low:+.3f}, {each.high:+.3f}]"
    limit = f", more than {margin:g}" if margin else ""
    p = "p < 0.0001" if found.adjusted < 1e-4 else f"p = {found.adjusted:.4f}"
    return f"{each.part}{where} fell by {-each.mean:.3f}{interval}{limit} ({p} by Holm over {found.asked})"


def _hypotheses(frame: pl.DataFrame, shown: list[str], margin: float) -> Iterator[Hypothesis]:
    moved = pl.col("difference").abs().max().over([*shown, "sub_task"]) > LEAST_CHANGE
    for part, of in ((HEADLINE, frame.filter("headline")), ("sub_task", frame)):
        if part == HEADLINE:
            by = shown
            chosen = of.filter((pl.col("difference").abs().max().over(by or pl.lit(0))) > LEAST_CHANGE)
        else:
            by = [*shown, "sub_task"]
            chosen = of.filter(moved)
        if chosen.is_empty():
            continue
        chosen = chosen.with_columns(_=pl.lit(0))
        keys = by or ["_"]
        signs = cluster_signs(chosen, keys, margin)
        for line in estimate(chosen, by=keys).iter_rows(named=True):
            key = tuple(line[name] for name in keys)
            p = _p(line["mean"], line["error"], line["freedom"], signs[key], margin)
            group = tuple(line[name] for name in shown)
            yield Hypothesis(line.get("sub_task", part), group, line["mean"], line["low"], line["high"], p)


def _p(mean: float, error: float | None, freedom: float | None, signs: Signs, margin: float) -> float:
    if mean >= -margin:
        return 1.0
    if error is not None and freedom is not None:
        return float(2 * stdtr(freedom, (mean + margin) / error))
    return signs.p(mean + margin)


def _rejected(asked: list[Hypothesis]) -> list[Rejected]:
    adjusted = zip(asked, holm([each.p for each in asked]), strict=True)
    found = [Rejected(each, p, len(asked)) for each, p in adjusted if p is not None and p <= LEVEL]
    return sorted(found, key=lambda each: (each.adjusted, each.hypothesis.mean))


def _absent_in_b(paired: Paired) -> int:
    """How many episodes A has a score for and B no row of."""
    keys = [*paired.sides.keys, "episode"]
    return paired.sides.a.results.episodes.join(paired.sides.b.results.rows, on=keys, how="anti").height


def _failed_in_b(paired: Paired) -> pl.DataFrame:
    """Episodes that A has a score for and B only errors, as pairs in which B has 0."""
    keys = [*paired.sides.keys, "episode"]
    a, b = paired.sides.a.results, paired.sides.b.results
    tried = b.rows.select(keys).unique().join(b.episodes.select(keys), on=keys, how="anti")
    lost = a.episodes.join(tried, on=keys, how="semi", maintain_order="left")
    return lost.with_columns(difference=-pl.col("score")).select(
        *[name for name in EPISODE if name in keys], "sub_task", "cluster", "headline", "difference"
    )
