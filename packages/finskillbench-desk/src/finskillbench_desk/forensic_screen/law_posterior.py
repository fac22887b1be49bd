"""Exact posterior of management and its kind given a law, in closed form with finite sums.

Given kind, start, sign, ratio and the quarter of a shock, the path of a company is a linear regression with normal
priors on level, change of level and shift. The volatility has an inverse gamma prior, so each marginal likelihood is a
multivariate t density (O'Hagan & Forster, 2004, Kendall's Advanced Theory of Statistics 2B, ch. 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.forensic_screen.law_paths import Component, components, level_profile
from finskillbench_desk.forensic_screen.laws import Covariates, Law

_CHUNK = 25
"""Number of companies whose sums are held at once."""


class _Null(NamedTuple):
    """Parameters of unmanaged ratios: inverse covariances (R, R) of the first quarter and of innovations."""

    first: Floats
    inverse: Floats
    persistence: Floats
    level: Floats
    change: Floats
    freedom: float


class _Sums(NamedTuple):
    """Inner products, less what level and change of level explain, by company (or 1) and configuration."""

    shift: Floats
    score: Floats
    residual: Floats
    log: Floats


def law_probabilities(law: Law, y: Floats, acquired: Integers, covariates: Covariates) -> Floats:
    """Return the probability (n, K) of each kind of management by company.

    Parameters
    ----------
    y : (n, T, R) adjusted log ratios.
    acquired : (n,) quarter of a change of level, never 0, -1 for none.
    """
    evidence = log_evidence(law, y, acquired, covariates)
    rate = law.rates[covariates.industry][:, None, None]
    weights = np.log(rate) + np.log(law.model.shares / law.model.starts)[:, None] + evidence
    none = np.log1p(-rate[:, 0, 0])
    total = np.logaddexp(none, np.logaddexp.reduce(weights, axis=(1, 2)))
    return np.exp(np.logaddexp.reduce(weights, axis=2) - total[:, None])


def log_evidence(law: Law, y: Floats, acquired: Integers, covariates: Covariates) -> Floats:
    """Return log Bayes factors (n, K, starts) of each kind and start against no management."""
    found = np.empty((len(y), len(law.model.shares), law.model.starts))
    for quarter in np.unique(acquired):
        group = np.flatnonzero(acquired == quarter)
        for which in np.array_split(group, -(-len(group) // _CHUNK)):
            part = covariates.at(which)
            found[which] = _evidence(law, y[which], int(quarter), part)
    return found


def _evidence(law: Law, y: Floats, acquired: int, covariates: Covariates) -> Floats:
    """Apply `log_evidence` to companies with a change of level in one quarter, or none where negative."""
    n, periods, ratios = len(y), int(y.shape[1]), int(y.shape[2])
    model, kinds = law.model, range(len(law.model.shares))
    starts = np.arange(periods - model.starts, periods)
    if law.form == "smoothing":
        return _smoothed(law, y, acquired, starts)
    level = np.stack([level_profile(law, covariates, np.full(n, start)) for start in starts], axis=1)
    parts = [components(law, kind) for kind in kinds]
    if not law.separate_volatility:
        null, managed = _shifted(law, _null(law, slice(None)), y, level, acquired, parts)
        return managed - null[:, None, None]
    found = np.full((n, len(parts), len(starts)), -np.inf)
    for ratio in range(ratios):
        one = slice(ratio, ratio + 1)
        chosen = [[(w, m[one], r[one]) for w, m, r in kind if m[ratio] != 0.0] for kind in parts]
        null, managed = _shifted(law, _null(law, one), y[:, :, one], level, acquired, chosen)
        found = np.logaddexp(found, managed - null[:, None, None])
    return found


def _null(law: Law, which: slice) -> _Null:
    model = law.model
    first = np.asarray(np.linalg.inv(model.stationary[which, which]), dtype=np.float64)
    inverse = np.asarray(np.linalg.inv(model.sigma[which, which]), dtype=np.float64)
    return _Null(
        first, inverse, model.persistence[which], model.level_deviation[which], model.acquired[which], model.freedom
    )


def _shifted(
    law: Law, null: _Null, y: Floats, level: Floats, acquired: int, parts: Sequence[Sequence[Component]]
) -> tuple[Floats, Floats]:
    """Return log likelihoods without management (n,) and by kind and start (n, K, S), shocks summed.

    `level` (n, S, T) is the deviation of log ratios for a shift of 1.
    """
    n, starts, periods = level.shape
    same = bool((level == level[:1]).all())
    q = level[:1, :, :, None] if same else level[:, :, :, None]
    q = _differenced(np.repeat(q, len(null.level), axis=3), null)
    weights = np.ones((1, periods))
    logs = np.zeros(1)
    if law.shock > 0.0:
        weights = np.vstack([weights, np.where(np.eye(periods)[1:] > 0, 1.0 / (1.0 + law.shock_size**2), 1.0)])
        logs = np.log(np.append(1.0 - law.shock, np.full(periods - 1, law.shock / (periods - 1))))
    without = np.full(n, -np.inf)
    managed = np.full((n, len(parts), starts), -np.inf)
    for weight, log in zip(weights, logs, strict=True):
        sums = _sums(null, y, q, weight, acquired)
        size = null.freedom + periods * len(null.level)
        plain = log + sums.log - size / 2.0 * np.log(null.freedom + sums.residual)
        without = np.logaddexp(without, plain)
        for kind, mixture in enumerate(parts):
            for chance, mean, root in mixture:
                gained, determinant = _gain(sums, mean, root)
                value = log + np.log(chance) + sums.log[:, None] - determinant
                value = value - size / 2.0 * np.log(null.freedom + sums.residual[:, None] - gained)
                managed[:, kind] = np.logaddexp(managed[:, kind], value)
    return without, managed


def _gain(sums: _Sums, mean: Floats, root: Floats) -> tuple[Floats, Floats]:
    """Return the reduction of the sum of squares (n, S) and half the log determinant by a normal shift."""
    left = sums.score - sums.shift @ mean
    inner = np.eye(root.shape[1]) + root.T @ sums.shift @ root
    pulled = left @ root
    solved = np.linalg.solve(inner, pulled[..., None])[..., 0]
    gained = 2.0 * sums.score @ mean - (sums.shift @ mean) @ mean + (pulled * solved).sum(axis=-1)
    return gained, np.linalg.slogdet(inner)[1] / 2.0


def _nuisance(null: _Null, periods: int, acquired: int) -> tuple[Floats, Floats]:
    """Return designs (J, T, R) of level and change of level in innovations, and prior precisions (J * R,)."""
    ratios = len(null.level)
    designs, precisions = [np.ones((periods, ratios))], [null.level**-2.0]
    if acquired > 0:
        designs.append((np.arange(periods) >= acquired)[:, None] * np.ones(ratios))
        precisions.append(null.change**-2.0)
    level = np.stack(designs)
    return _differenced(level, null), np.concatenate(precisions)


def _differenced(values: Floats, null: _Null) -> Floats:
    """Return innovations (..., T, R) of log ratios, the first quarter unchanged."""
    return np.concatenate([values[..., :1, :], values[..., 1:, :] - null.persistence * values[..., :-1, :]], axis=-2)


def _sums(null: _Null, y: Floats, q: Floats, weight: Floats, acquired: int) -> _Sums:
    """Sum over quarters; `q` (n or 1, S, T, R) is the design of the shift, `weight` (T,) divides variances."""
    n, periods, ratios = y.shape
    change = _differenced(y, null)
    u, prior = _nuisance(null, periods, acquired)
    later = weight[1:, None]

    def product(a: Floats, b: Floats) -> Floats:
        """Sum diag(a_t) A_t diag(b_t) over quarters, for designs (..., T, R)."""
        first = null.first * (a[..., 0, :, None] * b[..., 0, None, :])
        return first + null.inverse * (np.swapaxes(a[..., 1:, :] * later, -1, -2) @ b[..., 1:, :])

    def applied(a: Floats, b: Floats) -> Floats:
        """Sum diag(a_t) A_t b_t over quarters."""
        first = a[..., 0, :] * (b[..., 0, :] @ null.first)
        return first + (a[..., 1:, :] * ((b[..., 1:, :] * later) @ null.inverse)).sum(axis=-2)

    levels = range(len(u))
    inner = np.block([[product(u[a], u[b]) for b in levels] for a in levels]) + np.diag(prior)
    cross = np.concatenate([product(u[a], q) for a in levels], axis=-2)
    score = np.concatenate([applied(u[a], change) for a in levels], axis=-1)
    root = np.linalg.inv(np.linalg.cholesky(inner))
    cross, score = root @ cross, score @ root.T
    shift = product(q, q) - np.swapaxes(cross, -1, -2) @ cross
    target = applied(q, change[:, None]) - (np.swapaxes(cross, -1, -2) @ score[:, None, :, None])[..., 0]
    residual = applied(change, change).sum(axis=-1) - (score**2).sum(axis=-1)
    log = np.log(np.diag(root)).sum() + ratios / 2.0 * np.log(weight).sum()
    return _Sums(shift, target, residual, np.full(n, log))


def _smoothed(law: Law, y: Floats, acquired: int, starts: Integers) -> Floats:
    """Return log Bayes factors (n, K, S) where managed innovations have another covariance."""
    null = _null(law, slice(None))
    n, periods, ratios = len(y), int(y.shape[1]), int(y.shape[2])
    change = _differenced(y, null)
    u, prior = _nuisance(null, periods, acquired)
    size = null.freedom + periods * ratios

    def likelihood(inverse: Floats, start: int, log: float) -> Floats:
        precision = np.repeat(null.inverse[None], periods, axis=0)
        precision[0] = null.first
        precision[start:] = inverse
        weighted = np.einsum("jtr,trs->jtrs", u, precision)
        inner: Floats = np.einsum("jtrs,kts->jrks", weighted, u).reshape(len(prior), -1) + np.diag(prior)
        score: Floats = np.einsum("jtrs,nts->njr", weighted, change, optimize=True).reshape(n, -1)
        root = np.asarray(np.linalg.inv(np.linalg.cholesky(inner)), dtype=np.float64)
        residual: Floats = np.einsum("ntr,trs,nts->n", change, precision, change, optimize=True)
        residual = residual - ((score @ root.T) ** 2).sum(axis=1)
        return log + np.log(np.diag(root)).sum() - size / 2.0 * np.log(null.freedom + residual)

    without = likelihood(null.inverse, periods, 0.0)
    found = np.empty((n, len(law.model.shares), len(starts)))
    for kind, touched in enumerate(law.touched):
        factor = np.where(touched > 0, 1.0 / law.damping, 1.0)
        for place, start in enumerate(starts):
            log = (periods - int(start)) * float(np.log(factor).sum())
            found[:, kind, place] = likelihood(null.inverse * np.outer(factor, factor), int(start), log) - without
    return found
