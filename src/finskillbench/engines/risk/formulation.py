"""From a portfolio and its mandate to a conic program over weights, cash and trades: one block for each limit.

x = (weights, cash, auxiliary variables); weights and cash together stay what they are, cash is never negative. Limits
that a program may exceed (see `Aim`) have one variable for their excess.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.engines.optimisation.branching import Decision
from finskillbench.engines.optimisation.formulation import CovarianceRoot, Fill, Formulation, FormulationBuilder
from finskillbench.engines.optimisation.program import Cone, Term
from finskillbench.engines.risk.mandate import Constraint, Kind, Mandate
from finskillbench.engines.risk.monitor import HARD_KINDS, limit_scales
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, required
from finskillbench.engines.risk.semicontinuity import Semicontinuity, semicontinuity_of

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


def formulate(
    portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, decisions: Integers | None = None
) -> Formulation:
    """Build the program; `decisions` are those of a branch, which bounds squared trades by their hull.

    With None every name is free and the goal is itself: where that keeps the semicontinuous limits, it is the optimum.

    Raises
    ------
    InputError : see `semicontinuity_of`.
    DimensionError : when a limit refers to an array that the market does not give; it is never skipped.
    """
    return _RemediationBuilder(portfolio, mandate, market, aim, decisions).state()


class _RemediationBuilder(FormulationBuilder):
    """The program under construction; every method adds the blocks of one limit or one term of the goal."""

    def __init__(
        self, portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, decisions: Integers | None
    ) -> None:
        n = len(market.tickers)
        self.portfolio, self.mandate, self.market, self.aim = portfolio, mandate, market, aim
        self.rule = semicontinuity_of(mandate, n)
        self.branching = decisions is not None
        self.decisions = np.full(n, Decision.FREE, dtype=np.int8) if decisions is None else decisions
        self.excesses: list[tuple[slice, float]] = []
        self.total = float(portfolio.weights.sum()) + portfolio.cash
        self.long_only = mandate.get(Kind.LONG_ONLY) is not None
        gross = self._greatest_gross()
        super().__init__(*self._weight_bounds(gross, n), gross)
        most_cash = self.total + (0.0 if self.long_only else gross)
        self.cash = self.auxiliary(np.array([most_cash]), lambda w: np.array([self.total - w.sum()]))
        self.trades: slice | None = None

    def state(self) -> Formulation:
        """Every block in turn."""
        aim, budget = self.aim, (self.weights, np.ones((1, self.n)))
        self.constrain("budget", Cone.ZERO, np.array([self.total]), budget, (self.cash, np.ones(1)))
        self.bound_weights(np.flatnonzero(self.upper < self.gross))
        self.at_most("cash_floor", np.zeros(1), (self.cash, -np.ones(1)))
        if aim.goal is Goal.TURNOVER or aim.turnover_cap is not None:
            self._add_turnover()
        for constraint in self.mandate.constraints:
            if constraint.kind not in HARD_KINDS:
                self._add_limit(constraint)
        if self.rule is not None:
            self._add_semicontinuity(self.rule)
        if aim.goal is Goal.TRADES:
            self._add_squared_trades()
        if aim.goal is Goal.EXCESS:
            for place, scale in self.excesses:
                self.add_linear(place, np.array([1.0 / scale]))
        if aim.excess_cap is not None:
            terms: list[Term] = [(place, np.array([[1.0 / scale]])) for place, scale in self.excesses]
            self.at_most("excess_cap", np.array([aim.excess_cap]), *terms)
        return self.formulation()

    def _greatest_gross(self) -> float:
        """The most that Σ|w| can be."""
        if self.long_only:
            return self.total
        limit = self.mandate.limit(Kind.GROSS_EXPOSURE_MAX)
        return GREATEST_GROSS if limit is None or self.aim.soft else limit

    def _weight_bounds(self, gross: float, n: int) -> tuple[Floats, Floats]:
        lower, upper = np.full(n, 0.0 if self.long_only else -gross), np.full(n, gross)
        cap = self.mandate.limit(Kind.POSITION_LIMIT_MAX)
        if cap is not None and not self.aim.soft:
            upper = np.minimum(upper, cap)
        if self.rule is not None:
            off, long, short = (self.decisions == one for one in (Decision.OFF, Decision.LONG, Decision.SHORT))
            lower = np.where(long, self.rule.on, np.where(off, np.maximum(lower, -self.rule.off), lower))
            upper = np.where(short, -self.rule.on, np.where(off, np.minimum(upper, self.rule.off), upper))
        return lower, upper

    def _excess(self, scale: float, bound: float, excess: Fill) -> slice | None:
        """The excess of a limit as a variable e >= 0, where limits may be exceeded; V adds up e / scale."""
        if not self.aim.soft:
            return None
        place = self.auxiliary(np.array([bound]), lambda w: np.array([max(float(excess(w)), 0.0)]))
        self.at_most("excess", np.zeros(1), (place, -np.ones(1)))
        self.excesses.append((place, scale))
        return place

    def _limit(self, label: str, limit: float, excess: slice | None, place: slice, rows: Floats) -> None:
        """rows @ x <= limit + excess, one excess for all rows; one-dimensional rows are a diagonal."""
        terms: list[Term] = [] if excess is None else [(excess, -np.ones((len(rows), 1)))]
        self.at_most(label, np.full(len(rows), limit), (place, rows), *terms)

    def _limit_weights(self, label: str, limit: float, scale: float, rows: Floats) -> None:
        """rows @ weights <= limit, with one excess for all rows; one-dimensional rows are a diagonal."""
        bound = float(np.abs(rows).max()) * self.gross + abs(limit)
        excess = self._excess(scale, bound, lambda w: (rows * w if rows.ndim == 1 else rows @ w).max() - limit)
        self._limit(label, limit, excess, self.weights, rows)

    def _add_turnover(self) -> None:
        """Absolute trades of names, then of cash, with their half sum minimised or capped."""
        start, cash = self.portfolio.weights, self.portfolio.cash
        bounds = np.concatenate([np.abs(start) + self.gross, [abs(cash) + self.total + self.gross]])
        both = slice(self.weights.start, self.cash.stop)
        self.trades = self.add_trades(
            both,
            np.concatenate([start, [cash]]),
            bounds,
            lambda w: np.abs(np.concatenate([w - start, [(w - start).sum()]])),
        )
        if self.aim.turnover_cap is not None:
            self.cap_turnover("turnover_cap", self.trades, self.aim.turnover_cap)
        if self.aim.goal is Goal.TURNOVER:
            self.add_turnover(self.trades)

    def _add_limit(self, constraint: Constraint) -> None:
        """A limit of the mandate that is not a bound, a decision or the turnover."""
        kind, limit, betas = constraint.kind, constraint.value, self.market.betas
        below, scale = limit_scales(constraint)
        if kind is Kind.BETA_RANGE:
            if constraint.maximum is not None:
                self._limit_weights(kind, constraint.maximum, scale, betas[:, :1].T)
            if constraint.minimum is not None:
                self._limit_weights(f"{kind}_below", -constraint.minimum, below, -betas[:, :1].T)
        elif limit is None:
            return
        elif kind is Kind.POSITION_LIMIT_MAX:
            if self.aim.soft:  # otherwise it is an upper bound already
                self._limit_weights(kind, limit, scale, np.ones(self.n))
        elif kind is Kind.SECTOR_LIMIT_MAX:
            self._limit_weights(kind, limit, scale, self.market.membership.T)
        elif kind is Kind.FACTOR_EXPOSURE_MAX:
            chosen = betas[:, [FACTORS.index(name) for name in constraint.factors]].T
            self._limit_weights(kind, limit, scale, np.vstack([chosen, -chosen]))
        elif kind is Kind.CASH_MAX:
            excess = self._excess(scale, self.total + self.gross, lambda w: self.total - w.sum() - limit)
            self._limit(kind, limit, excess, self.cash, np.ones((1, 1)))
        elif kind is Kind.GROSS_EXPOSURE_MAX:
            self._add_gross(limit, scale)
        elif kind is Kind.TRACKING_ERROR_MAX:
            self._add_tracking_error(limit, scale)
        elif kind is Kind.HHI_MAX:
            self._add_concentration(limit, scale)

    def _add_gross(self, limit: float, scale: float) -> None:
        n, place = self.n, self.weights
        excess = self._excess(scale, self.gross, lambda w: np.abs(w).sum() - limit)
        if not self.long_only:
            sizes = self.auxiliary(np.full(n, self.gross), np.abs)
            ones = np.ones(n)
            self.at_most("size_above", np.zeros(n), (self.weights, ones), (sizes, -ones))
            self.at_most("size_below", np.zeros(n), (self.weights, -ones), (sizes, -ones))
            place = sizes
        self._limit(Kind.GROSS_EXPOSURE_MAX, limit, excess, place, np.ones((1, n)))

    def _add_tracking_error(self, limit: float, scale: float) -> None:
        risk, benchmark = required(self.market.risk, "covariance"), required(self.market.benchmark, "benchmark weights")
        root = CovarianceRoot(risk, self)
        largest = float(np.sqrt(risk.variances.max())) * (self.gross + float(np.abs(benchmark).sum()))
        excess = self._excess(scale, largest, lambda w: np.sqrt(risk.variance(w - benchmark)) - limit)
        terms = root.rows(-1.0, 1)
        if excess is not None:
            terms.append((excess, -np.ones(1)))
        # A limit that may be exceeded is curved the other way in its excess; the goal has to be the convex one.
        curvature = 0.0 if self.aim.soft else risk.smallest_eigenvalue
        self.cap_norm(Kind.TRACKING_ERROR_MAX, limit, -root.image(benchmark), *terms, curvature=curvature)

    def _add_concentration(self, limit: float, scale: float) -> None:
        n, label = self.n, Kind.HHI_MAX
        excess = self._excess(scale, self.gross**2, lambda w: w @ w - limit)
        root = np.sqrt(limit)
        if excess is None:
            self.cap_norm(label, root, np.zeros(n), (self.weights, -np.ones(n), 1), curvature=1.0)
        else:  # w'w <= limit + e, scaled by a² = limit
            slope, rows = (excess, np.full((1, 1), -1.0 / root)), (self.weights, np.full(n, -2.0), 1)
            self.cap_square(label, (2 * root, 0.0), n, slope, rows, curvature=0.0)

    def _add_semicontinuity(self, rule: Semicontinuity) -> None:
        """Relax the decisions that are still open, as tightly as rows can."""
        free = np.flatnonzero(self.decisions == Decision.FREE)
        if not free.size:
            return
        if rule.gap and self.trades is not None:
            self._add_chords(rule, free, self.trades)
        if rule.least == 0 and rule.most >= self.n:
            return
        k, pick = len(free), np.eye(self.n)[free]
        counted = self.add_indicators(
            ("counted_floor", "counted_ceiling"),
            np.zeros(k),
            np.ones(k),
            lambda w: (np.abs(w[free]) >= (rule.on + rule.off) / 2).astype(np.float64),
        )
        if self.long_only and (rule.gap or rule.least > 0):
            self.at_most("counted", np.zeros(k), (self.weights, -pick), (counted, np.full(k, rule.on)))
        reach = np.full(k, -(float(np.abs(np.concatenate([self.lower[free], self.upper[free]])).max()) - rule.off))
        if rule.gap or rule.most < self.n:
            self.at_most("stub", np.full(k, rule.off), (self.weights, pick), (counted, reach))
            if not self.long_only:
                self.at_most("stub_short", np.full(k, rule.off), (self.weights, -pick), (counted, reach))
            if self.trades is not None:
                # Who is no longer counted has been sold: |w − w0| >= (|w0| − off)(1 − counted).
                sold = np.maximum(np.abs(self.portfolio.weights[free]) - rule.off, 0.0)
                self.at_most("sold", -sold, (_of_names(self.trades), -pick), (counted, -sold))
        decided_on = int((self.decisions >= Decision.LONG).sum())
        least, most = np.array([float(decided_on - rule.least)]), np.array([float(rule.most - decided_on)])
        self.at_most("name_count_min", least, (counted, -np.ones((1, k))))
        self.at_most("name_count_max", most, (counted, np.ones((1, k))))

    def _add_chords(self, rule: Semicontinuity, free: Integers, trades: slice) -> None:
        """A holding y0 under the floor goes to 0 or to the floor: |y − y0| is at least the chord of the two."""
        size = np.abs(self.portfolio.weights[free])
        below = (size > 0) & (size < rule.on)
        if below.any():
            rows, size = np.eye(self.n)[free][below], size[below]
            slope = np.sign(self.portfolio.weights[free][below]) * (rule.on - 2 * size) / rule.on
            self.at_most("under_floor", -size, (self.weights, rows * slope[:, None]), (_of_names(trades), -rows))

    def _add_squared_trades(self) -> None:
        """(w − w0)² of names and cash; in a branch, a free name that lies under the floor counts by its hull.

        With y = |w| on the side of y0 = |w0| < floor, y is 0 or at least the floor. The greatest convex function under
        (y − y0)² there is its chord up to the floor, y0² + y (floor − 2 y0), and itself above. With b >= y − floor,
        b >= 0 that is the chord of y plus floor b + b².
        """
        start = self.portfolio.weights
        self.add_squared_distance(self.weights, start)
        self.add_squared_distance(self.cash, np.array([self.portfolio.cash]))
        self.objective_curvature = 2.0
        if not (self.branching and self.rule is not None and self.rule.gap):
            return
        chord = (self.decisions == Decision.FREE) & (np.abs(start) < self.rule.on)
        if not self.long_only:
            chord &= np.abs(start) > ZERO_WEIGHT  # opened on either side: no line bounds both
        if chord.any():
            side = np.where(start < 0, -1.0, 1.0)
            self.add_quadratic(self.weights, np.where(chord, -2.0, 0.0))
            self.add_linear(self.weights, np.where(chord, side * self.rule.on, 0.0))
            self._add_hull(np.flatnonzero(chord), side[chord], self.rule.on)
            self.objective_curvature = 0.0

    def _add_hull(self, names: Integers, side: Floats, floor: float) -> None:
        """What the names weigh above the floor, (k,) variables b, with floor b + b² in the goal."""
        k = len(names)
        above = self.auxiliary(np.full(k, self.gross), lambda w: np.maximum(side * w[names] - floor, 0.0))
        self.at_most("above_floor", np.zeros(k), (above, -np.ones(k)))
        sided = side[:, None] * np.eye(self.n)[names]
        self.at_most("hull", np.full(k, floor), (self.weights, sided), (above, -np.ones(k)))
        self.add_quadratic(above, np.full(k, 2.0))
        self.add_linear(above, np.full(k, floor))


def _of_names(trades: slice) -> slice:
    """The trades without the last, which is that of cash."""
    return slice(trades.start, trades.stop - 1)
