"""Exact posterior over no management and (kind, start) for each company, in closed form.

Given kind and start, a path is a linear regression with normal priors on level, acquisition effect and shift. The
volatility has an inverse gamma prior, so each marginal likelihood is a multivariate t density. Source: O'Hagan &
Forster (2004), Kendall's Advanced Theory of Statistics 2B, ch. 11.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Prediction, RatioModel


class _Sums(NamedTuple):
    """Precision (q, q) of level and change, right-hand side (n, q), and residual sum of squares (n,)."""

    nuisance: Floats
    score: Floats
    residual: Floats


def kind_probabilities(y: Floats, acquired: Integers, model: RatioModel, prediction: Prediction) -> Floats:
    """Return the probability (n, K) of each kind of management by company.

    `y` (n, T, R) are adjusted log ratios; `acquired` (n,) is the quarter of an acquisition, never 0, -1 for none.
    """
    evidence = log_evidence(y, acquired, model, prediction)
    weights = np.log(model.base_rate * model.shares / model.starts)[None, :, None] + evidence
    top = np.maximum(weights.max(axis=(1, 2)), np.log1p(-model.base_rate))
    managed = np.exp(weights - top[:, None, None]).sum(axis=2)
    none = np.exp(np.log1p(-model.base_rate) - top)
    return managed / (managed.sum(axis=1) + none)[:, None]


def log_evidence(y: Floats, acquired: Integers, model: RatioModel, prediction: Prediction) -> Floats:
    """Return log Bayes factors (n, K, starts) of each kind and start against no management."""
    found = np.empty((len(y), len(model.shares), model.starts))
    for quarter in np.unique(acquired):
        which = np.flatnonzero(acquired == quarter)
        found[which] = _group(y[which], int(quarter), model, prediction)
    return found


def _group(y: Floats, quarter: int, model: RatioModel, prediction: Prediction) -> Floats:
    """Apply `log_evidence` to companies (n, T, R) with an acquisition in one quarter, or none where negative."""
    n, periods, ratios = y.shape
    inverse = np.linalg.inv(model.sigma)
    drift = (1.0 - model.persistence)[:, None] * inverse
    change = y[:, 1:] - model.persistence * y[:, :-1]
    sums = _nuisance(y, change, quarter, model)
    freedom = model.freedom + periods * ratios
    root = np.linalg.cholesky(sums.nuisance)
    base = np.linalg.solve(root, sums.score.T)  # (q, n)
    unexplained = sums.residual - (base**2).sum(axis=0)
    null = -freedom / 2.0 * np.log(model.freedom + unexplained)
    found = np.empty((n, len(model.shares), model.starts))
    for kind, profile in enumerate(model.profiles):
        mean: Floats = prediction.mean[kind]
        covariance: Floats = prediction.covariance[kind]
        prior = np.linalg.inv(covariance)
        pull = prior @ mean
        for start in range(model.starts):
            weights = place_profile(profile, periods - model.starts + start, periods)[1:]
            after = weights[max(quarter, 0) :].sum() if quarter > 0 else 0.0
            cross = [drift * weights.sum()]
            if quarter > 0:
                cross.append(inverse * weights[quarter - 1] + drift * after)
            between = np.linalg.solve(root, np.vstack(cross))  # (q, R)
            precision = prior + inverse * (weights @ weights) - between.T @ between
            target = pull + np.einsum("t,ntr->nr", weights, change) @ inverse - base.T @ between
            part = np.linalg.cholesky(precision)
            gained = (np.asarray(np.linalg.solve(part, target.T), dtype=np.float64) ** 2).sum(axis=0) - mean @ pull
            determinant = np.log(np.diag(part)).sum() - np.linalg.slogdet(prior)[1] / 2.0
            found[:, kind, start] = -freedom / 2.0 * np.log(model.freedom + unexplained - gained) - determinant - null
    return found


def _nuisance(y: Floats, change: Floats, quarter: int, model: RatioModel) -> _Sums:
    """Sum over quarters the terms of the level and of its change after an acquisition."""
    inverse, first = np.linalg.inv(model.sigma), np.linalg.inv(model.stationary)
    pull = 1.0 - model.persistence
    drift = pull[:, None] * inverse
    both = drift * pull
    quarters = change.shape[1]
    level = first + quarters * both + np.diag(1.0 / model.level_deviation**2)
    score = y[:, 0] @ first + change.sum(axis=1) @ drift.T
    residual = np.einsum("nr,rs,ns->n", y[:, 0], first, y[:, 0])
    residual += np.einsum("ntr,rs,nts->n", change, inverse, change, optimize=True)
    if quarter <= 0:
        return _Sums(level, score, residual)
    left = quarters - quarter
    mixed = drift + left * both  # rows: level, columns: change of level
    step = inverse + left * both + np.diag(1.0 / model.acquired**2)
    later = change[:, quarter - 1] @ inverse + change[:, quarter:].sum(axis=1) @ drift.T
    return _Sums(np.block([[level, mixed], [mixed.T, step]]), np.hstack([score, later]), residual)


def place_profile(profile: Floats, start: int, periods: int) -> Floats:
    """Return a time profile (periods,) that begins in quarter `start`, truncated at the end."""
    weights = np.zeros(periods)
    length = min(len(profile), periods - start)
    weights[start : start + length] = profile[:length]
    return weights
