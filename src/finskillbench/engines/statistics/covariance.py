"""Covariance in factor form, and the Ledoit-Wolf estimator that gives one exactly.

A sample covariance of T sessions is a Gram matrix of T rows, and shrinking it towards a constant variance adds a
diagonal: `loadings' loadings + diag(specific)`. Kept so, nothing of size n x n is needed to weigh 3,000 names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError

SESSIONS_PER_YEAR = 252
RIDGE = 1e-8
"""Added to the variances of an estimate that is not positive definite (specification: data, Panels, covariance)."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """An annualised covariance of simple returns, `loadings' loadings + diag(specific)`.

    Attributes
    ----------
    symbols : n names, in the order of the columns.
    loadings : (k, n) decimals per square root of a year.
    specific : (n,) decimals squared per year, none negative; its least entry bounds the least eigenvalue from below.
    """

    symbols: tuple[str, ...]
    loadings: Floats
    specific: Floats

    def __post_init__(self) -> None:
        n = len(self.symbols)
        if self.loadings.ndim != 2 or self.loadings.shape[1] != n or self.specific.shape != (n,):
            raise DimensionError(
                f"covariance of {n} symbols: loadings {self.loadings.shape} and specific {self.specific.shape} "
                f"must be (k, {n}) and ({n},)"
            )
        if len(set(self.symbols)) != n:
            raise InputError("covariance: a symbol occurs twice")
        if not (np.isfinite(self.loadings).all() and np.isfinite(self.specific).all()):
            raise InputError("covariance: a loading or specific variance is not finite")
        if (self.specific < 0).any():
            name = self.symbols[int(np.argmin(self.specific))]
            raise InputError(f"covariance: specific variance of {name} is negative")

    def matrix(self) -> Floats:
        """The dense (n, n) matrix, exactly symmetric."""
        dense = self.loadings.T @ self.loadings
        dense = (dense + dense.T) / 2
        dense[np.diag_indices_from(dense)] += self.specific
        return dense

    def variances(self) -> Floats:
        """The diagonal (n,), without the matrix."""
        return np.einsum("kn,kn->n", self.loadings, self.loadings) + self.specific

    def times(self, w: Floats) -> Floats:
        """Σw for w (n,) or (n, j)."""
        if w.ndim not in (1, 2) or len(w) != len(self.symbols):
            raise DimensionError(f"covariance of {len(self.symbols)} symbols: weights have shape {w.shape}")
        specific = self.specific if w.ndim == 1 else self.specific[:, None]
        return self.loadings.T @ (self.loadings @ w) + specific * w

    def least_eigenvalue_bound(self) -> float:
        """A proved lower bound of the least eigenvalue: w'Σw >= min(specific) w'w, since ||Lw||² >= 0."""
        return float(self.specific.min())

    def reduced(self, factors: int) -> Covariance:
        """The same variances by fewer factors: the leading principal components, the rest of each variance specific.

        Returns itself where it has no more than so many factors. Covariances keep what the leading components explain,
        as in a statistical factor model (Connor & Korajczyk, 1988, Journal of Financial Economics 21).
        """
        if len(self.loadings) <= factors:
            return self
        _, lengths, directions = np.linalg.svd(self.loadings, full_matrices=False)
        leading = lengths[:factors, None] * directions[:factors]
        left = np.einsum("kn,kn->n", self.loadings, self.loadings) - np.einsum("kn,kn->n", leading, leading)
        return Covariance(self.symbols, leading, self.specific + np.maximum(left, 0.0))


class LedoitWolf(NamedTuple):
    """The share of the target in the estimate, in [0, 1], and the estimate."""

    shrinkage: float
    covariance: Covariance


def ledoit_wolf(returns: Floats, symbols: Sequence[str], *, periods_per_year: int = SESSIONS_PER_YEAR) -> LedoitWolf:
    """Ledoit-Wolf covariance with the constant-variance target, annualised.

    `(1 - s) S + s μ I` with S the sample covariance about the mean (divisor T), μ its mean variance and s the
    intensity: scikit-learn's `LedoitWolf`, times `periods_per_year`.

    Parameters
    ----------
    returns : (T, n) simple returns per period, none missing; T at least 2.
    symbols : the n names.

    Raises
    ------
    DimensionError : if the shapes disagree. InputError : if a return is not finite or there is one period only.

    Source: Ledoit & Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices,
    Journal of Multivariate Analysis 88. The factor form keeps the estimate exactly, without an n x n array.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if returns.ndim != 2 or returns.shape[1] != len(symbols) or not len(symbols):
        raise DimensionError(f"ledoit_wolf: returns {returns.shape} must be (T, {len(symbols)}), n >= 1")
    if len(returns) < 2:
        raise InputError("ledoit_wolf: at least two periods are needed")
    if not np.isfinite(returns).all():
        period, name = np.argwhere(~np.isfinite(returns))[0]
        raise InputError(f"ledoit_wolf: return of {symbols[name]} in row {period} is not finite")
    periods, n = returns.shape
    centred = returns - returns.mean(axis=0)
    mean_variance = float(np.einsum("tn,tn->", centred, centred)) / periods / n
    intensity = _intensity(centred)
    loadings = np.sqrt((1.0 - intensity) * periods_per_year / periods) * centred
    specific = np.full(n, intensity * mean_variance * periods_per_year)
    return LedoitWolf(intensity, Covariance(tuple(symbols), loadings, specific))


def _intensity(centred: Floats) -> float:
    """The share of the target, in the operations of scikit-learn, whose import takes longer than a build's estimates.

    With x_t the centred returns and S = Σ x_t x_t' / T it is the sum over all entries of the variance of S over that of
    the squared distance of S from the target. Both sums take an n x n product, or that of T x T where it is smaller.
    """
    periods, n = centred.shape
    if n == 1:
        return 0.0
    squares = centred**2
    variances = squares.sum(axis=0) / periods
    mean = variances.sum() / n
    if n <= periods:
        fourth, second = np.sum(squares.T @ squares), np.sum((centred.T @ centred) ** 2)
    else:
        fourth, second = np.sum(squares.sum(axis=1) ** 2), np.sum((centred @ centred.T) ** 2)
    second /= periods**2
    noise = 1.0 / (n * periods) * (fourth / periods - second)
    distance = (second - 2.0 * mean * variances.sum() + n * mean**2) / n
    # Rounding can leave either of constant returns a hair below zero.
    return max(0.0, float(min(noise, distance) / distance)) if noise and distance > 0.0 else 0.0
