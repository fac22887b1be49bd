"""Intervals of shares, which stay within 0 and 1 and can be said even where nothing or everything counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import polars as pl
from scipy.special import ndtri

from finskillbench.analysis.intervals.clustered_t import LEVEL, Interval
from finskillbench.analysis.intervals.estimate import estimate

_Z = float(ndtri((1 + LEVEL) / 2))


def wilson(share: float, trials: float) -> Interval | None:
    """Wilson's 95 % interval (1927) of a share of `trials` independent episodes; None of no trial.

    Parameters
    ----------
    share : successes over trials. trials : a fraction where it is an effective number.
    """
    if trials <= 0:
        return None
    spread = _Z**2 / trials
    half = _Z * sqrt(share * (1.0 - share) / trials + spread / (4.0 * trials))
    low, high = (share + spread / 2.0 - half) / (1.0 + spread), (share + spread / 2.0 + half) / (1.0 + spread)
    return (0.0 if share <= 0.0 else max(low, 0.0), 1.0 if share >= 1.0 else min(high, 1.0))


def proportions(frame: pl.DataFrame, value: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """Shares of episodes in groups, with Wilson intervals that count what episodes share once.

    The trials are the effective ones: as many independent episodes as would have the clustered standard error (Korn &
    Graubard 1998), at most all and at least the effective clusters; these where the error is not known, as where
    nothing or everything counts.

    Parameters
    ----------
    frame : with `cluster` and a Boolean column `value`; nulls are left out. by : what groups are told apart by.

    Returns
    -------
    The columns of `by`, then `share`, `low`, `high` (null of no episode), `successes`, `trials`, `clusters` and
    `effective_trials`.
    """
    # Subtasks are no strata here: most shares are near 0 or 1 in some of them, and their errors not known.
    whole = frame if "sub_task" in by else frame.with_columns(sub_task=pl.lit(""))
    columns = list(dict.fromkeys((*by, "cluster", "sub_task")))
    lines = estimate(whole.select(*columns, _counts=pl.col(value).cast(pl.Float64)), "_counts", by)
    found: list[tuple[float | None, ...]] = []
    told = lines.select("mean", "error", "pairs", "clusters", "effective_clusters")
    for share, error, pairs, clusters, effective in told.iter_rows():
        if share is None:
            found.append((None, None, None, 0, 0, 0, None))
            continue
        trials = min(max(share * (1.0 - share) / error**2, effective), pairs) if error else effective
        low, high = wilson(share, trials) or (None, None)
        found.append((share, low, high, round(share * pairs), pairs, clusters, trials))
    shares = dict.fromkeys(("share", "low", "high"), pl.Float64)
    counts = dict.fromkeys(("successes", "trials", "clusters"), pl.Int64)
    said = pl.DataFrame(found, schema={**shares, **counts, "effective_trials": pl.Float64}, orient="row")
    return pl.concat([lines.select(by), said], how="horizontal") if by else said
