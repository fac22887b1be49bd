"""Signals and analysts: what they said of every name in every quarter, as integers in their own scale."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.allocate.dials import (
    ANALYSTS,
    NAMES,
    PER_VENDOR,
    QUARTERS,
    SIGNALS,
    SOURCES,
    VENDORS,
)

_VENDOR_NAMES = (
    "Aldgate", "Birch", "Calder", "Dunmore", "Elster", "Fathom", "Gorse", "Harrow", "Inver", "Juniper",
    "Kestrel", "Lorne", "Meridian", "Nadir", "Orrin", "Paxton", "Quill", "Rowan", "Selkirk", "Tamar",
    "Ulmus", "Vesper", "Wharf", "Xenia", "Yarrow", "Zephyr", "Ashdown", "Brisco", "Corran", "Delphi",
)  # fmt: skip
SOURCE_NAMES = (
    *(f"S{number:03d}" for number in range(1, SIGNALS + 1)),
    *(f"A{number:02d}" for number in range(1, ANALYSTS + 1)),
)
IS_ANALYST = np.arange(SOURCES) >= SIGNALS
_LATE_VENDORS, _LATE_ANALYSTS, _VOID = 5, 5, 3
"""How many vendors were launched, and analysts took over, of late; of how many the earlier values are void."""
LATE = (QUARTERS - 8, QUARTERS - 2)
"""Quarters of late launches: so late that what came after cannot refute what was made up before."""
_LOUD = 6
"""Analysts who speak in far greater numbers than the others."""
STEPS = 150
"""Sources are delivered in steps of a part of their scale, which a table holds in half the room of free numbers."""


@dataclass(frozen=True)
class Sources:
    """What was delivered.

    Attributes
    ----------
    values : (T + 1, n, C) integers; the last row is what is delivered for the coming quarter.
    scale : (C,) the dispersion of each column by which its values are divided.
    start : (C,) first quarter of which a column's values say anything; those before are void.
    since : (C,) launch of a signal's vendor or an analyst's first quarter on the desk, as the table of sources has it.
    parent : (C,) the source that a column copies, itself where it copies none.
    """

    values: Integers = field(repr=False)
    scale: Integers
    start: Integers
    since: Integers
    parent: Integers

    def cluster(self, source: int) -> Integers:
        """A source with all that copy it or are copied by it."""
        return np.flatnonzero(self.parent == self.parent[source])


def vendor_of(source: int) -> str:
    """Who delivers a signal; analysts are the house's own."""
    return "house analyst" if IS_ANALYST[source] else _VENDOR_NAMES[source // PER_VENDOR]


def columns_of_vendor(vendor: int) -> Integers:
    """The signals of a vendor."""
    return np.arange(vendor * PER_VENDOR, (vendor + 1) * PER_VENDOR)


def draw_sources(rng: np.random.Generator, copies: int) -> Sources:
    """Scores that drift from quarter to quarter, some of them copies of another with noise, in scales of their own."""
    persistence = rng.uniform(0.2, 0.8, SOURCES)
    scores = _drifting(rng, persistence)
    parent = np.arange(SOURCES)
    order = rng.permutation(SOURCES)
    copied = order[~IS_ANALYST[order]][:copies]
    originals = order[~np.isin(order, copied)][: copies // 4]
    for place, column in enumerate(copied):
        original = originals[place % len(originals)]
        likeness = rng.uniform(0.85, 0.97)
        parent[column] = original
        scores[:, :, column] *= np.sqrt(1.0 - likeness**2)
        scores[:, :, column] += likeness * scores[:, :, original]
    step = rng.integers(200, 600, SOURCES)
    loud = rng.choice(np.flatnonzero(IS_ANALYST), _LOUD, replace=False)
    step[loud] *= 8
    scale = STEPS * step
    values = np.rint(scores * STEPS).astype(np.int32) * step
    start, since = np.zeros(SOURCES, dtype=np.int64), np.zeros(SOURCES, dtype=np.int64)
    for place, vendor in enumerate(rng.choice(VENDORS, _LATE_VENDORS, replace=False)):
        columns = columns_of_vendor(int(vendor))
        since[columns] = rng.integers(*LATE)
        start[columns] = since[columns] * (place < _VOID)
    for place, column in enumerate(rng.choice(np.flatnonzero(IS_ANALYST), _LATE_ANALYSTS, replace=False)):
        since[column] = rng.integers(*LATE)
        start[column] = since[column] * (place < _VOID)
    return Sources(values, scale, start, since, parent)


def _drifting(rng: np.random.Generator, persistence: Floats) -> Floats:
    """(T + 1, n, C) stationary first-order autoregressions of variance one."""
    scores = rng.standard_normal((QUARTERS + 1, NAMES, SOURCES))
    fresh = np.sqrt(1.0 - persistence**2)
    for quarter in range(1, QUARTERS + 1):
        scores[quarter] *= fresh
        scores[quarter] += persistence * scores[quarter - 1]
    return scores
