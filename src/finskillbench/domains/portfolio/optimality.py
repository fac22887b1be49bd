"""Independent proofs of optima and conflicts, without solver, engine or formulation code.

An optimum is proved from its gradients: nonnegative least squares gives multipliers, whose residual bounds any gain.
A conflict is proved from a stored ray: the weighted limits of an input contradict each other, with tracking error
bounded by the Cauchy-Schwarz inequality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.rederive import Floats
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import numbers

_NEAR = 1e-4
"""Limits with more slack have no multiplier."""
_TRADED = 1e-9
_REACH = 4.0
"""Buys and sells of a fully invested long-only portfolio sum to at most 2; two portfolios differ by at most 4."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits h(x) <= 0 at a point: slacks -h (m,), gradients (m, n), and gradients of equalities (k, n).

    Each h is convex with gradient a at x, so a'(y - x) <= slack for every feasible point y.
    """

    slacks: Floats
    gradients: Floats
    equalities: Floats


def _stack_limits(parts: Sequence[tuple[Floats, Floats]], equalities: Sequence[Floats]) -> _Limits:
    width = equalities[0].shape[1]
    return _Limits(
        np.concatenate([slacks for slacks, _ in parts]),
        np.vstack([gradients.reshape(-1, width) for _, gradients in parts]),
        np.vstack(equalities),
    )


def possible_gain(gradient: Floats, limits: _Limits, reach: float) -> float:
    """Bound the improvement of any other feasible point over this one.

    With multipliers m >= 0 and r = gradient + sum m a + sum k e, every feasible y has
    f(y) >= f(x) + gradient'(y - x) >= f(x) - |r|_max ||y - x||_1 - sum m slack.

    gradient : (n,) gradient of the convex objective at the point.
    reach : largest ||y - x||_1 of two feasible points.
    """
    near = limits.slacks < _NEAR
    slacks = np.maximum(limits.slacks[near], 0.0)
    columns = np.vstack([limits.gradients[near], limits.equalities, -limits.equalities]).T
    # Slacks weighted next to the residual steer multipliers to the binding limits.
    system = np.vstack([columns, np.concatenate([slacks, np.zeros(2 * len(limits.equalities))])[None, :]])
    scale = np.linalg.norm(system, axis=0)
    scale[scale == 0] = 1.0
    # Imported here: it takes 0.3 s, which a build does not need.
    import scipy.optimize as _optimize

    optimize: Any = _optimize  # SciPy has no type stubs
    multipliers, _ = optimize.nnls(system / scale, np.concatenate([-gradient, [0.0]]), maxiter=50 * system.shape[1])
    multipliers = multipliers / scale
    residual = gradient + columns @ multipliers
    return float(np.abs(residual).max() * reach + multipliers[: len(slacks)] @ slacks)


class OptimalityCheck:
    """A portfolio problem at a point, with limits in buys u and sells v: w = w0 + u - v."""

    def __init__(self, task_input: JsonObject, weights: Floats, mean: Floats | None = None) -> None:
        self.task_input, self.weights = task_input, weights
        self.tickers, self.sigma = rederive.input_covariance(task_input)
        needs_mean = mean is None and task_input.get("objective") in ("max_return", "max_sharpe")
        self.mean = self._vector("expected_returns") if needs_mean else mean
        self.limits: JsonObject = task_input["constraints"]
        start = "current_portfolio" in task_input
        self.start: Floats = self._vector("current_portfolio") if start else np.zeros(len(weights))

    def _vector(self, field: str) -> Floats:
        return rederive.vector(self.task_input[field], self.tickers)

    def gain(self, prices: Floats | None = None, cap: float | None = None, *, same_trades: bool = False) -> float:
        """Bound the gain of any other portfolio in the objective, or in the cost at `prices` (n,) with objective up to
        `cap`.

        With `same_trades` it trades the same names in the same direction, each by at least `min_trade`.
        """
        n = len(self.weights)
        bought, sold = np.maximum(self.weights - self.start, 0.0), np.maximum(self.start - self.weights, 0.0)
        half, buys, sells = np.full(2 * n, 0.5), *np.split(np.eye(2 * n), 2)
        least = self.task_input["min_trade"] if same_trades else 0.0
        parts = [
            (bought - np.where(bought > _TRADED, least, 0.0), -buys),
            (sold - np.where(sold > _TRADED, np.minimum(least, self.start), 0.0), -sells),
        ]
        if same_trades:
            parts += [
                (-bought[bought <= _TRADED], buys[bought <= _TRADED]),
                (-sold[sold <= _TRADED], sells[sold <= _TRADED]),
            ]
        parts += [(slacks, self._lifted(rows)) for slacks, rows in [*self._weight_limits(), *self._names()]]
        limit = self.limits.get("max_turnover")
        if limit is not None and prices is None:
            turnover = float(np.abs(self.weights - self.start).sum()) / 2
            parts.append((np.array([limit - turnover]), half[None, :]))
        if cap is not None:
            value = rederive.objective(self.task_input, self.sigma, self.weights, self.mean)
            parts.append((np.array([cap - value]), self._lifted(self.slope())))
        gradient = self._lifted(self.slope())[0] if prices is None else np.tile(prices, 2)
        return possible_gain(gradient, _stack_limits(parts, [self._lifted(np.ones((1, n)))]), _REACH)

    def _lifted(self, rows: Floats) -> Floats:
        """Convert rows over weights (m, n) to rows over buys and sells (m, 2n)."""
        return np.hstack([rows, -rows])

    def slope(self) -> Floats:
        """Return the gradient of the objective (1, n)."""
        name, risk = self.task_input["objective"], 2 * self.sigma @ self.weights
        mean = np.zeros(len(risk)) if self.mean is None else self.mean
        slopes = {
            "min_variance": lambda: risk,
            "max_return": lambda: -mean,
            "max_sharpe": lambda: self.task_input["risk_aversion"] * risk - mean,
            "risk_parity": lambda: 2 * (self.weights - rederive.inverse_variance(self.sigma)) + risk / 2,
        }
        return slopes[name]()[None, :]

    def _weight_limits(self) -> list[tuple[Floats, Floats]]:
        """Return slacks and gradients over weights of all limits except counts and turnover."""
        limits, weights, eye = self.limits, self.weights, np.eye(len(self.weights))
        parts = [(weights - (limits.get("min_weight") or 0.0), -eye)]
        if limits.get("max_weight") is not None:
            parts.append((limits["max_weight"] - weights, eye))
        for sector, cap in numbers(limits.get("sector_limits")).items():
            mine = np.array([[float(self.task_input["sector_mapping"][ticker] == sector) for ticker in self.tickers]])
            parts.append((cap - mine @ weights, mine))
        if limits.get("max_tracking_error") is not None:
            active = weights - self._vector("benchmark_weights")
            spread = float(active @ self.sigma @ active)
            parts.append((np.array([limits["max_tracking_error"] ** 2 - spread]), 2 * (self.sigma @ active)[None, :]))
        if limits.get("factor_neutrality"):
            exposures, factors = self.task_input["factor_exposures"], limits["neutral_factors"]
            betas = np.array([[exposures[ticker][factor] for ticker in self.tickers] for factor in factors])
            tilt = betas @ (weights - self._vector("benchmark_weights"))
            parts += [(limits["neutrality_tolerance"] - tilt, betas), (limits["neutrality_tolerance"] + tilt, -betas)]
        return parts

    def _names(self) -> list[tuple[Floats, Floats]]:
        """Return slacks and gradients over weights of the minimum position, for the names held; `proof` checks the
        choice.
        """
        position, held = self.limits.get("min_position"), self.weights > rederive.ZERO
        if position is None:
            return []
        eye = np.eye(len(held))
        return [(self.weights[held] - position, -eye[held]), (-self.weights[~held], eye[~held])]


def margin(task_input: JsonObject, ray: Mapping[str, Sequence[float]]) -> float:
    """Return the shortfall of the weighted limits; if positive, no portfolio is feasible.

    With multipliers m >= 0 (k free for the budget), every w with limits a'w <= c has s'w <= k + sum m c, where
    s = k 1 + sum m a. Trades t satisfy t'(w - w0) <= 2 max|t| turnover. Tracking error bounds -s'(w - b) by
    TE sqrt(s' inv(S) s); without that limit, -s'w <= max(-s). The limits conflict if the bounds sum to less than zero.
    Counts of names are left out: a conflict of fewer limits is a conflict of all.
    """
    tickers, sigma = rederive.input_covariance(task_input)
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
    start = rederive.vector(task_input["current_portfolio"], tickers)
    traded = 2 * np.abs(trades).max() * limits["max_turnover"] if trades.any() else 0.0
    slope, most = slope + trades, most + float(trades @ start) + traded
    if limits.get("max_tracking_error") is None:
        return -(most + float((-slope).max()))
    benchmark = rederive.vector(task_input["benchmark_weights"], tickers)
    reach = float(np.sqrt(slope @ np.linalg.solve(sigma, slope)))
    return -(most + limits["max_tracking_error"] * reach - float(slope @ benchmark))


def _linear(task_input: JsonObject, tickers: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
    """Return rows (m, n) and caps (m,) of the limits that are linear in the weights, by their names in a ray."""
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
        exposures, factors = task_input["factor_exposures"], limits["neutral_factors"]
        betas = np.array([[exposures[ticker][factor] for ticker in tickers] for factor in factors])
        centre = betas @ rederive.vector(task_input["benchmark_weights"], tickers)
        found["factor_neutrality_above"] = betas, limits["neutrality_tolerance"] + centre
        found["factor_neutrality_below"] = -betas, limits["neutrality_tolerance"] - centre
    return found
