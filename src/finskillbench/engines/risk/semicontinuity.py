"""Semicontinuous weights from position_limit_min and name_count: not held, or held by a minimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.optimisation.intervals import Interval, intersect
from finskillbench.engines.risk.mandate import ConstraintKind, RiskMandate
from finskillbench.errors import InputError

STUB = HOLDING_THRESHOLD - 1e-6
"""Greatest weight of a non-holding, just below the threshold so that the feasible set is closed."""
SLACK = 1e-9
"""Tolerance of weights, turnover and excesses."""
CLEAR = 1e-7
"""Margin above the threshold, so that a counted name counts under any rounding."""


@dataclass(frozen=True)
class Semicontinuity:
    """Each |weight| is at most `off` or at least `on`; `least` to `most` weights are at least `on`.

    `gap` means that weights in between break the mandate by themselves (position_limit_min).
    """

    off: float
    on: float
    least: int
    most: int
    gap: bool

    def allowed(self, low: float, high: float) -> list[Interval]:
        """Return the weights between two bounds without positions below the floor."""
        sides = ((-np.inf, -self.on), (-self.off, self.off), (self.on, np.inf))
        return intersect(sides if self.on else ((-np.inf, np.inf),), ((low, high),))

    def miscounted(self, weights: Floats) -> Floats:
        """(n,) Scores of the names that could correct a broken count, else 0."""
        size = np.abs(weights)
        held = size >= self.on - SLACK
        if held.sum() > self.most:
            return np.where(held, 1.0 / (1.0 + size), 0.0)
        return np.where(held, 0.0, 1.0 + size) if held.sum() < self.least else np.zeros(len(size))


def semicontinuity_of(mandate: RiskMandate, names: int) -> Semicontinuity | None:
    """Derive the rule, or None; raise `InputError` for name_count with too small a position minimum."""
    floor, counts = mandate.get(ConstraintKind.POSITION_LIMIT_MIN), mandate.get(ConstraintKind.NAME_COUNT)
    least = int(counts.minimum) if counts is not None and counts.minimum is not None else 0
    most = int(counts.maximum) if counts is not None and counts.maximum is not None else names
    smallest = floor.value if floor is not None else None
    if smallest is not None and smallest > 0:
        if counts is not None and smallest < HOLDING_THRESHOLD:
            raise InputError(
                f"position_limit_min is {smallest:g}; with a name_count give at least {HOLDING_THRESHOLD:g}"
            )
        return Semicontinuity(0.0, smallest, least, most, gap=True)
    if least == 0 and most >= names:
        return None
    return Semicontinuity(STUB, HOLDING_THRESHOLD + CLEAR, least, most, gap=False)
