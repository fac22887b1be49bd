"""What position_limit_min and name_count ask of each name: not to be held, or to be held by enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.optimisation.branching import Decision
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.errors import InputError

STUB = HOLDING_THRESHOLD - 1e-6
"""Greatest weight of a name that is not a holding; just under the threshold, so that the feasible set is closed."""
SLACK = 1e-9
"""A weight, a turnover or an excess within this of its limit keeps it."""
CLEAR = 1e-7
"""How far above the threshold a counted name is held, so that it counts whoever adds it up, and however."""


@dataclass(frozen=True)
class Semicontinuity:
    """Each |weight| is at most `off` or at least `on`; of the second sort there are `least` to `most`.

    `gap` says that a weight in between breaks the mandate whatever the others are (position_limit_min).
    """

    off: float
    on: float
    least: int
    most: int
    gap: bool

    def decisions_of(self, weights: Floats) -> Integers:
        """(n,) the decision nearest to each weight."""
        on = np.where(weights > 0, Decision.LONG, Decision.SHORT)
        return np.where(np.abs(weights) >= (self.off + self.on) / 2, on, Decision.OFF).astype(np.int8)

    def broken(self, weights: Floats) -> Floats:
        """(n,) how far each weight is from an allowed one: under the floor, or a holding too many or too few."""
        size = np.abs(weights)
        broken = np.zeros(len(size))
        if self.gap:
            broken = np.minimum(size, np.maximum(self.on - size, 0.0))
            broken[broken <= SLACK] = 0.0
        held = size >= self.on - SLACK
        if held.sum() > self.most:
            broken[held] += 1.0 / (1.0 + size[held])
        elif held.sum() < self.least:
            broken[~held] += 1.0 + size[~held]
        return broken


def semicontinuity_of(mandate: Mandate, names: int) -> Semicontinuity | None:
    """What position_limit_min and name_count ask of `names` names; None where the mandate has neither.

    Raises
    ------
    InputError : for a position_limit_min so small that a holding may not count, beside a name_count.
    """
    floor, counts = mandate.get(Kind.POSITION_LIMIT_MIN), mandate.get(Kind.NAME_COUNT)
    least = int(counts.minimum) if counts is not None and counts.minimum is not None else 0
    most = int(counts.maximum) if counts is not None and counts.maximum is not None else names
    smallest = floor.value if floor is not None else None
    if smallest is not None and smallest > 0:
        if counts is not None and smallest < HOLDING_THRESHOLD:
            raise InputError(
                f"position_limit_min is {smallest:g}; beside a name_count give at least {HOLDING_THRESHOLD:g}"
            )
        return Semicontinuity(0.0, smallest, least, most, gap=True)
    if least == 0 and most >= names:
        return None
    return Semicontinuity(STUB, HOLDING_THRESHOLD + CLEAR, least, most, gap=False)
