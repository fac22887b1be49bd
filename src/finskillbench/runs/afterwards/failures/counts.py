"""How often each cause applies, and which episodes are examples of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from finskillbench.harness.models import NO_ARGUMENTS
from finskillbench.runs.afterwards.failures.causes import place_of
from finskillbench.runs.plan.items import Item, place_of_condition

_GROUP = ["model", "arguments", "cause", "condition"]


class Example(NamedTuple):
    """An episode that failed by a cause, what was found, and the command that shows it."""

    cause: str
    model: str
    condition: str
    task_id: str
    evidence: str
    command: str


def count_causes(failures: pl.DataFrame) -> pl.DataFrame:
    """How often each cause is the primary one, and how often it applies at all.

    Parameters
    ----------
    failures : as `failures_of` returns them.

    Returns
    -------
    model, arguments, cause, condition, `primary` and `applies`, the numbers of episodes; entries in the order in which
    they come, causes in that of `FailureCause`.
    """
    applies = failures.drop("cause").explode("causes").rename({"causes": "cause"})
    counted = applies.group_by(_GROUP).agg(applies=pl.len().cast(pl.Int64))
    first = failures.group_by(_GROUP).agg(primary=pl.len().cast(pl.Int64))
    both = counted.join(first, on=_GROUP, how="left").with_columns(pl.col("primary").fill_null(0))
    entries = {
        entry: place
        for place, entry in enumerate(failures.select("model", "arguments").unique(maintain_order=True).iter_rows())
    }
    lines = sorted(
        both.select(*_GROUP, "primary", "applies").rows(),
        key=lambda line: (entries[line[0], line[1]], place_of(line[2]), place_of_condition(line[3])),
    )
    return pl.DataFrame(lines, schema=both.select(*_GROUP, "primary", "applies").schema, orient="row")


def examples(run_folder: Path, failures: pl.DataFrame, most: int) -> Iterator[Example]:
    """So many episodes of each primary cause, of as many subtasks as there are, in the order of causes."""
    for cause in sorted(failures["cause"].unique(), key=place_of):
        lines = failures.filter(pl.col("cause") == cause)
        varied = lines.with_columns(turn=pl.int_range(pl.len()).over("sub_task")).sort("turn", maintain_order=True)
        for line in varied.head(most).iter_rows(named=True):
            yield Example(
                cause,
                line["model"],
                line["condition"],
                line["task_id"],
                line["evidence"],
                show_command(run_folder, line),
            )


def show_command(run_folder: Path, line: dict[str, Any]) -> str:
    """The command that shows the episode of a line of `failures_of`."""
    if line["arguments"] != NO_ARGUMENTS:  # `show` tells entries of one model apart by their files
        item = Item(*(line[name] for name in ("model", "arguments", "condition", "task_id", "run_idx")))
        return f"finskillbench show {run_folder / item.trajectory}"
    which = f"--model {line['model']} --condition {line['condition']} --run-idx {line['run_idx']}"
    return f"finskillbench show {run_folder} {line['task_id']} {which}"


def chosen(failures: pl.DataFrame, models: Sequence[str], conditions: Sequence[str]) -> pl.DataFrame:
    """The failures of some models and conditions; all where none is named."""
    for column, names in (("model", models), ("condition", conditions)):
        if names:
            failures = failures.filter(pl.col(column).is_in(list(names)))
    return failures
