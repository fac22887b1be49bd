"""Which trajectories come with a page, and where those of the others lie.

All trajectories of a whole run are a hundred megabytes. By default a page brings, of every cell (model, condition,
subtask), the worst episode, an example of each cause of failure, the best and the one in the middle, in this order over
all cells, until `MOST_PAGES` are reached; of the others the page says the command that shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import polars as pl

from finskillbench.harness.models import Entry, labels
from finskillbench.reports.page.view import View
from finskillbench.reports.read import RunRows
from finskillbench.runs.plan.items import Item

MOST_PAGES = 300
"""About three megabytes."""
ITEM = ("model", "arguments", "condition", "task_id", "run_idx")
CELL = ("entry", "condition", "sub_task")


@dataclass(frozen=True, slots=True)
class Located:
    """The run that a row came from, and its piece of work there; `index` is the row's place in the run's table."""

    run: RunRows
    item: Item
    index: int

    @property
    def file(self) -> Path:
        """Its trajectory."""
        return self.run.path / self.item.trajectory


def locate(view: View, runs: Sequence[RunRows]) -> list[Located | None]:
    """Where the trajectory of each row lies; None where no run that has trajectories has the row."""
    entries = (Entry(*each) for run in runs for each in run.rows.select("model", "arguments").iter_rows())
    names = labels(entries)
    known: dict[tuple[object, ...], Located] = {}
    for run in (each for each in runs if each.has_trajectories):
        for index, (model, arguments, condition, task, repeat) in enumerate(run.rows.select(ITEM).iter_rows()):
            found = Located(run, Item(model, arguments, condition, task, repeat), index)
            known.setdefault((names[Entry(model, arguments)], arguments, condition, task, repeat), found)
    return [known.get(each) for each in view.rows.select(ITEM).iter_rows()]


def choose(view: View, causes: Sequence[str | None], located: Sequence[Located | None], most: int | None) -> list[int]:
    """Places of the rows whose trajectories come with the page.

    Parameters
    ----------
    most : how many of each cell, none of which is left out for the size of the whole; None: the rule of this module.
    """
    rows = view.rows.with_row_index("place").with_columns(cause=pl.Series(causes, dtype=pl.String))
    rows = rows.filter(pl.Series([each is not None for each in located], dtype=pl.Boolean))
    ordered = rows.sort("score", "task_id", "run_idx", nulls_last=False, maintain_order=True)
    cells = [
        list(zip(cell["place"].to_list(), cell["cause"].to_list(), strict=True))
        for cell in ordered.partition_by(CELL, maintain_order=True)
    ]
    if most is not None:
        return sorted(place for cell in cells for place in _spread([place for place, _ in cell], most))
    chosen: dict[int, None] = {}
    for place in _in_turn(cells):
        if len(chosen) == MOST_PAGES:
            break
        chosen[place] = None
    return sorted(chosen)


def _in_turn(cells: Sequence[Sequence[tuple[int, str | None]]]) -> Iterator[int]:
    """Places in the order of their worth, over all cells."""
    yield from (cell[0][0] for cell in cells)
    examples = [list({cause: place for place, cause in reversed(cell) if cause}.values()) for cell in cells]
    yield from chain.from_iterable(examples)
    yield from (cell[-1][0] for cell in cells)
    yield from (cell[len(cell) // 2][0] for cell in cells)


def _spread(places: Sequence[int], most: int) -> list[int]:
    """So many of some ordered places, evenly from the first to the last."""
    if most >= len(places):
        return list(places)
    if most == 1:
        return [places[0]]
    return [places[round(step * (len(places) - 1) / (most - 1))] for step in range(most)]
