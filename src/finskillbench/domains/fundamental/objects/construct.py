"""What the fundamental subtasks share: the catalog, the reports that episodes can be about, the pools drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypedDict

import msgspec

from finskillbench.domains.building import BuildContext, read_catalog
from finskillbench.domains.fundamental.objects.reports import Case, opened
from finskillbench.errors import InternalError

SKILL = "fundamental_analysis"
_POOL_PER_EPISODE = 20
"""Labels that are proved for each episode of an edition with fewer episodes than the catalog asks for."""


class Catalog(TypedDict):
    """The configuration of the domain; its field `about` says what the others mean."""

    about: str
    episodes: dict[str, int]
    pool: dict[str, int]
    history_days: int
    least: dict[str, int]
    whole: dict[str, float]
    difficulty: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class FundamentalObjects:
    """What `prepare` hands to each subtask.

    cases : every report with its figures, in a random order in which companies take turns.
    entities : per company its CIK, its name in the facts, and its CIKs by the collection's lists of tickers.
    pools : per subtask, once it is built, what its episodes were drawn from and how often the two derivations agree.
    """

    catalog: Catalog
    cases: Iterable[Case]
    entities: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    pools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


def prepare(context: BuildContext) -> FundamentalObjects:
    """The catalog and the reports, which are read when the first subtask asks for them and then kept."""
    catalog = msgspec.convert(read_catalog("finskillbench.domains.fundamental", "fundamental.json"), Catalog)
    if context.episodes is not None:
        catalog["episodes"] = {name: context.most(count) for name, count in catalog["episodes"].items()}
        catalog["pool"] = dict.fromkeys(catalog["pool"], _POOL_PER_EPISODE * context.episodes)
    if context.filings is None:
        raise InternalError("fundamental analysis is prepared without the filings that its facts come from")
    history = timedelta(days=catalog["history_days"])
    cases = opened(context.panels, context.filings, context.generator(SKILL), history, context.filed)
    entities = {
        symbol: {"cik": one.cik, "entity": one.entity, "listed": list(context.filings.listed.get(symbol, ()))}
        for symbol, one in sorted(context.filings.filers.items())
    }
    return FundamentalObjects(catalog, _ReadOnce(cases), entities)


def parameters(objects: FundamentalObjects) -> dict[str, Any]:
    """What the manifest records of a build."""
    return {
        "fundamental": objects.catalog,
        "fundamental_pools": objects.pools,
        "fundamental_entities": objects.entities,
    }


class _ReadOnce(Iterable[Case]):
    """An iterable that takes each item from its source when it is first asked for, and keeps it."""

    def __init__(self, source: Iterator[Case]) -> None:
        self._source, self._items = source, list[Case]()

    def __iter__(self) -> Iterator[Case]:
        yield from self._items
        for item in self._source:
            self._items.append(item)
            yield item
