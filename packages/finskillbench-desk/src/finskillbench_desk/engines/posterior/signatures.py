"""Innovations of ratios in a company's own units, and what they say for a stated signature of unknown start and size.

These are the plain tools of a screening: level and volatility are estimates, a signature is one direction of one size.
The posterior of a fully disclosed world, which integrates over all of that, is in `posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Innovations:
    """Innovations of n companies.

    Attributes
    ----------
    standardised : (n, T - 1, R) in standard deviations of the pooled innovations times the company's volatility.
    deviation : (R,) pooled standard deviations before the window.
    correlation : (R, R) pooled, before the window.
    volatility : (n,) the company's own, 1 for the usual one.
    usable : (n, T - 1) False in quarters that say nothing.
    """

    standardised: Floats
    deviation: Floats
    correlation: Floats
    volatility: Floats
    usable: Booleans


def innovations(
    y: Floats,
    persistence: Floats,
    window: int,
    breaks: Integers,
    freedom: float,
    stated: Floats | None = None,
) -> Innovations:
    """Deviations from the autoregression about each company's level, estimated before the window.

    Parameters
    ----------
    y : (n, T, R) log ratios, freed of what is known.
    window : number of last quarters that estimates leave out.
    breaks : (n,) quarter from which a company has a new level, -1 for none: that quarter says nothing, and the level is
        estimated again from the quarters after it.
    freedom : degrees of freedom by which a company's variance is drawn to the usual one; 0 leaves it alone.
    stated : (R,) standard deviations of innovations of the usual company where they are known; estimated otherwise.
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
    if stated is None:  # the usual company is the one in the middle
        scale = scale * np.sqrt(np.median(variance))
        variance = variance / np.median(variance)
    # A company with a typing error must not swamp the pool: each weighs by its own variance.
    pooled = early / scale / np.sqrt(np.maximum(variance, 1e-12))[:, None, None]
    covariance = np.einsum("ntr,nts->rs", pooled, pooled)
    root = np.sqrt(np.diag(covariance))
    volatility = np.sqrt((freedom + dof * variance) / (freedom + dof))
    return Innovations(
        centred / scale / volatility[:, None, None], scale, covariance / np.outer(root, root), volatility, usable
    )


def signature_evidence(
    found: Innovations, shift: Floats, profile: Floats, size: float, spread: float, starts: int
) -> Floats:
    """Log Bayes factors (n, starts) of a signature against none, one column for each of the last quarters as a start.

    From its start on, innovations are moved by a size times the profile times the shift; the size is normal.

    Parameters
    ----------
    shift : (R,) in the usual company's standard deviations of innovations.
    profile : multiples of the shift from the start on; 0 after its end.
    size, spread : mean and standard deviation of the size; 1 is the shift as stated.
    """
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


def mixed_evidence(parts: Floats, weights: Floats) -> Floats:
    """Log Bayes factor (n,) of a mixture of signatures and starts (n, S, starts) with weights (S,) that sum to 1."""
    with np.errstate(divide="ignore"):
        logs = parts + np.log(weights)[None, :, None] - np.log(parts.shape[2])
    top = logs.max(axis=(1, 2))
    return top + np.log(np.exp(logs - top[:, None, None]).sum(axis=(1, 2)))
