"""What subtasks build their episodes from: reproducible draws, the catalogs, the triple they return.

What inputs of several domains hold in the same form.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import Any, NotRequired, TypedDict

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
