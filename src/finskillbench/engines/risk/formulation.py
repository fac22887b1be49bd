"""Conic formulation of remediation over weights, cash and trades, with one block per limit.

x = (weights, cash, auxiliary variables). The sum of weights and cash is constant, cash is never negative. Soft limits
(`RemediationAim`) have one excess variable each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.optimisation.formulation import CovarianceRoot, Fill, Formulation, FormulationBuilder
from finskillbench.engines.optimisation.program import Coefficients, Cone
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, RiskMandate
from finskillbench.engines.risk.monitor import HARD_KINDS, limit_scales
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, require_field
from finskillbench.engines.risk.semicontinuity import Semicontinuity, semicontinuity_of

GREATEST_GROSS = 10.0
"""Maximum gross exposure considered if the mandate does not limit shorts."""


class RemediationGoal(StrEnum):
    """Minimised quantity: trading cost, turnover, squared trades, or excess.

    Cost is in per cent of NAV, turnover one-way, squares cover names and cash. EXCESS is the total relative excess plus
    the cost: a basis point of cost weighs as much as an excess of one per cent.
    """

    COST = "cost"
    TURNOVER = "turnover"
    TRADES = "trades"
    EXCESS = "excess"


@dataclass(frozen=True)
class RemediationAim:
    """A goal, costs (n,) in per cent, and the turnover cap; EXCESS relaxes the limits outside of `HARD_KINDS`."""

    goal: RemediationGoal
    costs: Floats | None = None
    turnover_cap: float | None = None

    @property
    def soft(self) -> bool:
        return self.goal is RemediationGoal.EXCESS


Bounds = tuple[Floats, Floats]
"""(n,) Least and greatest weights."""


def weight_bounds(portfolio: Portfolio, mandate: RiskMandate, *, soft: bool) -> Bounds:
    """Return weight bounds from long_only, gross exposure and, unless `soft`, the position limit."""
    n = len(portfolio.weights)
    gross = _greatest_gross(portfolio, mandate, soft=soft)
    lower, upper = np.full(n, -gross if mandate.get(ConstraintKind.LONG_ONLY) is None else 0.0), np.full(n, gross)
    cap = mandate.limit(ConstraintKind.POSITION_LIMIT_MAX)
    return lower, upper if cap is None or soft else np.minimum(upper, cap)


def formulate_remediation(
    portfolio: Portfolio,
    mandate: RiskMandate,
    market: MarketSnapshot,
    aim: RemediationAim,
    bounds: Bounds | None = None,
) -> Formulation:
    """Build the program within `bounds`; raise as `semicontinuity_of`, `DimensionError` for missing arrays."""
    return _RemediationBuilder(portfolio, mandate, market, aim, bounds).state()


def _greatest_gross(portfolio: Portfolio, mandate: RiskMandate, *, soft: bool) -> float:
    if mandate.get(ConstraintKind.LONG_ONLY) is not None:
        return float(portfolio.weights.sum()) + portfolio.cash
    limit = mandate.limit(ConstraintKind.GROSS_EXPOSURE_MAX)
    return GREATEST_GROSS if limit is None or soft else limit


class _RemediationBuilder(FormulationBuilder):
    def __init__(
        self,
        portfolio: Portfolio,
        mandate: RiskMandate,
        market: MarketSnapshot,
        aim: RemediationAim,
        bounds: Bounds | None,
    ) -> None:
        self.portfolio, self.mandate, self.market, self.aim = portfolio, mandate, market, aim
        self.rule = semicontinuity_of(mandate, len(market.tickers))
        self.excesses: list[tuple[slice, float]] = []
        # Fills hold no reference to the builder, which would keep it alive in a cycle.
        self.total = total = float(portfolio.weights.sum()) + portfolio.cash
        self.long_only = mandate.get(ConstraintKind.LONG_ONLY) is not None
        gross = _greatest_gross(portfolio, mandate, soft=aim.soft)
        super().__init__(*(bounds or weight_bounds(portfolio, mandate, soft=aim.soft)), gross)
        most_cash = self.total + (0.0 if self.long_only else gross)
        self.cash = self.auxiliary(np.array([most_cash]), lambda w: np.array([total - w.sum()]))

    def state(self) -> Formulation:
        aim, budget = self.aim, (self.weights, np.ones((1, self.n)))
        self.constrain("budget", Cone.ZERO, np.array([self.total]), budget, (self.cash, np.ones(1)))
        self._bound_weights()
        self.at_most("cash_floor", np.zeros(1), (self.cash, -np.ones(1)))
        if aim.goal is RemediationGoal.TRADES:
            self._add_squared_trades()
        else:
            self._add_trades()
        for constraint in self.mandate.constraints:
            if constraint.kind not in HARD_KINDS:
                self._add_limit(constraint)
        if self.rule is not None and (self.rule.least > 0 or self.rule.most < self.n):
            self._add_counts(self.rule)
        for place, scale in self.excesses:
            self.add_linear(place, np.array([1.0 / scale]))
        return self.formulation()

    def _bound_weights(self) -> None:
        """Fix or bound the weights; gross exposure bounds the rest from above."""
        fixed = self.lower == self.upper
        capped = ~fixed & (self.upper < self.gross)
        if not fixed.any():
            self.bound_weights(np.flatnonzero(capped))
            return
        pick = np.eye(self.n)
        self.constrain("fixed", Cone.ZERO, self.lower[fixed], (self.weights, pick[fixed]))
        if not fixed.all():
            self.at_most("lower_bound", -self.lower[~fixed], (self.weights, -pick[~fixed]))
        if capped.any():
            self.at_most("upper_bound", self.upper[capped], (self.weights, pick[capped]))

    def _excess(self, scale: float, bound: float, excess: Fill) -> slice | None:
        """Add the excess variable e >= 0 of a soft limit; V sums e / scale."""
        if not self.aim.soft:
            return None
        place = self.auxiliary(np.array([bound]), lambda w: np.array([max(float(excess(w)), 0.0)]))
        self.at_most("excess", np.zeros(1), (place, -np.ones(1)))
        self.excesses.append((place, scale))
        return place

    def _limit(self, label: str, limit: float, excess: slice | None, place: slice, rows: Floats) -> None:
        """Add rows @ x <= limit + excess, with a shared excess; one-dimensional rows are a diagonal."""
        coefficients: list[Coefficients] = [] if excess is None else [(excess, -np.ones((len(rows), 1)))]
        self.at_most(label, np.full(len(rows), limit), (place, rows), *coefficients)

    def _limit_weights(self, label: str, limit: float, scale: float, rows: Floats) -> None:
        """Add rows @ weights <= limit, with a shared excess; one-dimensional rows are a diagonal."""
        bound = float(np.abs(rows).max()) * self.gross + abs(limit)
        excess = self._excess(scale, bound, lambda w: (rows * w if rows.ndim == 1 else rows @ w).max() - limit)
        self._limit(label, limit, excess, self.weights, rows)

    def _add_trades(self) -> None:
        start, cash, aim = self.portfolio.weights, self.portfolio.cash, self.aim
        bounds = np.concatenate([np.abs(start) + self.gross, [abs(cash) + self.total + self.gross]])
        trades = self.add_trades(
            slice(self.weights.start, self.cash.stop),
            np.concatenate([start, [cash]]),
            bounds,
            lambda w: np.abs(np.concatenate([w - start, [(w - start).sum()]])),
        )
        if aim.turnover_cap is not None:
            self.cap_turnover("turnover_cap", trades, aim.turnover_cap)
        if aim.goal is RemediationGoal.TURNOVER:
            self.add_turnover(trades)
        elif aim.costs is not None:
            self.add_linear(slice(trades.start, trades.stop - 1), aim.costs)

    def _add_limit(self, constraint: Constraint) -> None:
        kind, limit, betas = constraint.kind, constraint.value, self.market.betas
        below, scale = limit_scales(constraint)
        if kind is ConstraintKind.BETA_RANGE:
            if constraint.maximum is not None:
                self._limit_weights(kind, constraint.maximum, scale, betas[:, :1].T)
            if constraint.minimum is not None:
                self._limit_weights(f"{kind}_below", -constraint.minimum, below, -betas[:, :1].T)
        elif limit is None:
            return
        elif kind is ConstraintKind.POSITION_LIMIT_MAX:
            if self.aim.soft:  # otherwise an upper bound
                self._limit_weights(kind, limit, scale, np.ones(self.n))
        elif kind is ConstraintKind.SECTOR_LIMIT_MAX:
            self._limit_weights(kind, limit, scale, self.market.membership.T)
        elif kind is ConstraintKind.FACTOR_EXPOSURE_MAX:
            chosen = betas[:, [FACTORS.index(name) for name in constraint.factors]].T
            self._limit_weights(kind, limit, scale, np.vstack([chosen, -chosen]))
        elif kind is ConstraintKind.CASH_MAX:
            total = self.total
            excess = self._excess(scale, total + self.gross, lambda w: total - w.sum() - limit)
            self._limit(kind, limit, excess, self.cash, np.ones((1, 1)))
        elif kind is ConstraintKind.GROSS_EXPOSURE_MAX:
            self._add_gross(limit, scale)
        elif kind is ConstraintKind.TRACKING_ERROR_MAX:
            self._add_tracking_error(limit, scale)
        elif kind is ConstraintKind.HHI_MAX:
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
        self._limit(ConstraintKind.GROSS_EXPOSURE_MAX, limit, excess, place, np.ones((1, n)))

    def _add_tracking_error(self, limit: float, scale: float) -> None:
        risk, benchmark = (
            require_field(self.market.risk, "covariance"),
            require_field(self.market.benchmark, "benchmark weights"),
        )
        root = CovarianceRoot(risk, self)
        largest = float(np.sqrt(risk.variances.max())) * (self.gross + float(np.abs(benchmark).sum()))
        excess = self._excess(scale, largest, lambda w: np.sqrt(risk.variance(w - benchmark)) - limit)
        coefficients = root.rows(-1.0, 1)
        if excess is not None:
            coefficients.append((excess, -np.ones(1)))
        # The excess makes a soft limit concave in the wrong direction; the goal provides convexity.
        curvature = 0.0 if self.aim.soft else risk.smallest_eigenvalue
        self.cap_norm(
            ConstraintKind.TRACKING_ERROR_MAX, limit, -root.image(benchmark), *coefficients, curvature=curvature
        )

    def _add_concentration(self, limit: float, scale: float) -> None:
        n, label = self.n, ConstraintKind.HHI_MAX
        excess = self._excess(scale, self.gross**2, lambda w: w @ w - limit)
        root = np.sqrt(limit)
        if excess is None:
            self.cap_norm(label, root, np.zeros(n), (self.weights, -np.ones(n), 1), curvature=1.0)
        else:  # w'w <= limit + e, scaled by a² = limit
            slope, rows = (excess, np.full((1, 1), -1.0 / root)), (self.weights, np.full(n, -2.0), 1)
            self.cap_square(label, (2 * root, 0.0), n, slope, rows, curvature=0.0)

    def _add_counts(self, rule: Semicontinuity) -> None:
        """Add the relaxed number of holdings over names whose bounds leave the decision open."""
        on = (self.lower >= rule.on) | (self.upper <= -rule.on)
        free = np.flatnonzero(~on & ((self.upper >= rule.on) | (self.lower <= -rule.on)))
        if not free.size:
            return  # the branch determines the number
        k, pick = len(free), np.eye(self.n)[free]
        counted = self.add_indicators(
            ("counted_floor", "counted_ceiling"),
            np.zeros(k),
            np.ones(k),
            lambda w: (np.abs(w[free]) >= (rule.on + rule.off) / 2).astype(np.float64),
        )
        if self.long_only and rule.least > 0:
            self.at_most("counted", np.zeros(k), (self.weights, -pick), (counted, np.full(k, rule.on)))
        if rule.most < self.n:
            reach = np.full(k, -(float(np.abs(np.concatenate([self.lower[free], self.upper[free]])).max()) - rule.off))
            self.at_most("stub", np.full(k, rule.off), (self.weights, pick), (counted, reach))
            if not self.long_only:
                self.at_most("stub_short", np.full(k, rule.off), (self.weights, -pick), (counted, reach))
        least, most = np.array([float(on.sum() - rule.least)]), np.array([float(rule.most - on.sum())])
        self.at_most("name_count_min", least, (counted, -np.ones((1, k))))
        self.at_most("name_count_max", most, (counted, np.ones((1, k))))

    def _add_squared_trades(self) -> None:
        self.add_squared_distance(self.weights, self.portfolio.weights)
        self.add_squared_distance(self.cash, np.array([self.portfolio.cash]))
        self.objective_curvature = 2.0
