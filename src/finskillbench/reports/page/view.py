"""Results prepared for a page, and the choice of trajectories written with it.

All trajectories of a full run take a hundred megabytes. By default a page includes, per cell (model, condition,
subtask), the worst episode, an example of each cause of failure, the best and the median one, in this order over all
cells, up to `MOST_PAGES`. Other rows show the command for their trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl

from finskillbench.analysis.results import CURATED, Comparison, Results, distinct_values, pairs
from finskillbench.episode import PAPER_SUITE
from finskillbench.harness.models import ModelKey, labels
from finskillbench.reports.read import RunRows
from finskillbench.runs.plan.items import Item

MOST_DRAWN = 24
"""Maximum number of entries in a figure."""
_FOLLOWS = "baseline/reference"
"""The program that follows a skill."""


@dataclass(frozen=True, slots=True)
class View:
    """Results with an `entry` column: the model, and its harness if it ran in several.

    `entries` are shown: language models, else programs; `programs` are reference marks next to models. `pooled` are the
    entries in means: all models, or only the program that follows skills, since floors and a ceiling have no mean.
    `main`
    is the headline comparison; None with a single condition.
    """

    results: Results
    rows: pl.DataFrame
    episodes: pl.DataFrame
    entries: tuple[str, ...]
    pooled: tuple[str, ...]
    programs: tuple[str, ...]
    main: Comparison | None

    @property
    def suite(self) -> str:
        return f"{self.rows['suite'][0] or PAPER_SUITE} suite"

    def population(self, frame: pl.DataFrame, entries: Sequence[str] | None = None) -> str:
        """Describe the episodes, suite and models of a figure."""
        who = self.pooled if entries is None else entries
        episodes, sub_tasks = frame["episode"].n_unique(), frame["sub_task"].n_unique()
        size = f"{many(episodes, 'episode')} of {many(sub_tasks, 'subtask')}"
        return f"Over {size} of the {self.suite}; {self.named(who)}."

    def named(self, entries: Sequence[str]) -> str:
        """Describe some entries in words."""
        models = set(distinct_values(self.rows.filter(~pl.col("program")), "entry"))
        if len(entries) == 1:
            return entries[0] if entries[0] in models else f"{entries[0]}, a program"
        counts = {"model": len(models.intersection(entries)), "program": len(set(entries) - models)}
        return " and ".join(many(count, noun) for noun, count in counts.items() if count)

    @property
    def only_programs(self) -> bool:
        """True if no language model took part."""
        return bool(self.entries) and not self.programs and bool(self.rows["program"].all())

    @property
    def drawn(self) -> tuple[str, ...]:
        """Entries in figures: all, or those with the highest means if there are too many."""
        if len(self.entries) <= MOST_DRAWN:
            return self.entries
        means = self.episodes.filter("headline").group_by("entry").agg(pl.col("score").mean())
        best = means.sort("score", descending=True).head(MOST_DRAWN)["entry"].to_list()
        return tuple(name for name in self.entries if name in best)

    @property
    def drawn_footnotes(self) -> tuple[str, ...]:
        """Note for figures that show only some entries."""
        if len(self.drawn) == len(self.entries):
            return ()
        return (
            f"Only the {len(self.drawn)} of {len(self.entries)} with the highest means are drawn; the table has all.",
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        return self.results.conditions

    @property
    def series(self) -> tuple[str, ...]:
        """Conditions in mark order, the reference first."""
        first = self.main.reference if self.main else self.conditions[0]
        return (first, *(name for name in self.conditions if name != first))

    @property
    def contending(self) -> pl.DataFrame:
        """Scored episodes of the pooled entries."""
        return self.episodes.filter(pl.col("entry").is_in(self.pooled))

    def paired(self, comparison: Comparison, entries: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the pairs of a comparison, of the pooled or given entries."""
        wanted = self.pooled if entries is None else entries
        return _with_entry(pairs(self.results, comparison), self.results).filter(pl.col("entry").is_in(wanted))

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """Comparisons with the reference of the main one."""
        if self.main is None:
            return ()
        return tuple(each for each in self.results.comparisons if each.reference == self.main.reference)


def view_of(results: Results) -> View:
    """Prepare results for a page."""
    rows, episodes = _with_entry(results.rows, results), _with_entry(results.episodes, results)
    models = distinct_values(rows.filter(~pl.col("program")), "entry")
    programs = distinct_values(rows.filter(pl.col("program")), "entry")
    return View(
        results=results,
        rows=rows,
        episodes=episodes,
        entries=tuple(models or programs),
        pooled=tuple(models or [name for name in programs if name.startswith(_FOLLOWS)] or programs),
        programs=tuple(programs) if models else (),
        main=_main(results),
    )


def views_of(results: Results) -> list[View]:
    """Return a view of each suite, the paper's first."""
    return [view_of(_of_suite(results, suite)) for suite in sorted(distinct_values(results.rows, "suite"))]


def _of_suite(results: Results, suite: str) -> Results:
    """Select one suite, with its headline."""
    counted = {"headline": pl.col("suite_headline")} if suite else {}
    frames = (results.rows, results.episodes)
    rows, episodes = (each.filter(pl.col("suite") == suite).with_columns(**counted) for each in frames)
    present, conditions = set(rows["sub_task"]), set(rows["condition"])
    return replace(
        results,
        rows=rows,
        episodes=episodes,
        profiles={name: each for name, each in results.profiles.items() if name in present},
        conditions=tuple(name for name in results.conditions if name in conditions),
    )


def many(count: int, noun: str) -> str:
    """Format a count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _main(results: Results) -> Comparison | None:
    """Return the curated comparison, or the first with pairs."""
    curated = [each for each in results.comparisons if each.treated == CURATED]
    wanted = [*curated, *results.comparisons]
    paired = (each for each in wanted if not pairs(results, each).is_empty())
    return next(paired, next(iter(wanted), None))


def _with_entry(frame: pl.DataFrame, results: Results) -> pl.DataFrame:
    harnesses = results.rows.group_by("model").agg(pl.col("harness").n_unique())
    several = harnesses.filter(pl.col("harness") > 1)["model"].to_list()
    inside = pl.concat_str(pl.col("model"), pl.lit(" in "), pl.col("harness"))
    return frame.with_columns(entry=pl.when(pl.col("model").is_in(several)).then(inside).otherwise(pl.col("model")))


def column_name(name: str) -> str:
    """Convert a name to lower case, digits and underscores, starting with an alphabetic character."""
    cleaned = "".join(each if each.isascii() and each.isalnum() else "_" for each in name.lower())
    return cleaned if cleaned[:1].isalpha() else f"n{cleaned}"


MOST_PAGES = 300
"""About three megabytes."""
ITEM = ("model", "arguments", "condition", "task_id", "run_idx")
CELL = ("entry", "condition", "sub_task")


@dataclass(frozen=True, slots=True)
class Located:
    """Run, work item and row index of a row's trajectory."""

    run: RunRows
    item: Item
    index: int

    @property
    def file(self) -> Path:
        return self.run.path / self.item.trajectory


def locate(view: View, runs: Sequence[RunRows]) -> list[Located | None]:
    """Find the trajectory of each row; None if no run with trajectories has the row."""
    entries = (ModelKey(*each) for run in runs for each in run.rows.select("model", "arguments").iter_rows())
    names = labels(entries)
    known: dict[tuple[object, ...], Located] = {}
    for run in (each for each in runs if each.has_trajectories):
        for index, (model, arguments, condition, task, repeat) in enumerate(run.rows.select(ITEM).iter_rows()):
            found = Located(run, Item(model, arguments, condition, task, repeat), index)
            known.setdefault((names[ModelKey(model, arguments)], arguments, condition, task, repeat), found)
    return [known.get(each) for each in view.rows.select(ITEM).iter_rows()]


def choose(view: View, causes: Sequence[str | None], located: Sequence[Located | None], most: int | None) -> list[int]:
    """Choose the rows whose trajectories come with the page.

    `most` is the number per cell, without a total limit; None applies the rule of this module.
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
    """Yield row places by priority, over all cells."""
    yield from (cell[0][0] for cell in cells)
    examples = [list({cause: place for place, cause in reversed(cell) if cause}.values()) for cell in cells]
    yield from chain.from_iterable(examples)
    yield from (cell[-1][0] for cell in cells)
    yield from (cell[len(cell) // 2][0] for cell in cells)


def _spread(places: Sequence[int], most: int) -> list[int]:
    """Pick `most` of the ordered places, evenly from first to last."""
    if most >= len(places):
        return list(places)
    if most == 1:
        return [places[0]]
    return [places[round(step * (len(places) - 1) / (most - 1))] for step in range(most)]
