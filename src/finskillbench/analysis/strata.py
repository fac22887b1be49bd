"""What skills change where an agent does well without them, and where it does not.

Episodes must not be sorted by the score that the difference is taken from: those with a poor score without skills had
bad luck more often than good, do better the next time whatever they are given, and seem to gain (regression to the
mean). So a stratum is told by the mean of a whole subtask under one model, in which luck averages out, or by repeats
that the difference does not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from finskillbench.analysis.results import Comparison, Results, pairs
from finskillbench.errors import InputError

LEVELS = (0.25, 0.5, 0.75)
"""Where one stratum ends and the next begins."""


def by_cell(
    paired: pl.DataFrame, levels: Sequence[float] = LEVELS, cell: Sequence[str] = ("model", "harness", "sub_task")
) -> pl.DataFrame:
    """Pairs by the mean reference score of their model on their subtask.

    Parameters
    ----------
    paired : as from `pairs`. levels : ascending scores between strata. cell : what a mean is taken over.

    Returns
    -------
    The pairs with `baseline`, that mean, and `stratum`, its range ("0.25-0.50", lower end included); for `estimate`.
    """
    return _labelled(paired.with_columns(baseline=pl.col("reference").mean().over(cell)), levels)


def by_other_half(results: Results, comparison: Comparison, levels: Sequence[float] = LEVELS) -> pl.DataFrame:
    """Pairs by the reference score of the even repeats of their episode; their difference takes the odd ones.

    Returns
    -------
    As `by_cell`; episodes of which a half has no score are left out.

    Raises
    ------
    InputError : no episode was repeated under the reference condition.
    """
    keys = ["model", "harness", "episode"]
    reference = results.rows.filter(pl.col("condition") == comparison.reference, pl.col("score").is_not_null())
    even, odd = (reference.filter(pl.col("run_idx") % 2 == rest) for rest in (0, 1))
    if odd.is_empty() or even.is_empty():
        raise InputError(f"strata: no episode was repeated under {comparison.reference}; run with --epochs 2 or more")
    baseline = even.group_by(keys).agg(baseline=pl.col("score").mean())
    other = odd.group_by(keys).agg(reference=pl.col("score").mean())
    halved = (
        pairs(results, comparison)
        .drop("reference")
        .join(baseline, on=keys, how="inner", maintain_order="left")
        .join(other, on=keys, how="inner", maintain_order="left")
        .with_columns(difference=pl.col("treated") - pl.col("reference"))
    )
    return _labelled(halved, levels)


def _labelled(frame: pl.DataFrame, levels: Sequence[float]) -> pl.DataFrame:
    ends = [0.0, *levels, 1.0]
    names = [f"{low:.2f}-{high:.2f}" for low, high in pairwise(ends)]
    place = pl.sum_horizontal(pl.lit(0), *((pl.col("baseline") >= level).cast(pl.Int32) for level in levels))
    return frame.with_columns(stratum=place.replace_strict(dict(enumerate(names)), return_dtype=pl.String))
