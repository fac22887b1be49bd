"""The published way of producing the portfolio labels: a fresh CVXPY problem each time, SCS first, OSQP after it.

Kept as a yardstick for the speed and accuracy of `finskillbench.engines.portfolio`; it shares no code with it. Each
function takes a resolved episode input and returns `{"status", "objective", "weights", ...}`. As in the published
pipeline, solvers run at their default tolerances and name counts are not enforced.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

Json = dict[str, Any]


def _read(task_input: Json) -> tuple[list[str], np.ndarray]:
    given = task_input["covariance_matrix"]
    return list(given["tickers"]), np.asarray(given["matrix"], dtype=float)


def _vector(tickers: list[str], mapping: Json) -> np.ndarray:
    return np.array([float(mapping.get(t, 0.0)) for t in tickers])


def _solve(goal: Any, limits: list[Any]) -> cp.Problem:
    """SCS, and OSQP where SCS does not call it solved; OSQP cannot take a tracking-error cone."""
    problem = cp.Problem(cp.Minimize(goal), limits)
    for solver in (cp.SCS, cp.OSQP):
        try:
            problem.solve(solver=solver)
        except cp.error.SolverError:
            continue
        if problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            break
    return problem


def _goal(task_input: Json, tickers: list[str], sigma: np.ndarray, w: cp.Variable) -> Any:
    risk = cp.quad_form(w, cp.psd_wrap(sigma))
    objective = task_input["objective"]
    if objective == "min_variance":
        return risk
    if objective == "risk_parity":
        inverse = 1.0 / np.diag(sigma)
        return cp.sum_squares(w - inverse / inverse.sum()) + 0.5 * risk
    gain = _vector(tickers, task_input["expected_returns"]) @ w
    return -gain if objective == "max_return" else task_input["risk_aversion"] * risk - gain


def _limits(task_input: Json, tickers: list[str], sigma: np.ndarray, w: cp.Variable) -> list[Any]:
    given = task_input.get("constraints") or {}
    limits = [cp.sum(w) == 1]
    if given.get("long_only", True):
        limits.append(w >= 0)
    if given.get("max_weight") is not None:
        limits.append(w <= given["max_weight"])
    for sector, cap in (given.get("sector_limits") or {}).items():
        inside = [i for i, t in enumerate(tickers) if task_input["sector_mapping"][t] == sector]
        if inside:
            limits.append(cp.sum(w[inside]) <= cap)
    if given.get("max_turnover") is not None:
        held = _vector(tickers, task_input["current_portfolio"])
        limits.append(cp.norm(w - held, 1) / 2 <= given["max_turnover"])
    if given.get("max_tracking_error") is not None or given.get("factor_neutrality"):
        active = w - _vector(tickers, task_input["benchmark_weights"])
        if given.get("max_tracking_error") is not None:
            limits.append(cp.norm(np.linalg.cholesky(sigma).T @ active, 2) <= given["max_tracking_error"])
        for factor in given.get("neutral_factors") or [] if given.get("factor_neutrality") else []:
            beta = np.array([task_input["factor_exposures"][t][factor] for t in tickers])
            limits.append(cp.abs(beta @ active) <= given["neutrality_tolerance"])
    return limits


def _report(problem: cp.Problem, tickers: list[str], w: cp.Variable, goal: Any) -> Json:
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return {"status": "infeasible", "objective": float("inf"), "weights": {}}
    weights = dict(zip(tickers, w.value.tolist(), strict=True))
    return {"status": "optimal", "objective": float(goal.value), "weights": weights}


def constrained(task_input: Json) -> Json:
    """Optimum of an unconstrained or constrained episode."""
    tickers, sigma = _read(task_input)
    w = cp.Variable(len(tickers))
    goal = _goal(task_input, tickers, sigma, w)
    return _report(_solve(goal, _limits(task_input, tickers, sigma, w)), tickers, w, goal)


def black_litterman(task_input: Json) -> Json:
    """Posterior with explicit inverses and the long-only weights at λ = δ/2; adds `posterior_returns`."""
    tickers, sigma = _read(task_input)
    delta, tau = task_input["risk_aversion"], task_input["tau"]
    market = _vector(tickers, task_input["market_cap_weights"])
    views = task_input["analyst_views"]
    picks, excess = np.zeros((len(views), len(tickers))), np.array([view["return"] for view in views])
    for k, view in enumerate(views):
        for leg, sign in ((view["symbols"], 1.0), (view.get("against", []), -1.0)):
            places = [tickers.index(symbol) for symbol in leg]
            picks[k, places] = sign * market[places] / market[places].sum()
        excess[k] -= task_input["risk_free_rate"] if view["type"] == "absolute" else 0.0
    doubt = [(1 - v["confidence"]) / v["confidence"] * tau * p @ sigma @ p for v, p in zip(views, picks, strict=True)]
    prior, certain = np.linalg.inv(tau * sigma), np.diag(1 / np.array(doubt))
    posterior = np.linalg.inv(prior + picks.T @ certain @ picks) @ (
        prior @ (delta * sigma @ market) + picks.T @ certain @ excess
    )
    w = cp.Variable(len(tickers))
    goal = delta / 2 * cp.quad_form(w, cp.psd_wrap(sigma)) - posterior @ w
    found = _report(_solve(goal, [cp.sum(w) == 1, w >= 0]), tickers, w, goal)
    total = (posterior + task_input["risk_free_rate"]).tolist()
    return found | {"posterior_returns": dict(zip(tickers, total, strict=True))}
