"""Covariance in factor form, and its exact Ledoit-Wolf estimator.

A sample covariance of T sessions is a Gram matrix of T rows, and shrinkage to a constant variance adds a diagonal:
`loadings' loadings + diag(specific)`. This form avoids n x n arrays for 3,000 names.
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
    """Annualised covariance of simple returns, `loadings' loadings + diag(specific)`.

    Attributes
    ----------
    symbols : n names, in the order of the columns.
    loadings : (k, n) decimals per square root of a year.
    specific : (n,) decimals squared per year, nonnegative; the minimum bounds the least eigenvalue from below.
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
        """Return the dense, exactly symmetric (n, n) matrix."""
        dense = self.loadings.T @ self.loadings
        dense = (dense + dense.T) / 2
        dense[np.diag_indices_from(dense)] += self.specific
        return dense

    def variances(self) -> Floats:
        """(n,) Diagonal, without the matrix."""
        return np.einsum("kn,kn->n", self.loadings, self.loadings) + self.specific

    def times(self, w: Floats) -> Floats:
        """Return Σw for w (n,) or (n, j)."""
        if w.ndim not in (1, 2) or len(w) != len(self.symbols):
            raise DimensionError(f"covariance of {len(self.symbols)} symbols: weights have shape {w.shape}")
        specific = self.specific if w.ndim == 1 else self.specific[:, None]
        return self.loadings.T @ (self.loadings @ w) + specific * w

    def least_eigenvalue_bound(self) -> float:
        """Return a lower bound of the least eigenvalue: w'Σw >= min(specific) w'w, since ||Lw||² >= 0."""
        return float(self.specific.min())

    def reduced(self, factors: int) -> Covariance:
        """Keep the leading principal components and the variances, with specific remainders.

        Returns itself if it has at most `factors` factors; a statistical factor model (Connor & Korajczyk, 1988,
        Journal of Financial Economics 21).
        """
        if len(self.loadings) <= factors:
            return self
        _, lengths, directions = np.linalg.svd(self.loadings, full_matrices=False)
        leading = lengths[:factors, None] * directions[:factors]
        left = np.einsum("kn,kn->n", self.loadings, self.loadings) - np.einsum("kn,kn->n", leading, leading)
        return Covariance(self.symbols, leading, self.specific + np.maximum(left, 0.0))


class LedoitWolf(NamedTuple):
    """Shrinkage intensity in [0, 1], and the estimate."""

    shrinkage: float
    covariance: Covariance


def ledoit_wolf(returns: Floats, symbols: Sequence[str], *, periods_per_year: int = SESSIONS_PER_YEAR) -> LedoitWolf:
    """Estimate the annualised Ledoit-Wolf covariance with constant-variance target.

    `(1 - s) S + s μ I` with S the sample covariance about the mean (divisor T), μ its mean variance and s the
    intensity: scikit-learn's `LedoitWolf`, times `periods_per_year`. The factor form is exact, without an n x n array.

    Parameters
    ----------
    returns : (T, n) simple returns per period, none missing; T at least 2.
    symbols : the n names.

    Raises `DimensionError` for mismatched shapes, `InputError` for non-finite returns or a single period. Source:
    Ledoit & Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices, J. of Multivariate
    Analysis 88.
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
    """Compute the intensity with scikit-learn's operations; its import is slower than a build's estimates.

    With x_t the centred returns and S = Σ x_t x_t' / T it is the sum over all entries of the variance of S over that of
    the squared distance of S from the target. Both sums need an n x n product, or T x T if smaller.
    """
    periods, n = centred.shape
    if n == 1:
        return 0.0
    squares = centred**2
    variances = squares.sum(axis=0) / periods
    mean = variances.sum() / n
    if n <= periods:
        fourth, squared = np.sum(squares.T @ squares), np.sum((centred.T @ centred) ** 2)
    else:
        fourth, squared = np.sum(squares.sum(axis=1) ** 2), np.sum((centred @ centred.T) ** 2)
    squared /= periods**2
    noise = 1.0 / (n * periods) * (fourth / periods - squared)
    distance = (squared - 2.0 * mean * variances.sum() + n * mean**2) / n
    # Rounding can make either slightly negative for constant returns.
    return max(0.0, float(min(noise, distance) / distance)) if noise and distance > 0.0 else 0.0
