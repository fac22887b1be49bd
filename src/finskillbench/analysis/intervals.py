"""Paired differences between two conditions, with an interval by bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
DRAWS = 2_000
MIN_PAIRS = 2
_BLOCK = 250
"""Draws made at once: bounds the memory at 2,603 episodes to 5 MB."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean paired difference `treated - reference` over `pairs` episodes, and its 95 % percentile interval."""

    mean: float
    low: float
    high: float
    pairs: int


def paired_difference(
    treated: Mapping[str, float], reference: Mapping[str, float], rng: np.random.Generator, *, draws: int = DRAWS
) -> Difference | None:
    """Difference of two conditions over the episodes that both have.

    Parameters
    ----------
    treated, reference : score by task id; repeats of an episode are averaged beforehand, so that an episode counts
        once however often it was run.
    rng : draws the episodes, with replacement; the pair is drawn, never its halves.
    draws : bootstrap samples.

    Returns
    -------
    The difference, or None where fewer than two episodes are paired and nothing can be said.

    Notes
    -----
    The episode is the unit: the interval is about other episodes of the same kind, and not about other market
    dates; episodes that share a date are treated as independent.
    """
    shared = sorted(treated.keys() & reference.keys())
    if len(shared) < MIN_PAIRS:
        return None
    gaps = np.array([treated[task] - reference[task] for task in shared])
    means = np.concatenate(
        [
            gaps[rng.integers(0, gaps.size, size=(min(_BLOCK, draws - start), gaps.size))].mean(axis=1)
            for start in range(0, draws, _BLOCK)
        ]
    )
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(float(gaps.mean()), float(low), float(high), gaps.size)
