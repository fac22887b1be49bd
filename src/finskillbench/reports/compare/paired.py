"""Pair episodes scored on both sides, list score changes, and test for regressions.

Each group and part tests the hypothesis "B is not worse than A by more than the margin". Its p-value is two-sided, so
a single test rejects exactly if the 95 % interval is below -margin. It comes from t with the clustered standard error
if there is an interval, else from the sign test over clusters with changes. Holm's procedure limits the family-wise
error to 5 % under any dependence. A part without score changes cannot be rejected and is no hypothesis (Tarone 1990).
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
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import EPISODE, distinct_values
from finskillbench.domains.base import HEADLINE
from finskillbench.errors import InputError
from finskillbench.reports.compare.gates import Outcome
from finskillbench.reports.compare.sides import DIMENSIONS, Side, Sides
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, columns_of
from finskillbench.runs.plan.items import Item

RESOURCES = {
    "turns": ("Turns", 1.0),
    "tool_calls": ("Tool calls", 1.0),
    "total_input_tokens": ("Input tokens", 1.0),
    "total_output_tokens": ("Output tokens", 1.0),
    "total_reasoning_tokens": ("Reasoning tokens", 1.0),
    "latency_seconds": ("Latency (milliseconds)", 1e3),
    "cost_usd": ("Cost (US dollars per 1,000 episodes)", 1e3),
}
"""Row columns with resources per episode; rows of other programs may lack some. Values: a title and the factor to its
unit, in which two decimals suffice."""
LEAST_CHANGE = 1e-9
"""Smaller score differences count as unchanged."""


@dataclass(frozen=True)
class Paired:
    """Two sides on the same episodes.

    `frame` has a line for each pair: the keys of `Sides.keys`, `episode`, `sub_task`, `domain`, `difficulty`,
    `cluster`, `headline` and `program`; `reference` (A), `treated` (B) and `difference` (B - A), means over repeats;
    and each of `RESOURCES` as `a_NAME` and `b_NAME`, null if unknown.
    `alone` has the episodes scored on one side only, with `side` "A" or "B".
    """

    sides: Sides
    frame: pl.DataFrame
    alone: pl.DataFrame

    @cached_property
    def shown(self) -> list[str]:
        """Keys with several values, which separate groups of pairs."""
        return [name for name in self.sides.keys if self.frame[name].n_unique() > 1]

    @cached_property
    def common(self) -> dict[str, str]:
        """Keys with one value for all pairs, and the value."""
        return {name: self.frame[name][0] for name in self.sides.keys if name not in self.shown}


def make_pairs(sides: Sides) -> Paired:
    """Pair two sides; raises `InputError` if no episode has a score on both."""
    keys = [*sides.keys, "episode"]
    a, b = _episodes(sides.a, "a"), _episodes(sides.b, "b")
    shared_columns = [name for name in (*EPISODE, "program") if name not in keys]
    paired = (
        b.rename({"score": "treated", "program": "b_program"})
        .drop([name for name in shared_columns if name != "program"])
        .join(
            a.select(*keys, "program", *(f"a_{name}" for name in RESOURCES), reference="score"),
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
    """Return a side's episodes with mean resources over scored repeats."""
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


def _why_none(sides: Sides) -> str:
    """Describe the first key in which the sides have no common value, with a remedy."""
    a, b = sides.a.results.episodes, sides.b.results.episodes
    for side, episodes in (("A", a), ("B", b)):
        if episodes.is_empty():
            return f"no episode of {side} has a score; run it again to repeat the episodes in error"
    for name in sides.keys:
        there = distinct_values(a, name), distinct_values(b, name)
        if not {*there[0]} & {*there[1]}:
            differing = f"A has the {name} {', '.join(there[0])}, B {', '.join(there[1])}"
            remedy = f"; to compare these: --compare {name} {there[0][0]!r} {there[1][0]!r}"
            return f"the sides have no {name} in common: {differing}{remedy if name in DIMENSIONS else ''}"
    return "no episode has a score on both sides; run the same subtasks with the same --limit on both"


TITLES = {"model": "Model", "harness": "Harness", "condition": "Condition"}


@dataclass(frozen=True, slots=True)
class _Flip:
    """An episode whose score changed from `a` to `b`.

    `keys` identify its group (`Paired.shown`). `show_a` and `show_b` are commands that show its most changed repeat on
    each side; None if a run has no trajectories.
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
        return self.b - self.a


def find_flips(paired: Paired) -> list[_Flip]:
    """Return all score changes, from the largest fall to the largest rise."""
    changed = paired.frame.filter(pl.col("difference").abs() > LEAST_CHANGE)
    moved = changed.sort("difference", "sub_task", "episode", *paired.sides.keys)
    keys = [*paired.sides.keys, "episode"]
    a, b = paired.sides.a, paired.sides.b
    telling = [_decisive_rows(moved, side, keys, higher) for side, higher in ((a, True), (b, False))]
    flips: list[_Flip] = []
    for line, row_a, row_b in zip(moved.iter_rows(named=True), *telling, strict=True):
        group = {name: line[name] for name in paired.shown}
        commands = (_command(paired.sides.runs, row) for row in (row_a, row_b))
        flips.append(_Flip(row_b["task_id"], line["sub_task"], group, line["reference"], line["treated"], *commands))
    return flips


def _decisive_rows(moved: pl.DataFrame, side: Side, keys: list[str], high_where_fallen: bool) -> list[dict[str, Any]]:
    """Return the row of each change on one side, for repeats the most changed one."""
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
    """Return the command that shows a row's episode, by file if the model has several entries in the run."""
    run = runs[row["run"]]
    if not run.has_trajectories:
        return None
    item = Item(row["entry_model"], row["entry_arguments"], row["condition"], row["task_id"], row["run_idx"])
    if run.rows.filter(pl.col("model") == item.model)["arguments"].n_unique() > 1:
        command = ("finskillbench", "show", str(run.path / item.trajectory))
    else:
        chosen = ("--model", item.model, "--condition", item.condition)
        repeat = ("--run-idx", str(item.run_idx)) if run.rows["run_idx"].max() else ()
        command = ("finskillbench", "show", str(run.path), item.task_id, *chosen, *repeat)
    return shlex.join(command)


def flips_table(flips: list[_Flip]) -> Table:
    shown = list(flips[0].keys) if flips else []
    rows: list[tuple[Cell, ...]] = [
        (flip.sub_task, flip.task_id, *flip.keys.values(), flip.a, flip.b, flip.change, flip.show_a, flip.show_b)
        for flip in flips
    ]
    columns = (
        *columns_of(Kind.TEXT, sub_task="Subtask", task_id="Episode"),
        *(Column(name, TITLES[name]) for name in shown),
        *columns_of(Kind.SCORE, a="A", b="B"),
        Column("change", "B - A", Kind.DIFFERENCE),
        *columns_of(Kind.TEXT, show_a="Command (A)", show_b="Command (B)"),
    )
    return Table("flips", "Score changes by episode, largest loss first", columns, tuple(rows))


LEVEL = 0.05


class Hypothesis(NamedTuple):
    """One part of one group: mean difference, its interval if available, and the p-value."""

    part: str
    group: tuple[str, ...]
    mean: float
    low: float | None
    high: float | None
    p: float


class Rejected(NamedTuple):
    """A rejected hypothesis, with its p-value adjusted for the number of hypotheses."""

    hypothesis: Hypothesis
    adjusted: float
    hypotheses: int


def regressions(paired: Paired, margin: float = 0.0) -> list[Rejected]:
    """Return parts that fell significantly by more than `margin` (0 or more), by ascending p-value."""
    return _rejected(list(_hypotheses(paired.frame, paired.shown, margin)))


def check_regression(paired: Paired, margin: float = 0.0) -> Outcome:
    """Check that nothing regressed, even with a score of 0 for B's episodes in error.

    The reason states how many episodes of A are missing in B.
    """
    found = regressions(paired, margin)
    if found:
        first = found[0]
        more = f"; {len(found) - 1} more fell too" if len(found) > 1 else ""
        return Outcome(False, f"{_rejected_text(first, margin)}{more}")
    failed = _failed_in_b(paired)
    if failed.height:
        frame = pl.concat([paired.frame.select(failed.columns), failed])
        if worst := _rejected(list(_hypotheses(frame, paired.shown, margin))):
            return Outcome(
                False,
                f"{failed.height} episodes with a score in A ended in an error in B: with 0 for these, "
                f"{_rejected_text(worst[0], margin)}",
            )
    absent = _absent_in_b(paired)
    unseen = f"; {absent} of the {paired.sides.a.results.episodes.height} episodes of A are not in B" if absent else ""
    return Outcome(True, f"no significant fall of more than {margin:g}{unseen}")


def _rejected_text(found: Rejected, margin: float) -> str:
    each = found.hypothesis
    where = f" ({', '.join(each.group)})" if each.group else ""
    interval = "" if each.low is None else f" [{each.low:+.3f}, {each.high:+.3f}]"
    limit = f", more than {margin:g}" if margin else ""
    p = "p < 0.0001" if found.adjusted < 1e-4 else f"p = {found.adjusted:.4f}"
    return f"{each.part}{where} fell by {-each.mean:.3f}{interval}{limit} ({p} by Holm over {found.hypotheses})"


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
        for line in estimate_means(chosen, by=keys).iter_rows(named=True):
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


def _rejected(hypotheses: list[Hypothesis]) -> list[Rejected]:
    adjusted = zip(hypotheses, holm([each.p for each in hypotheses]), strict=True)
    found = [Rejected(each, p, len(hypotheses)) for each, p in adjusted if p is not None and p <= LEVEL]
    return sorted(found, key=lambda each: (each.adjusted, each.hypothesis.mean))


def _absent_in_b(paired: Paired) -> int:
    """Count episodes scored in A without any row in B."""
    keys = [*paired.sides.keys, "episode"]
    return paired.sides.a.results.episodes.join(paired.sides.b.results.rows, on=keys, how="anti").height


def _failed_in_b(paired: Paired) -> pl.DataFrame:
    """Return episodes scored in A with errors only in B, as pairs with 0 for B."""
    keys = [*paired.sides.keys, "episode"]
    a, b = paired.sides.a.results, paired.sides.b.results
    tried = b.rows.select(keys).unique().join(b.episodes.select(keys), on=keys, how="anti")
    lost = a.episodes.join(tried, on=keys, how="semi", maintain_order="left")
    return lost.with_columns(difference=-pl.col("score")).select(
        *[name for name in EPISODE if name in keys], "sub_task", "cluster", "headline", "difference"
    )
