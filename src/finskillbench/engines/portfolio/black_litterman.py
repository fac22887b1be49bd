"""Black-Litterman: equilibrium returns, views, posterior, and the portfolio it implies.

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
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

RISK_AVERSION = 2.5
"""δ of the equilibrium π = δ Σ w_mkt."""
TAU = 0.05
"""Uncertainty of the equilibrium mean, as a fraction of Σ."""
LEAST_DOUBT = 1e-6
"""How far a confidence is from 0 and from 1 at least: Ω must be finite and positive."""


@dataclass(frozen=True, slots=True)
class View:
    """One analyst view: annual decimal return, confidence above 0 and below 1.

    An absolute view quotes the total return of `symbols`; a relative one by how much `symbols` beat `against`.
    """

    kind: Literal["absolute", "relative"]
    symbols: tuple[str, ...]
    expected: float
    confidence: float
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picks:
    """Views as arrays: P (k, n), Q (k,) in excess of cash and confidences (k,)."""

    matrix: Floats
    expected: Floats
    confidence: Floats


@dataclass(frozen=True)
class Posterior:
    """Equilibrium π (n,), posterior mean (n,) and posterior standard deviation of the mean (n,), decimals per year.

    All are excess returns over cash.
    """

    equilibrium: Floats
    mean: Floats
    standard_deviation: Floats


def picks_of(tickers: Sequence[str], views: Sequence[View], market_weights: Floats, cash: float) -> Picks:
    """Read views: +1 on `symbols` and −1 on `against`, shared out by market weight within each.

    The risk-free rate `cash` is deducted from the total return of an absolute view; it cancels out of a relative one.

    Raises
    ------
    InputError : for an unknown or repeated symbol, a missing or superfluous leg, a leg without market weight, or a
        confidence that is not above 0 and below 1.
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
                raise InputError(f"view {row}: {', '.join(leg)} have no market weights to share it out by")
            matrix[row, places] = sign * shares / shares.sum() if len(leg) > 1 else sign
    quoted = np.array([view.expected - (cash if view.kind == "absolute" else 0.0) for view in views])
    return Picks(matrix, quoted, np.array([view.confidence for view in views]))


def view_variances(risk: RiskModel, picks: Picks, tau: float = TAU) -> Floats:
    """(k,) prior variance τ p_kΣp_k' of what each view is about."""
    return tau * np.array([risk.variance(pick) for pick in picks.matrix])


def idzorek(confidence: Floats, variances: Floats) -> Floats:
    """(k,) diagonal of Ω: (1 − c_k) / c_k times the prior variance of the view.

    Idzorek (2005) defines the confidence as the share of the tilt that a certain view would cause, each view taken
    alone; this is the Ω that moves p_k'μ by that share.
    """
    return (1 - confidence) / confidence * variances


def equilibrium(risk: RiskModel, market_weights: Floats, risk_aversion: float = RISK_AVERSION) -> Floats:
    """(n,) excess returns under which the market portfolio is optimal."""
    return risk_aversion * risk.times(market_weights)


def posterior(risk: RiskModel, prior: Floats, picks: Picks, uncertainty: Floats, *, tau: float = TAU) -> Posterior:
    """Posterior of views with Ω = diag(uncertainty) and a prior of mean (n,) and covariance τΣ.

    The update form π + τΣP'(PτΣP' + Ω)^-1 (Q − Pπ) equals the paper's double inverse and inverts a matrix no larger
    than the number of views.
    """
    if len(picks.matrix) == 0:
        return Posterior(prior, prior, np.sqrt(tau * risk.variances))
    spread = tau * np.array([risk.times(pick) for pick in picks.matrix])  # τΣp_k', a row for each view
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
    """Long-only, fully invested maximum of μ'w − (δ/2) w'Σw; `unique` as in `optimise`."""
    problem = PortfolioProblem(
        tickers=tickers,
        risk=risk,
        objective=Objective.MAX_SHARPE,
        limits=Limits(),
        expected_returns=mean,
        risk_aversion=risk_aversion / 2,
    )
    return optimise(problem, unique=unique)


def cut_off(risk: RiskModel, mean: Floats, *, risk_aversion: float = RISK_AVERSION) -> tuple[Floats, Floats]:
    """What short positions cut off leave of two optima: (δΣ)^-1 μ, and that of a fully invested portfolio.

    Both are scaled to 1 afterwards; neither is the long-only optimum wherever a short position was cut off.
    """
    free, budget = np.linalg.solve(risk_aversion * risk.matrix, np.column_stack([mean, np.ones(risk.size)])).T
    kept = [np.maximum(weights, 0.0) for weights in (free, free + (1 - free.sum()) / budget.sum() * budget)]
    return kept[0] / kept[0].sum(), kept[1] / kept[1].sum()
