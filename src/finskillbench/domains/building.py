"""Build context, catalogs, reproducible draws and the task type of `build` functions."""

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
from finskillbench.episode import Disclosure, Episode, JsonObject, Truth
from finskillbench.errors import InternalError
from finskillbench.panels import Panels
from finskillbench.sources.edgar.collection import FilingsData


@dataclass(frozen=True, slots=True)
class BuiltTask:
    """One built task: episode, truth, certificate, tables referenced in the input, and data hidden from agents."""

    episode: Episode
    truth: Truth
    certificate: JsonObject
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    hidden: JsonObject | None = None


@dataclass(frozen=True)
class BuildContext:
    """Inputs of a build: panels, seed, user catalog and options; collects notes for the manifest."""

    panels: Panels
    seed: int
    filings: FilingsData | None = None
    """Raw EDGAR files for the independent derivation of fundamental labels; None if the collection has none."""
    catalog: Catalog = field(default_factory=Catalog)
    """User data that replaces or extends built-in data."""
    synthetic: bool = False
    """True for a simulated market, whose data-generating process is known."""
    filed: tuple[date, date] | None = None
    """First and last filing day of the reports used in episodes; None uses every report."""
    episodes: int | None = None
    """Maximum number of episodes of a subtask; None builds as many as specified."""
    disclosure: Disclosure | None = None
    """Disclosure of all cases that follow a law; None mixes `described` and `data`."""
    notes: list[str] = field(default_factory=list[str])
    """Deviations from the configuration, one sentence each; stored in the manifest."""

    def most(self, count: int) -> int:
        """Return `count`, limited to `episodes`."""
        return count if self.episodes is None else min(count, self.episodes)

    def generator(self, *labels: object) -> np.random.Generator:
        """Return a random stream that depends on seed, universe and labels only.

        The universe enters so that no draw of the published edition recurs in another collection with the same seed.
        """
        key = zlib.crc32("/".join(map(str, (*self.panels.universe, *labels))).encode())
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, key])))


def read_catalog(package: str | None, name: str) -> dict[str, Any]:
    """Return the JSON object `catalog/<name>` of a package: `read_catalog(__package__, "risk.json")`."""
    return json.loads(read_catalog_text(package, name))


def read_catalog_text(package: str | None, name: str) -> str:
    """Return the text of `catalog/<name>` in a package."""
    if package is None:
        raise InternalError(f"catalog/{name}: the calling file belongs to no package")
    return resources.files(package).joinpath("catalog", name).read_text(encoding="utf-8")


def merge_conventions(*parts: Mapping[str, str]) -> dict[str, str]:
    """Merge definitions into the `conventions` of an input; raise InternalError if two sources define a key."""
    merged: dict[str, str] = {}
    for part in parts:
        twice = sorted(merged.keys() & part.keys())
        if twice:
            raise InternalError(f"conventions: {', '.join(twice)} is defined twice; rename one of them")
        merged |= part
    return merged


class CovarianceTable(TypedDict):
    """Annualised covariance by reference, or resolved.

    Resolved it is `matrix` (n, n), or loadings' loadings + diag(specific) with loadings (k, n) and specific (n,).
    """

    tickers: NotRequired[list[str]]
    ref: NotRequired[str]
    matrix: NotRequired[list[list[float]]]
    loadings: NotRequired[list[list[float]]]
    specific: NotRequired[list[float]]


T = TypeVar("T")
R = TypeVar("R")


def permuted(items: Sequence[T], rng: np.random.Generator) -> list[T]:
    """Return the items in random order."""
    return [items[i] for i in rng.permutation(len(items)).tolist()]


def stratified(items: Sequence[T], stratum: Callable[[T], Hashable], count: int, rng: np.random.Generator) -> list[T]:
    """Draw `count` items evenly over the strata, which take turns in random order; keep the order of `items`."""
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


def draw_evenly(
    items: Sequence[T],
    traits: Callable[[T], Sequence[Hashable]],
    count: int,
    rng: np.random.Generator,
    build: Callable[[T], R | None],
) -> list[R]:
    """Build `count` items so that the values of each trait occur as evenly as possible.

    Each step takes the item whose traits occurred least so far, weighted by the squared number of values per trait,
    with random ties. Items for which `build` returns None are skipped.
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


def shuffled(tasks: Sequence[BuiltTask], rng: np.random.Generator) -> list[BuiltTask]:
    """Return the tasks in random order, so that positions carry no information and any prefix is mixed."""
    return permuted(tasks, rng)
