"""The flips: episodes whose score moved, each with the command that shows it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from finskillbench.analysis.results import EPISODE
from finskillbench.reports.compare.paired import LEAST_CHANGE, Paired
from finskillbench.reports.compare.sides import Side
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.runs.plan.items import Item

_TITLES = {"model": "Model", "harness": "Harness", "condition": "Condition"}


@dataclass(frozen=True, slots=True)
class Flip:
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


def find_flips(paired: Paired) -> list[Flip]:
    """All flips, from what fell most to what rose most."""
    moved = paired.frame.filter(pl.col("difference").abs() > LEAST_CHANGE).sort(
        "difference", "sub_task", "episode", *paired.sides.keys
    )
    keys = [*paired.sides.keys, "episode"]
    a, b = paired.sides.a, paired.sides.b
    telling = [_telling(moved, side, keys, higher) for side, higher in ((a, True), (b, False))]
    return [
        Flip(
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


def flips_table(flips: list[Flip]) -> Table:
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
