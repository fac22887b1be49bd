"""Mixed-integer program of a remediation from the printed definitions; tangents make it a lower bound."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finskillbench.episode import JsonObject
from finskillbench.scoring.values import as_number, as_object, objects

Floats = NDArray[np.float64]

_COUNTED, _UNDER = 0.001, 1e-6
"""Least weight of a holding, and distance below it for other names."""
_LEAST_SCALE = 0.01
_ROUNDS, _CHOICES, _HALVINGS = 40, 15, 50
_KEPT = 1e-8
_BY_NAME = frozenset({"position_limit_min", "name_count"})

_Curve = Callable[[Floats], tuple[float, Floats]]
"""Value and gradient of a curved limit."""


def _inside(limit: JsonObject, headroom: float) -> JsonObject:
    """Tighten a limit by its headroom."""
    moved = {"value": -headroom, "max": -headroom, "min": headroom}
    return {**limit, **{end: limit[end] + way for end, way in moved.items() if headroom and limit.get(end) is not None}}


def _flush() -> None:
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)


@contextmanager
def _silent() -> Generator[None]:
    """Discard what HiGHS prints to standard output regardless of its options."""
    _flush()
    kept, sink = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(sink)


class RemediationProgram:
    """Program of one episode with goal `cost` (within `left`), `excess` (plus cost) or `turnover` (of any size).

    Columns: buys and sells (n each), cash in and out, position sizes (n), long and short indicators (n each), one
    excess per soft limit end, and indicators of bought, sold and closed names (n each). Goal `turnover` ignores
    tickets and limits by name.
    """

    def __init__(self, task_input: JsonObject, goal: str) -> None:
        portfolio, rules = task_input["portfolio"], task_input["trading_terms"]
        held = {str(one["symbol"]): float(one["weight"]) for one in objects(portfolio["holdings"])}
        self.task_input, self.goal, self.soft = task_input, goal, goal == "excess"
        self.limits = {
            str(limit["type"]): _inside(limit, float(rules["headroom"].get(limit["type"], 0.0)))
            for limit in objects(task_input["mandate"]["constraints"])
        }
        ordered = as_object(task_input.get("covariance_matrix")).get("tickers") or task_input["sector_mapping"]
        self.tickers = [str(ticker) for ticker in ordered]
        self.n = len(self.tickers)
        self.start = np.array([held.get(ticker, 0.0) for ticker in self.tickers])
        self.cash = float(portfolio["cash_weight"])
        self.costs = np.array([float(rules["cost_bps"][ticker]) / 100 for ticker in self.tickers])
        self.ticket = 0.0 if goal == "turnover" else float(rules["minimum_trade"])
        self.named = bool(_BY_NAME & self.limits.keys()) and goal != "turnover"
        self.left = self._left(as_object(portfolio.get("trades_this_month")))
        self.curves: list[tuple[_Curve, float, int | None]] = []
        self._rows: list[tuple[Floats, float]] = []
        self._equal: list[tuple[Floats, float]] = []
        self._scales: list[float] = []
        self.open = False
        self._trades = 5 * self.n + 2 + 2 * len(self.limits)
        self._width = self._trades + 3 * self.n
        self._state()

    def value(self, weights: Floats) -> float:
        """Return cost in per cent of NAV, or one-way turnover, of trading to (n,) weights."""
        change = weights - self.start
        if self.goal == "turnover":
            return (float(np.abs(change).sum()) + abs(float(change.sum()))) / 2
        return float(self.costs @ np.abs(change))

    def bound(self, weights: Floats, enough: float, most: float = np.inf) -> float:
        """Return a lower bound of every cure of at most `most`; infinite if none keeps the tangents.

        Outer approximation (Duran and Grossmann 1986): each round solves the integer program, then refines the
        relaxation for its choice of names, so that no choice repeats. The search stops at `enough`; `open` remains
        true if tangents still cut.
        """
        self.inside, self.open = weights, True
        if np.isfinite(most):
            self._rows.append((self._cost(), most))
        self._cuts(weights)
        self._refine(np.zeros(self._width), self._ends())
        bound = -np.inf
        for _ in range(_CHOICES):
            found = self._solved(np.zeros(self._width), self._ends(), whole=True)
            if found.status == 2:
                return np.inf
            if found.x is None:
                return bound
            dual = getattr(found, "mip_dual_bound", None)
            bound = float(found.fun if dual is None else min(found.fun, dual))
            if bound >= enough or not self._cuts(self._weights(found.x)):
                self.open = False
                return bound
            chosen: Floats = np.round(np.asarray(found.x, dtype=np.float64))
            lower, upper = np.where(self._whole(), (chosen, chosen), (np.zeros(self._width), self._ends()))
            self._refine(lower, upper)
        return bound

    def _refine(self, lower: Floats, upper: Floats) -> None:
        """Add tangents at optima of the relaxed program within column bounds."""
        for _ in range(_ROUNDS):
            found = self._solved(lower, upper, whole=False)
            if found.x is None or not self._cuts(self._weights(found.x)):
                return

    def _weights(self, columns: Floats) -> Floats:
        return self.start + columns[: self.n] - columns[self.n : 2 * self.n]

    def _cuts(self, at: Floats) -> bool:
        """Add tangents at (n,) weights; return true if a limit is exceeded."""
        beyond = [self._touch(*curve, at, self.inside) for curve in self.curves]
        return any(beyond)

    def _left(self, done: JsonObject) -> float:
        limit = as_number(self.limits.get("turnover_max_monthly", {}).get("value"))
        made = [float(one) for one in done.values()]
        return np.inf if limit is None else limit - (math.fsum(map(abs, made)) + abs(math.fsum(made))) / 2

    def _ends(self) -> Floats:
        n, upper = self.n, np.full(self._width, np.inf)
        upper[self._trades :] = 1.0
        upper[3 * n + 2 : 5 * n + 2] = float(self.named)
        if "long_only" in self.limits:
            upper[4 * n + 2 : 5 * n + 2] = 0.0
        return upper

    def _whole(self) -> Floats:
        whole = np.zeros(self._width)
        whole[3 * self.n + 2 : 5 * self.n + 2] = float(self.named)
        whole[self._trades :] = float(self.ticket > 0)
        return whole

    def _cost(self) -> Floats:
        n, cost = self.n, np.zeros(self._width)
        if self.goal == "turnover":
            cost[: 2 * n + 2] = 0.5
        else:
            cost[: 2 * n] = np.tile(self.costs, 2)
            cost[5 * n + 2 : 5 * n + 2 + len(self._scales)] = 1 / np.array(self._scales)
        return cost

    def _solved(self, lower: Floats, upper: Floats, *, whole: bool) -> Any:
        # Deferred import: 0.3 s that a build saves.
        import scipy.optimize as _optimize
        import scipy.sparse as _sparse

        optimize: Any = _optimize  # SciPy has no type stubs
        sparse: Any = _sparse
        kept = optimize.LinearConstraint(
            sparse.csr_array(np.array([row for row, _ in self._rows])), -np.inf, [end for _, end in self._rows]
        )
        ends = [end for _, end in self._equal]
        met = optimize.LinearConstraint(np.array([row for row, _ in self._equal]), ends, ends)
        with _silent():
            return optimize.milp(
                self._cost(),
                integrality=self._whole() * whole,
                bounds=optimize.Bounds(lower, upper),
                constraints=[kept, met],
                options={"mip_rel_gap": 0.0},
            )

    def _touch(self, curve: _Curve, limit: float, excess: int | None, at: Floats, inside: Floats) -> bool:
        """Add tangents at (n,) weights and where the way from `inside` exits; return whether `at` is outside."""
        beyond = curve(at)[0] > limit + _KEPT
        points = [at]
        if beyond and excess is None:
            low, high = 0.0, 1.0
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                kept = curve(inside + middle * (at - inside))[0] <= limit
                low, high = (middle, high) if kept else (low, middle)
            points.append(inside + high * (at - inside))
        for point in points:
            value, slope = curve(point)
            if np.isfinite(slope).all():
                self._most(slope, limit - value + float(slope @ point), excess)
        return beyond

    def _most(self, over_weights: Floats, end: float, excess: int | None = None, **columns: Floats) -> None:
        """Add a row over weights and named columns with upper bound `end`, plus an optional excess."""
        row = np.zeros(self._width)
        row[: self.n], row[self.n : 2 * self.n] = over_weights, -over_weights
        for name, values in columns.items():
            first = {"cash": 2 * self.n, "sizes": 2 * self.n + 2, "longs": 3 * self.n + 2, "shorts": 4 * self.n + 2}[
                name
            ]
            row[first : first + len(values)] = values
        if excess is not None:
            row[5 * self.n + 2 + excess] = -1.0
        self._rows.append((row, end - float(over_weights @ self.start)))

    def _excess(self, scale: float) -> int | None:
        if not self.soft:
            return None
        self._scales.append(max(abs(scale), _LEAST_SCALE))
        return len(self._scales) - 1

    def _state(self) -> None:
        n, none = self.n, np.zeros(self.n)
        budget = np.zeros(self._width)
        budget[:n], budget[n : 2 * n], budget[2 * n : 2 * n + 2] = 1.0, -1.0, (1.0, -1.0)
        self._equal.append((budget, 0.0))
        self._most(none, self.cash, cash=np.array([-1.0, 1.0]))
        if self.goal != "turnover" and np.isfinite(self.left):
            row = np.zeros(self._width)
            row[: 2 * n + 2] = 0.5
            self._rows.append((row, self.left))
        if self.ticket > 0:
            self._add_tickets()
        for place in range(n):
            unit = np.eye(n)[place]
            if "long_only" in self.limits:
                self._most(-unit, 0.0)
            self._most(unit, 0.0, sizes=-unit)
            self._most(-unit, 0.0, sizes=-unit)
        for kind, limit in self.limits.items():
            self._add(kind, limit)
        if self.named:
            self._add_names()

    def _add(self, kind: str, limit: JsonObject) -> None:
        most, n, none = as_number(limit.get("value")), self.n, np.zeros(self.n)
        if kind == "beta_range":
            betas = self._betas("mkt_rf")
            for end, side in (("max", 1.0), ("min", -1.0)):
                if (value := as_number(limit.get(end))) is not None:
                    self._most(side * betas, side * value, self._excess(value))
        elif most is None or kind in ("long_only", "turnover_max_monthly", *_BY_NAME):
            return
        elif kind == "hhi_max":
            self.curves.append((lambda w: (float(w @ w), 2 * w), most, self._excess(most)))
        elif kind == "tracking_error_max":
            self.curves.append((self._tracking_error(), most, self._excess(most)))
        else:
            excess = self._excess(most)
            if kind == "cash_max":
                self._most(none, most - self.cash, excess, cash=np.array([1.0, -1.0]))
            elif kind == "gross_exposure_max":
                self._most(none, most, excess, sizes=np.ones(n))
            for row in self._linear(kind, limit):
                self._most(row, most, excess)

    def _linear(self, kind: str, limit: JsonObject) -> list[Floats]:
        if kind == "position_limit_max":
            return list(np.eye(self.n))
        if kind == "sector_limit_max":
            of = [self.task_input["sector_mapping"][ticker] for ticker in self.tickers]
            return [np.array([float(one == sector) for one in of]) for sector in sorted(set(of))]
        if kind == "factor_exposure_max":
            return [side * self._betas(factor) for factor in limit["factors"] for side in (1.0, -1.0)]
        return []

    def _add_tickets(self) -> None:
        """Require that trades are zero, at least a ticket, or a full sale."""
        n, far = self.n, 1.0 + float(np.abs(self.start).sum())
        for place, held in enumerate(self.start):
            closed = abs(held) if abs(held) < self.ticket else 0.0
            one = np.zeros(self._width)
            one[[self._trades + place, self._trades + n + place, self._trades + 2 * n + place]] = 1.0
            self._rows.append((one, 1.0))
            for side, exits in ((0, held < 0), (1, held > 0)):
                most, least = np.zeros(self._width), np.zeros(self._width)
                amount, traded, out = side * n + place, self._trades + side * n + place, self._trades + 2 * n + place
                most[amount], most[traded], most[out] = 1.0, -far, -closed * exits
                least[amount], least[traded], least[out] = -1.0, self.ticket, closed * exits
                self._rows += [(most, 0.0), (least, 0.0)]

    def _add_names(self) -> None:
        """Require that names are held by enough to count, or not at all, and bound their number."""
        floor = as_number(self.limits.get("position_limit_min", {}).get("value"))
        off, on = (_COUNTED - _UNDER, _COUNTED) if floor is None else (0.0, floor)
        cap = None if self.soft else as_number(self.limits.get("position_limit_max", {}).get("value"))
        far = 1.0 + float(np.abs(self.start).sum())
        most = far if cap is None else cap
        for unit in np.eye(self.n):
            self._most(unit, off, longs=(off - most) * unit, shorts=(off + on) * unit)
            self._most(-unit, off, longs=(off + on) * unit, shorts=(off - far) * unit)
            self._most(0 * unit, 1.0, longs=unit, shorts=unit)
        ones, count = np.ones(self.n), self.limits.get("name_count", {})
        if (low := as_number(count.get("min"))) is not None:
            self._most(0 * ones, -low, longs=-ones, shorts=-ones)
        if (high := as_number(count.get("max"))) is not None:
            self._most(0 * ones, high, longs=ones, shorts=ones)

    def _betas(self, factor: str) -> Floats:
        exposures = self.task_input["factor_exposures"]
        return np.array([float(exposures[ticker][factor]) for ticker in self.tickers])

    def _tracking_error(self) -> _Curve:
        table = self.task_input["covariance_matrix"]
        place = [list(table["tickers"]).index(ticker) for ticker in self.tickers]
        if "matrix" in table:
            sigma = np.array(table["matrix"], dtype=float)
        else:
            loadings = np.array(table["loadings"], dtype=float)
            sigma = loadings.T @ loadings + np.diag(np.array(table["specific"], dtype=float))
        sigma = sigma[np.ix_(place, place)]
        known = self.task_input["benchmark_weights"]
        benchmark = np.array([float(known.get(ticker, 0.0)) for ticker in self.tickers])

        def curve(weights: Floats) -> tuple[float, Floats]:
            active = weights - benchmark
            error = float(np.sqrt(active @ sigma @ active))
            return error, sigma @ active / error if error > 0 else np.full(len(active), np.nan)

        return curve
