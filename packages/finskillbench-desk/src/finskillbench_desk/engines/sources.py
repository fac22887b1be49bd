"""Sums, estimates and evidence of candidate sources for a group's residual returns.

The residual of name i in period t is N(b x_it, s_i²), with x a source's value and b a coefficient of the group. The
sums X = Σ x²/s² and Y = Σ x r/s² are sufficient. Source: Bishop (2006), Pattern Recognition and Machine Learning,
section 3.5 (evidence of a linear model).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats


class _Sums(NamedTuple):
    squares: Floats
    products: Floats


class Evidence(NamedTuple):
    """Log evidence against no effect, and posterior mean and variance of the coefficient, in the shape of the sums."""

    log_odds: Floats
    mean: Floats
    variance: Floats


def sums_by_group(values: Floats, residuals: Floats, specific: Floats, groups: int) -> _Sums:
    """Compute X and Y, each (T, G, C), of every period, group and candidate.

    `values` (T, n, C) and `residuals` (T, n) list the names of a group together, n/G each; `specific` (n,) are the
    residuals' standard deviations.
    """
    periods, names, candidates = values.shape
    scaled = values / specific[None, :, None]
    shape = (periods, groups, names // groups)
    blocks = scaled.reshape(*shape, candidates)
    target = (residuals / specific).reshape(*shape, 1)
    return _Sums(np.einsum("tgnc,tgnc->tgc", blocks, blocks), (blocks * target).sum(axis=2))


def evidence(squares: Floats, products: Floats, mean: Floats | float, deviation: Floats | float) -> Evidence:
    """Return evidence and posterior for the prior N(mean, deviation²); all arguments broadcast."""
    prior = 1.0 / np.square(deviation)
    precision = squares + prior
    centre = (products + prior * mean) / precision
    log_odds = 0.5 * (centre * centre * precision - mean * mean * prior + np.log(prior / precision))
    return Evidence(log_odds, centre, 1.0 / precision)
