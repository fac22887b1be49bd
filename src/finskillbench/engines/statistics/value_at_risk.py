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
from finskillbench.engines.risk.portfolio import Market, Portfolio, required
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


def value_at_risk(returns: Floats, level: float = LEVEL) -> TailRisk:
    """VaR and CVaR of (T,) portfolio returns per session.

    Raises
    ------
    DimensionError : if the returns are not one series of at least two.
    InputError : if a return is not finite, or the level not between 0.5 and 1.
    """
    if returns.ndim != 1:
        raise DimensionError(f"returns have shape {returns.shape}; give one series of one portfolio")
    return TailRisk(*tail_risks(returns[:, None], level)[0].tolist())


def tail_risks(returns: Floats, level: float = LEVEL) -> Floats:
    """(p, 6) in the order of `TailRisk`, of the (T, p) returns per session of p portfolios."""
    if returns.ndim != 2 or len(returns) < 2:
        raise DimensionError(f"returns have shape {returns.shape}; give at least two sessions")
    if not np.isfinite(returns).all():
        raise InputError("returns hold a value that is not a finite number; give decimals per session")
    if not 0.5 < level < 1:
        raise InputError(f"level must be between 0.5 and 1, not {level}")
    # 0.05 x 260 must be 13, whatever binary fractions make of it.
    count = max(1, math.ceil((1 - level) * len(returns) - 1e-9))
    worst = -np.partition(returns, count - 1, axis=0)[:count]
    mean, deviation = returns.mean(axis=0), returns.std(axis=0, ddof=1)
    skew, kurtosis = _moments(returns)
    quantile = NormalDist().inv_cdf(1 - level)
    density = NormalDist().pdf(quantile) / (1 - level)
    modified, beyond = cornish_fisher(quantile, density, skew, kurtosis)
    columns = (
        worst.min(axis=0),
        worst.mean(axis=0),
        -quantile * deviation - mean,
        density * deviation - mean,
        -modified * deviation - mean,
        beyond * deviation - mean,
    )
    return np.stack(columns, axis=1)


def cornish_fisher(quantile: float, density: float, skew: Floats, kurtosis: Floats) -> tuple[Floats, Floats]:
    """Standardised quantile and mean loss beyond it, corrected for skewness and excess kurtosis.

    `density` is φ(z)/(1 - level), the normal mean loss beyond z. The mean integrates the corrected quantile over the
    tail, Hermite term by Hermite term: ∫ z = -φ, ∫ z² - 1 = -zφ, ∫ z³ - 3z = -(z² - 1)φ, ∫ 2z³ - 5z = -(2z² - 1)φ.
    """
    z = quantile
    corrected = z + (z**2 - 1) * skew / 6 + (z**3 - 3 * z) * kurtosis / 24 - (2 * z**3 - 5 * z) * skew**2 / 36
    beyond = density * (1 + z * skew / 6 + (z**2 - 1) * kurtosis / 24 - (2 * z**2 - 1) * skew**2 / 36)
    return corrected, beyond


def portfolio_returns(portfolio: Portfolio, market: Market) -> Floats:
    """(T,) returns per session of today's weights, held constant; cash returns 0."""
    return required(market.returns, "returns") @ portfolio.weights


def _moments(returns: Floats) -> tuple[Floats, Floats]:
    """Skewness and excess kurtosis of each column (ddof 0); 0 for a series that does not vary."""
    centred = returns - returns.mean(axis=0)
    # A constant series leaves only rounding, whose moments mean nothing.
    scale = np.sqrt((centred**2).mean(axis=0))
    flat = scale <= 1e-14 * np.abs(returns).max(axis=0)
    standard = centred / np.where(flat, 1.0, scale)
    return np.where(flat, 0.0, (standard**3).mean(axis=0)), np.where(flat, 0.0, (standard**4).mean(axis=0) - 3)
