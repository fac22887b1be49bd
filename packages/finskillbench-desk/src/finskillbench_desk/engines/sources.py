"""Which of many candidate sources moves a group's residual returns? Sums, estimates and evidence of each.

Given what is explained otherwise, the residual of name i in period t is N(b x_it, s_i²), where x is the value of one
candidate source and b an unknown coefficient that all names of a group share. All that the data say of b is then in two
sums over names and periods, X = Σ x²/s² and Y = Σ x r/s²: least squares gives Y/X with standard error X^(−1/2), and
under b ~ N(m, τ²) the evidence of the source against no effect and the posterior of b are closed forms.

Source: Bishop (2006), Pattern Recognition and Machine Learning, section 3.5 (evidence of a linear model).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats


class _Sums(NamedTuple):
    """X = Σ x²/s² and Y = Σ x r/s², each (T, G, C): periods, groups, candidates."""

    squares: Floats
    products: Floats


class Evidence(NamedTuple):
    """Log evidence against no effect, and the posterior of the coefficient; arrays of the shape of the sums."""

    log_odds: Floats
    mean: Floats
    variance: Floats


def sums_by_group(values: Floats, residuals: Floats, specific: Floats, groups: int) -> _Sums:
    """The sums of every period, group and candidate.

    Parameters
    ----------
    values : (T, n, C) values of the candidates; the names of a group stand together, n/G of them each.
    residuals : (T, n) what is to be explained.
    specific : (n,) standard deviations of the residuals.
    groups : G.
    """
    periods, names, candidates = values.shape
    scaled = values / specific[None, :, None]
    shape = (periods, groups, names // groups)
    blocks = scaled.reshape(*shape, candidates)
    target = (residuals / specific).reshape(*shape, 1)
    return _Sums(np.einsum("tgnc,tgnc->tgc", blocks, blocks), (blocks * target).sum(axis=2))


def evidence(squares: Floats, products: Floats, mean: Floats | float, deviation: Floats | float) -> Evidence:
    """What sums say of a coefficient with prior N(mean, deviation²); everything broadcasts."""
    prior = 1.0 / np.square(deviation)
    precision = squares + prior
    centre = (products + prior * mean) / precision
    log_odds = 0.5 * (centre * centre * precision - mean * mean * prior + np.log(prior / precision))
    return Evidence(log_odds, centre, 1.0 / precision)
