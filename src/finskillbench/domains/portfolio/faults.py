"""Independent checks of portfolio answers by the printed conventions, and their losses in money."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from finskillbench.domains.faults import BASIS_POINTS, Loss
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.optimality import OptimalityCheck
from finskillbench.domains.portfolio.rederive import Floats
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import as_number, numbers

_KEPT, _OPTIMAL = 1e-5, 1e-5
"""Excess over a limit, and possible gain of another portfolio, that come from rounding to six decimals."""
_CHEAPER = 0.01
"""Possible saving of other trades, basis points of NAV, that comes from rounding."""
_SCALE = 100.0
"""Factor that makes objectives of order 0.01 suit the tolerance of the solver."""


def _weights(task_input: JsonObject, answer: JsonObject, key: str = "weights") -> tuple[Floats, Floats] | None:
    """Return covariance (n, n) and submitted weights (n,); None if there are none of this universe."""
    tickers, sigma = rederive.input_covariance(task_input)
    stated = numbers(answer.get(key))
    if not stated or not stated.keys() <= {*tickers}:
        return None
    return sigma, np.array([stated.get(ticker, 0.0) for ticker in tickers])


def _keeps_limits(task_input: JsonObject, sigma: Floats, weights: Floats) -> bool:
    return max(rederive.excesses(task_input, sigma, weights).values()) <= _KEPT


def _accepts_optimum(task_input: JsonObject, answer: JsonObject) -> bool:
    """Accept weights within the limits that no small change improves."""
    if (found := _weights(task_input, answer)) is None:
        return False
    return _keeps_limits(task_input, *found) and OptimalityCheck(task_input, found[1]).gain() <= _OPTIMAL


def _accepts_rebalancing(task_input: JsonObject, answer: JsonObject) -> bool:
    """Accept trades that keep the limits and sizes and gain enough, if no change of their sizes is cheaper."""
    if (found := _weights(task_input, answer, "new_weights")) is None:
        return False
    (sigma, weights), tickers = found, task_input["covariance_matrix"]["tickers"]
    current, trades = rederive.vector(task_input["current_portfolio"], tickers), numbers(answer.get("trade_list"))
    prices, traded = (
        rederive.vector(task_input["trading_costs_bps"], tickers),
        np.array([trades.get(ticker, 0.0) for ticker in tickers]),
    )
    start, value = (rederive.objective(task_input, sigma, each) for each in (current, weights))
    enough = start - task_input["required_improvement"] * (start - _least_value(task_input, sigma, current))
    return (
        _keeps_limits(task_input, sigma, weights)
        and float(np.abs(current + traded - weights).max()) <= _KEPT
        and rederive.trade_shortfall(task_input, weights) <= _KEPT
        and value <= enough + _OPTIMAL
        and OptimalityCheck(task_input, weights).gain(prices, max(enough, value), same_trades=True) <= _CHEAPER
    )


def _least_value(task_input: JsonObject, sigma: Floats, start: Floats) -> float:
    """Return the least objective under the linear limits of a rebalancing, by sequential quadratic programming."""
    # Imported here: it takes 0.3 s, which a build does not need.
    import scipy.optimize as _optimize

    optimize: Any = _optimize  # SciPy has no type stubs
    limits, at = task_input["constraints"], OptimalityCheck(task_input, start)
    caps = numbers(limits.get("sector_limits"))
    sectors = [task_input["sector_mapping"][ticker] for ticker in at.tickers]
    rules = [optimize.LinearConstraint(np.ones((1, len(start))), 1.0, 1.0)]
    if caps:
        members = np.array([[float(sector == name) for sector in sectors] for name in caps])
        rules.append(optimize.LinearConstraint(members, -np.inf, list(caps.values())))

    def value(weights: Floats) -> float:
        return _SCALE * rederive.objective(task_input, sigma, weights)

    def slope(weights: Floats) -> Floats:
        at.weights = weights
        return _SCALE * at.slope()[0]

    found = optimize.minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        bounds=[(0.0, limits.get("max_weight") or 1.0)] * len(start),
        constraints=rules,
        options={"maxiter": 300, "ftol": 1e-9},
    )
    return float(found.fun) / _SCALE


def _accepts_posterior(task_input: JsonObject, answer: JsonObject) -> bool:
    """Accept returns of the textbook formula, and weights that are optimal under them."""
    if (found := _weights(task_input, answer, "optimal_weights")) is None:
        return False
    sigma, weights = found
    mean, stated = rederive.textbook_posterior(task_input, sigma), numbers(answer.get("posterior_returns"))
    tickers = task_input["covariance_matrix"]["tickers"]
    missed = [
        abs(stated.get(name, 0.0) - task_input["risk_free_rate"] - m) for name, m in zip(tickers, mean, strict=True)
    ]
    problem = _as_optimisation(task_input)
    optimal = OptimalityCheck(problem, weights, mean).gain() <= _OPTIMAL
    return max(missed) <= _KEPT and _keeps_limits(problem, sigma, weights) and optimal


def _as_optimisation(task_input: JsonObject) -> JsonObject:
    half = task_input["risk_aversion"] / 2
    return {**task_input, "constraints": {"long_only": True}, "objective": "max_sharpe", "risk_aversion": half}


def _accepts_verdict(task_input: JsonObject, answer: JsonObject) -> bool:
    """Accept a verdict that follows from the least attainable value, with a conflict exactly if it is infeasible."""
    limits, name = task_input["constraints"], str(task_input["limit_to_relax"])
    kind, _, sector = name.partition(".")
    limit = limits["neutrality_tolerance" if kind == "factor_neutrality" else kind]
    least = as_number(answer.get("least_attainable"))
    feasible = least is not None and least <= (limit[sector] if sector else limit)
    return answer.get("feasible") is feasible and bool(answer.get("conflicting_limits")) is not feasible


ACCEPTS = {
    "unconstrained_optimization": _accepts_optimum,
    "constrained_optimization": _accepts_optimum,
    "rebalancing": _accepts_rebalancing,
    "black_litterman": _accepts_posterior,
    "infeasibility_detection": _accepts_verdict,
}


def _utility_lost(key: str, task_input: JsonObject, answer: JsonObject, right: JsonObject) -> float | None:
    """Return the utility lost, net of trading costs, in basis points a year.

    None if the objective is no return, or if the answer breaks a limit.
    """
    found, best = (_weights(task_input, one, key) for one in (answer, right))
    if found is None or best is None or task_input.get("objective") in ("min_variance", "risk_parity"):
        return None
    mean = rederive.textbook_posterior(task_input, best[0]) if "analyst_views" in task_input else None
    problem = task_input if mean is None else _as_optimisation(task_input)
    if not _keeps_limits(problem, *found):
        return None
    value, least = (1e4 * rederive.objective(problem, *each, mean) for each in (found, best))
    if "trading_costs_bps" in task_input:
        value += rederive.trading_cost(task_input, found[1]) - rederive.trading_cost(task_input, best[1])
    return value - least


LOSSES = {
    name: Loss(BASIS_POINTS, partial(_utility_lost, key))
    for name, key in {
        "unconstrained_optimization": "weights",
        "constrained_optimization": "weights",
        "rebalancing": "new_weights",
        "black_litterman": "optimal_weights",
    }.items()
}
