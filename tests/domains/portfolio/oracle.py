"""Portfolio problems solved by CVXPY with Clarabel at tight tolerances, from a resolved episode input.

Independent of `finskillbench.engines`: dense formulations, Cholesky factor for every quadratic, binary branch and
bound for name counts. Objectives are in minimisation form without the risk-free constant: λw'Σw − μ'w, w'Σw, −μ'w,
‖w − w_iv‖² + ½w'Σw. Every result is `{"status": "optimal" | "infeasible", "objective", "weights", ...}`.
"""

from __future__ import annotations

import heapq
import itertools
import warnings
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import optimize as _optimize

from finskillbench.domains.portfolio import second

optimize: Any = _optimize  # SciPy comes without types

HOLDING = 0.001
"""Least weight that counts as a holding."""
UNHELD = HOLDING - 1e-4
"""Largest weight of a name that is not held: under 0.005 by more than a count forgives."""
MOST_NODES = 2000
"""Branch and bound gives up (`Undecided`) after so many relaxations."""

Json = dict[str, Any]
Solution = dict[str, Any]


class Undecided(RuntimeError):  # noqa: N818 - says what the solver said
    """The solver neither solved the problem nor proved it infeasible."""


@dataclass
class Universe:
    """The arrays of one episode, in the covariance's order of tickers."""

    tickers: list[str]
    covariance: np.ndarray
    root: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        values, vectors = np.linalg.eigh(self.covariance)
        self.root = np.diag(np.sqrt(np.clip(values, 0.0, None))) @ vectors.T  # root' root = Σ

    @classmethod
    def of(cls, task_input: Json) -> Universe:
        given = task_input["covariance_matrix"]
        return cls(list(given["tickers"]), np.asarray(given["matrix"], dtype=float))

    def vector(self, mapping: Json) -> np.ndarray:
        return np.array([float(mapping.get(t, 0.0)) for t in self.tickers])

    def named(self, weights: np.ndarray) -> dict[str, float]:
        return dict(zip(self.tickers, (float(x) for x in weights), strict=True))

    def variance(self, w: Any) -> Any:
        return cp.sum_squares(self.root @ w)


def _minimise(goal: Any, constraints: list[Any]) -> tuple[str, float]:
    """(status, value); tolerances are loosened step by step where the tightest cannot be reached."""
    problem = cp.Problem(cp.Minimize(goal), constraints)
    for tolerance in (1e-12, 1e-10, 1e-8):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the status says so too
                problem.solve(
                    solver=cp.CLARABEL,
                    tol_gap_abs=tolerance,
                    tol_gap_rel=tolerance,
                    tol_feas=tolerance,
                    tol_infeas_abs=1e-9,
                    tol_infeas_rel=1e-9,
                    max_iter=500,
                )
        except cp.error.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            return "optimal", float(problem.value)
        if problem.status == cp.INFEASIBLE:
            return "infeasible", float("inf")
    raise Undecided(f"Clarabel stopped with status {problem.status}")


def _objective(task_input: Json, universe: Universe, w: Any) -> Any:
    objective = task_input["objective"]
    if objective == "min_variance":
        return universe.variance(w)
    if objective == "risk_parity":
        inverse = 1.0 / np.diag(universe.covariance)
        return cp.sum_squares(w - inverse / inverse.sum()) + 0.5 * universe.variance(w)
    expected = universe.vector(task_input["expected_returns"])
    if objective == "max_return":
        return -(expected @ w)
    if objective == "max_sharpe":
        return float(task_input["risk_aversion"]) * universe.variance(w) - expected @ w
    raise ValueError(f"objective {objective!r} is not one of the four")


def _one_way(task_input: Json, universe: Universe, w: Any) -> Any:
    """One-way turnover; what is held outside the universe has to be sold."""
    held = task_input["current_portfolio"]
    outside = sum(abs(float(x)) for t, x in held.items() if t not in universe.tickers)
    return 0.5 * (cp.norm1(w - universe.vector(held)) + outside)


def _limits(task_input: Json, universe: Universe, w: Any, *, turnover: bool = True) -> list[Any]:
    """Every limit but the name counts."""
    given = task_input.get("constraints") or {}
    limits = [cp.sum(w) == 1.0]
    if given.get("long_only", True):
        limits.append(w >= 0.0)
    if given.get("min_weight"):
        limits.append(w >= given["min_weight"])
    if given.get("max_weight") is not None:
        limits.append(w <= given["max_weight"])
    for sector, cap in (given.get("sector_limits") or {}).items():
        inside = np.array([task_input["sector_mapping"][t] == sector for t in universe.tickers], dtype=float)
        if inside.any():
            limits.append(inside @ w <= cap)
    if turnover and given.get("max_turnover") is not None:
        limits.append(_one_way(task_input, universe, w) <= given["max_turnover"])
    if given.get("max_tracking_error") is not None:
        active = w - universe.vector(task_input["benchmark_weights"])
        limits.append(cp.norm(universe.root @ active, 2) <= given["max_tracking_error"])
    if given.get("factor_neutrality"):
        active = w - universe.vector(task_input["benchmark_weights"])
        for factor in given["neutral_factors"]:
            beta = np.array([task_input["factor_exposures"][t][factor] for t in universe.tickers])
            limits.append(cp.abs(beta @ active) <= given["neutrality_tolerance"])
    return limits


def _solve(task_input: Json, universe: Universe, w: Any, goal: Any, limits: list[Any]) -> tuple[str, float]:
    """Minimise with the name counts: the relaxation first, branch and bound on the holdings where it fails."""
    given = task_input.get("constraints") or {}
    n = len(universe.tickers)
    fewest = given["min_names"] if given.get("min_names") is not None else 0
    most = given["max_names"] if given.get("max_names") is not None else n
    status, value = _minimise(goal, limits)
    if status == "infeasible" or fewest <= _count(w.value) <= most:
        return status, value
    cap = given["max_weight"] if given.get("max_weight") is not None else 1.0
    held = cp.Variable(n)
    low, high = cp.Parameter(n), cp.Parameter(n)
    counted = [
        *limits,
        held >= low,
        held <= high,
        w >= HOLDING * held,  # long-only is implied: name counts have no meaning for short positions
        w <= UNHELD + (cap - UNHELD) * held,
        cp.sum(held) >= fewest,
        cp.sum(held) <= most,
    ]
    best, best_weights = float("inf"), None
    order = itertools.count()
    nodes: list[tuple[float, int, np.ndarray, np.ndarray]] = [(value, next(order), np.zeros(n), np.ones(n))]
    for visited in itertools.count():
        if not nodes:
            break
        if visited == MOST_NODES:
            raise Undecided(f"name counts not settled after {MOST_NODES} relaxations")
        bound, _, lows, highs = heapq.heappop(nodes)
        if bound >= best - 1e-10 * max(1.0, abs(best)):
            break
        low.value, high.value = lows, highs
        status, value = _minimise(goal, counted)
        if status == "infeasible" or value >= best - 1e-10 * max(1.0, abs(best)):
            continue
        if fewest <= _count(w.value) <= most:  # the weights settle the counts, whatever `held` says
            best, best_weights = value, np.asarray(w.value).copy()
            continue
        share = np.asarray(held.value)
        fractional = np.where(lows == highs, 0.0, np.minimum(share, 1.0 - share))
        branch = int(np.argmax(fractional))
        if fractional[branch] < 1e-6:
            best, best_weights = value, np.asarray(w.value).copy()
            continue
        for fixed in (0.0, 1.0):
            child_low, child_high = lows.copy(), highs.copy()
            child_low[branch] = child_high[branch] = fixed
            heapq.heappush(nodes, (value, next(order), child_low, child_high))
    if best_weights is None:
        return "infeasible", float("inf")
    w.value = best_weights
    return "optimal", best


def _count(weights: np.ndarray) -> int:
    """Holdings, with the solver's own accuracy forgiven at the threshold."""
    return int(np.sum(weights >= HOLDING - 1e-9))


def solve(task_input: Json) -> Solution:
    """Unconstrained or constrained optimum of an episode."""
    universe = Universe.of(task_input)
    w = cp.Variable(len(universe.tickers))
    goal = _objective(task_input, universe, w)
    status, value = _solve(task_input, universe, w, goal, _limits(task_input, universe, w))
    weights = universe.named(w.value) if status == "optimal" else {}
    return {"status": status, "objective": value, "weights": weights}


def minimum_turnover(task_input: Json) -> Solution:
    """Least one-way turnover that meets every limit but the turnover's own, and what it says of feasibility.

    `feasible` is False where no turnover would do; `minimum_turnover` is then infinite.
    """
    universe = Universe.of(task_input)
    w = cp.Variable(len(universe.tickers))
    limits = _limits(task_input, universe, w, turnover=False)
    status, value = _solve(task_input, universe, w, _one_way(task_input, universe, w), limits)
    cap = (task_input.get("constraints") or {}).get("max_turnover")
    return {
        "status": status,
        "objective": value,
        "minimum_turnover": value,
        "feasible": status == "optimal" and (cap is None or value <= cap),
        "weights": universe.named(w.value) if status == "optimal" else {},
    }


def _gradient(task_input: Json, universe: Universe, w: np.ndarray) -> np.ndarray:
    sigma, objective = universe.covariance, task_input["objective"]
    if objective == "min_variance":
        return 2 * sigma @ w
    if objective == "risk_parity":
        inverse = 1.0 / np.diag(sigma)
        return 2 * (w - inverse / inverse.sum()) + sigma @ w
    expected = universe.vector(task_input["expected_returns"])
    return 2 * float(task_input["risk_aversion"]) * sigma @ w - expected if objective == "max_sharpe" else -expected


class _Trades:
    """Buys u, sells v and which of them are made, as a mixed-integer program that HiGHS solves; w = held + u - v."""

    def __init__(self, task_input: Json, universe: Universe) -> None:
        self.n, self.held = len(universe.tickers), universe.vector(task_input["current_portfolio"])
        n, least, limits = self.n, task_input["min_trade"], task_input["constraints"]
        self.costs = universe.vector(task_input["trading_costs_bps"])
        room = np.maximum((limits.get("max_weight") or 1.0) - self.held, 0.0)
        eye, none = np.eye(n), np.zeros((n, n))
        sale = np.minimum(least, self.held)
        self.rows = [
            (np.hstack([eye, none, -np.diag(np.maximum(room, least)), none]), -np.inf, 0.0),
            (np.hstack([eye, none, -least * eye, none]), 0.0, np.inf),
            (np.hstack([none, eye, none, -np.diag(self.held)]), -np.inf, 0.0),
            (np.hstack([none, eye, none, -np.diag(sale)]), 0.0, np.inf),
            (np.hstack([none, none, eye, eye]), -np.inf, 1.0),
            (np.hstack([eye, -eye, none, none]), -np.inf, room),
            (np.hstack([np.ones((1, n)), -np.ones((1, n)), np.zeros((1, 2 * n))]), 0.0, 0.0),
        ]
        for sector, cap in (limits.get("sector_limits") or {}).items():
            member = np.array([float(task_input["sector_mapping"][t] == sector) for t in universe.tickers])
            self.at_most(member, cap)

    def at_most(self, slope: np.ndarray, bound: float) -> None:
        """Add slope'w <= bound."""
        row = np.concatenate([slope, -slope, np.zeros(2 * self.n)])
        self.rows.append((row[None, :], -np.inf, bound - slope @ self.held))

    def exclude(self, bought: np.ndarray, sold: np.ndarray) -> None:
        """Allow every choice of trades but one, whose convex program is solved."""
        chosen = np.concatenate([bought, sold])
        row = np.concatenate([np.zeros(2 * self.n), np.where(chosen, 1.0, -1.0)])
        self.rows.append((row[None, :], -np.inf, float(chosen.sum()) - 1.0))

    def solve(self) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Proved least cost, weights, and which names are bought and sold."""
        n = self.n
        found = optimize.milp(
            np.concatenate([self.costs, self.costs, np.zeros(2 * n)]),
            constraints=[optimize.LinearConstraint(*row) for row in self.rows],
            integrality=np.repeat([0, 1], 2 * n),
            bounds=optimize.Bounds(0.0, 1.0),
            options={"mip_rel_gap": 1e-9},
        )
        if found.status != 0:
            raise Undecided(f"HiGHS stopped with: {found.message}")
        u, v, bought, sold = np.split(found.x, 4)
        return float(found.mip_dual_bound), self.held + u - v, bought > 0.5, sold > 0.5


def rebalance(task_input: Json) -> Solution:
    """Both stages; the second by outer approximation: tangents of f, and convex programs of the trades chosen.

    `objective` is the first stage's optimum f*; `achieved` is f at the returned weights.
    Source: Duran & Grossmann (1986), Mathematical Programming 36, 307-339.
    """
    universe = Universe.of(task_input)
    w = cp.Variable(len(universe.tickers))
    limits, goal = _limits(task_input, universe, w), _objective(task_input, universe, w)
    status, best = _solve(task_input, universe, w, goal, limits)
    if status == "infeasible":
        return {"status": status, "objective": best, "weights": {}}
    trades = _Trades(task_input, universe)
    held, least = trades.held, task_input["min_trade"]
    w.value = held
    start = float(goal.value)
    enough = start - task_input["required_improvement"] * (start - best)
    value, weights = np.inf, held

    def touch(near: np.ndarray) -> None:
        """Cut off what lies beyond the tangent of f at a point."""
        w.value = near
        slope = _gradient(task_input, universe, near)
        # In hundredths of the improvement, which HiGHS' tolerances resolve.
        unit = 100 / (start - enough)
        trades.at_most(unit * slope, unit * (enough - float(goal.value) + slope @ near))

    _minimise(trades.costs @ cp.abs(w - held), [*limits, goal <= enough])  # without a minimum trade
    touch(np.asarray(w.value).copy())
    for _ in range(MOST_NODES):
        bound, point, bought, sold = trades.solve()
        if bound >= value * (1 - 1e-5):
            break
        sale = np.minimum(least, held)
        pattern = [(w - held)[i] >= least for i in np.flatnonzero(bought)]
        pattern += [(held - w)[i] >= sale[i] for i in np.flatnonzero(sold)]
        pattern += [w[i] == held[i] for i in np.flatnonzero(~bought & ~sold)]
        points = [point]
        try:
            done, cost = _minimise(trades.costs @ cp.abs(w - held), [*limits, *pattern, goal <= enough])
            if done == "optimal":
                points.append(np.asarray(w.value).copy())
                value, weights = min((value, weights), (cost, points[-1]), key=lambda pair: pair[0])
        except Undecided:
            pass
        trades.exclude(bought, sold)
        for near in points:
            touch(near)
    w.value = weights
    return {
        "status": "optimal",
        "objective": best,
        "achieved": float(goal.value),
        "required": enough,
        "cost": value,
        "turnover": float(np.abs(weights - held).sum() / 2),
        "weights": universe.named(weights),
        "trades": universe.named(weights - held),
    }


def black_litterman(task_input: Json) -> Solution:
    """The long-only optimum at λ = δ/2 under the posterior of the domain's second derivation."""
    universe = Universe.of(task_input)
    posterior = second.posterior(task_input, universe.covariance)
    w = cp.Variable(len(universe.tickers))
    risk = 0.5 * float(task_input["risk_aversion"]) * universe.variance(w)
    _, value = _minimise(risk - posterior @ w, [cp.sum(w) == 1.0, w >= 0.0])
    return {
        "status": "optimal",
        "objective": value,
        "posterior_returns": universe.named(posterior),
        "weights": universe.named(w.value),
    }
