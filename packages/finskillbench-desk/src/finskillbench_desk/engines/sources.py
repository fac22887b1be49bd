"""Evidence of candidate sources for a group's residual returns.

The residual of name i in period t is N(b x_it, s_i²), with x a source's value and b a coefficient of the group. The
sums X = Σ x²/s² and Y = Σ x r/s² are sufficient. Source: Bishop (2006), Pattern Recognition and Machine Learning,
section 3.5 (evidence of a linear model).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats


class Evidence(NamedTuple):
    """Log evidence against no effect, and posterior mean and variance of the coefficient, in the shape of the sums."""

    log_odds: Floats
    mean: Floats
    variance: Floats


def evidence(squares: Floats, products: Floats, mean: Floats | float, deviation: Floats | float) -> Evidence:
    """Return evidence and posterior for the prior N(mean, deviation²); all arguments broadcast."""
    prior = 1.0 / np.square(deviation)
    precision = squares + prior
    centre = (products + prior * mean) / precision
    log_odds = 0.5 * (centre * centre * precision - mean * mean * prior + np.log(prior / precision))
    return Evidence(log_odds, centre, 1.0 / precision)
