"""The paired difference between two arms of scores by task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.analysis.intervals.cells import gather
from finskillbench.analysis.intervals.clustered_t import spread, tells_enough

MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean paired difference `treated - reference` over `pairs` episodes in `clusters`, and its 95 % interval.

    `interval` is None where none can be said: too few clusters, or too few that differ from the rest.
    """

    mean: float
    interval: tuple[float, float] | None
    pairs: int
    clusters: int


def paired_difference(
    treated: Mapping[str, float], reference: Mapping[str, float], cluster_of: Mapping[str, str]
) -> Difference | None:
    """Difference of two conditions over the episodes that both have.

    Parameters
    ----------
    treated, reference : score by task id; repeats of an episode are averaged beforehand, so that an episode counts
        once however often it was run.
    cluster_of : the cluster of each task: episodes that share a market date, a mandate or a company are no
        independent witnesses.

    Returns
    -------
    The difference, or None where fewer than two episodes are paired and nothing can be said.
    """
    shared = sorted(treated.keys() & reference.keys())
    if len(shared) < MIN_PAIRS:
        return None
    gaps = np.array([treated[task] - reference[task] for task in shared])
    names, member = np.unique([cluster_of[task] for task in shared], return_inverse=True)
    sizes = np.bincount(member).astype(np.float64)
    places = np.arange(names.size)
    sums = np.bincount(member, weights=gaps).astype(np.float64)
    cells = gather(np.zeros_like(places), places, sizes, sums)
    interval = None
    if tells_enough(cells):
        half = spread(cells).half_width
        interval = (max(cells.mean - half, -1.0), min(cells.mean + half, 1.0))
    return Difference(cells.mean, interval, len(shared), names.size)
