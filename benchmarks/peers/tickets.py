"""Least-cost trades with a minimum trade: HiGHS on the decisions, Clarabel on the weights of each decision.

Every name is left alone, traded by at least the minimum, or closed. Its allowed weights are disjoint intervals; one
binary variable chooses each. Quadratic limits enter HiGHS as tangents, taken where Clarabel solves the convex problem
of the chosen intervals (outer approximation). A combination that was solved is excluded, so the bound of HiGHS ends as
a bound on all other combinations. Independent of `finskillbench`.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import contextlib
import itertools
import math
import os
import sys
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from peers.risk_rules import HOLDING, by_sector, covariance, holdings, turnover

Json = dict[str, Any]
Array = NDArray[np.float64]
BOX = 2.0
MOST_ROUNDS = 400
TURNED_OFF = ({}, {"static_regularization_enable": False}, {"equilibrate_enable": False})
"""Settings of Clarabel, for problems that it solves inaccurately with them."""
SECONDS = 60.0
"""Time limit of one call of HiGHS."""


class Undecided(RuntimeError):  # noqa: N818 - states the outcome, as the oracle of the tests does
    """The search ended without a proof."""


@dataclass(frozen=True)
class Interval:
    """Weights that one decision allows a name, of one sign and one direction of trade."""

    name: int
    low: float
    high: float
    trade: int
    weight: int
    held: bool


@dataclass(frozen=True)
class Norm:
    """`norm(root @ (w - centre)) ** power <= limit + slack`."""

    root: Array
    centre: Array
    power: int
    limit: float
    slack: int | None


@dataclass
class Problem:
    """Trades from `held`; cost in basis points; slacks cost `penalties` each and are 0 at most where `cure` is set."""

    held: Array
    costs: Array
    price: float
    intervals: list[Interval]
    rows: list[tuple[Array, float, int | None]] = field(default_factory=list)
    norms: list[Norm] = field(default_factory=list)
    penalties: list[float] = field(default_factory=list)
    budget: float = math.inf
    invested: bool = False
    gross: tuple[float, int | None] | None = None
    fewest: tuple[int, int | None] | None = None
    most: tuple[int, int | None] | None = None
    cure: bool = True
    points: list[Array] = field(default_factory=list)

    def slack(self, scale: float) -> int:
        """Index of a new slack whose cost is its size relative to a limit."""
        self.penalties.append(1.0 / max(abs(scale), 0.01))
        return len(self.penalties) - 1


@dataclass(frozen=True)
class Found:
    """Least value, its weights (None where nothing keeps the limits), and the combinations that were tried."""

    value: float
    weights: Array | None
    rounds: int


def intervals(
    name: int, held: float, least: float, low: float, high: float, position: float = 0.0, holding: float = 0.0
) -> list[Interval]:
    """Allowed weights of a name: its own, `least` away from it, or 0.

    Parameters
    ----------
    low, high : bounds of every weight.
    position : least size of a weight other than 0.
    holding : size from which a weight counts as a holding; intervals end there. 0 where nothing counts holdings.
    """
    moves = [(held, held, 0), (-BOX, held - least, -1), (held + least, BOX, 1)]
    if held:
        moves.append((0.0, 0.0, -1 if held > 0 else 1))
    size = max(position, holding)
    ranges = [(size, BOX, 1, True), (-BOX, -size, -1, True)]
    if position:
        ranges.append((0.0, 0.0, 0, False))
    elif holding:
        ranges += [(0.0, holding, 1, False), (-holding, 0.0, -1, False)]
    found: list[Interval] = []
    for start, end, trade in moves:
        for first, last, sign, counted in ranges:
            lower, upper = max(start, first, low), min(end, last, high)
            if lower <= upper:
                found.append(Interval(name, lower, upper, trade, sign, counted))
    kept: list[Interval] = []
    for one in sorted(found, key=lambda i: i.low - i.high):
        twins = (i for i in kept if i.held == one.held and (i.trade == one.trade or one.low == one.high == held))
        if not any(i.low <= one.low and one.high <= i.high for i in twins):
            kept.append(one)
    return kept


class Search:
    """One problem, its convex part compiled once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.settled: tuple[Array, float] | None = None
        """Best combination, and a lower bound on the cost of all others."""
        names = len(problem.held)
        self.w, self.e, self.q = (
            cp.Variable(names),
            cp.Variable(max(len(problem.penalties), 1), nonneg=True),
            cp.Variable(nonneg=True),
        )
        self.low, self.high, self.lean = cp.Parameter(names), cp.Parameter(names), cp.Parameter(names)
        self.counted = cp.Parameter(len(self._counts(0)), nonneg=True) if self._counts(0) else None
        trades = self.w - problem.held
        limits: list[Any] = [self.w >= self.low, self.w <= self.high]
        limits += [row @ self.w <= limit + self._slack(slack) for row, limit, slack in problem.rows]
        curved = [
            (cp.norm(n.root @ (self.w - n.centre), 2) if n.power == 1 else cp.sum_squares(n.root @ (self.w - n.centre)))
            - n.limit
            - self._slack(n.slack)
            for n in problem.norms
        ]
        if problem.invested:
            limits.append(cp.sum(self.w) == 1)
        if problem.budget < math.inf:
            limits.append((cp.norm1(trades) + cp.abs(cp.sum(trades))) / 2 <= problem.budget)
        if problem.gross is not None:
            limits.append(cp.norm1(self.w) <= problem.gross[0] + self._slack(problem.gross[1]))
        if self.counted is not None:
            slacks = [slack for _, slack in self._counts(0)]
            limits += [self.e[k] >= self.counted[i] for i, k in enumerate(slacks) if k is not None]
        if problem.cure:
            limits.append(self.e == 0)
        penalty = np.array(problem.penalties or [0.0])
        goal = problem.price * (problem.costs @ cp.abs(trades)) + penalty @ self.e + self.lean @ self.w
        self.convex = cp.Problem(cp.Minimize(goal), [*limits, *(c <= 0 for c in curved)])
        self.elastic = cp.Problem(cp.Minimize(self.q), [*limits, *(c <= self.q for c in curved)])

    def _slack(self, index: int | None) -> Any:
        return 0.0 if index is None or self.problem.cure else self.e[index]

    def _counts(self, holdings_: int) -> list[tuple[float, int | None]]:
        """Excess of the number of holdings over each end of its range."""
        found: list[tuple[float, int | None]] = []
        if self.problem.fewest is not None:
            found.append((self.problem.fewest[0] - holdings_, self.problem.fewest[1]))
        if self.problem.most is not None:
            found.append((holdings_ - self.problem.most[0], self.problem.most[1]))
        return found

    def least(self, lean: Array | None = None) -> Found:
        """Least cost, plus `lean @ w`; where the cost itself was solved before, by the bound that it left if it can."""
        problem, excluded = self.problem, list[Array]()
        self.lean.value = np.zeros(len(problem.held)) if lean is None else lean
        self._set(range(len(problem.intervals)))
        if len({i.name for i in problem.intervals}) < len(problem.held) or solve(self.convex)[0] == "infeasible":
            return Found(math.inf, None, 0)  # not even in the hull of all intervals
        problem.points.append(np.array(self.w.value))
        if lean is not None and self.settled is not None:
            floor = self.settled[1] + _lowest(lean, np.array(self.low.value), np.array(self.high.value))
            self._set(np.flatnonzero(self.settled[0]).tolist())
            status, value = solve(self.convex)
            if status == "optimal" and value <= floor:
                return Found(value, np.array(self.w.value), 0)
        values: list[tuple[float, Array, Array]] = []
        for turn in range(MOST_ROUNDS):
            answer = self._decide(excluded)
            best, weights, chosen = min(values, key=lambda one: one[0], default=(math.inf, None, None))
            if answer.status not in (0, 2):
                raise Undecided(f"HiGHS stopped with status {answer.status}: {answer.message}")
            bound = math.inf if answer.status == 2 else float(answer.mip_dual_bound)
            if bound >= best - 1e-8 * max(1.0, abs(best)):
                if lean is None and chosen is not None:
                    self.settled = chosen, min([bound, *sorted(value for value, _, _ in values)[1:]])
                return Found(best, weights, turn)
            size = len(problem.intervals)
            chosen = answer.x[size : 2 * size] > 0.5
            relaxed = np.zeros(len(problem.held))
            np.add.at(relaxed, [i.name for i in problem.intervals], answer.x[:size])
            problem.points.append(relaxed)
            self._set(np.flatnonzero(chosen).tolist())
            status, value = solve(self.convex)
            if status == "optimal":
                problem.points.append(np.array(self.w.value))
                values.append((value, np.array(self.w.value), chosen))
            elif problem.norms and solve(self.elastic)[0] == "optimal":
                problem.points.append(np.array(self.w.value))
            excluded.append(chosen)
        raise Undecided(f"not settled after {MOST_ROUNDS} combinations")

    def _set(self, chosen: Sequence[int]) -> None:
        """Bounds and counts of a combination, or of the hull where several intervals of a name are chosen."""
        picked = [self.problem.intervals[k] for k in chosen]
        low, high = np.full(len(self.problem.held), np.inf), np.full(len(self.problem.held), -np.inf)
        for i in picked:
            low[i.name], high[i.name] = min(low[i.name], i.low), max(high[i.name], i.high)
        self.low.value, self.high.value = low, high
        if self.counted is not None:
            single = len(picked) == len(low)
            excess = [max(x, 0.0) if single else 0.0 for x, _ in self._counts(sum(i.held for i in picked))]
            self.counted.value = np.array(excess)

    def _decide(self, excluded: Sequence[Array]) -> Any:
        """The mixed-integer linear relaxation: weights by interval, binaries, slacks, cash trade, parts of the norms.

        A norm is split into its components, each bounded by tangents at every point solved so far; the parts of one
        with the identity as root by interval, which is tighter still.
        """
        p = self.problem
        k, n, m = len(p.intervals), len(p.held), len(p.penalties)
        of = np.array([i.name for i in p.intervals])
        ends = np.array([i.low for i in p.intervals]), np.array([i.high for i in p.intervals])
        trade, sign = np.array([i.trade for i in p.intervals]), np.array([i.weight for i in p.intervals])
        cash, parts = 2 * k + m, 2 * k + m + 1
        width = parts + n * len(p.norms)
        blocks: list[Array] = []
        least: list[Array] = []
        most: list[Array] = []

        def add(low: Any, high: Any, count: int, *terms: tuple[slice | int, Any]) -> None:
            block = np.zeros((count, width))
            for columns, values in terms:
                block[:, columns] += values
            blocks.append(block)
            least.append(np.broadcast_to(np.asarray(low, dtype=float), (count,)))
            most.append(np.broadcast_to(np.asarray(high, dtype=float), (count,)))

        def slack(index: int | None, scale: float = 1.0) -> list[tuple[slice | int, Any]]:
            return [] if index is None else [(2 * k + index, -scale)]

        w, z, unit = slice(0, k), slice(k, 2 * k), np.eye(k)
        lean = np.zeros(n) if self.lean.value is None else self.lean.value
        add(1.0, 1.0, n, (z, (of == np.arange(n)[:, None]).astype(float)))
        add(0.0, math.inf, k, (w, unit), (z, -unit * ends[0]))
        add(-math.inf, 0.0, k, (w, unit), (z, -unit * ends[1]))
        for row, limit, index in p.rows:
            add(-math.inf, limit, 1, (w, row[of]), *slack(index))
        for place, norm in enumerate(p.norms):
            mine = slice(parts + place * n, parts + (place + 1) * n)
            add(-math.inf, 1.0, 1, (mine, 1.0), *slack(norm.slack, 1 / norm.limit))
            for point in p.points:
                if norm.power == 2:
                    at = np.clip(point[of], *ends)
                    own = (of == np.arange(n)[:, None]) / norm.limit
                    add(-math.inf, 0.0, n, (w, 2 * at * own), (z, -(at**2) * own), (mine, -np.eye(n)))
                    continue
                moved = norm.root @ (point - norm.centre)
                ratio = moved / max(float(np.linalg.norm(moved)), 1e-12)
                tangent = 2 * ratio[:, None] * norm.root / norm.limit
                total: list[tuple[slice | int, Any]] = []
                if norm.slack is not None:
                    total = [(2 * k + norm.slack, -(ratio**2) / norm.limit)]
                add(-math.inf, ratio**2 + tangent @ norm.centre, n, (w, tangent[:, of]), (mine, -np.eye(n)), *total)
        start = float(p.held.sum())
        if p.invested:
            add(1.0, 1.0, 1, (w, 1.0))
        if p.budget < math.inf:
            add(-math.inf, start, 1, (w, 1.0), (cash, -1.0))
            add(-math.inf, -start, 1, (w, -1.0), (cash, -1.0))
            add(-math.inf, p.budget, 1, (w, trade / 2), (z, -trade * p.held[of] / 2), (cash, 0.5))
        if p.gross is not None:
            add(-math.inf, p.gross[0], 1, (w, sign), *slack(p.gross[1]))
        counted = np.array([i.held for i in p.intervals], dtype=float)
        if p.fewest is not None:
            add(-math.inf, -p.fewest[0], 1, (z, -counted), *slack(p.fewest[1]))
        if p.most is not None:
            add(-math.inf, p.most[0], 1, (z, counted), *slack(p.most[1]))
        for chosen in excluded:
            add(-math.inf, n - 1, 1, (z, chosen))
        goal = np.zeros(width)
        goal[w] = p.price * p.costs[of] * trade + lean[of]
        goal[z] = -p.price * p.costs[of] * trade * p.held[of]
        goal[2 * k : cash] = p.penalties
        top, bottom = np.full(width, np.inf), np.zeros(width)
        top[w], bottom[w], top[z] = BOX, -BOX, 1.0
        top[2 * k : cash] = 0.0 if p.cure else np.inf
        integral = np.zeros(width)
        integral[z] = 1
        lower, upper = cast("Any", (np.concatenate(least), np.concatenate(most)))  # the stubs know single numbers only
        limits, box = LinearConstraint(csr_array(np.vstack(blocks)), lower, upper), cast("Any", (bottom, top))
        options = {"mip_rel_gap": 0.0, "time_limit": SECONDS}
        with quiet():
            return milp(goal, integrality=integral, bounds=Bounds(*box), constraints=limits, options=options)


def _lowest(lean: Array, low: Array, high: Array) -> float:
    """Least `lean @ w` of weights within bounds whose sum is at most 1."""
    total, room = float(lean @ low), 1.0 - float(low.sum())
    for place in np.argsort(lean):
        step = min(high[place] - low[place], room)
        if lean[place] >= 0 or room <= 0:
            break
        total, room = total + float(lean[place] * step), room - step
    return total


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Discard what HiGHS writes to standard output whatever its options say."""
    sys.stdout.flush()
    kept = os.dup(1)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def solve(problem: cp.Problem) -> tuple[str, float]:
    """(status, value) by Clarabel; tolerances are loosened step by step, or a setting is turned off."""
    for tolerance, off in [(1e-12, {}), *itertools.product((1e-10, 1e-8), TURNED_OFF)]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
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
        except cp.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            return "optimal", float(cast("float", problem.value))
        if problem.status == cp.INFEASIBLE:
            return "infeasible", math.inf
    raise Undecided(f"Clarabel stopped with status {problem.status}")


def remediation(task_input: Json, *, headroom: bool = True, cure: bool = True) -> Problem:
    """The cure of least cost, or with `cure` off the trades of the smallest shortfall, as the task prints it."""
    tickers, matrix = covariance(task_input)
    terms, weights = task_input["trading_terms"], holdings(task_input)
    held = np.array([weights.get(ticker, 0.0) for ticker in tickers])
    costs = np.array([terms["cost_bps"][ticker] for ticker in tickers])
    rules = {rule["type"]: rule for rule in task_input["mandate"]["constraints"]}
    size, ones = len(tickers), np.ones(len(tickers))
    floor, ceiling = np.full(size, 0.0 if "long_only" in rules else -BOX), np.full(size, BOX)
    position = float(rules["position_limit_min"]["value"]) if "position_limit_min" in rules else 0.0
    problem = Problem(held, costs, 1.0 if cure else 0.01, [], cure=cure)
    problem.rows.append((ones, 1.0, None))  # cash never falls below 0
    betas, benchmark = task_input["factor_exposures"], task_input["benchmark_weights"]

    def inside(kind: str, end: str) -> float:
        room = terms["headroom"].get(kind, 0.0) if headroom else 0.0
        return rules[kind][end] + (room if end == "min" else -room)

    def beta(factor: str) -> Array:
        return np.array([betas[ticker][factor] for ticker in tickers])

    for kind, rule in rules.items():
        if kind in ("long_only", "position_limit_min"):
            continue
        if kind == "turnover_max_monthly":
            done = turnover((task_input["portfolio"].get("trades_this_month") or {}).values())
            problem.budget = rule["value"] - done
            floor, ceiling = np.maximum(floor, held - problem.budget), np.minimum(ceiling, held + problem.budget)
        elif kind == "beta_range":
            for end, way in (("min", -1.0), ("max", 1.0)):
                if rule.get(end) is not None:
                    limit = inside(kind, end)
                    problem.rows.append((way * beta("mkt_rf"), way * limit, problem.slack(limit)))
        elif kind == "name_count":
            if rule.get("min") is not None:
                problem.fewest = (rule["min"], problem.slack(rule["min"]))
            if rule.get("max") is not None:
                problem.most = (rule["max"], problem.slack(rule["max"]))
        else:
            limit = inside(kind, "value")
            slack = problem.slack(limit)
            if kind == "position_limit_max":
                problem.rows += [(row, limit, slack) for row in np.eye(size)]
                ceiling = np.minimum(ceiling, limit) if cure else ceiling
            elif kind == "sector_limit_max":
                for sector in by_sector({}, task_input):
                    row = np.array([float(task_input["sector_mapping"][t] == sector) for t in tickers])
                    problem.rows.append((row, limit, slack))
            elif kind == "factor_exposure_max":
                for factor in rule["factors"]:
                    problem.rows += [(way * beta(factor), limit, slack) for way in (1.0, -1.0)]
            elif kind == "cash_max":
                problem.rows.append((-ones, limit - 1.0, slack))
            elif kind == "gross_exposure_max":
                problem.gross = (limit, slack)
            elif kind == "hhi_max":
                problem.norms.append(Norm(np.eye(size), np.zeros(size), 2, limit, slack))
            elif kind == "tracking_error_max":
                centre = np.array([benchmark.get(ticker, 0.0) for ticker in tickers])
                problem.norms.append(Norm(root_of(matrix), centre, 1, limit, slack))
            else:
                raise ValueError(f"constraint type {kind!r} is unknown")
    least, holding = terms["minimum_trade"], HOLDING if "name_count" in rules else 0.0
    for k in range(size):
        problem.intervals += intervals(k, held[k], least, floor[k], ceiling[k], position, holding)
    return problem


def rebalancing(task_input: Json, required: float) -> Problem:
    """Stage 2 of rebalancing: least trading cost with the objective, as a minimum, at most `required`."""
    tickers, matrix = covariance(task_input)
    given = task_input["constraints"]
    unknown = {name for name, limit in given.items() if limit is not None} - {
        "long_only",
        "max_weight",
        "sector_limits",
    }
    if unknown:
        raise ValueError(f"limit {min(unknown)!r} is unknown")
    held = np.array([task_input["current_portfolio"][ticker] for ticker in tickers])
    costs = np.array([task_input["trading_costs_bps"][ticker] for ticker in tickers])
    problem = Problem(held, costs, 1.0, [], invested=True)
    cap, floor = given.get("max_weight") or BOX, 0.0 if given.get("long_only", True) else -BOX
    for place, weight in enumerate(held):
        problem.intervals += intervals(place, float(weight), float(task_input["min_trade"]), floor, cap)
    for sector, limit in (given.get("sector_limits") or {}).items():
        row = np.array([float(task_input["sector_mapping"][ticker] == sector) for ticker in tickers])
        problem.rows.append((row, limit, None))
    expected = np.array([task_input["expected_returns"][ticker] for ticker in tickers])
    inverse = 1 / matrix.diagonal()
    quadratic, linear, constant = matrix, np.zeros(len(tickers)), 0.0
    if task_input["objective"] == "max_return":
        problem.rows.append((-expected, required, None))
        return problem
    if task_input["objective"] == "max_sharpe":
        quadratic, linear = task_input["risk_aversion"] * matrix, -expected
    elif task_input["objective"] == "risk_parity":
        inverse /= inverse.sum()
        quadratic, linear, constant = np.eye(len(tickers)) + matrix / 2, -2 * inverse, float(inverse @ inverse)
    centre = -np.linalg.solve(quadratic, linear) / 2
    radius = required - constant + float(centre @ quadratic @ centre)
    problem.norms.append(Norm(root_of(quadratic), centre, 1, math.sqrt(radius), None))
    return problem


def root_of(matrix: Array) -> Array:
    """R with R'R the matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T
