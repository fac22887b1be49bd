"""Value at risk and expected shortfall over one session: historical, parametric normal, Cornish–Fisher.

A loss is a positive number, a decimal of NAV. Sources: Jorion (2007), ch. 5; Favre & Galeano (2002), J. Alternative
Investments 5(2) for the modified quantile; Maillard (2012), SSRN 1997178, for the shortfall beyond it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class TailRisk:
    """Loss at a level (VaR) and mean loss beyond it (CVaR), decimals of NAV per session, by three methods.

    At 95 % over 252 sessions: historical, CVaR the mean of the ceil(0.05 x 252) = 13 worst losses and VaR the 13th
    worst; parametric, normal with the sample mean and deviation (ddof 1); Cornish-Fisher, the normal quantile corrected
    for skewness and excess kurtosis (ddof 0).
    """

    var_historical: float
    cvar_historical: float
    var_parametric: float
    cvar_parametric: float
    var_cornish_fisher: float
    cvar_cornish_fisher: float


def value_at_risk(returns: Floats) -> TailRisk:
    """VaR and CVaR of (T,) portfolio returns per session.

    Raises
    ------
    DimensionError : if the returns are not one series of at least two.
    InputError : if a return is not finite.
    """
    if returns.ndim != 1 or len(returns) < 2:
        raise DimensionError(f"returns have shape {returns.shape}; give one series of at least two sessions")
    if not np.isfinite(returns).all():
        raise InputError("returns hold a value that is not a finite number; give decimals per session")
    # 0.05 x 260 must be 13, whatever binary fractions make of it.
    count = max(1, math.ceil((1 - LEVEL) * len(returns) - 1e-9))
    worst = -np.partition(returns, count - 1)[:count]
    mean, deviation = float(returns.mean()), float(returns.std(ddof=1))
    quantile = NormalDist().inv_cdf(1 - LEVEL)
    density = NormalDist().pdf(quantile) / (1 - LEVEL)
    modified, beyond = cornish_fisher(quantile, density, *_moments(returns))
    return TailRisk(
        var_historical=float(worst.min()),
        cvar_historical=float(worst.mean()),
        var_parametric=-quantile * deviation - mean,
        cvar_parametric=density * deviation - mean,
        var_cornish_fisher=-modified * deviation - mean,
        cvar_cornish_fisher=beyond * deviation - mean,
    )


def cornish_fisher(quantile: float, density: float, skew: float, kurtosis: float) -> tuple[float, float]:
    """Standardised quantile and mean loss beyond it, corrected for skewness and excess kurtosis.

    `density` is φ(z)/(1 - level), the normal mean loss beyond z. The mean integrates the corrected quantile over the
    tail, Hermite term by Hermite term: ∫ z = -φ, ∫ z² - 1 = -zφ, ∫ z³ - 3z = -(z² - 1)φ, ∫ 2z³ - 5z = -(2z² - 1)φ.
    """
    z = quantile
    corrected = z + (z**2 - 1) * skew / 6 + (z**3 - 3 * z) * kurtosis / 24 - (2 * z**3 - 5 * z) * skew**2 / 36
    beyond = density * (1 + z * skew / 6 + (z**2 - 1) * kurtosis / 24 - (2 * z**2 - 1) * skew**2 / 36)
    return corrected, beyond


def _moments(returns: Floats) -> tuple[float, float]:
    """Skewness and excess kurtosis (ddof 0); 0 for a series that does not vary."""
    centred = returns - returns.mean()
    scale = float(np.sqrt((centred**2).mean()))
    if scale <= 1e-14 * np.abs(returns).max():  # only rounding is left, whose moments mean nothing
        return 0.0, 0.0
    standard = centred / scale
    return float((standard**3).mean()), float((standard**4).mean()) - 3
