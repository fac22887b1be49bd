"""The cheapest trades that bring a portfolio back into its mandate, or as near to it as the turnover left allows.

Trades are 0 or at least a ticket, and leave headroom to every limit that values drift over (`trading.Terms`). Three
kinds of answers, each certified: no trades for a portfolio that complies; the least cost of trades into the whole
mandate; and where these take more than what is left of the month's turnover, the least total relative excess within it,
to which the cost is added, so that no two lists are equally good.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import Certified, certify
from finskillbench.engines.optimisation.face import broken_cones, solve_by_cones
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.intervals import Intervals, IntervalSearch, common, ticket_intervals
from finskillbench.engines.optimisation.uniqueness import prove_unique
from finskillbench.engines.risk.formulation import Aim, Goal, formulate, weight_bounds
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE, Kind, Mandate
from finskillbench.engines.risk.monitor import measure_all, relative_excess
from finskillbench.engines.risk.portfolio import Market, Portfolio, turnover_of
from finskillbench.engines.risk.semicontinuity import SLACK, Semicontinuity, semicontinuity_of
from finskillbench.engines.risk.trading import Terms

_RESIDUE = 1e-10
"""Weights and trades of this size are rounding of the solver."""
MOST_PROGRAMS = 300


@dataclass(frozen=True)
class Stage:
    """One certified program of a remedy: what it aimed at, and its result."""

    aim: Aim
    certified: Certified


@dataclass(frozen=True)
class Remedy:
    """The trades of a remediation, and its proofs.

    Attributes
    ----------
    trades : (n,) signed changes of weight, exactly 0 where nothing is traded; cash changes by minus their sum.
    weights, cash : after the trades, fractions of NAV.
    turnover : one-way, of these trades alone.
    compliant : whether the whole mandate is kept, with its headroom, after the trades.
    value : least cost in per cent of NAV where compliant, else the least total relative excess plus cost.
    stages : the programs solved, in their order; the last one gives the trades (empty where none was needed).
    """

    trades: Floats
    weights: Floats
    cash: float
    turnover: float
    compliant: bool
    value: float
    stages: tuple[Stage, ...]

    @property
    def settled(self) -> bool:
        """Whether the trades are proved to be the only best ones."""
        return bool(self.stages) and self.stages[-1].certified.uniqueness.outcome.proved


def remediate(
    portfolio: Portfolio, mandate: Mandate, market: Market, terms: Terms, *, most_programs: int = MOST_PROGRAMS
) -> Remedy:
    """Minimise the cost subject to the whole mandate; where the turnover left does not suffice, the total excess.

    Raises
    ------
    InfeasibleError : no portfolio keeps the mandate whatever is traded; or the turnover left is too little even for
        the limits that are kept in any case (`monitor.HARD_KINDS`).
    UndecidedError : nothing can be proved, or the branches on names are too many.
    InputError : as `formulation.formulate`, or headroom that leaves nothing of a limit.
    """
    target, left = terms.target(mandate), budget_left(portfolio, mandate)
    if _complies(portfolio, target, market):
        return _remedy(portfolio, portfolio.weights, compliant=True, value=0.0, stages=())
    cap = None if np.isinf(left) else max(left, 0.0)
    over = ()
    if cap is not None:
        least = solve_relaxed(portfolio, target, market, Aim(Goal.TURNOVER))
        over = (least,) if least.certified.optimality.lower_bound > cap + SLACK else ()
    if over and cap is not None and cap <= SLACK:
        excess = total_excess(portfolio, target, market)
        return _remedy(portfolio, portfolio.weights, compliant=False, value=excess, stages=over)
    goal = Goal.EXCESS if over else Goal.COST
    best = solve_stage(portfolio, target, market, Aim(goal, terms.costs, cap), terms.ticket, most_programs)
    return _remedy(
        portfolio,
        best.certified.weights,
        compliant=goal is Goal.COST,
        value=best.certified.value,
        stages=(*over, best),
    )


def _complies(portfolio: Portfolio, mandate: Mandate, market: Market) -> bool:
    batch = (portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    return bool((measure_all(*batch, mandate, market)[1] <= COMPLIANCE_TOLERANCE).all())


def budget_left(portfolio: Portfolio, mandate: Mandate) -> float:
    """One-way turnover left in the month: infinite without a limit, negative where too much is traded already."""
    limit = mandate.limit(Kind.TURNOVER_MAX_MONTHLY)
    return np.inf if limit is None else limit - portfolio.traded


def total_excess(portfolio: Portfolio, mandate: Mandate, market: Market) -> float:
    """Total relative excess V of a portfolio as it stands; see `monitor.relative_excess`."""
    batch = (portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    values, excess = measure_all(*batch, mandate, market)
    return relative_excess(values[0], excess[0], mandate)


def after(portfolio: Portfolio, trades: Floats) -> Portfolio:
    """The portfolio after (n,) trades, with their turnover added to the month's."""
    cash = portfolio.cash - float(trades.sum())
    return Portfolio(portfolio.weights + trades, cash, portfolio.nav, portfolio.traded + turnover_of(trades))


def nearest(mandate: Mandate, market: Market, target: Floats) -> Certified:
    """The portfolio inside the mandate (turnover aside) with least squared distance to (n,) target weights.

    The distance is that of names and cash, where the target's cash is what its weights leave of 1; `value` is it.

    Raises
    ------
    InfeasibleError : no portfolio keeps the mandate.
    UndecidedError : nothing can be proved.
    """
    return solve_stage(Portfolio(target, 1.0 - float(target.sum()), 1.0), mandate, market, Aim(Goal.TRADES)).certified


def _remedy(
    portfolio: Portfolio, weights: Floats, *, compliant: bool, value: float, stages: tuple[Stage, ...]
) -> Remedy:
    # What is sold off is 0, not the rounding of w0 − w0, and what stays is not traded.
    weights = np.where(np.abs(weights) <= _RESIDUE, 0.0, weights)
    trades = np.where(np.abs(weights - portfolio.weights) <= _RESIDUE, 0.0, weights - portfolio.weights)
    weights = np.where(trades == 0.0, portfolio.weights, weights)
    cash = after(portfolio, trades).cash
    return Remedy(trades, weights, cash, turnover_of(trades), compliant, value, stages)


def solve_relaxed(portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim) -> Stage:
    """One convex program: trades of any size, positions as small as they like.

    Raises
    ------
    InfeasibleError, UndecidedError : as `certify`.
    """
    formulation = formulate(portfolio, mandate, market, aim)
    # A limit that is broken now binds after the least that is done about it; of the others none may, or any.
    cones = broken_cones(formulation.program, formulation.point(portfolio.weights))
    return Stage(aim, certify(formulation, cones=cones, unique=False))


def solve_stage(
    portfolio: Portfolio,
    mandate: Mandate,
    market: Market,
    aim: Aim,
    ticket: float = 0.0,
    most_programs: int = MOST_PROGRAMS,
) -> Stage:
    """The proved optimum over trades of at least the ticket that keep the limits on small positions and on counts.

    Raises
    ------
    InfeasibleError, UndecidedError : as `BranchAndBound.search`.
    """
    search = _Search(portfolio, mandate, market, aim, ticket, most_programs)
    whole = formulate(portfolio, mandate, market, aim)
    search.cones = broken_cones(whole.program, whole.point(portfolio.weights))
    relaxed = certify(whole, cones=search.cones, unique=False)
    if search.broken(relaxed.weights).any():
        return Stage(aim, search.minimum(relaxed))
    unique = prove_unique(whole, whole.point(relaxed.weights), relaxed.multipliers)
    return Stage(aim, replace(relaxed, uniqueness=unique))


def estimate(portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim) -> Floats | None:
    """(n,) the weights of `solve_relaxed`, as the solver leaves them and not proved; None where nothing is feasible."""
    formulation = formulate(portfolio, mandate, market, aim)
    cones = broken_cones(formulation.program, formulation.point(portfolio.weights))
    found = solve_by_cones(formulation.program, cones)
    return found.x[formulation.weights] if found.status in ("Solved", "AlmostSolved") else None


class _Search(IntervalSearch):
    """Each name is left alone, traded by at least a ticket, sold in full, and held by enough or not at all."""

    def __init__(
        self, portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, ticket: float, most_programs: int
    ) -> None:
        n = len(market.tickers)
        self.portfolio, self.mandate, self.market, self.aim = portfolio, mandate, market, aim
        self.rule = semicontinuity_of(mandate, n) or Semicontinuity(0.0, 0.0, 0, n, gap=False)
        super().__init__(self._intervals(ticket), most_programs=most_programs)

    def _intervals(self, ticket: float) -> Intervals:
        ends = zip(*weight_bounds(self.portfolio, self.mandate, soft=self.aim.soft), strict=True)
        return Intervals.of(
            [
                common(ticket_intervals(held, ticket), self.rule.allowed(low, high))
                for held, (low, high) in zip(self.portfolio.weights.tolist(), ends, strict=True)
            ]
        )

    def program(self, lower: Floats, upper: Floats) -> Formulation:
        """The convex program of a branch."""
        return formulate(self.portfolio, self.mandate, self.market, self.aim, (lower, upper))

    def broken(self, weights: Floats) -> Floats:
        """Distances from what is allowed; where too many or too few are held, more of those that could change that."""
        return self.intervals.outside(weights) + self.rule.miscounted(weights)

    def possible(self, decisions: Integers) -> bool:
        """Whether the numbers of names that may be held, and that must be, fit the limits on counts."""
        lower, upper = self.intervals.ends(decisions)
        must = (lower >= self.rule.on - SLACK) | (upper <= -self.rule.on + SLACK)
        may = (upper >= self.rule.on - SLACK) | (lower <= -self.rule.on + SLACK)
        return bool(must.sum() <= self.rule.most and may.sum() >= self.rule.least) or not self.rule.on
