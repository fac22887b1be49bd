"""Independent derivation of limits, objectives and posteriors from an input's JSON, without code of the engines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from finskillbench.episode import JsonObject

Floats = NDArray[np.float64]

ZERO = 1e-9
"""Maximum weight that counts as 0."""
HOLDING = 0.001
"""Minimum absolute weight of a holding, as defined in the conventions of the tasks."""


def input_covariance(task_input: JsonObject) -> tuple[tuple[str, ...], Floats]:
    """Return tickers and the dense (n, n) covariance of a resolved input; raise KeyError if unresolved."""
    table = task_input["covariance_matrix"]
    tickers = tuple(table["tickers"])
    if "matrix" in table:
        return tickers, np.array(table["matrix"], dtype=float)
    loadings = np.array(table["loadings"], dtype=float)
    return tickers, loadings.T @ loadings + np.diag(np.array(table["specific"], dtype=float))


def vector(table: Mapping[str, float], tickers: Sequence[str]) -> Floats:
    """Return the numbers (n,) of a map in ticker order; raise KeyError for missing, ValueError for unknown tickers."""
    unknown = set(table) - set(tickers)
    if unknown:
        raise ValueError(f"{min(unknown)} is not among the tickers")
    return np.array([table[ticker] for ticker in tickers], dtype=float)


def inverse_variance(sigma: Floats) -> Floats:
    """Return inverse-variance weights (n,)."""
    inverse = 1 / sigma.diagonal()
    return inverse / inverse.sum()


def objective(task_input: JsonObject, sigma: Floats, weights: Floats, mean: Floats | None = None) -> float:
    """Return the objective in its minimisation form (specification: data, Truth)."""
    name = task_input["objective"]
    variance = float(weights @ sigma @ weights)
    if name == "min_variance":
        return variance
    if name == "risk_parity":
        difference = weights - inverse_variance(sigma)
        return float(difference @ difference) + variance / 2
    if mean is None:
        mean = vector(task_input["expected_returns"], task_input["covariance_matrix"]["tickers"])
    reward = float(mean @ weights)
    if name == "max_return":
        return -reward
    if name == "max_sharpe":
        return float(task_input["risk_aversion"]) * variance - reward
    raise ValueError(f"objective {name!r} is unknown")


def excesses(task_input: JsonObject, sigma: Floats, weights: Floats) -> dict[str, float]:
    """Return the excess of weights (n,) over each limit of the input; not positive if satisfied."""
    limits = task_input["constraints"]
    tickers = task_input["covariance_matrix"]["tickers"]
    over = {"fully_invested": abs(float(weights.sum()) - 1)}
    if limits.get("long_only", True):
        over["long_only"] = -float(weights.min())
    if limits.get("restricted_names"):
        over["restricted_names"] = float(weights[np.isin(tickers, limits["restricted_names"])].max())
    if limits.get("max_weight") is not None:
        over["max_weight"] = float(weights.max()) - limits["max_weight"]
    if limits.get("min_weight"):
        over["min_weight"] = limits["min_weight"] - float(weights.min())
    if limits.get("sector_limits"):
        sectors = [task_input["sector_mapping"][ticker] for ticker in tickers]
        over["sector_limits"] = max(
            math.fsum(weight for weight, of in zip(weights.tolist(), sectors, strict=True) if of == sector) - cap
            for sector, cap in limits["sector_limits"].items()
        )
    if limits.get("min_position") is not None:
        held = weights[weights > ZERO]
        over["min_position"] = float(np.minimum(held, limits["min_position"] - held).max(initial=0.0))
    holdings = int((np.abs(weights) >= HOLDING - 1e-9).sum())
    if limits.get("min_names") is not None:
        over["min_names"] = limits["min_names"] - holdings
    if limits.get("max_names") is not None:
        over["max_names"] = holdings - limits["max_names"]
    if limits.get("max_turnover") is not None:
        over["max_turnover"] = turnover_from_current(task_input, weights) - limits["max_turnover"]
    if limits.get("max_tracking_error") is not None:
        active = weights - vector(task_input["benchmark_weights"], tickers)
        over["max_tracking_error"] = float(np.sqrt(active @ sigma @ active)) - limits["max_tracking_error"]
    if limits.get("factor_neutrality"):
        active = weights - vector(task_input["benchmark_weights"], tickers)
        factors = limits["neutral_factors"]
        betas = np.array([[task_input["factor_exposures"][ticker][factor] for factor in factors] for ticker in tickers])
        over["factor_neutrality"] = float(np.abs(active @ betas).max()) - limits["neutrality_tolerance"]
    return over


def turnover_from_current(task_input: JsonObject, weights: Floats) -> float:
    """Return one-way turnover from the input's current portfolio."""
    current = vector(task_input["current_portfolio"], task_input["covariance_matrix"]["tickers"])
    return float(np.abs(weights - current).sum()) / 2


def trading_cost(task_input: JsonObject, weights: Floats) -> float:
    """Return the cost of the trades from the current portfolio, basis points of NAV."""
    tickers = task_input["covariance_matrix"]["tickers"]
    current, costs = (vector(task_input[name], tickers) for name in ("current_portfolio", "trading_costs_bps"))
    return math.fsum((costs * np.abs(weights - current)).tolist())


def trade_shortfall(task_input: JsonObject, weights: Floats) -> float:
    """Return the largest shortfall of a trade from `min_trade`; complete sales may be smaller."""
    current = vector(task_input["current_portfolio"], task_input["covariance_matrix"]["tickers"])
    missed = 0.0
    for before, after in zip(current.tolist(), weights.tolist(), strict=True):
        size = abs(after - before)
        closes = after < before and after <= 1e-12
        if not closes:
            missed = max(missed, min(size, task_input["min_trade"] - size))
    return missed


def textbook_posterior(task_input: JsonObject, sigma: Floats) -> Floats:
    """Return the Black-Litterman posterior mean (n,) in excess of cash by the textbook formula.

    [(τΣ)^-1 + P'Ω^-1P]^-1 [(τΣ)^-1 π + P'Ω^-1 Q], π = δΣw, Ω_kk = (1 − c_k) / c_k · τ p_kΣp_k'.
    """
    tickers = list(task_input["covariance_matrix"]["tickers"])
    delta, tau = float(task_input["risk_aversion"]), float(task_input["tau"])
    market = vector(task_input["market_cap_weights"], tickers)
    views = task_input["analyst_views"]
    picks, excess, doubt = np.zeros((len(views), len(tickers))), np.zeros(len(views)), np.zeros(len(views))
    for row, view in enumerate(views):
        for leg, sign in ((view["symbols"], 1), (view.get("against", []), -1)):
            capitalisation = math.fsum(market[tickers.index(symbol)] for symbol in leg)
            for symbol in leg:
                place = tickers.index(symbol)
                picks[row, place] = sign * (market[place] / capitalisation if len(leg) > 1 else 1)
        excess[row] = view["return"] - (task_input["risk_free_rate"] if view["type"] == "absolute" else 0)
        doubt[row] = 1 / view["confidence"] - 1
    uncertainty = doubt * tau * (picks @ sigma @ picks.T).diagonal()
    precision = np.linalg.inv(tau * sigma)
    belief = picks.T @ np.diag(1 / uncertainty)
    return np.linalg.inv(precision + belief @ picks) @ (precision @ (delta * sigma @ market) + belief @ excess)


def optima_without_shorts(task_input: JsonObject, sigma: Floats, mean: Floats) -> list[Floats]:
    """Return optima (n,) of mean'w - (delta / 2) w'Sw without their shorts, scaled to 1: without and with a budget."""
    inverse = np.linalg.inv(float(task_input["risk_aversion"]) * sigma)
    free, ones = inverse @ mean, np.ones(len(mean))
    invested = free + inverse @ ones * (1 - free.sum()) / (ones @ inverse @ ones)
    return [np.maximum(weights, 0) / np.maximum(weights, 0).sum() for weights in (free, invested)]
