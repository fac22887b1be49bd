"""What a skill was worth, from the rows of a run: its gain, its price, when it was loaded, and what it changed.

Episodes of the domains that a skill is for are told apart from the others, which are its negative controls: there it
should be left alone and change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from finskillbench.analysis.intervals import Difference, paired_difference
from finskillbench.analysis.use import loads_any
from finskillbench.domains import domains
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import package_names
from finskillbench.harness.programs.reference import find_recipe
from finskillbench.harness.skills.loader import SkillPackage

LEAST_CHANGE = 1e-9
"""A score that moves by less has not moved."""
OWN, OTHER, ALL = "its domain", "other domains", "all"


@dataclass(frozen=True, slots=True)
class Part:
    """Mean scores over the `episodes` that both arms have a score for, and the difference; None where there is none."""

    name: str
    episodes: int
    treated: float | None
    reference: float | None
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class Side:
    """What one arm took: rows, those in error, and means per episode; the price in all, None where it is not known."""

    condition: str
    rows: int
    errors: int
    turns: float
    tool_calls: float
    input_tokens: float
    output_tokens: float
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Loads:
    """In how many of some episodes the skill was loaded."""

    loaded: int
    episodes: int

    @property
    def rate(self) -> float | None:
        """The share; None of no episode."""
        return self.loaded / self.episodes if self.episodes else None


@dataclass(frozen=True, slots=True)
class Flip:
    """An episode whose score the skill moved."""

    task_id: str
    sub_task: str
    treated: float
    reference: float

    @property
    def change(self) -> float:
        """How much, and which way."""
        return self.treated - self.reference


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One arm against another under one model.

    `meant_for` are the domains that the skill is for; where none is known, nothing is a trigger or a false one, and
    `parts` has `ALL` alone. `flips` go from the best to the worst.
    """

    model: str
    meant_for: tuple[str, ...]
    parts: tuple[Part, ...]
    sides: tuple[Side, Side]
    loads: Mapping[str, Loads]
    trigger: Loads
    false_trigger: Loads
    flips: tuple[Flip, ...]


def evaluate_skills(
    rows: pl.DataFrame,
    treated: str,
    reference: str,
    packages: Collection[str],
    meant_for: Collection[str],
) -> Evaluation:
    """Compare two arms of a run of one model.

    Parameters
    ----------
    rows : as in `rows.parquet`; repeats of an episode are averaged.
    treated, reference : conditions: the arm with the skill, and what it is compared with.
    packages : names of the packages that are evaluated.
    meant_for : the domains that they are for, empty if that is not known.

    Raises
    ------
    InputError : the rows are of several models, or an arm has none.
    """
    models = rows["model"].unique().to_list()
    arms = [rows.filter(pl.col("condition") == name) for name in (treated, reference)]
    for name, arm in zip((treated, reference), arms, strict=True):
        if arm.is_empty():
            raise InputError(f"the run has no finished episode under {name}; the same command goes on with it")
    if len(models) != 1:
        raise InputError(f"skills are evaluated under one model at a time, not {', '.join(sorted(models))}")
    own = pl.col("domain").is_in(list(meant_for))
    groups = {OWN: own, OTHER: ~own, ALL: pl.lit(value=True)} if meant_for else {ALL: pl.lit(value=True)}
    parts = [_part(name, arms[0].filter(group), arms[1].filter(group)) for name, group in groups.items()]
    names = arms[0]["domain"].unique(maintain_order=True).to_list()
    loads = {name: _loads(arms[0].filter(pl.col("domain") == name), packages) for name in names}
    return Evaluation(
        model=models[0],
        meant_for=tuple(meant_for),
        parts=tuple(parts),
        sides=(_side(treated, arms[0]), _side(reference, arms[1])),
        loads=loads,
        trigger=_loads(arms[0].filter(own), packages),
        false_trigger=_loads(arms[0].filter(~own) if meant_for else arms[0].clear(), packages),
        flips=_flips(*arms),
    )


def domains_of(packages: Iterable[SkillPackage]) -> tuple[str, ...]:
    """The domains that some packages say they are for.

    A package is for a domain whose own package bears its name, of which it names a subtask or the domain itself as the
    prompts write them (`stress_testing`; a subtask of one plain word is no sign), or for whose subtask it has a row in
    a table of scripts.
    """
    found = list(packages)
    return tuple(
        domain.name
        for domain in domains()
        if any(
            package.name in package_names(domain.name)
            or any(_names(package, name) for name in (domain.name, *(each.name for each in domain.subtasks)))
            for package in found
        )
    )


def _names(package: SkillPackage, name: str) -> bool:
    text = f"{package.description}\n{package.body}"
    return find_recipe(package.body, name) is not None or ("_" in name and re.search(rf"\b{name}\b", text) is not None)


def _part(name: str, treated: pl.DataFrame, reference: pl.DataFrame) -> Part:
    scores, others = _scores(treated), _scores(reference)
    shared = scores.keys() & others.keys()
    cluster_of = dict(zip(treated["task_id"].to_list(), treated["cluster"].to_list(), strict=True))
    return Part(
        name,
        len(shared),
        _mean(scores[task] for task in shared),
        _mean(others[task] for task in shared),
        paired_difference(scores, others, cluster_of),
    )


def _scores(rows: pl.DataFrame) -> dict[str, float]:
    """Score by task id, repeats averaged; an episode that ended in an error has none."""
    scored = rows.filter(pl.col("score").is_not_null() & (pl.col("status") != Status.ERROR.value))
    table = scored.group_by("task_id").agg(pl.col("score").mean()).sort("task_id")
    return dict(zip(table["task_id"].to_list(), table["score"].to_list(), strict=True))


def _mean(values: Iterable[float]) -> float | None:
    found = sorted(values)  # whatever order a set gives, the same sum
    return sum(found) / len(found) if found else None


def _side(condition: str, rows: pl.DataFrame) -> Side:
    columns = ("episodes", "tool_calls", "total_input_tokens", "total_output_tokens")
    turns, calls, read, written = (sum(rows[name].to_list()) / rows.height for name in columns)
    errors = rows.filter(pl.col("status") == Status.ERROR.value).height
    cost = None if rows["cost_usd"].has_nulls() else sum(rows["cost_usd"].to_list())
    return Side(condition, rows.height, errors, turns, calls, read, written, cost)


def _loads(rows: pl.DataFrame, packages: Collection[str]) -> Loads:
    return Loads(rows.filter(loads_any(packages)).height, rows.height)


def _flips(treated: pl.DataFrame, reference: pl.DataFrame) -> tuple[Flip, ...]:
    scores, others = _scores(treated), _scores(reference)
    sub_tasks = dict(zip(treated["task_id"].to_list(), treated["sub_task"].to_list(), strict=True))
    flips = [Flip(task, sub_tasks[task], scores[task], others[task]) for task in scores if task in others]
    moved = [flip for flip in flips if abs(flip.change) > LEAST_CHANGE]
    return tuple(sorted(moved, key=lambda flip: (-flip.change, flip.task_id)))
