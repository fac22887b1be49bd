"""Black-Litterman model: equilibrium returns, views, posterior, and implied portfolio.

Sources: Black & Litterman (1992); He & Litterman (1999) for the posterior covariance of the mean; Idzorek (2005) for
the confidence of a view and for legs weighted by market capitalisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

RISK_AVERSION = 2.5
"""δ of the equilibrium π = δ Σ w_mkt."""
TAU = 0.05
"""Uncertainty of the equilibrium mean, as a fraction of Σ."""
LEAST_DOUBT = 1e-6
"""Minimum distance of a confidence from 0 and 1, so that Ω is finite and positive."""


@dataclass(frozen=True, slots=True)
class AnalystView:
    """An annual return with confidence in (0, 1): absolute for `symbols`, or relative, their excess over `against`."""

    kind: Literal["absolute", "relative"]
    symbols: tuple[str, ...]
    expected: float
    confidence: float
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picks:
    """Views as arrays: P (k, n), Q (k,) in excess of cash, confidences (k,)."""

    matrix: Floats
    expected: Floats
    confidence: Floats


@dataclass(frozen=True)
class Posterior:
    """Equilibrium π, posterior mean and its standard deviation, each (n,), excess returns over cash per year."""

    equilibrium: Floats
    mean: Floats
    standard_deviation: Floats


def picks_of(tickers: Sequence[str], views: Sequence[AnalystView], market_weights: Floats, cash: float) -> Picks:
    """Convert views to rows of P: +1 on `symbols` and −1 on `against`, split by market weight.

    Deducts the risk-free rate `cash` from absolute views; it cancels out of relative ones. Raises `InputError` for
    unknown or repeated symbols, missing or superfluous legs, legs without market weight, or confidences outside of (0,
    1).
    """
    place = {ticker: index for index, ticker in enumerate(tickers)}
    matrix = np.zeros((len(views), len(tickers)))
    for row, view in enumerate(views):
        if not view.symbols or bool(view.against) != (view.kind == "relative"):
            legs = "symbols and against" if view.kind == "relative" else "symbols alone"
            raise InputError(f"view {row}: a {view.kind} view names {legs}")
        named = (*view.symbols, *view.against)
        if len(set(named)) != len(named):
            raise InputError(f"view {row}: {', '.join(named)} must be different symbols")
        if not LEAST_DOUBT <= view.confidence <= 1 - LEAST_DOUBT:
            raise InputError(f"view {row}: confidence {view.confidence} must lie above 0 and below 1")
        for symbol in named:
            if symbol not in place:
                raise InputError(f"view {row}: {symbol} is not among the {len(tickers)} names of the universe")
        for leg, sign in ((view.symbols, 1.0), (view.against, -1.0)):
            places = [place[symbol] for symbol in leg]
            shares = market_weights[places]
            if len(leg) > 1 and not (shares.min() >= 0 and shares.sum() > 0):
                raise InputError(f"view {row}: {', '.join(leg)} have no market weights to divide the leg by")
            matrix[row, places] = sign * shares / shares.sum() if len(leg) > 1 else sign
    quoted = np.array([view.expected - (cash if view.kind == "absolute" else 0.0) for view in views])
    return Picks(matrix, quoted, np.array([view.confidence for view in views]))


def view_variances(risk: RiskModel, picks: Picks, tau: float = TAU) -> Floats:
    """(k,) Prior variance τ p_kΣp_k' of each view."""
    return tau * np.array([risk.variance(pick) for pick in picks.matrix])


def idzorek(confidence: Floats, variances: Floats) -> Floats:
    """(k,) Diagonal of Ω: (1 − c_k) / c_k times the prior variance of the view.

    Idzorek (2005) defines confidence as the share of the tilt that a certain view would cause, each view alone. This Ω
    moves p_k'μ by that share.
    """
    return (1 - confidence) / confidence * variances


def equilibrium(risk: RiskModel, market_weights: Floats, risk_aversion: float = RISK_AVERSION) -> Floats:
    """(n,) Excess returns under which the market portfolio is optimal."""
    return risk_aversion * risk.times(market_weights)


def posterior_returns(
    risk: RiskModel, prior: Floats, picks: Picks, uncertainty: Floats, *, tau: float = TAU
) -> Posterior:
    """Compute the posterior of views with Ω = diag(uncertainty) and a prior of mean (n,) and covariance τΣ.

    The update form π + τΣP'(PτΣP' + Ω)^-1 (Q − Pπ) equals the paper's double inverse and inverts only a (k, k) matrix.
    """
    if len(picks.matrix) == 0:
        return Posterior(prior, prior, np.sqrt(tau * risk.variances))
    spread = tau * np.array([risk.times(pick) for pick in picks.matrix])  # τΣp_k', one row per view
    between = picks.matrix @ spread.T
    gain = np.linalg.solve(between + np.diag(uncertainty), np.eye(len(uncertainty)))
    mean = prior + spread.T @ (gain @ (picks.expected - picks.matrix @ prior))
    reduction = np.einsum("ki,kl,li->i", spread, gain, spread)
    return Posterior(prior, mean, np.sqrt(np.maximum(tau * risk.variances - reduction, 0.0)))


def optimal_weights(
    tickers: tuple[str, ...],
    risk: RiskModel,
    mean: Floats,
    *,
    risk_aversion: float = RISK_AVERSION,
    unique: bool = True,
) -> Certified:
    """Maximise μ'w − (δ/2) w'Σw, long-only and fully invested; `unique` as in `optimise`."""
    problem = PortfolioProblem(
        tickers=tickers,
        risk=risk,
        objective=Objective.MAX_SHARPE,
        limits=PortfolioLimits(),
        expected_returns=mean,
        risk_aversion=risk_aversion / 2,
    )
    return optimise(problem, unique=unique)


def without_shorts(risk: RiskModel, mean: Floats, *, risk_aversion: float = RISK_AVERSION) -> tuple[Floats, Floats]:
    """Return two optima without their short positions, rescaled to 1: (δΣ)^-1 μ, and the fully invested one."""
    free, budget = np.linalg.solve(risk_aversion * risk.matrix, np.column_stack([mean, np.ones(risk.size)])).T
    kept = [np.maximum(weights, 0.0) for weights in (free, free + (1 - free.sum()) / budget.sum() * budget)]
    return kept[0] / kept[0].sum(), kept[1] / kept[1].sum()
