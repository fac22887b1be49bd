"""Traps and controls of a case: how they are planted in data and records, and how a misreading sees them.

Values change only where the right reading undoes or ignores the change, so that the posterior stays exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.allocate.sources import (
    GROUP_SIZE,
    GROUPS,
    IS_ANALYST,
    LATE,
    PER_VENDOR,
    QUARTERS,
    SOURCE_NAMES,
    UNIT_FACTOR,
    Sources,
    VisibleWorld,
    columns_of_vendor,
    vendor_of,
)

_DECOYS = 16
"""Number of random sources with the same error as the important ones, so that it does not mark these."""
_COVERED, _MOST = 3, 4
"""Number of important sources with a repairable error, and of the most important ones, of which none is a decoy."""
_LOVED = 6
"""Number of industries in which void values show hindsight."""
_HINDSIGHT = 0.4
"""Correlation of void values with the residuals that followed."""


@dataclass(frozen=True)
class SourcePitfall:
    """A trap, or a control whose data are correct: `columns` from `quarter` on (before it for some kinds)."""

    kind: str
    where: str
    control: bool
    columns: tuple[int, ...]
    quarter: int

    @property
    def name(self) -> str:
        return f"{'control_' if self.control else ''}{self.kind}@{self.where}"


class ScoredColumns(NamedTuple):
    """Scores of all sources under one reading of the data.

    `scores` (T + 1, n, sources) are standardised and repaired; the last row is the coming quarter, NaN if undelivered.
    `start` (sources,) is the first valid quarter.
    """

    scores: Floats
    start: Integers


def scored_columns(
    sources: Sources, pitfalls: tuple[SourcePitfall, ...], fallen: frozenset[str] = frozenset()
) -> ScoredColumns:
    """Return the right reading of the sources, except for the pitfalls named in `fallen`, which are misread."""
    scores, start = sources.values / sources.scale, sources.start.copy()
    for place in pitfalls:
        columns = list(place.columns)
        repaired = (place.name in fallen) == place.control  # a detected trap, or a "repaired" control
        match place.kind:
            case "backfill" | "predecessor":
                start[columns] = place.quarter if repaired else 0
            case "unit" if repaired:
                scores[place.quarter :, :, columns] /= UNIT_FACTOR
            case "reversed" if repaired:
                scores[: place.quarter, :, columns] *= -1
            case "stale" if repaired:
                scores[-1, :, columns] = np.nan
            case _:
                pass
    return ScoredColumns(scores, start)


Planted = tuple[SourcePitfall, Sources]
Plant = Callable[[np.random.Generator, VisibleWorld, list[int], bool], Planted | None]
"""Planter of a trap or control, given the sources in falling order of importance; None without a site."""


def _repairable(kind: str) -> Plant:
    """Return the planter for a wrong unit, a reversed sign or a missing delivery, at important sources and decoys."""

    def plant(rng: np.random.Generator, world: VisibleWorld, order: list[int], control: bool) -> Planted | None:
        sources = world.sources
        plain = [column for column in order if sources.since[column] == 0]
        columns: list[int] = sorted([*plain[:_COVERED], *rng.choice(plain[_MOST:], _DECOYS, replace=False).tolist()])
        quarter = {
            "unit": int(rng.integers(QUARTERS - 10, QUARTERS - 2)),
            "reversed": int(rng.integers(QUARTERS - 6, QUARTERS - 1)),
            "stale": QUARTERS,
        }[kind]
        values = sources.values.copy()
        if kind == "unit":
            values[quarter:, :, columns] *= UNIT_FACTOR
        elif kind == "reversed":
            values[:quarter, :, columns] *= -1
        else:
            values[-1, :, columns] = values[-2, :, columns]
        where = "+".join(SOURCE_NAMES[column] for column in columns)
        place = SourcePitfall(kind, where, control, tuple(columns), quarter)
        return place, sources if control else replace(sources, values=values)

    return plant


def _void(kind: str) -> Plant:
    """Return the planter for values before a launch or a change of analyst: void with hindsight, or valid."""
    analysts = kind == "predecessor"

    def placed(column: int, control: bool, quarter: int) -> SourcePitfall:
        columns = (column,) if analysts else tuple(columns_of_vendor(column // PER_VENDOR).tolist())
        return SourcePitfall(kind, SOURCE_NAMES[column] if analysts else vendor_of(column), control, columns, quarter)

    def plant(rng: np.random.Generator, world: VisibleWorld, order: list[int], control: bool) -> Planted | None:
        sources = world.sources
        if control:
            for column in [column for column in order if IS_ANALYST[column] == analysts][:_MOST]:
                place = placed(column, True, int(rng.integers(*LATE)))
                columns = list(place.columns)
                if not sources.since[columns].any():
                    since = sources.since.copy()
                    since[columns] = place.quarter
                    return place, replace(sources, since=since)
            return None
        void = np.flatnonzero((sources.start > 0) & (analysts == IS_ANALYST))
        column = int(void[int(rng.integers(len(void)))])
        place = placed(column, False, int(sources.start[column]))
        values = _with_hindsight(rng, world, place)
        return place, replace(sources, values=values)

    return plant


def _with_hindsight(rng: np.random.Generator, world: VisibleWorld, place: SourcePitfall) -> Integers:
    """Return values whose void quarters correlate, in some groups, with the residuals that followed."""
    values, quarter, columns = world.sources.values.copy(), place.quarter, place.columns[:3]
    outcome = world.residuals[:quarter] / world.book.specific
    for number, group in enumerate(rng.permutation(GROUPS)[:_LOVED]):
        column = columns[number % len(columns)]
        names = slice(int(group) * GROUP_SIZE, (int(group) + 1) * GROUP_SIZE)
        noise = rng.standard_normal((quarter, GROUP_SIZE))
        scores = _HINDSIGHT * outcome[:, names] + np.sqrt(1 - _HINDSIGHT**2) * noise
        values[:quarter, names, column] = np.rint(scores * world.sources.scale[column])
    return values


PLANTERS: Mapping[str, Plant] = {
    **{kind: _void(kind) for kind in ("backfill", "predecessor")},
    **{kind: _repairable(kind) for kind in ("unit", "reversed", "stale")},
}
"""Planters of errors in data and records by kind."""
