"""What a skill was worth, from the rows of a run: its gain, its price, when it was loaded, and what it changed.

Episodes of the domains that a skill is for are told apart from the others, which are its negative controls: there it
should be left alone and change nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.intervals.clustered_t import Interval
from finskillbench.analysis.results import Comparison, Results, distinct, pairs
from finskillbench.analysis.use import loads_any
from finskillbench.domains import domains
from finskillbench.errors import InputError
from finskillbench.harness.conditions import package_names
from finskillbench.harness.programs.reference import find_recipe
from finskillbench.harness.skills.loader import SkillPackage

LEAST_CHANGE = 1e-9
"""A score that moves by less has not moved."""
OWN, OTHER, ALL = "its domain", "other domains", "all"


@dataclass(frozen=True, slots=True)
class Part:
    """Mean scores over the `episodes` that both arms have a score for, and the difference with its 95 % interval.

    The means are None of no episode, the interval where none can be said.
    """

    name: str
    episodes: int
    clusters: int
    treated: float | None
    reference: float | None
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Side:
    """Resources of one condition: rows, rows in error, means per episode, and the total price (None: unknown).

    Tokens are means over the `counted` rows of which input and output are known, None of none.
    """

    condition: str
    rows: int
    errors: int
    turns: float
    tool_calls: float
    counted: int
    input_tokens: float | None
    output_tokens: float | None
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
    results: Results, comparison: Comparison, packages: Collection[str], meant_for: Collection[str]
) -> Evaluation:
    """Compare two arms of a run of one model.

    Parameters
    ----------
    comparison : the condition with the skill, and what it is compared with.
    packages : names of the packages that are evaluated.
    meant_for : the domains that they are for, empty if that is not known.

    Raises
    ------
    InputError : the rows are of several models, or an arm has none.
    """
    arms = [results.rows.filter(pl.col("condition") == name) for name in comparison]
    for name, arm in zip(comparison, arms, strict=True):
        if arm.is_empty():
            raise InputError(f"the run has no finished episode under {name}; the same command goes on with it")
    if len(results.models) != 1:
        raise InputError(f"skills are evaluated under one model at a time, not {', '.join(sorted(results.models))}")
    own = pl.col("domain").is_in(list(meant_for))
    groups = {OWN: own, OTHER: ~own, ALL: pl.lit(value=True)} if meant_for else {ALL: pl.lit(value=True)}
    paired = pairs(results, comparison)
    treated = arms[0]
    return Evaluation(
        model=results.models[0],
        meant_for=tuple(meant_for),
        parts=tuple(_part(name, paired.filter(group)) for name, group in groups.items()),
        sides=(_side(comparison.treated, arms[0]), _side(comparison.reference, arms[1])),
        loads={
            name: _loads(treated.filter(pl.col("domain") == name), packages) for name in distinct(treated, "domain")
        },
        trigger=_loads(treated.filter(own), packages),
        false_trigger=_loads(treated.filter(~own) if meant_for else treated.clear(), packages),
        flips=_flips(paired),
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


def _part(name: str, paired: pl.DataFrame) -> Part:
    treated, reference, difference = (estimate(paired, each) for each in ("treated", "reference", "difference"))
    mean, low, high = difference.select("mean", "low", "high").row(0)
    return Part(
        name,
        paired.height,
        difference["clusters"].item(),
        treated["mean"].item(),
        reference["mean"].item(),
        mean,
        None if low is None else (low, high),
    )


def _side(condition: str, rows: pl.DataFrame) -> Side:
    turns, calls = (sum(rows[name].to_list()) / rows.height for name in ("episodes", "tool_calls"))
    counted = rows.select("total_input_tokens", "total_output_tokens").drop_nulls()
    read, written = (sum(each.to_list()) / len(each) if len(each) else None for each in counted)
    errors = int(rows["failed"].sum())
    cost = None if rows["cost_usd"].has_nulls() else math.fsum(rows["cost_usd"].to_list())
    return Side(condition, rows.height, errors, turns, calls, counted.height, read, written, cost)


def _loads(rows: pl.DataFrame, packages: Collection[str]) -> Loads:
    return Loads(rows.filter(loads_any(packages)).height, rows.height)


def _flips(paired: pl.DataFrame) -> tuple[Flip, ...]:
    told = paired.select("episode", "sub_task", "treated", "reference").iter_rows()
    moved = [flip for flip in (Flip(*each) for each in told) if abs(flip.change) > LEAST_CHANGE]
    return tuple(sorted(moved, key=lambda flip: (-flip.change, flip.task_id)))
