"""Many comparisons at once: with twelve subtasks, one in two tables would show an effect where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from scipy.special import stdtr

from finskillbench.arrays import Floats

_P = "p"


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted so that 5 % is the chance of any false finding (Holm 1979); an absent one stays absent."""
    return _adjusted(values, _holm)


def holm_weighted(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The same where tests share the chance of a false finding unevenly, by positive weights (Holm 1979, section 4)."""
    order = sorted(range(len(values)), key=lambda place: values[place] / weights[place])
    adjusted, least, left = [0.0] * len(values), 0.0, math.fsum(weights)
    for place in order:
        least = max(least, min(1.0, values[place] * left / weights[place]))
        adjusted[place] = least
        left -= weights[place]
    return adjusted


def benjamini_hochberg(values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted so that of the findings below 5 %, 5 % are expected to be false (Benjamini & Hochberg 1995).

    An absent one stays absent.
    """
    return _adjusted(values, _benjamini_hochberg)


def adjust(lines: pl.DataFrame, family: Sequence[str] = ()) -> pl.DataFrame:
    """The lines of `estimate` with the two-sided `p` of the clustered t test against 0, `p_holm` and `p_fdr`.

    Parameters
    ----------
    lines : as `estimate` returns them; p is null where a line has no standard error, and counts in no family.
    family : the columns that tell families of comparisons apart, such as `model`; by default all lines are one.
    """
    told = lines.select("mean", "error", "freedom").iter_rows()
    tested = [None if error is None else _two_sided(mean, error, freedom) for mean, error, freedom in told]
    lines = lines.with_columns(pl.Series(_P, tested, pl.Float64))

    def over(correct: Callable[[Sequence[float | None]], list[float | None]]) -> pl.Expr:
        def adjusted(series: pl.Series) -> pl.Series:
            return pl.Series(correct(series.to_list()), dtype=pl.Float64)

        expression = pl.col(_P).map_batches(adjusted, return_dtype=pl.Float64)
        return expression.over(family) if family else expression

    return lines.with_columns(p_holm=over(holm), p_fdr=over(benjamini_hochberg))


def _two_sided(mean: float, error: float, freedom: float) -> float:
    return 2.0 * float(stdtr(freedom, -abs(mean) / error))


def _adjusted(values: Sequence[float | None], correct: Callable[[Floats], Floats]) -> list[float | None]:
    there = [place for place, value in enumerate(values) if value is not None]
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    order = np.argsort(known, kind="stable")
    adjusted: list[float | None] = [None] * len(values)
    for place, value in zip(order, np.minimum(correct(known[order]), 1.0), strict=True):
        adjusted[there[place]] = float(value)
    return adjusted


def _holm(ascending: Floats) -> Floats:
    return np.maximum.accumulate(ascending * np.arange(ascending.size, 0, -1)) if ascending.size else ascending


def _benjamini_hochberg(ascending: Floats) -> Floats:
    steps = ascending * ascending.size / np.arange(1, ascending.size + 1)
    return np.minimum.accumulate(steps[::-1])[::-1] if ascending.size else ascending
