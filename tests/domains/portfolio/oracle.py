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

from finskillbench.domains.portfolio import second

HOLDING = 0.001
"""Least weight that counts as a holding."""
UNHELD = HOLDING - 1e-4
"""Largest weight of a name that is not held: under a holding by more than a count forgives."""
MOST_NODES = 2000
"""Branch and bound gives up (`Undecided`) after so many relaxations."""
TURNED_OFF = ({}, {"static_regularization_enable": False}, {"equilibrate_enable": False})
"""Settings of Clarabel, for problems that it solves inaccurately with them."""

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
    """(status, value); tolerances are loosened step by step, or a setting is turned off."""
    problem = cp.Problem(cp.Minimize(goal), constraints)
    for tolerance, off in [(1e-12, {}), *itertools.product((1e-10, 1e-8), TURNED_OFF)]:
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
                    warm_start=False,  # a solver that is kept would keep its settings
                    **off,
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


def _limits(task_input: Json, universe: Universe, w: Any) -> list[Any]:
    """Every limit but the name counts."""
    given = task_input.get("constraints") or {}
    limits = [cp.sum(w) == 1.0]
    if given.get("long_only", True):
        limits.append(w >= 0.0)
    if given.get("restricted_names"):
        limits.append(np.isin(universe.tickers, given["restricted_names"]) @ w == 0.0)
    if given.get("min_weight"):
        limits.append(w >= given["min_weight"])
    if given.get("max_weight") is not None:
        limits.append(w <= given["max_weight"])
    for sector, cap in (given.get("sector_limits") or {}).items():
        inside = np.array([task_input["sector_mapping"][t] == sector for t in universe.tickers], dtype=float)
        if inside.any():
            limits.append(inside @ w <= cap)
    if given.get("max_turnover") is not None:
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
    position = given.get("min_position")
    least, unheld = (HOLDING, UNHELD) if position is None else (max(HOLDING, position), 0.0)

    def settled() -> bool:
        """Whether the weights keep counts and least position, whatever `held` says."""
        small = position is not None and np.minimum(w.value, position - w.value).max() > 1e-8
        return not small and fewest <= _count(w.value) <= most

    status, value = _minimise(goal, limits)
    if status == "infeasible" or settled():
        return status, value
    cap = given["max_weight"] if given.get("max_weight") is not None else 1.0
    held = cp.Variable(n)
    low, high = cp.Parameter(n), cp.Parameter(n)
    counted = [
        *limits,
        held >= low,
        held <= high,
        w >= least * held,  # long-only is implied: name counts have no meaning for short positions
        w <= unheld + (cap - unheld) * held,
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
        if settled():
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


WAIVABLE = ("max_weight", "sector_limits", "max_turnover", "max_tracking_error", "factor_neutrality")


def feasibility(task_input: Json) -> Solution:
    """Least value of `limit_to_relax` with the other limits, the verdict, and the smallest sets in conflict.

    Every set of waivable limits is solved by itself: `conflicts` holds those that cannot be kept while all their parts
    can.
    """
    named = task_input["limit_to_relax"]
    status, value = _least_value(task_input, named)
    feasible = status == "optimal" and value <= _printed(task_input, named)
    conflicts: list[set[str]] = []
    for size in range(len(WAIVABLE) + 1):
        for names in map(set, itertools.combinations(WAIVABLE, size)):
            if not feasible and not any(known <= names for known in conflicts) and not _holds(task_input, names):
                conflicts.append(names)
    listed = [name for name in WAIVABLE if conflicts and name in conflicts[0]]
    return {
        "status": status,
        "feasible": feasible,
        "least_attainable": value,
        "conflicts": conflicts,
        "conflicting_limits": listed,
    }


def _cheapest(task_input: Json, universe: Universe, w: Any, limits: list[Any]) -> float:
    """Least cost of trades of the minimum; a name is left alone, bought or sold in each branch."""
    held, least = universe.vector(task_input["current_portfolio"]), float(task_input["min_trade"])
    costs, size = universe.vector(task_input["trading_costs_bps"]), len(universe.tickers)
    low, high = cp.Parameter(size), cp.Parameter(size)
    stated, goal = [*limits, w >= low, w <= high], costs @ cp.abs(w - held)
    sale, order = np.minimum(held, least), itertools.count()
    nodes = [(-np.inf, next(order), np.full(size, -1.0), np.full(size, 2.0))]
    best, weights = np.inf, held
    for _ in range(MOST_NODES):
        if not nodes or nodes[0][0] >= best:
            w.value = weights
            return best
        _, _, low.value, high.value = heapq.heappop(nodes)
        status, value = _minimise(goal, stated)
        if status == "infeasible" or value >= best:
            continue
        trades = np.asarray(w.value) - held
        needed = np.where(trades > 0, least, sale)
        missed = np.minimum(np.abs(trades), needed - np.abs(trades))
        name = int(np.argmax(missed))
        if missed[name] < 1e-7:
            best, weights = value, np.asarray(w.value).copy()
            continue
        ends = (held[name], held[name]), (held[name] + least, 2.0), (-1.0, held[name] - sale[name])
        for lower, upper in ends:
            child_low, child_high = low.value.copy(), high.value.copy()
            child_low[name], child_high[name] = lower, upper
            heapq.heappush(nodes, (value, next(order), child_low, child_high))
    raise Undecided(f"minimum trades not settled after {MOST_NODES} relaxations")


def _printed(task_input: Json, named: str) -> float:
    given, (family, _, sector) = task_input["constraints"], named.partition(".")
    return given[family][sector] if sector else given[_FIELD.get(named, named)]


_FIELD = {"factor_neutrality": "neutrality_tolerance"}


def _holds(task_input: Json, names: set[str]) -> bool:
    universe = Universe.of(task_input)
    w = cp.Variable(len(universe.tickers))
    off = {name: None for name in WAIVABLE if name not in names}
    given = {**task_input["constraints"], **off}
    return _minimise(0.0 * cp.sum(w), _limits({**task_input, "constraints": given}, universe, w))[0] == "optimal"


def _least_value(task_input: Json, named: str) -> tuple[str, float]:
    """A variable in the place of the limit, minimised."""
    universe = Universe.of(task_input)
    w, value = cp.Variable(len(universe.tickers)), cp.Variable()
    given, (family, _, sector) = task_input["constraints"], named.partition(".")
    changed = {family: {**given[family], sector: value}} if sector else {_FIELD.get(named, named): value}
    return _minimise(value, _limits({**task_input, "constraints": {**given, **changed}}, universe, w))


def rebalance(task_input: Json) -> Solution:
    """Both stages: `objective` is the first one's optimum f*, `achieved` is f at the returned weights."""
    universe = Universe.of(task_input)
    w = cp.Variable(len(universe.tickers))
    limits, goal = _limits(task_input, universe, w), _objective(task_input, universe, w)
    status, best = _solve(task_input, universe, w, goal, limits)
    if status == "infeasible":
        return {"status": status, "objective": best, "weights": {}}
    w.value = held = universe.vector(task_input["current_portfolio"])
    start = float(goal.value)
    enough = start - task_input["required_improvement"] * (start - best)
    unit = 100 / (start - enough)  # hundredths of the improvement, which tolerances resolve
    cost = _cheapest(task_input, universe, w, [*limits, unit * goal <= unit * enough])
    return {
        "status": "optimal",
        "objective": best,
        "achieved": float(goal.value),
        "required": enough,
        "cost": cost,
        "turnover": float(np.abs(w.value - held).sum() / 2),
        "weights": universe.named(w.value),
        "trades": universe.named(w.value - held),
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
        "posterior_returns": universe.named(posterior + task_input["risk_free_rate"]),
        "weights": universe.named(w.value),
    }
