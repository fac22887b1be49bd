"""Covariance in the optimiser's form: Σ = F'F + diag(d)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError


@dataclass(frozen=True)
class RiskModel:
    """Annualised covariance of simple returns in factor form.

    Attributes
    ----------
    root : (k, n) rows of F, square roots of variance per year.
    diagonal : (n,) specific variances per year; zero if F alone is a root of Σ.
    """

    root: Floats
    diagonal: Floats

    @classmethod
    def from_matrix(cls, covariance: Floats) -> RiskModel:
        """Factor a dense (n, n) covariance by Cholesky; raise `InputError` if not symmetric positive definite."""
        if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1]:
            raise DimensionError(f"covariance has shape {covariance.shape}; give a square matrix")
        if not np.isfinite(covariance).all():
            raise InputError("covariance holds a value that is not a finite number; give n x n finite numbers")
        scale = float(np.abs(covariance).max(initial=0.0))
        if np.abs(covariance - covariance.T).max(initial=0.0) > 1e-10 * scale:
            raise InputError("covariance is not symmetric; pass the matrix exactly as the task data give it")
        try:
            root = np.linalg.cholesky(covariance / 2 + covariance.T / 2).T.astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            raise InputError("covariance is not positive definite; pass the matrix exactly as given") from None
        return cls(np.ascontiguousarray(root), np.zeros(len(covariance)))

    @classmethod
    def from_factors(cls, loadings: Floats, specific: Floats) -> RiskModel:
        """Keep the factor form if smaller (k < n), else factor the dense matrix.

        Raises `DimensionError` for mismatched shapes, `InputError` for non-finite numbers, negative specific variances,
        or a dense matrix that is not positive definite.
        """
        if loadings.ndim != 2:
            raise DimensionError(f"loadings have shape {loadings.shape}; give k x n numbers")
        k, n = loadings.shape
        if specific.shape != (n,):
            raise DimensionError(f"specific has shape {specific.shape}; the loadings have {n} columns")
        if not np.isfinite(loadings).all() or not (specific >= 0).all() or not np.isfinite(specific).all():
            raise InputError("loadings and specific must be finite numbers, and specific variances not negative")
        if k < n:
            return cls(loadings, specific)
        return cls.from_matrix(loadings.T @ loadings + np.diag(specific))

    @property
    def size(self) -> int:
        return self.root.shape[1]

    @property
    def is_dense(self) -> bool:
        """True if F alone is a square root of Σ."""
        return not self.diagonal.any()

    @cached_property
    def matrix(self) -> Floats:
        """(n, n) Σ."""
        return self.root.T @ self.root + np.diag(self.diagonal)

    @cached_property
    def variances(self) -> Floats:
        """(n,) Diagonal of Σ."""
        return np.einsum("ki,ki->i", self.root, self.root) + self.diagonal

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """Proved lower bound on λmin(Σ): exact for a dense model, min d for a factor model."""
        if not self.is_dense:
            return float(self.diagonal.min())
        return float(np.linalg.eigvalsh(self.matrix)[0])

    def times(self, vector: Floats) -> Floats:
        """(n,) Σ v."""
        return self.root.T @ (self.root @ vector) + self.diagonal * vector

    def variance(self, weights: Floats) -> float:
        """Return w'Σw, decimal squared per year."""
        exposure = self.root @ weights
        return float(exposure @ exposure + self.diagonal @ (weights * weights))
