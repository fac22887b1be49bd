"""From a portfolio and its mandate to a conic program over weights, cash and trades: one block for each limit.

x = (weights, cash, auxiliary variables); weights and cash together stay what they are, cash is never negative. Limits
that a program may exceed (see `Aim`) have one variable for their excess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.program import Cone, ProgramBuilder, Term
from finskillbench.engines.portfolio.formulation import Formulation, Root
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import HARD_KINDS, limit_scales
from finskillbench.engines.risk.portfolio import FACTORS, ZERO_WEIGHT, Market, Portfolio, required
from finskillbench.engines.risk.semicontinuity import Semicontinuity, State, semicontinuity_of

GREATEST_GROSS = 10.0
"""Where a mandate leaves shorts unlimited, portfolios with a larger gross exposure are not considered."""


class Goal(StrEnum):
    """What is minimised: one-way turnover, the sum of squared trades (names and cash), or total relative excess."""

    TURNOVER = "turnover"
    TRADES = "trades"
    EXCESS = "excess"


@dataclass(frozen=True)
class Aim:
    """A goal, and caps that later stages put on the values of earlier ones.

    Limits outside `HARD_KINDS` may be exceeded with the goal EXCESS or an `excess_cap` on the total relative excess.
    The mandate's own turnover limit is not read: it arrives as `turnover_cap`.
    """

    goal: Goal
    turnover_cap: float | None = None
    excess_cap: float | None = None

    @property
    def soft(self) -> bool:
        """Whether limits may be exceeded."""
        return self.goal is Goal.EXCESS or self.excess_cap is not None


Fill = Callable[[Floats], Floats]
"""From (n,) weights to the values of an auxiliary variable that they imply."""


@dataclass(frozen=True)
class Remediation:
    """A formulation that can complete weights to a point of its program."""

    formulation: Formulation
    fills: tuple[tuple[slice, Fill], ...]

    def point(self, weights: Floats) -> Floats:
        """(N,) the point with these weights and the least auxiliary variables that go with them."""
        x = np.zeros(len(self.formulation.program.linear))
        for place, fill in self.fills:
            x[place] = fill(weights)
        return x


def formulate(
    portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, states: Integers | None = None
) -> Remediation:
    """Build the program; `states` are the (n,) decisions of a branch, which bounds squared trades by their hull.

    With None every name is free and the goal is itself: where that keeps the semicontinuous limits, it is the optimum.

    Raises
    ------
    InputError : see `semicontinuity_of`.
    DimensionError : when a limit refers to an array that the market does not give; it is never skipped.
    """
    return _Assembly(portfolio, mandate, market, aim, states).build()


class _Assembly:
    """The program under construction; every method adds the blocks of one limit or one term of the goal."""

    def __init__(
        self, portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, states: Integers | None
    ) -> None:
        n = len(market.tickers)
        self.portfolio, self.mandate, self.market, self.aim, self.n = portfolio, mandate, market, aim, n
        self.rule = semicontinuity_of(mandate, n)
        self.branching = states is not None
        self.states = np.zeros(n, dtype=np.int8) if states is None else states
        self.builder = ProgramBuilder()
        self.fills: list[tuple[slice, Fill]] = []
        self.curvature: dict[str, float] = {}
        self.excesses: list[tuple[slice, float]] = []
        self.total = float(portfolio.weights.sum()) + portfolio.cash
        self.long_only = mandate.get(Kind.LONG_ONLY) is not None
        self.gross = self._gross()
        self.lower, self.upper = self._bounds()
        self.weights = self._variables(np.maximum(np.abs(self.lower), np.abs(self.upper)), lambda w: w)
        most_cash = self.total + (0.0 if self.long_only else self.gross)
        self.cash = self._variables(np.array([most_cash]), lambda w: np.array([self.total - w.sum()]))
        self.trades: slice | None = None
        self.root: Root | None = None

    def build(self) -> Remediation:
        """Every block in turn."""
        builder, n = self.builder, self.n
        budget = np.array([self.total])
        builder.constrain("budget", Cone.ZERO, budget, (self.weights, np.ones((1, n))), (self.cash, np.ones(1)))
        builder.constrain("lower_bound", Cone.NONNEGATIVE, -self.lower, (self.weights, -np.ones(n)))
        upper = np.nonzero(self.upper < self.gross)[0]
        if upper.size:
            builder.constrain("upper_bound", Cone.NONNEGATIVE, self.upper[upper], (self.weights, np.eye(n)[upper]))
        builder.constrain("cash_floor", Cone.NONNEGATIVE, np.zeros(1), (self.cash, -np.ones(1)))
        if self.aim.goal is Goal.TURNOVER or self.aim.turnover_cap is not None:
            self._add_trades()
        self._add_limits()
        if self.rule is not None:
            self._add_semicontinuity(self.rule)
        curvature = self._add_goal()
        if self.aim.excess_cap is not None:
            terms: list[Term] = [(place, np.array([[1.0 / scale]])) for place, scale in self.excesses]
            builder.constrain("excess_cap", Cone.NONNEGATIVE, np.array([self.aim.excess_cap]), *terms)
        formulation = Formulation(builder.build(), self.weights, None, curvature, self.curvature)
        return Remediation(formulation, tuple(self.fills))

    def _gross(self) -> float:
        """The most that Σ|w| can be."""
        if self.long_only:
            return self.total
        limit = self._value(Kind.GROSS_EXPOSURE_MAX)
        return GREATEST_GROSS if limit is None or self.aim.soft else limit

    def _bounds(self) -> tuple[Floats, Floats]:
        lower = np.full(self.n, 0.0 if self.long_only else -self.gross)
        upper = np.full(self.n, self.gross)
        cap = self._value(Kind.POSITION_LIMIT_MAX)
        if cap is not None and not self.aim.soft:
            upper = np.minimum(upper, cap)
        if self.rule is not None:
            off, long, short = (self.states == state for state in (State.OFF, State.LONG, State.SHORT))
            lower = np.where(long, self.rule.on, np.where(off, np.maximum(lower, -self.rule.off), lower))
            upper = np.where(short, -self.rule.on, np.where(off, np.minimum(upper, self.rule.off), upper))
        return lower, upper

    def _value(self, kind: Kind) -> float | None:
        constraint = self.mandate.get(kind)
        return None if constraint is None else constraint.value

    def _variables(self, bounds: Floats, fill: Fill) -> slice:
        place = self.builder.variables(bounds)
        self.fills.append((place, fill))
        return place

    def _excess(self, scale: float, bound: float, excess: Fill) -> slice | None:
        """The excess of a limit as a variable e >= 0, where limits may be exceeded; V adds up e / scale."""
        if not self.aim.soft:
            return None
        place = self._variables(np.array([bound]), lambda w: np.array([max(float(excess(w)), 0.0)]))
        self.builder.constrain("excess", Cone.NONNEGATIVE, np.zeros(1), (place, -np.ones(1)))
        self.excesses.append((place, scale))
        return place

    def _at_most(self, label: str, limit: float, scale: float, rows: Floats) -> None:
        """rows @ weights <= limit, with one excess for all rows."""
        bound = float(np.abs(rows).max()) * self.gross + abs(limit)
        excess = self._excess(scale, bound, lambda w: (rows @ w).max() - limit)
        terms: list[Term] = [] if excess is None else [(excess, -np.ones((len(rows), 1)))]
        self.builder.constrain(label, Cone.NONNEGATIVE, np.full(len(rows), limit), (self.weights, rows), *terms)

    def _add_trades(self) -> None:
        """Absolute trades u >= |w − w0| of names, then of cash; half their sum is the one-way turnover."""
        n, portfolio = self.n, self.portfolio
        bounds = np.concatenate(
            [np.abs(portfolio.weights) + self.gross, [abs(portfolio.cash) + self.total + self.gross]]
        )
        self.trades = self._variables(
            bounds, lambda w: np.abs(np.concatenate([w - portfolio.weights, [(w - portfolio.weights).sum()]]))
        )
        both = slice(self.weights.start, self.cash.stop)
        start = np.concatenate([portfolio.weights, [portfolio.cash]])
        ones = np.ones(n + 1)
        self.builder.constrain("buys", Cone.NONNEGATIVE, start, (both, ones), (self.trades, -ones))
        self.builder.constrain("sells", Cone.NONNEGATIVE, -start, (both, -ones), (self.trades, -ones))
        if self.aim.turnover_cap is not None:
            cap = np.array([self.aim.turnover_cap])
            self.builder.constrain("turnover_cap", Cone.NONNEGATIVE, cap, (self.trades, np.full((1, n + 1), 0.5)))

    def _add_limits(self) -> None:
        """Every limit of the mandate that is not a bound, a state or the turnover."""
        for constraint in self.mandate.constraints:
            kind, limit = constraint.kind, constraint.value
            below, scale = limit_scales(constraint)
            if kind is Kind.BETA_RANGE:
                market = self.market.betas[:, :1].T
                if constraint.maximum is not None:
                    self._at_most(kind, constraint.maximum, scale, market)
                if constraint.minimum is not None:
                    self._at_most(f"{kind}_below", -constraint.minimum, below, -market)
            elif limit is None or kind in HARD_KINDS:
                continue
            elif kind is Kind.POSITION_LIMIT_MAX:
                if self.aim.soft:  # otherwise it is an upper bound already
                    self._at_most(kind, limit, scale, np.eye(self.n))
            elif kind is Kind.SECTOR_LIMIT_MAX:
                self._at_most(kind, limit, scale, self.market.membership.T)
            elif kind is Kind.FACTOR_EXPOSURE_MAX:
                chosen = self.market.betas[:, [FACTORS.index(name) for name in constraint.factors]].T
                self._at_most(kind, limit, scale, np.vstack([chosen, -chosen]))
            elif kind is Kind.CASH_MAX:
                self._add_cash(limit, scale)
            elif kind is Kind.GROSS_EXPOSURE_MAX:
                self._add_gross(limit, scale)
            elif kind is Kind.TRACKING_ERROR_MAX:
                self._add_tracking_error(limit, scale)
            elif kind is Kind.HHI_MAX:
                self._add_concentration(limit, scale)

    def _add_cash(self, limit: float, scale: float) -> None:
        excess = self._excess(scale, self.total + self.gross, lambda w: self.total - w.sum() - limit)
        terms: list[Term] = [] if excess is None else [(excess, -np.ones(1))]
        self.builder.constrain(Kind.CASH_MAX, Cone.NONNEGATIVE, np.array([limit]), (self.cash, np.ones(1)), *terms)

    def _add_gross(self, limit: float, scale: float) -> None:
        n, label = self.n, Kind.GROSS_EXPOSURE_MAX
        excess = self._excess(scale, self.gross, lambda w: np.abs(w).sum() - limit)
        terms: list[Term] = [] if excess is None else [(excess, -np.ones(1))]
        if self.long_only:
            self.builder.constrain(label, Cone.NONNEGATIVE, np.array([limit]), (self.weights, np.ones((1, n))), *terms)
            return
        sizes = self._variables(np.full(n, self.gross), np.abs)
        ones = np.ones(n)
        self.builder.constrain("size_above", Cone.NONNEGATIVE, np.zeros(n), (self.weights, ones), (sizes, -ones))
        self.builder.constrain("size_below", Cone.NONNEGATIVE, np.zeros(n), (self.weights, -ones), (sizes, -ones))
        self.builder.constrain(label, Cone.NONNEGATIVE, np.array([limit]), (sizes, np.ones((1, n))), *terms)

    def _rooted(self) -> tuple[Root, Floats]:
        """The root of the covariance applied to the weights, and to the benchmark."""
        risk = required(self.market.risk, "covariance")
        if self.root is None:
            self.root = Root(risk, self.builder, self.weights, self.gross)
            if self.root.factors is not None:
                self.fills.append((self.root.factors, lambda w: risk.root @ w))
        return self.root, self.root.image(required(self.market.benchmark, "benchmark weights"))

    def _add_tracking_error(self, limit: float, scale: float) -> None:
        root, offset = self._rooted()
        risk, benchmark = required(self.market.risk, "covariance"), required(self.market.benchmark, "benchmark weights")
        largest = float(np.sqrt(risk.variances.max())) * (self.gross + float(np.abs(benchmark).sum()))
        excess = self._excess(scale, largest, lambda w: np.sqrt(risk.variance(w - benchmark)) - limit)
        terms = root.rows(-1.0, 1)
        if excess is not None:
            terms.append((excess, -np.ones(1)))
        rhs = np.concatenate([[limit], -offset])
        self.builder.constrain(Kind.TRACKING_ERROR_MAX, Cone.SECOND_ORDER, rhs, *terms)
        # A limit that may be exceeded is curved the other way in its excess; the goal has to be the convex one.
        self.curvature[Kind.TRACKING_ERROR_MAX] = 0.0 if self.aim.soft else risk.smallest_eigenvalue

    def _add_concentration(self, limit: float, scale: float) -> None:
        n, label = self.n, Kind.HHI_MAX
        excess = self._excess(scale, self.gross**2, lambda w: w @ w - limit)
        root = np.sqrt(limit)
        if excess is None:
            rhs = np.concatenate([[root], np.zeros(n)])
            self.builder.constrain(label, Cone.SECOND_ORDER, rhs, (self.weights, -np.ones(n), 1))
            self.curvature[label] = 1.0
            return
        # w'w <= h = limit + e, as ||(2w, h/a − a)|| <= h/a + a; a² = limit keeps the cone well scaled.
        slope = np.full((1, 1), -1.0 / root)
        rhs = np.concatenate([[2 * root], np.zeros(n + 1)])
        rows: list[Term] = [(self.weights, np.full(n, -2.0), 1), (excess, slope, 0), (excess, slope, n + 1)]
        self.builder.constrain(label, Cone.SECOND_ORDER, rhs, *rows)
        self.curvature[label] = 0.0

    def _add_semicontinuity(self, rule: Semicontinuity) -> None:
        """Relax the decisions that are still open, as tightly as rows can."""
        free = np.nonzero(self.states == State.FREE)[0]
        if not free.size:
            return
        pick, held = np.eye(self.n)[free], np.abs(self.portfolio.weights[free])
        if rule.gap and self.trades is not None:
            # A holding y0 under the floor goes to 0 or to the floor: |y − y0| is at least the chord of the two.
            below = (held > 0) & (held < rule.on)
            if below.any():
                rows, size = pick[below], held[below]
                slope = np.sign(self.portfolio.weights[free][below]) * (rule.on - 2 * size) / rule.on
                self.builder.constrain(
                    "under_floor",
                    Cone.NONNEGATIVE,
                    -size,
                    (self.weights, rows * slope[:, None]),
                    (slice(self.trades.start, self.trades.stop - 1), -rows),
                )
        decided_on = int((self.states >= State.LONG).sum())
        if rule.least == 0 and rule.most >= self.n:
            return
        k = len(free)
        counted = self._variables(np.ones(k), lambda w: (np.abs(w[free]) >= (rule.on + rule.off) / 2).astype(float))
        constrain = self.builder.constrain
        constrain("counted_floor", Cone.NONNEGATIVE, np.zeros(k), (counted, -np.ones(k)))
        constrain("counted_ceiling", Cone.NONNEGATIVE, np.ones(k), (counted, np.ones(k)))
        if self.long_only and (rule.gap or rule.least > 0):
            constrain("counted", Cone.NONNEGATIVE, np.zeros(k), (self.weights, -pick), (counted, np.full(k, rule.on)))
        reach = np.full(k, -(float(np.abs(np.concatenate([self.lower[free], self.upper[free]])).max()) - rule.off))
        if rule.gap or rule.most < self.n:
            constrain("stub", Cone.NONNEGATIVE, np.full(k, rule.off), (self.weights, pick), (counted, reach))
            if not self.long_only:
                constrain("stub_short", Cone.NONNEGATIVE, np.full(k, rule.off), (self.weights, -pick), (counted, reach))
            if self.trades is not None:
                # Who is no longer counted has been sold: |w − w0| >= (|w0| − off)(1 − counted).
                sold = np.maximum(held - rule.off, 0.0)
                names = slice(self.trades.start, self.trades.stop - 1)
                constrain("sold", Cone.NONNEGATIVE, -sold, (names, -pick), (counted, -sold))
        least, most = np.array([float(decided_on - rule.least)]), np.array([float(rule.most - decided_on)])
        constrain("name_count_min", Cone.NONNEGATIVE, least, (counted, -np.ones((1, k))))
        constrain("name_count_max", Cone.NONNEGATIVE, most, (counted, np.ones((1, k))))

    def _add_goal(self) -> float:
        """Add the objective; returns its curvature in the weights."""
        if self.aim.goal is Goal.TURNOVER:
            self.builder.add_linear(required(self.trades, "trades"), np.full(self.n + 1, 0.5))
            return 0.0
        if self.aim.goal is Goal.EXCESS:
            for place, scale in self.excesses:
                self.builder.add_linear(place, np.array([1.0 / scale]))
            return 0.0
        return self._add_squared_trades()

    def _add_squared_trades(self) -> float:
        """(w − w0)² of names and cash; in a branch, a free name that lies under the floor counts by its hull.

        With y = |w| on the side of y0 = |w0| < floor, y is 0 or at least the floor. The greatest convex function under
        (y − y0)² there is its chord up to the floor, y0² + y (floor − 2 y0), and itself above. With b >= y − floor,
        b >= 0 that is the chord of y plus floor b + b².
        """
        portfolio = self.portfolio
        curved, linear = np.full(self.n, 2.0), -2 * portfolio.weights
        self.builder.constant += float(portfolio.weights @ portfolio.weights) + portfolio.cash**2
        chord = np.zeros(self.n, dtype=bool)
        if self.branching and self.rule is not None and self.rule.gap:
            chord = (self.states == State.FREE) & (np.abs(portfolio.weights) < self.rule.on)
            if not self.long_only:
                chord &= np.abs(portfolio.weights) > ZERO_WEIGHT  # opened on either side: no line bounds both
            if chord.any():
                side = np.where(portfolio.weights < 0, -1.0, 1.0)
                curved[chord] = 0.0
                linear[chord] += (side * self.rule.on)[chord]
                self._add_hull(np.nonzero(chord)[0], side[chord], self.rule.on)
        self.builder.add_quadratic(self.weights, curved)
        self.builder.add_linear(self.weights, linear)
        self.builder.add_quadratic(self.cash, np.array([2.0]))
        self.builder.add_linear(self.cash, np.array([-2 * portfolio.cash]))
        return 0.0 if chord.any() else 2.0

    def _add_hull(self, names: Integers, side: Floats, floor: float) -> None:
        """What the names weigh above the floor, (k,) variables b, with floor b + b² in the goal."""
        k = len(names)
        above = self._variables(np.full(k, self.gross), lambda w: np.maximum(side * w[names] - floor, 0.0))
        self.builder.constrain("above_floor", Cone.NONNEGATIVE, np.zeros(k), (above, -np.ones(k)))
        sided = side[:, None] * np.eye(self.n)[names]
        self.builder.constrain("hull", Cone.NONNEGATIVE, np.full(k, floor), (self.weights, sided), (above, -np.ones(k)))
        self.builder.add_quadratic(above, np.full(k, 2.0))
        self.builder.add_linear(above, np.full(k, floor))
