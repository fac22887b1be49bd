"""Results as the page looks at them: who is compared, and which programs stand as marks beside them.

Names as files and columns take them.

Which trajectories come with a page, and where those of the others lie.

All trajectories of a whole run are a hundred megabytes. By default a page brings, of every cell (model, condition,
subtask), the worst episode, an example of each cause of failure, the best and the one in the middle, in this order over
all cells, until `MOST_PAGES` are reached; of the others the page says the command that shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl

from finskillbench.analysis.results import CURATED, Comparison, Results, distinct, pairs
from finskillbench.episode import PAPER_SUITE
from finskillbench.harness.models import ModelKey, labels
from finskillbench.reports.read import RunRows
from finskillbench.runs.plan.items import Item

MOST_DRAWN = 24
"""Entries that a figure has room for."""
_FOLLOWS = "baseline/reference"
"""The program that does what a skill says."""


@dataclass(frozen=True, slots=True)
class View:
    """Results with `entry` beside every line: the model, and its harness where it played in several.

    `entries` are those that are shown: language models, or the programs where there is nothing else; `programs` are the
    marks beside them. `pooled` are those that means are taken over: all models, but of programs only the one that
    follows the skills, since floors and a ceiling have no mean. `main` is the comparison that the headline tells; None
    where only one condition was run.
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
        """The suite of the rows, in words."""
        return f"{self.rows['suite'][0] or PAPER_SUITE} suite"

    def population(self, frame: pl.DataFrame, entries: Sequence[str] | None = None) -> str:
        """The caption of a figure over some lines: how many episodes, of which suite and of which models."""
        who = self.pooled if entries is None else entries
        episodes, sub_tasks = frame["episode"].n_unique(), frame["sub_task"].n_unique()
        return (
            f"Over {many(episodes, 'episode')} of {many(sub_tasks, 'subtask')} of the {self.suite}; {self.named(who)}."
        )

    def named(self, entries: Sequence[str]) -> str:
        """Some entries in words."""
        models = set(distinct(self.rows.filter(~pl.col("program")), "entry"))
        if len(entries) == 1:
            return entries[0] if entries[0] in models else f"{entries[0]}, a program"
        counts = {"model": len(models.intersection(entries)), "program": len(set(entries) - models)}
        return " and ".join(many(count, noun) for noun, count in counts.items() if count)

    @property
    def only_programs(self) -> bool:
        """Whether no language model took part."""
        return bool(self.entries) and not self.programs and bool(self.rows["program"].all())

    @property
    def drawn(self) -> tuple[str, ...]:
        """The entries that figures show: all, or those with the highest means where there are too many."""
        if len(self.entries) <= MOST_DRAWN:
            return self.entries
        means = self.episodes.filter("headline").group_by("entry").agg(pl.col("score").mean())
        best = means.sort("score", descending=True).head(MOST_DRAWN)["entry"].to_list()
        return tuple(name for name in self.entries if name in best)

    @property
    def drawn_note(self) -> tuple[str, ...]:
        """What a figure that shows only some of the entries has to say."""
        if len(self.drawn) == len(self.entries):
            return ()
        return (f"Drawn are the {len(self.drawn)} of {len(self.entries)} with the highest means; the table has all.",)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that were run, in their order."""
        return self.results.conditions

    @property
    def series(self) -> tuple[str, ...]:
        """The conditions in the order of their marks: first the one that others are measured against."""
        first = self.main.reference if self.main else self.conditions[0]
        return (first, *(name for name in self.conditions if name != first))

    @property
    def contending(self) -> pl.DataFrame:
        """Scored episodes of the entries that means are taken over."""
        return self.episodes.filter(pl.col("entry").is_in(self.pooled))

    def paired(self, comparison: Comparison, entries: Sequence[str] | None = None) -> pl.DataFrame:
        """The pairs of a comparison, of those that means are taken over or of some entries."""
        wanted = self.pooled if entries is None else entries
        return _entered(pairs(self.results, comparison), self.results).filter(pl.col("entry").is_in(wanted))

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """The comparisons against the reference of the main one, which a figure can show side by side."""
        if self.main is None:
            return ()
        return tuple(each for each in self.results.comparisons if each.reference == self.main.reference)


def view_of(results: Results) -> View:
    """Results as the page looks at them."""
    rows, episodes = _entered(results.rows, results), _entered(results.episodes, results)
    models = distinct(rows.filter(~pl.col("program")), "entry")
    programs = distinct(rows.filter(pl.col("program")), "entry")
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
    """A view of each suite, the paper's first."""
    return [view_of(_of_suite(results, suite)) for suite in sorted(distinct(results.rows, "suite"))]


def _of_suite(results: Results, suite: str) -> Results:
    """The lines of one suite; those of another suite than the paper's all count towards its headline."""
    counted = {"headline": pl.lit(True)} if suite else {}
    rows, episodes = (
        frame.filter(pl.col("suite") == suite).with_columns(**counted) for frame in (results.rows, results.episodes)
    )
    present, conditions = set(rows["sub_task"]), set(rows["condition"])
    return replace(
        results,
        rows=rows,
        episodes=episodes,
        profiles={name: each for name, each in results.profiles.items() if name in present},
        conditions=tuple(name for name in results.conditions if name in conditions),
    )


def many(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _main(results: Results) -> Comparison | None:
    """What curated skills changed, or the first comparison that has pairs."""
    curated = [each for each in results.comparisons if each.treated == CURATED]
    wanted = [*curated, *results.comparisons]
    paired = (each for each in wanted if not pairs(results, each).is_empty())
    return next(paired, next(iter(wanted), None))


def _entered(frame: pl.DataFrame, results: Results) -> pl.DataFrame:
    several = (
        results.rows.group_by("model")
        .agg(pl.col("harness").n_unique())
        .filter(pl.col("harness") > 1)["model"]
        .to_list()
    )
    inside = pl.concat_str(pl.col("model"), pl.lit(" in "), pl.col("harness"))
    return frame.with_columns(entry=pl.when(pl.col("model").is_in(several)).then(inside).otherwise(pl.col("model")))


def slug(name: str) -> str:
    """Small letters, digits and underscores, beginning with a letter."""
    cleaned = "".join(each if each.isascii() and each.isalnum() else "_" for each in name.lower())
    return cleaned if cleaned[:1].isalpha() else f"n{cleaned}"


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
    entries = (ModelKey(*each) for run in runs for each in run.rows.select("model", "arguments").iter_rows())
    names = labels(entries)
    known: dict[tuple[object, ...], Located] = {}
    for run in (each for each in runs if each.has_trajectories):
        for index, (model, arguments, condition, task, repeat) in enumerate(run.rows.select(ITEM).iter_rows()):
            found = Located(run, Item(model, arguments, condition, task, repeat), index)
            known.setdefault((names[ModelKey(model, arguments)], arguments, condition, task, repeat), found)
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
