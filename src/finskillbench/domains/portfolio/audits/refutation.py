"""Refutations examined from their stored rays: the limits of an input, weighed as a ray says, contradict each other.

Nothing is shared with the solvers: each limit is written down again from the conventions of the tasks, and what the
weighed limits leave of the weights is held against the limit on tracking error by the Cauchy-Schwarz inequality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from finskillbench.domains.portfolio import second
from finskillbench.domains.portfolio.second import Floats
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import numbers


def margin(task_input: JsonObject, ray: Mapping[str, Sequence[float]]) -> float:
    """By how much the weighed limits fall short of leaving any portfolio; positive proves that there is none.

    With multipliers m >= 0 (k free for the budget) every portfolio w that keeps the limits a'w <= c has
    s'w <= k + sum m c, where s = k 1 + sum m a; of trades t, t'(w - w0) <= 2 max|t| turnover. Its tracking error bounds
    -s'(w - b) by TE sqrt(s' inv(S) s), without such a limit -s'w is at most max(-s). Both together leave nothing where
    the sum of the bounds is negative. Counts of names are left out: a contradiction of fewer limits is one of all.
    """
    tickers, sigma = second.covariance(task_input)
    limits: JsonObject = task_input["constraints"]
    scale = max(abs(value) for values in ray.values() for value in values)

    def weighed(name: str, size: int) -> Floats:
        found = np.array(ray.get(name, np.zeros(size)), dtype=float) / scale
        if len(found) != size:
            raise ValueError(f"{name} has {len(found)} multipliers, the input {size} such limits")
        return found

    n = len(tickers)
    budget = float(weighed("fully_invested", 1)[0])
    slope, most = np.full(n, budget), budget
    for name, (rows, caps) in _linear(task_input, tickers).items():
        multipliers = np.maximum(weighed(name, len(caps)), 0.0)
        slope, most = slope + multipliers @ rows, most + float(multipliers @ caps)
    trades = np.maximum(weighed("buys", n), 0.0) - np.maximum(weighed("sells", n), 0.0)
    start = second.vector(task_input["current_portfolio"], tickers)
    traded = 2 * np.abs(trades).max() * limits["max_turnover"] if trades.any() else 0.0
    slope, most = slope + trades, most + float(trades @ start) + traded
    if limits.get("max_tracking_error") is None:
        return -(most + float((-slope).max()))
    benchmark = second.vector(task_input["benchmark_weights"], tickers)
    reach = float(np.sqrt(slope @ np.linalg.solve(sigma, slope)))
    return -(most + limits["max_tracking_error"] * reach - float(slope @ benchmark))


def _linear(task_input: JsonObject, tickers: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
    """Rows (m, n) and caps (m,) of the limits that are linear in the weights, by the names that a ray gives them."""
    limits, eye = task_input["constraints"], np.eye(len(tickers))
    found = {"lower_bound": (-eye, np.full(len(tickers), -(limits.get("min_weight") or 0.0)))}
    upper = np.full(len(tickers), 1.0 if limits.get("max_weight") is None else limits["max_weight"])
    upper[np.isin(tickers, limits.get("restricted_names") or [])] = 0.0
    if (upper < 1).any():
        found["upper_bound"] = eye[upper < 1], upper[upper < 1]
    caps = numbers(limits.get("sector_limits"))
    if caps:
        sectors = [task_input["sector_mapping"][ticker] for ticker in tickers]
        rows = np.array([[float(sector == name) for sector in sectors] for name in caps])
        found["sector_limits"] = rows, np.array(list(caps.values()))
    if limits.get("factor_neutrality"):
        given, factors = task_input["factor_exposures"], limits["neutral_factors"]
        betas = np.array([[given[ticker][factor] for ticker in tickers] for factor in factors])
        centre = betas @ second.vector(task_input["benchmark_weights"], tickers)
        found["factor_neutrality_above"] = betas, limits["neutrality_tolerance"] + centre
        found["factor_neutrality_below"] = -betas, limits["neutrality_tolerance"] - centre
    return found
