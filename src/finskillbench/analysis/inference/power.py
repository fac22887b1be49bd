"""How small an effect would have been seen, and how many clusters a given one takes."""

from __future__ import annotations

import polars as pl
from scipy.special import nctdtrinc, stdtrit

from finskillbench.analysis.intervals.clustered_t import LEVEL, MIN_CLUSTERS
from finskillbench.errors import InputError

POWER = 0.8
"""The chance with which an effect should be found."""
_MOST_CLUSTERS = 1_000_000


def detectable_effect(error: float, freedom: float) -> float:
    """The least true effect that the clustered t test finds in 80 of 100 runs, in the unit of the error.

    From the non-central t distribution; the chance to find an effect of the wrong sign, below 1 in 10,000, is left out.

    Parameters
    ----------
    error, freedom : the standard error of a mean and its degrees of freedom, as `estimate` gives them.
    """
    return error * _multiple(freedom)


def clusters_needed(effect: float, error: float, freedom: float, clusters: int) -> int | None:
    """The least number of clusters with which a true effect would be found in 80 of 100 runs.

    The clusters are taken to be like those that were run: the squared error falls with their number, and the degrees of
    freedom, of which clusters of one size have one less than there are, rise in proportion but for that one.

    Parameters
    ----------
    effect : in the unit of the error, of any sign. error, freedom, clusters : as `estimate` gives them.

    Returns
    -------
    The number; None where a million clusters would not do.

    Raises
    ------
    InputError : the effect is 0.
    """
    if effect == 0.0:
        raise InputError("effect: no number of episodes finds an effect of 0; give the least one that matters")

    def enough(count: int) -> bool:
        left = (freedom + 1.0) * count / clusters - 1.0
        return left > 0.0 and error * (clusters / count) ** 0.5 * _multiple(left) <= abs(effect)

    low, high = MIN_CLUSTERS, MIN_CLUSTERS
    while not enough(high):
        if high == _MOST_CLUSTERS:
            return None
        low, high = high, min(2 * high, _MOST_CLUSTERS)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def detectable(lines: pl.DataFrame, effect: float | None = None) -> pl.DataFrame:
    """The lines of `estimate` with the column `detectable`: the least true effect that would have been found.

    Where an effect is given, also `clusters_needed`, and `pairs_needed` at as many pairs for each cluster as were run.
    All are null where the line has no standard error.
    """
    found: list[tuple[float | None, int | None, int | None]] = []
    for error, freedom, clusters, pairs in lines.select("error", "freedom", "clusters", "pairs").iter_rows():
        if error is None:
            found.append((None, None, None))
            continue
        needed = None if effect is None else clusters_needed(effect, error, freedom, clusters)
        episodes = None if needed is None else -(-needed * pairs // clusters)
        found.append((detectable_effect(error, freedom), needed, episodes))
    schema = {"detectable": pl.Float64, "clusters_needed": pl.Int64, "pairs_needed": pl.Int64}
    beside = pl.DataFrame(found, schema=schema, orient="row")
    return pl.concat([lines, beside if effect is not None else beside.select("detectable")], how="horizontal")


def _multiple(freedom: float) -> float:
    """The detectable effect in standard errors."""
    return float(nctdtrinc(freedom, 1.0 - POWER, stdtrit(freedom, (1 + LEVEL) / 2)))
