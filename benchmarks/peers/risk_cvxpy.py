"""Risk remediation by CVXPY with its default solvers: least cost, or the least shortfall where the budget is too small.

What the engine has to answer without certificates. Tickets, name counts and least positions, which need branching, are
left out, so the peer solves an easier problem.
"""

import math
import warnings
from typing import Any

import cvxpy as cp
import numpy as np

Json = dict[str, Any]
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")


def remediate(task_input: Json) -> tuple[bool, float, np.ndarray]:
    """(compliant, least cost or least shortfall in per cent of NAV, (n,) weights in the order of the covariance)."""
    tickers = task_input["covariance_matrix"]["tickers"]
    portfolio = task_input["portfolio"]
    held = {row["symbol"]: row["weight"] for row in portfolio["holdings"]}
    start = np.array([held.get(ticker, 0.0) for ticker in tickers])
    terms = task_input["trading_terms"]
    costs = np.array([terms["cost_bps"][ticker] / 100 for ticker in tickers])
    rules = {rule["type"]: _inside(rule, terms["headroom"]) for rule in task_input["mandate"]["constraints"]}
    done = np.array(list((portfolio.get("trades_this_month") or {}).values()))
    budget = math.inf
    if "turnover_max_monthly" in rules:
        budget = rules["turnover_max_monthly"]["value"] - (np.abs(done).sum() + abs(done.sum())) / 2
    w, cash = cp.Variable(len(tickers)), cp.Variable(nonneg=True)
    trades = w - start
    turnover = (cp.norm1(trades) + cp.abs(cp.sum(trades))) / 2
    always = [cp.sum(w) + cash == 1, *([w >= 0] if "long_only" in rules else [])]
    measures = list(_measures(task_input, rules, tickers, w, cash))
    least = _solve(turnover, [*always, *(excess <= 0 for excess, _ in measures)])
    compliant = bool(least <= budget + 1e-7)
    cost, limits = costs @ cp.abs(trades), [*always, *([turnover <= max(budget, 0.0)] if budget < math.inf else [])]
    if compliant:
        value = _solve(cost, [*limits, *(excess <= 0 for excess, _ in measures)])
    else:
        value = _solve(cp.sum([cp.pos(excess) / scale for excess, scale in measures]) + cost, limits)
    return compliant, value, np.array(w.value, dtype=float)


def _inside(rule: Json, headroom: Json) -> Json:
    """The limit moved inwards by its headroom."""
    room, moved = headroom.get(rule["type"], 0.0), dict(rule)
    for end, way in (("value", -room), ("max", -room), ("min", room)):
        if room and rule.get(end) is not None:
            moved[end] = rule[end] + way
    return moved


def _solve(goal: Any, limits: list[Any]) -> float:
    problem = cp.Problem(cp.Minimize(goal), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve()
    return math.inf if problem.value is None else float(np.asarray(problem.value))


def _measures(task_input: Json, rules: Json, tickers: list[str], w: Any, cash: Any) -> Any:
    """(excess, scale) of every convex limit."""
    betas = np.array([[task_input["factor_exposures"][t][f] for f in FACTORS] for t in tickers])
    sectors = [task_input["sector_mapping"][t] for t in tickers]
    for kind, rule in rules.items():
        limit = rule.get("value")
        if kind == "position_limit_max":
            yield cp.max(w) - limit, limit
        elif kind == "sector_limit_max":
            inside = np.array([[float(s == name) for s in sectors] for name in sorted(set(sectors))])
            yield cp.max(inside @ w) - limit, limit
        elif kind == "tracking_error_max":
            benchmark = np.array([task_input["benchmark_weights"].get(t, 0.0) for t in tickers])
            table = task_input["covariance_matrix"]
            if "matrix" in table:
                root = np.linalg.cholesky(np.array(table["matrix"])).T
            else:
                root = np.vstack([table["loadings"], np.diag(np.sqrt(table["specific"]))])
            yield cp.norm2(root @ (w - benchmark)) - limit, limit
        elif kind == "beta_range":
            beta = betas[:, 0] @ w
            yield cp.maximum((rule["min"] - beta) / abs(rule["min"]), (beta - rule["max"]) / abs(rule["max"])), 1.0
        elif kind == "factor_exposure_max":
            listed = [FACTORS.index(f) for f in rule["factors"]]
            yield cp.norm_inf(betas[:, listed].T @ w) - limit, limit
        elif kind == "cash_max":
            yield cash - limit, limit
        elif kind == "gross_exposure_max":
            yield cp.norm1(w) - limit, limit
        elif kind == "hhi_max":
            yield cp.sum_squares(w) - limit, limit
