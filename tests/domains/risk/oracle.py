"""External witnesses of risk management: trades by CVXPY and HiGHS.

`remediation` takes an episode's full input and gives a `Remedy` with bounds on both of its stages. What has one right
number is the second derivation's, `finskillbench.domains.risk.second`.
"""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from finskillbench.domains.risk import second

COUNTED = 0.001
"""Least |weight| that a name count counts."""
UNCOUNTED = COUNTED - 1e-7
"""The open bound |w| < 0.001, closed."""

Json = dict[str, Any]


class Undecided(RuntimeError):  # noqa: N818 - says what the solver said
    """No solver run ended in an answer."""


MOST_NODES = 400
"""Branch and bound stops after so many relaxations and reports its bounds."""
GAP = 1e-9
"""Bounds that are this near are one value (absolute)."""


def _real(value: Any) -> float:
    return float(value)


@dataclass
class Remedy:
    """Both stages with bounds; equal bounds are a proof. `squares` are of the trades of names and cash.

    Where Clarabel finds no tie at all, `weights` are empty and the squares unbounded: only the value is known.
    """

    compliant: bool
    turnover: float
    """T*, the least turnover that meets the mandate without its turnover limit; inf if nothing does."""
    value: float
    """T* if compliant, else V*: the least total relative excess."""
    value_bounds: tuple[float, float]
    squares_bounds: tuple[float, float]
    weights: dict[str, float]
    budget: float
    sharp: bool
    """Whether the ties were held to the value tightly enough: beside a cone, a slack s moves them by its root."""

    @property
    def proved(self) -> bool:
        """Whether the tie was broken to the end."""
        return self.sharp and self.squares_bounds[1] - self.squares_bounds[0] <= 10 * GAP


@dataclass
class _Program:
    """One remediation as a CVXPY program with relaxed membership y of each name, long and short."""

    task_input: Json
    relaxed: bool
    """True: every limit but the kept ones may be exceeded at a price (`excess`), and the budget binds."""
    limits: list[Any] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        given = self.task_input
        self.tickers = list(given["sector_mapping"])
        self.rules = {c["type"]: c for c in given["mandate"]["constraints"]}
        held = second.weights(given)
        self.start = np.array([held.get(s, 0.0) for s in self.tickers])
        n = len(self.tickers)
        self.long_only = "long_only" in self.rules
        self.branches = bool({"position_limit_min", "name_count"} & set(self.rules))
        self.p, self.q = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)  # long and short side
        self.x = self.p if self.long_only else self.p - self.q if self.branches else cp.Variable(n)
        self.cash, self.sum = cp.Variable(nonneg=True), cp.Variable()
        self.trades = self.x - self.start
        cash_trade = self.cash - float(given["portfolio"]["cash_weight"])
        self.turnover = (cp.norm1(self.trades) + cp.abs(cp.sum(self.trades))) / 2
        self.squares = cp.sum_squares(self.trades) + cp.square(cash_trade)
        self.limits.append(cp.sum(self.x) + self.cash == 1.0)
        self.excesses: list[Any] = []
        self._memberships(n)
        self._convex()
        already = second.turnover((given["portfolio"].get("trades_this_month") or {}).values())
        rule = self.rules.get("turnover_max_monthly")
        self.budget = math.inf if rule is None else rule["value"] - already
        self.excess = cp.sum(cp.hstack(self.excesses)) if self.excesses else cp.Constant(0.0)

    def _soft(self, excess: Any, limit: float) -> None:
        """excess <= 0, or its price."""
        if not self.relaxed:
            self.limits.append(excess <= 0.0)
            return
        slack = cp.Variable(nonneg=True)
        self.limits.append(excess <= slack * abs(limit))
        self.excesses.append(slack)

    def _memberships(self, n: int) -> None:
        """Semicontinuous names: side <= top * y, side >= least * y."""
        lot, count = self.rules.get("position_limit_min"), self.rules.get("name_count")
        if not self.branches:
            return
        if self.long_only:
            self.limits.append(self.q == 0.0)
        top = 1.0
        if not self.long_only:
            gross = self.rules.get("gross_exposure_max")
            top = max(2.0, 2 * float(np.abs(self.start).sum())) if gross is None or self.relaxed else gross["value"]
        cap = self.rules.get("position_limit_max")
        longest = min(top, cap["value"]) if cap is not None and not self.relaxed else top
        self.y, self.z = cp.Variable(n), cp.Variable(n)
        self.low, self.high = cp.Parameter((2, n)), cp.Parameter((2, n))
        self.limits += [self.y >= self.low[0], self.y <= self.high[0], self.z >= self.low[1], self.z <= self.high[1]]
        self.limits.append(self.y + self.z <= 1.0)
        self.lot = 0.0 if lot is None else float(lot["value"])
        least, nothing = (self.lot, 0.0) if self.lot > COUNTED else (COUNTED, UNCOUNTED)
        self.low_side, self.out_side = least, nothing
        if lot is not None and self.lot <= COUNTED:
            raise Undecided("a least position under the counting threshold is outside this oracle")
        for side, inside, most in ((self.p, self.y, longest), (self.q, self.z, top)):
            self.limits.append(side >= least * inside)
            self.limits.append(side <= nothing + (most - nothing) * inside)
        names = cp.sum(self.y) + cp.sum(self.z)
        if count is not None and count.get("min") is not None:
            self.limits.append(names >= count["min"])
        if count is not None and count.get("max") is not None:
            self.limits.append(names <= count["max"])

    def _convex(self) -> None:
        given, x, rules = self.task_input, self.x, self.rules
        betas = {f: np.array([given["factor_exposures"][s][f] for s in self.tickers]) for f in second.FACTORS}
        for kind, rule in rules.items():
            limit = rule.get("value")
            if kind == "position_limit_max":
                self._soft(cp.max(x) - limit, limit)
            elif kind == "sector_limit_max":
                sectors = [given["sector_mapping"][s] for s in self.tickers]
                inside = np.array([[float(s == name) for s in sectors] for name in sorted(set(sectors))])
                self._soft(cp.max(inside @ x) - limit, limit)
            elif kind == "tracking_error_max":
                root, benchmark = self._root()
                self._soft(cp.norm2(root @ (x - benchmark)) - limit, limit)
            elif kind == "beta_range":
                beta = betas["mkt_rf"] @ x
                if not self.relaxed:
                    self.limits += [beta >= rule["min"], beta <= rule["max"]]
                else:
                    low, high = abs(rule["min"]), abs(rule["max"])
                    self._soft_range(beta, rule, low, high)
            elif kind == "factor_exposure_max":
                inside = np.array([betas[f] for f in rule["factors"]])
                self._soft(cp.norm_inf(inside @ x) - limit, limit)
            elif kind == "cash_max":
                self._soft(self.cash - limit, limit)
            elif kind == "gross_exposure_max":
                self._soft(cp.norm1(x) - limit, limit)
            elif kind == "hhi_max":
                self._soft(cp.sum_squares(x) - limit, limit)
            elif kind not in second.NEVER_GIVEN_UP:
                raise ValueError(kind)

    def _soft_range(self, beta: Any, rule: Json, low: float, high: float) -> None:
        slack = cp.Variable(nonneg=True)
        self.limits += [rule["min"] - beta <= slack * low, beta - rule["max"] <= slack * high]
        self.excesses.append(slack)

    def _root(self) -> tuple[np.ndarray, np.ndarray]:
        """(root with root'root = S, benchmark) in this program's order of names."""
        table = self.task_input["covariance_matrix"]
        at = [table["tickers"].index(s) for s in self.tickers]
        if "matrix" in table:
            values, vectors = np.linalg.eigh(np.array(table["matrix"], dtype=float))
            root = np.diag(np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
        else:
            root = np.vstack([np.array(table["loadings"]), np.diag(np.sqrt(table["specific"]))])
        return root[:, at], np.array([self.task_input["benchmark_weights"].get(s, 0.0) for s in self.tickers])

    # -- search

    def relaxation(self, problem: cp.Problem, low: np.ndarray | None, high: np.ndarray | None) -> float:
        """Value of the relaxation under bounds on membership; inf if infeasible."""
        if self.branches:
            self.low.value, self.high.value = low, high
        for tolerance in (1e-11, 1e-9, 1e-8):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    problem.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance,
                                  tol_feas=tolerance, max_iter=300)  # fmt: skip
            except cp.SolverError:
                continue
            if problem.status == cp.OPTIMAL:
                return _real(problem.value)
            if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
                return math.inf
        raise Undecided(f"Clarabel stopped with {problem.status}")

    def signed(self) -> np.ndarray:
        """Weights of the last relaxation."""
        return np.array(self.x.value, dtype=float)

    def broken(self, weights: np.ndarray) -> tuple[int, int] | None:
        """(side, name) to branch on, or None where every name is in or out and the counts hold."""
        doubt = None
        if self.lot:
            inside = np.abs(weights)
            gap = np.minimum(inside, np.abs(self.lot - inside))
            gap[(inside < 2e-8) | (inside > self.lot - 2e-8)] = 0.0
            if gap.max() > 0.0:
                name = int(gap.argmax())
                doubt = (int(weights[name] < 0.0), name)
        if doubt is None and self._miscounted(weights):
            spread = np.stack([np.minimum(np.array(v.value), 1.0 - np.array(v.value)) for v in (self.y, self.z)])
            spread[np.array(self.high.value) - np.array(self.low.value) < 0.5] = -1.0
            if self.long_only:
                spread[1] = -1.0
            side, name = np.unravel_index(int(spread.argmax()), spread.shape)
            doubt = (int(side), int(name)) if spread[side, name] >= 0.0 else None
        return doubt

    def _miscounted(self, weights: np.ndarray) -> bool:
        rule = self.rules.get("name_count")
        if rule is None:
            return False
        count = int((np.abs(weights) >= COUNTED - 5e-8).sum())
        low, high = rule.get("min"), rule.get("max")
        return (low is not None and count < low) or (high is not None and count > high)

    def minimise(
        self, goal: Any, extra: list[Any], known: float = math.inf, most: int = MOST_NODES
    ) -> tuple[float, float, np.ndarray | None]:
        """(lower bound, upper bound, weights of the upper bound) of the goal; inf, inf, None if infeasible."""
        problem = cp.Problem(cp.Minimize(goal), [*self.limits, *extra])
        if not self.branches:
            value = self.relaxation(problem, None, None)
            return value, value, (self.signed() if value < math.inf else None)
        n = len(self.tickers)
        low, high = np.zeros((2, n)), np.ones((2, n))
        if self.long_only:
            high[1] = 0.0
        best, chosen, serial, solved, pruned = known, None, itertools.count(), 0, math.inf
        heap: list[tuple[float, int, Any]] = []
        value = self.relaxation(problem, low, high)
        nodes = [(value, low, high, self.broken(self.signed()), self.signed())] if value < math.inf else []
        while True:
            for value, lo, hi, doubt, weights in nodes:
                if value >= best - GAP:
                    pruned = min(pruned, value)
                elif doubt is None:
                    best, chosen = value, weights
                else:
                    heapq.heappush(heap, (value, next(serial), (lo, hi, doubt, weights)))
            nodes = []
            if not heap or heap[0][0] >= best - GAP or solved >= most:
                break
            bound, _, (lo, hi, (side, name), weights) = heapq.heappop(heap)
            del bound
            if solved % 8 == 0:  # a rounding of the relaxation: names of half a lot and more are in
                guess = self._rounded(weights, lo, hi)
                found = self.relaxation(problem, *guess)
                solved += 1
                if found < best - GAP and self.broken(self.signed()) is None:
                    best, chosen = found, self.signed()
            for into in (1.0, 0.0):
                lower, upper = lo.copy(), hi.copy()
                lower[side, name] = max(lower[side, name], into)
                upper[side, name] = min(upper[side, name], into)
                if into:
                    upper[1 - side, name] = 0.0
                value = self.relaxation(problem, lower, upper)
                solved += 1
                if value < math.inf:
                    nodes.append((value, lower, upper, self.broken(self.signed()), self.signed()))
        bound = min([best, pruned, *(row[0] for row in heap[:1])])
        return bound, best, chosen

    def _rounded(self, weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Membership fixed by the weights; kept holdings stay, missing names of a count are the largest left."""
        sides = np.stack([np.maximum(weights, 0.0), np.maximum(-weights, 0.0)])
        inside = np.where(sides >= self.low_side / 2, 1.0, 0.0)
        inside = np.clip(inside, low, high)
        rule = self.rules.get("name_count") or {}
        ranked = np.argsort(-(sides + 1e-6 * np.maximum(self.start, 0.0)), axis=None)
        for flat in ranked:
            if inside.sum() >= (rule.get("min") or 0):
                break
            side, name = divmod(int(flat), inside.shape[1])
            if high[side, name] and not inside[:, name].any():
                inside[side, name] = 1.0
        for flat in ranked[::-1]:
            if rule.get("max") is None or inside.sum() <= rule["max"]:
                break
            side, name = divmod(int(flat), inside.shape[1])
            if not low[side, name]:
                inside[side, name] = 0.0
        return inside, inside.copy()


def _milp(program: _Program) -> float:
    """T* of a linear program with memberships by HiGHS, which finds vertices where Clarabel finds centres."""
    n = len(program.tickers)
    y, z = cp.Variable(n, boolean=True), cp.Variable(n, boolean=True)
    program.low.value, program.high.value = np.zeros((2, n)), np.ones((2, n))
    problem = cp.Problem(cp.Minimize(program.turnover), [*program.limits, program.y == y, program.z == z])
    problem.solve(solver=cp.HIGHS, highs_options={"mip_rel_gap": 0.0, "mip_abs_gap": 1e-10,
                                                  "mip_feasibility_tolerance": 1e-9,
                                                  "primal_feasibility_tolerance": 1e-9})  # fmt: skip
    if problem.status == cp.OPTIMAL:
        return _real(problem.value)
    if problem.status == cp.INFEASIBLE:
        return math.inf
    raise Undecided(f"HiGHS stopped with {problem.status}")


CONIC = ("tracking_error_max", "hhi_max")


def least_turnover(task_input: Json) -> tuple[float, float, _Program]:
    """(lower, upper) bounds on T*, without the turnover limit, and the program."""
    program = _Program(task_input, relaxed=False)
    if program.branches and not set(CONIC) & set(program.rules):
        value = _milp(program)
        return value, value, program
    low, high, _ = program.minimise(program.turnover, [])
    return low, high, program


def remediation(task_input: Json, most: int = MOST_NODES) -> Remedy:
    """Both stages: T* (or V* where T* is over the budget), then the least sum of squared trades among its ties."""
    low, high, program = least_turnover(task_input)
    least, budget = high, program.budget
    compliant = high <= budget + 1e-9
    if not compliant and low <= budget - 1e-9:
        raise Undecided(f"least turnover in [{low}, {high}], budget {budget}")
    if not compliant:
        program = _Program(task_input, relaxed=True)
        keeps = [program.turnover <= max(budget, 0.0)] if budget < math.inf else []
        low, high, _ = program.minimise(program.excess, keeps)
        if high == math.inf:
            raise Undecided("nothing keeps what has to be kept")
    else:
        keeps = []
    goal = program.turnover if compliant else program.excess
    try:
        slack, first, last, weights = _least_squares(program, goal, high, keeps, most)
    except Undecided:
        return Remedy(compliant, least, high, (low, high), (0.0, math.inf), {}, budget, sharp=False)
    named = dict(zip(program.tickers, (float(x) for x in weights), strict=True))
    sharp = slack <= 1e-10 or not set(CONIC) & set(program.rules)
    return Remedy(compliant, least, high, (low, high), (first, last), named, budget, sharp)


def _least_squares(
    program: _Program, goal: Any, value: float, keeps: list[Any], most: int
) -> tuple[float, float, float, np.ndarray]:
    """(slack, lower bound, upper bound, weights) of the least squares among the ties of `goal`.

    Without any slack the ties have no interior, which Clarabel needs; it also stumbles over one scale of the goal or
    another.
    """
    for slack, scale in itertools.product((1e-10, 1e-9, 1e-8, 1e-7, 1e-6), (1.0, 100.0)):
        try:
            found = program.minimise(scale * program.squares, [*keeps, goal <= value + slack], most=most)
        except Undecided:
            continue
        first, last, weights = found
        if weights is not None:
            return slack, first / scale, last / scale, weights
    raise Undecided("no tie was found")
