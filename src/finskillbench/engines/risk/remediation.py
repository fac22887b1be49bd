"""Certified cheapest trades that restore a mandate, or minimise its excess within the remaining turnover.

Trades are 0 or at least a ticket, and keep headroom to limits whose values drift (`trading.TradingRules`). A compliant
portfolio needs no trades. Otherwise the answer is the least cost of full compliance. If that exceeds the remaining
monthly turnover, it is the least total relative excess plus cost, which makes the optimum unique.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import Certified, certify
from finskillbench.engines.optimisation.face import broken_cones, solve_by_cones
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.intervals import Intervals, IntervalSearch, intersect, ticket_intervals
from finskillbench.engines.optimisation.uniqueness import prove_unique
from finskillbench.engines.risk.formulation import RemediationAim, RemediationGoal, formulate_remediation, weight_bounds
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE, ConstraintKind, RiskMandate
from finskillbench.engines.risk.monitor import measure_all, total_relative_excess
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, turnover_of
from finskillbench.engines.risk.semicontinuity import SLACK, Semicontinuity, semicontinuity_of
from finskillbench.engines.risk.trading import TradingRules

_RESIDUE = 1e-10
"""Weights and trades of this size are solver rounding."""
MOST_PROGRAMS = 300


@dataclass(frozen=True)
class SolvedProgram:
    """A certified program of a remedy and its aim."""

    aim: RemediationAim
    certified: Certified


@dataclass(frozen=True)
class Remedy:
    """Trades of a remediation, with proofs.

    Attributes
    ----------
    trades : (n,) signed weight changes, exactly 0 if not traded; cash changes by minus their sum.
    weights, cash : after the trades, fractions of NAV.
    turnover : one-way, of these trades alone.
    compliant : True if the whole mandate is kept, with headroom, after the trades.
    value : least cost in per cent of NAV if compliant, else the least total relative excess plus cost.
    stages : solved programs, in order; the last one gives the trades (empty if none was needed).
    """

    trades: Floats
    weights: Floats
    cash: float
    turnover: float
    compliant: bool
    value: float
    stages: tuple[SolvedProgram, ...]

    @property
    def settled(self) -> bool:
        """True if the trades are proved to be uniquely optimal."""
        return bool(self.stages) and self.stages[-1].certified.uniqueness.outcome.proved


def remediate(
    portfolio: Portfolio,
    mandate: RiskMandate,
    market: MarketSnapshot,
    rules: TradingRules,
    *,
    most_programs: int = MOST_PROGRAMS,
) -> Remedy:
    """Minimise the cost of full compliance, or the total excess if the remaining turnover is too small.

    Raises `InfeasibleError` if no portfolio keeps the mandate, or the remaining turnover is too little for
    `monitor.HARD_KINDS`. Raises `UndecidedError` if nothing can be proved or there are too many branches, and
    `InputError` as `formulation.formulate_remediation` or for headroom that exceeds a limit.
    """
    target, left = rules.target(mandate), budget_left(portfolio, mandate)
    if _complies(portfolio, target, market):
        return _remedy(portfolio, portfolio.weights, compliant=True, value=0.0, stages=())
    cap = None if np.isinf(left) else max(left, 0.0)
    over = ()
    if cap is not None:
        least = solve_relaxed(portfolio, target, market, RemediationAim(RemediationGoal.TURNOVER))
        over = (least,) if least.certified.optimality.lower_bound > cap + SLACK else ()
    if over and cap is not None and cap <= SLACK:
        excess = total_excess(portfolio, target, market)
        return _remedy(portfolio, portfolio.weights, compliant=False, value=excess, stages=over)
    goal = RemediationGoal.EXCESS if over else RemediationGoal.COST
    best = solve_with_tickets(
        portfolio, target, market, RemediationAim(goal, rules.costs, cap), rules.ticket, most_programs
    )
    return _remedy(
        portfolio,
        best.certified.weights,
        compliant=goal is RemediationGoal.COST,
        value=best.certified.value,
        stages=(*over, best),
    )


def _complies(portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot) -> bool:
    batch = (portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    return bool((measure_all(*batch, mandate, market)[1] <= COMPLIANCE_TOLERANCE).all())


def budget_left(portfolio: Portfolio, mandate: RiskMandate) -> float:
    """Return the month's remaining one-way turnover: infinite without a limit, negative if exceeded."""
    limit = mandate.limit(ConstraintKind.TURNOVER_MAX_MONTHLY)
    return np.inf if limit is None else limit - portfolio.traded


def total_excess(portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot) -> float:
    """Return the total relative excess V of a portfolio; see `monitor.total_relative_excess`."""
    batch = (portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    values, excess = measure_all(*batch, mandate, market)
    return total_relative_excess(values[0], excess[0], mandate)


def portfolio_after(portfolio: Portfolio, trades: Floats) -> Portfolio:
    """Return the portfolio after (n,) trades, with their turnover added to the month's."""
    cash = portfolio.cash - float(trades.sum())
    return Portfolio(portfolio.weights + trades, cash, portfolio.nav, portfolio.traded + turnover_of(trades))


def nearest(mandate: RiskMandate, market: MarketSnapshot, target: Floats) -> Certified:
    """Certify the compliant portfolio (turnover aside) with least squared distance to (n,) target weights.

    The distance covers names and cash, with target cash of 1 less the weights; it is `value`. Raises `InfeasibleError`
    if no portfolio keeps the mandate, `UndecidedError` if nothing can be proved.
    """
    return solve_with_tickets(
        Portfolio(target, 1.0 - float(target.sum()), 1.0), mandate, market, RemediationAim(RemediationGoal.TRADES)
    ).certified


def _remedy(
    portfolio: Portfolio, weights: Floats, *, compliant: bool, value: float, stages: tuple[SolvedProgram, ...]
) -> Remedy:
    # A full sale gives exactly 0, and unchanged positions are not traded.
    weights = np.where(np.abs(weights) <= _RESIDUE, 0.0, weights)
    trades = np.where(np.abs(weights - portfolio.weights) <= _RESIDUE, 0.0, weights - portfolio.weights)
    weights = np.where(trades == 0.0, portfolio.weights, weights)
    cash = portfolio_after(portfolio, trades).cash
    return Remedy(trades, weights, cash, turnover_of(trades), compliant, value, stages)


def solve_relaxed(
    portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, aim: RemediationAim
) -> SolvedProgram:
    """Certify one convex program, with trades and positions of any size; raises as `certify`."""
    formulation = formulate_remediation(portfolio, mandate, market, aim)
    # A limit that is broken now binds after the least correction; any other may or may not bind.
    cones = broken_cones(formulation.program, formulation.point(portfolio.weights))
    return SolvedProgram(aim, certify(formulation, cones=cones, unique=False))


def solve_with_tickets(
    portfolio: Portfolio,
    mandate: RiskMandate,
    market: MarketSnapshot,
    aim: RemediationAim,
    ticket: float = 0.0,
    most_programs: int = MOST_PROGRAMS,
) -> SolvedProgram:
    """Certify the optimum with minimum tickets, position floors and name counts; raises as `BranchAndBound.search`."""
    search = _Search(portfolio, mandate, market, aim, ticket, most_programs)
    whole = formulate_remediation(portfolio, mandate, market, aim)
    search.cones = broken_cones(whole.program, whole.point(portfolio.weights))
    relaxed = certify(whole, cones=search.cones, unique=False)
    if search.broken(relaxed.weights).any():
        return SolvedProgram(aim, search.minimum(relaxed))
    unique = prove_unique(whole, whole.point(relaxed.weights), relaxed.multipliers)
    return SolvedProgram(aim, replace(relaxed, uniqueness=unique))


def approximate_relaxed(
    portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, aim: RemediationAim
) -> Floats | None:
    """(n,) Unproved solver weights of `solve_relaxed`; None if infeasible."""
    formulation = formulate_remediation(portfolio, mandate, market, aim)
    cones = broken_cones(formulation.program, formulation.point(portfolio.weights))
    found = solve_by_cones(formulation.program, cones)
    return found.x[formulation.weights] if found.status in ("Solved", "AlmostSolved") else None


class _Search(IntervalSearch):
    """Search over names that are kept, traded by at least a ticket, or sold in full, with position floors."""

    def __init__(
        self,
        portfolio: Portfolio,
        mandate: RiskMandate,
        market: MarketSnapshot,
        aim: RemediationAim,
        ticket: float,
        most_programs: int,
    ) -> None:
        n = len(market.tickers)
        self.portfolio, self.mandate, self.market, self.aim = portfolio, mandate, market, aim
        self.rule = semicontinuity_of(mandate, n) or Semicontinuity(0.0, 0.0, 0, n, gap=False)
        super().__init__(self._intervals(ticket), most_programs=most_programs)

    def _intervals(self, ticket: float) -> Intervals:
        ends = zip(*weight_bounds(self.portfolio, self.mandate, soft=self.aim.soft), strict=True)
        return Intervals.of(
            [
                intersect(ticket_intervals(held, ticket), self.rule.allowed(low, high))
                for held, (low, high) in zip(self.portfolio.weights.tolist(), ends, strict=True)
            ]
        )

    def program(self, lower: Floats, upper: Floats) -> Formulation:
        return formulate_remediation(self.portfolio, self.mandate, self.market, self.aim, (lower, upper))

    def broken(self, weights: Floats) -> Floats:
        """Return distances from allowed weights, raised for names that could correct a broken count."""
        return self.intervals.outside(weights) + self.rule.miscounted(weights)

    def possible(self, decisions: Integers) -> bool:
        """Test if the possible and required numbers of holdings fit the count limits."""
        lower, upper = self.intervals.ends(decisions)
        must = (lower >= self.rule.on - SLACK) | (upper <= -self.rule.on + SLACK)
        may = (upper >= self.rule.on - SLACK) | (lower <= -self.rule.on + SLACK)
        return bool(must.sum() <= self.rule.most and may.sum() >= self.rule.least) or not self.rule.on
