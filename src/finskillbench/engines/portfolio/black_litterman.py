"""Black-Litterman: equilibrium returns, views, posterior, and the portfolio it implies.

Sources: Black & Litterman (1992); He & Litterman (1999) for the posterior covariance of the mean.
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


@dataclass(frozen=True, slots=True)
class View:
    """One analyst view: `symbols` (one, or long and short leg), an annual decimal return, a confidence in [0, 1)."""

    kind: Literal["absolute", "relative"]
    symbols: tuple[str, ...]
    expected: float
    confidence: float


@dataclass(frozen=True)
class Posterior:
    """Equilibrium π (n,), posterior mean (n,) and posterior standard deviation of the mean (n,), decimals per year."""

    equilibrium: Floats
    mean: Floats
    standard_deviation: Floats


def pick_matrix(tickers: Sequence[str], views: Sequence[View]) -> tuple[Floats, Floats, Floats]:
    """P (k, n), Q (k,) and confidences (k,); a relative view is +1 on its first symbol and −1 on its second.

    Raises
    ------
    InputError : for an unknown symbol, a wrong number of symbols or a confidence outside [0, 1).
    """
    place = {ticker: index for index, ticker in enumerate(tickers)}
    picks = np.zeros((len(views), len(tickers)))
    for row, view in enumerate(views):
        legs = {"absolute": (1.0,), "relative": (1.0, -1.0)}[view.kind]
        if len(view.symbols) != len(legs):
            raise InputError(f"view {row}: a {view.kind} view names {len(legs)} symbols, not {len(view.symbols)}")
        if len(set(view.symbols)) != len(view.symbols):
            raise InputError(f"view {row}: a relative view names two different symbols, not {view.symbols[0]} twice")
        if not 0 <= view.confidence < 1:
            raise InputError(f"view {row}: confidence {view.confidence} is outside [0, 1)")
        for symbol, sign in zip(view.symbols, legs, strict=True):
            if symbol not in place:
                raise InputError(f"view {row}: {symbol} is not among the {len(tickers)} names of the universe")
            picks[row, place[symbol]] += sign
    return picks, np.array([v.expected for v in views]), np.array([v.confidence for v in views])


def posterior(
    risk: RiskModel,
    market_weights: Floats,
    picks: Floats,
    expected: Floats,
    confidence: Floats,
    *,
    risk_aversion: float = RISK_AVERSION,
    tau: float = TAU,
) -> Posterior:
    """Posterior mean with Ω_kk = (1 − c_k) τ p_kΣp_k'.

    The update form π + τΣP'(PτΣP' + Ω)^-1 (Q − Pπ) equals the paper's double inverse and inverts a matrix no larger
    than the number of views.
    """
    equilibrium = risk_aversion * risk.times(market_weights)
    if len(picks) == 0:
        return Posterior(equilibrium, equilibrium, np.sqrt(tau * risk.variances))
    spread = tau * np.array([risk.times(pick) for pick in picks])  # τΣp_k', a row for each view
    between = picks @ spread.T
    gain = np.linalg.solve(between + np.diag((1 - confidence) * np.diag(between)), np.eye(len(picks)))
    mean = equilibrium + spread.T @ (gain @ (expected - picks @ equilibrium))
    reduction = np.einsum("ki,kl,li->i", spread, gain, spread)
    return Posterior(equilibrium, mean, np.sqrt(np.maximum(tau * risk.variances - reduction, 0.0)))


def optimal_weights(
    tickers: tuple[str, ...], risk: RiskModel, mean: Floats, *, risk_aversion: float = RISK_AVERSION
) -> Certified:
    """Long-only, fully invested maximum of μ'w − (δ/2) w'Σw."""
    problem = PortfolioProblem(
        tickers=tickers,
        risk=risk,
        objective=Objective.MAX_SHARPE,
        limits=Limits(),
        expected_returns=mean,
        risk_aversion=risk_aversion / 2,
    )
    return optimise(problem)
