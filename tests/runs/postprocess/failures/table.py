"""Plays every recipe, asks for the failures, and counts what each rule found and missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from tests.runs.postprocess.failures.recipes import FILINGS, PLAIN, spends
from tests.runs.postprocess.failures.scene import Recipe, Scene, Scripted
from tests.runs.postprocess.failures.skilled import SKILLED

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.agents import Agent
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.runs.execute.run import run
from finskillbench.runs.postprocess.failures import failures_of


@dataclass
class Confusion:
    """Found and wanted, found and not wanted, not found and wanted, by cause; and every case of the last two."""

    played: int = 0
    failed: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    cases: list[str] = field(default_factory=list)
    all_right: list[str] = field(default_factory=list)
    """Models of which no episode has a line."""

    def precision(self, cause: str) -> float | None:
        found = self.hits[cause] + self.false[cause]
        return self.hits[cause] / found if found else None

    def recall(self, cause: str) -> float | None:
        wanted = self.hits[cause] + self.missed[cause]
        return self.hits[cause] / wanted if wanted else None

    def count(self, line: Mapping[str, Any], must: set[str], may: set[str]) -> None:
        causes = set(line["causes"])
        self.failed += 1
        for cause in causes | must:
            kept = self.hits if cause in causes & must else self.missed if cause in must else self.false
            if cause in causes and cause in may - must:
                continue
            kept[cause] += 1
            if kept is not self.hits:
                what = "missed" if kept is self.missed else "false"
                self.cases.append(f"{what} {cause}: {line['model']} {line['task_id']} {causes}: {line['evidence']}")


class Broken:
    """A model whose provider refuses."""

    name = "scripted/broken"

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        raise ProviderError("the key is refused", Cause.AUTH)


async def gives_up(task: object, tools: object) -> str | None:
    """An agent that ends without an answer."""
    del task, tools
    return None


def confusion(edition: Edition, folder: Path, *, of_each: int, seed: int = 0, one_in: int = 1) -> Confusion:
    """Play every recipe on so many episodes of each subtask, and hold what is found against what was done.

    With `one_in` a recipe that every subtask can play is played on every so-manieth, each recipe on others; and of the
    recipes with skills, whose runs start a process for scripts each, every second.
    """
    found = Confusion()
    _play(edition, folder / "plain", PLAIN, "no_skill", of_each, found, seed, one_in)
    skilled = dict(list(SKILLED.items())[:: min(one_in, 2)])
    _play(edition, folder / "skilled", skilled, "curated", of_each, found, seed, one_in)
    _play(edition, folder / "budget", {"spends": spends}, "no_skill", 1, found, seed, one_in, token_budget=250)
    out = folder / "ended"
    run(edition, [Broken()], ["no_skill"], agents=[Agent("gives-up", gives_up)], limit=1, out=out)
    for line in failures_of(out, edition).iter_rows(named=True):
        found.played += 1
        found.count(line, {"harness_error"} if line["model"] == Broken.name else {"stopped_early"}, set())
    return found


def _play(
    edition: Edition,
    out: Path,
    recipes: Mapping[str, Recipe],
    condition: str,
    of_each: int,
    found: Confusion,
    seed: int,
    one_in: int,
    **options: Any,
) -> None:
    for place, (name, recipe) in enumerate(recipes.items()):
        rare = name.startswith("other-")
        # No recipe plays a case with a budget: the documents name no single script for it.
        known = [name for name in edition.sub_tasks if subtask_named(name).interactive is None]
        names = known if rare else known[place % one_in :: one_in]
        model = Scripted(name, recipe, edition, seed)
        # Every recipe and every seed has other episodes; those that few subtasks can play have more of them.
        first = place * of_each + 101 * seed
        most = {sub: 4 * of_each if rare and sub in FILINGS else of_each for sub in names}
        chosen = [each for sub in names for each in _turn_about(edition.episodes([sub]), first, most[sub])]
        tasks = model.study(chosen)
        if tasks:
            run(edition, [model], [condition], tasks=tasks, out=out / name, **options)
            lines = failures_of(out / name, edition)
            _count(lines, model.scenes, found)
            if lines.is_empty():
                found.all_right.append(model.name)


def _turn_about(episodes: Sequence[Any], first: int, most: int) -> list[Any]:
    return [episodes[(first + place) % len(episodes)] for place in range(min(most, len(episodes)))]


def _count(lines: pl.DataFrame, scenes: Mapping[str, Scene], found: Confusion) -> None:
    found.played += len(scenes)
    for line in lines.iter_rows(named=True):
        scene = scenes[line["task_id"]]
        found.count(line, scene.must, scene.may)
