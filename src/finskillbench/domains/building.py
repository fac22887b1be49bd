"""What subtasks build their episodes from: reproducible draws, the catalogs, the triple they return.

What inputs of several domains hold in the same form.

Which items become episodes, and in which order: draws that are even over strata or traits, and reproducible.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import Any, NotRequired, TypedDict, TypeVar

import numpy as np
import polars as pl

from finskillbench.domains.catalog import Catalog
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.errors import InternalError
from finskillbench.panels import Panels
from finskillbench.sources.edgar.collection import FilingsData


@dataclass(frozen=True, slots=True)
class Task:
    """One built task: what the agent sees, what it may not see, and the proof of the label.

    `tables` are named by references in the episode's input (`finskillbench.domains.tables`); `hidden` is what only the
    stage of an episode knows that is played move by move.
    """

    episode: Episode
    truth: Truth
    certificate: JsonObject
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    hidden: JsonObject | None = None


@dataclass(frozen=True)
class BuildContext:
    """What every domain is built from: the panels, the seed, what a user brought, the notes for the manifest."""

    panels: Panels
    seed: int
    filings: FilingsData | None = None
    """The raw EDGAR files, for the second derivation of the fundamental labels; None where a collection has none."""
    catalog: Catalog = field(default_factory=Catalog)
    """What a user brought in place of what is built in, or beside it."""
    synthetic: bool = False
    """Whether the market is made, so that how its numbers came about is known."""
    filed: tuple[date, date] | None = None
    """First and last filing day of the reports that episodes are about; None takes every report."""
    episodes: int | None = None
    """Most episodes of a subtask; None builds as many as the specification asks for."""
    notes: list[str] = field(default_factory=list[str])
    """What the build could not take as configured, one sentence each; kept in the manifest."""

    def most(self, count: int) -> int:
        """The smaller of `count` and the most episodes of a subtask."""
        return count if self.episodes is None else min(count, self.episodes)

    def generator(self, *labels: object) -> np.random.Generator:
        """A stream of random numbers that depends on seed, universe and labels only, never on the order of calls.

        The universe enters so that nothing drawn (which cases are infeasible, in which order) carries over from the
        published edition of the same seed to another collection.
        """
        key = zlib.crc32("/".join(map(str, (*self.panels.universe, *labels))).encode())
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, key])))


def read_catalog(package: str | None, name: str) -> dict[str, Any]:
    """The JSON object `catalog/<name>` that ships with a package: `read_catalog(__package__, "risk.json")`."""
    return json.loads(read_catalog_text(package, name))


def read_catalog_text(package: str | None, name: str) -> str:
    """The text `catalog/<name>` that ships with a package, ours or one from outside."""
    if package is None:
        raise InternalError(f"catalog/{name}: asked for by a file that is in no package")
    return resources.files(package).joinpath("catalog", name).read_text(encoding="utf-8")


def conventions(*parts: Mapping[str, str]) -> dict[str, str]:
    """The definitions of several sources side by side: `conventions` of an input.

    Raises
    ------
    InternalError : two sources define the same key, so that one would hide the other.
    """
    merged: dict[str, str] = {}
    for part in parts:
        twice = sorted(merged.keys() & part.keys())
        if twice:
            raise InternalError(f"conventions: {', '.join(twice)} is defined twice; rename one of them")
        merged |= part
    return merged


class CovarianceTable(TypedDict):
    """An annualised covariance: by reference as an edition stores it, dense or in factor form once it is resolved.

    The covariance is `matrix` (n, n), or loadings' loadings + diag(specific) with loadings (k, n) and specific (n,).
    """

    tickers: NotRequired[list[str]]
    ref: NotRequired[str]
    matrix: NotRequired[list[list[float]]]
    loadings: NotRequired[list[list[float]]]
    specific: NotRequired[list[float]]


T = TypeVar("T")
R = TypeVar("R")


def permuted(items: Sequence[T], rng: np.random.Generator) -> list[T]:
    """The items in a random order."""
    return [items[i] for i in rng.permutation(len(items)).tolist()]


def stratified(items: Sequence[T], stratum: Callable[[T], Hashable], count: int, rng: np.random.Generator) -> list[T]:
    """Draw `count` items, as evenly over the strata as their sizes allow; the result keeps the order of `items`.

    Strata take turns in a random order until the draw is full, so that none is favoured by its name.
    """
    strata: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        strata.setdefault(stratum(item), []).append(index)
    queues = [permuted(members, rng) for members in strata.values()]
    order = permuted(queues, rng)
    chosen: list[int] = []
    while len(chosen) < count and any(order):
        for queue in order:
            if queue and len(chosen) < count:
                chosen.append(queue.pop())
    return [items[index] for index in sorted(chosen)]


def drawn(
    items: Sequence[T],
    traits: Callable[[T], Sequence[Hashable]],
    count: int,
    rng: np.random.Generator,
    build: Callable[[T], R | None],
) -> list[R]:
    """Build `count` items, tasks for one, drawn so that the values of each trait come up as evenly as they can.

    One item at a time, the one whose traits have come up least so far, each in proportion to how many values it has and
    squared, so that no trait is given up for the others; ties at random. An item for which `build` gives None is passed
    over. Every item has the same number of traits, at least one.
    """
    order = permuted(items, rng)
    columns = list(zip(*map(traits, order), strict=True))
    codes = np.empty((len(items), len(columns)), dtype=np.intp)
    sizes: list[int] = []
    for place, values in enumerate(columns):
        known: dict[Hashable, int] = {}
        codes[:, place] = [known.setdefault(value, len(known)) + sum(sizes) for value in values]
        sizes.append(len(known))
    weight = np.repeat(np.array(sizes, dtype=float) ** 2, sizes)
    taken, left = np.zeros(sum(sizes)), np.ones(len(items), dtype=bool)
    tasks: list[R] = []
    while left.any() and len(tasks) < count:
        at = int(np.argmin(np.where(left, (taken**2 * weight)[codes].sum(axis=1), np.inf)))
        left[at] = False
        task = build(order[at])
        if task is not None:
            tasks.append(task)
            taken[codes[at]] += 1
    return tasks


def shuffled(tasks: Sequence[Task], rng: np.random.Generator) -> list[Task]:
    """Tasks in a random order: their place tells nothing, and a prefix is as mixed as the whole."""
    return permuted(tasks, rng)
