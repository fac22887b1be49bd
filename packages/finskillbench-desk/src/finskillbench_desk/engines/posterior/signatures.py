"""Standardised innovations of ratios, and their evidence for a stated signature of unknown start and size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Innovations:
    """Innovations of n companies: `standardised` (n, T - 1, R) by `deviation` (R,) and the company's `volatility` (n,).

    Scales and `correlation` (R, R) are pooled before the window; quarters without information are not `usable`.
    """

    standardised: Floats
    deviation: Floats
    correlation: Floats
    volatility: Floats
    usable: Booleans


def innovations(
    y: Floats, persistence: Floats, window: int, breaks: Integers, freedom: float, stated: Floats | None = None
) -> Innovations:
    """Compute deviations from the autoregression about each company's level, estimated before the window.

    Parameters
    ----------
    y : (n, T, R) adjusted log ratios; estimates leave out the last `window` quarters.
    breaks : (n,) quarter of a new level, -1 for none; that quarter is unusable.
    freedom : degrees of freedom that pull a company's variance towards the usual one; 0 disables it.
    stated : (R,) known standard deviations of the usual company's innovations; estimated if None.
    """
    change = y[:, 1:] - persistence * y[:, :-1]
    quarters = change.shape[1]
    usable = np.ones(change.shape[:2], dtype=bool)
    before = np.repeat([True, False], [quarters - window, window])
    centred = change - change[:, before].mean(axis=1, keepdims=True)
    for company in np.flatnonzero(breaks > 0):
        first = int(breaks[company]) - 1
        usable[company, first] = False
        for part in (slice(0, first), slice(first + 1, quarters)):
            inside = change[company, part]
            known = inside[before[part]] if before[part].sum() >= 8 else inside
            centred[company, part] = inside - (known.mean(axis=0) if len(known) else 0.0)
    early = centred[:, before] * usable[:, before, None]
    counts = usable[:, before].sum(axis=1) - 1.0
    dof = counts * y.shape[2]
    scale = np.sqrt(np.median(early**2, axis=(0, 1))) if stated is None else stated
    variance = ((early / scale) ** 2).sum(axis=(1, 2)) / dof
    if stated is None:  # scale to the median company
        scale = scale * np.sqrt(np.median(variance))
        variance = variance / np.median(variance)
    # Weigh by variance, so that a company with a typing error does not dominate the pool.
    pooled = early / scale / np.sqrt(np.maximum(variance, 1e-12))[:, None, None]
    covariance = np.einsum("ntr,nts->rs", pooled, pooled)
    root = np.sqrt(np.diag(covariance))
    volatility = np.sqrt((freedom + dof * variance) / (freedom + dof))
    return Innovations(
        centred / scale / volatility[:, None, None], scale, covariance / np.outer(root, root), volatility, usable
    )


def signature_evidence(
    found: Innovations, shift: Floats, profile: Floats, size: float, spread: float, starts: int, scatter: float = 0.0
) -> Floats:
    """Return log Bayes factors (n, starts) of a signature against none, one column per possible start.

    From its start on, innovations move by a normal size (1 is as stated) times `profile` times `shift` (R,), in the
    usual company's standard deviations, and by as many of `scatter` standard deviations of the company in each ratio.
    """
    if scatter > 0.0:
        return _scattered_evidence(found, shift, profile, (size, spread, scatter), starts)
    inverse = np.linalg.inv(found.correlation)
    direction = inverse @ shift
    projected = np.where(found.usable, found.standardised @ direction, 0.0)
    norm = float(shift @ direction)
    n, quarters = projected.shape
    evidence = np.empty((n, starts))
    for start in range(starts):
        first = quarters - starts + start
        weights = np.zeros(quarters)
        length = min(len(profile), quarters - first)
        weights[first : first + length] = profile[:length]
        linear = projected @ weights / found.volatility
        square = norm * (found.usable @ weights**2) / found.volatility**2
        inflated = 1.0 + spread**2 * square
        evidence[:, start] = (size * linear + spread**2 * linear**2 / 2.0 - size**2 * square / 2.0) / inflated - np.log(
            inflated
        ) / 2.0
    return evidence


def _scattered_evidence(
    found: Innovations, shift: Floats, profile: Floats, sizes: tuple[float, float, float], starts: int
) -> Floats:
    """Apply `signature_evidence` to shifts that differ in every ratio; `sizes` are size, spread and scatter."""
    size, spread, scatter = sizes
    inverse = np.asarray(np.linalg.inv(found.correlation), dtype=np.float64)
    moves = np.where(found.usable[:, :, None], found.standardised @ inverse, 0.0)
    n, quarters, ratios = moves.shape
    unit = np.eye(ratios)
    mean = size * shift / found.volatility[:, None]
    prior = (spread / found.volatility[:, None, None]) ** 2 * np.outer(shift, shift) + scatter**2 * unit
    evidence = np.empty((n, starts))
    for start in range(starts):
        first = quarters - starts + start
        length = min(len(profile), quarters - first)
        weights = np.zeros(quarters)
        weights[first : first + length] = profile[:length]
        precision = (found.usable @ weights**2)[:, None, None] * inverse
        linear = np.einsum("ntr,t->nr", moves, weights)
        expected = np.einsum("nrs,ns->nr", precision, mean)
        left = linear - expected
        inner = unit + precision @ prior
        solved = np.asarray(np.linalg.solve(inner, left[:, :, None])[:, :, 0], dtype=np.float64)
        pulled = np.einsum("nrs,ns->nr", prior, solved)
        gained = (mean * (linear - expected / 2.0)).sum(axis=1) + (left * pulled).sum(axis=1) / 2.0
        evidence[:, start] = gained - np.linalg.slogdet(inner)[1] / 2.0
    return evidence


def mixed_evidence(parts: Floats, weights: Floats) -> Floats:
    """Return log Bayes factors (n,) of a mixture of signatures and starts (n, S, starts); weights (S,) sum to 1."""
    with np.errstate(divide="ignore"):
        logs = parts + np.log(weights)[None, :, None] - np.log(parts.shape[2])
    top = logs.max(axis=(1, 2))
    return top + np.log(np.exp(logs - top[:, None, None]).sum(axis=(1, 2)))
