"""Regression of panel returns on many signals, weighted by a known covariance S of the returns.

Sufficient sums are the information X' S^-1 X and the score X' S^-1 r; sums of further periods are added to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sufficient sums for k coefficients: `information` (k, k) and `score` (k,)."""

    information: Floats
    score: Floats

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.information + other.information, self.score + other.score)


def sums(signals: Floats, returns: Floats, covariance: Floats) -> Sums:
    """Compute sums of a panel: signals (T, n, k), the returns (T, n) that followed, their covariance (n, n)."""
    periods, n, k = signals.shape
    if returns.shape != (periods, n) or covariance.shape != (n, n):
        raise DimensionError(
            f"signals {signals.shape}, returns {returns.shape} and covariance {covariance.shape} do not fit"
        )
    try:
        whitener = np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        raise InputError("covariance is not positive definite; pass the risk model exactly as given") from None
    white = np.matmul(whitener, signals).reshape(periods * n, k)
    return Sums(white.T @ white, white.T @ (returns @ whitener.T).reshape(periods * n))


def least_squares(of: Sums) -> tuple[Floats, Floats]:
    """Return coefficients (k,) by generalised least squares, and their covariance (k, k)."""
    covariance: Floats = np.asarray(np.linalg.pinv(of.information), dtype=float)
    return covariance @ of.score, covariance


def posterior(of: Sums, variances: Floats) -> tuple[Floats, float]:
    """Return the posterior mean of the coefficients, and the log evidence against all being zero.

    Priors are independent normal with mean 0 and `variances` (k,); a variance of 0 fixes a coefficient at 0.
    """
    scale = np.sqrt(variances)
    inner = scale[:, None] * of.information * scale
    inner[np.diag_indices(len(scale))] += 1.0
    weighed = scale * of.score
    solved: Floats = np.asarray(np.linalg.solve(inner, weighed), dtype=float)
    evidence = (weighed @ solved - np.linalg.slogdet(inner)[1]) / 2
    return scale * solved, float(evidence)


def group_variances(of: Sums, groups: Floats, rounds: int = 200) -> Floats:
    """Estimate one prior variance per group of coefficients by `rounds` of expectation-maximisation.

    Coefficients with equal numbers in `groups` (k,) share a variance. Returns (k,) variances, near 0 for groups without
    merit. Source: Morris (1983), parametric empirical Bayes; Dempster, Laird and Rubin (1977).
    """
    labels, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member, minlength=len(labels))
    ordinary = np.diag(np.linalg.pinv(of.information))
    variances = np.bincount(member, ordinary, len(labels)) / sizes
    for _ in range(rounds):
        prior = variances[member]
        scale = np.sqrt(prior)
        inner = np.eye(len(prior)) + scale[:, None] * of.information * scale
        spread = scale[:, None] * np.linalg.inv(inner) * scale
        mean = spread @ of.score
        variances = np.bincount(member, mean**2 + np.diag(spread), len(labels)) / sizes
    return variances[member]
