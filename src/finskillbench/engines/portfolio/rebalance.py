"""Two-stage rebalancing: optimise the objective, then minimise the cost of a required share of the improvement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import mapping, number, values_from
from finskillbench.engines.optimisation.certified import Certified, find
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.intervals import SLACK, Intervals, IntervalSearch, intersect, ticket_intervals
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal, formulate_portfolio
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem, require_array
from finskillbench.errors import InputError

_SAME = 1e-9
"""Tolerance of equal objective values."""

_ROUGH = 1e-6
"""Smaller trades of an interior point are rounding."""


@dataclass(frozen=True)
class RebalancingRules:
    """Trading costs, minimum trade, and required improvement.

    Attributes
    ----------
    costs : (n,) one-way trading costs, basis points of the traded amount.
    min_trade : minimum trade, fraction of NAV; only sales that close a position may be smaller.
    required_improvement : share of the attainable improvement of the objective, in (0, 1).
    """

    costs: Floats
    min_trade: float
    required_improvement: float

    @classmethod
    def of(cls, data: Mapping[str, Any], problem: PortfolioProblem) -> Self:
        """Read the fields of a task input; raise `InputError` with field and remedy."""
        costs = values_from(mapping(data, "trading_costs_bps"), problem.tickers, "trading_costs_bps")
        least, share = (number(data, name, "the task") for name in ("min_trade", "required_improvement"))
        if (costs < 0).any():
            raise InputError("trading_costs_bps holds a negative cost; give basis points of the amount traded")
        if not (0 <= least < 1 and 0 < share < 1):
            raise InputError("min_trade must be at least 0 and below 1, required_improvement above 0 and below 1")
        return cls(costs, least, share)

    def cost(self, weights: Floats, current: Floats) -> float:
        """Return the trading cost of a move, basis points of NAV."""
        return float(self.costs @ np.abs(weights - current))

    def least_trades(self, weights: Floats, current: Floats, tolerance: float) -> Floats:
        """(n,) Minimum trade of each name: `min_trade`, or a smaller position that is closed."""
        closed = np.abs(weights) <= tolerance
        return np.where(closed, np.minimum(np.abs(current), self.min_trade), self.min_trade)


@dataclass(frozen=True)
class Rebalancing:
    """Both stages, and the trades (n,), signed weight changes that sum to zero.

    `required_value` is the objective required of the second stage; `turnover` is one-way, `cost` in basis points of
    NAV.
    """

    target: Certified
    required_value: float
    cheapest: Certified
    weights: Floats
    trades: Floats
    turnover: float
    cost: float


def rebalance(problem: PortfolioProblem, trading: RebalancingRules, *, most_programs: int = 400) -> Rebalancing:
    """Rebalance from `problem.current`, w0, in two stages.

    Stage 1 finds f*, the least objective f under the limits. Stage 2 minimises Σ costs_i |w_i − w0_i| subject to the
    limits and f(w) <= f(w0) − required_improvement·(f(w0) − f*), with trades of 0 or at least `min_trade`. Raises as
    `optimise` and `IntervalSearch.minimum`, and `InputError` if the current portfolio is optimal or limits count names.
    """
    if problem.limits.min_names is not None or problem.limits.max_names is not None:
        raise InputError("a rebalancing with min_trade does not support min_names and max_names; leave them out")
    current = require_array(problem.current, "current portfolio")
    target = optimise(problem, unique=False)
    value = required_value(problem, target.value, trading)
    best = cheapest(problem, trading, value, most_programs=most_programs)
    trades = best.weights - current
    turnover = float(np.abs(trades).sum() / 2)
    return Rebalancing(target, value, best, best.weights, trades, turnover, trading.cost(best.weights, current))


def required_value(problem: PortfolioProblem, target: float, trading: RebalancingRules) -> float:
    """Return the required objective for a given optimum; raise `InputError` if there is no improvement to gain."""
    start = problem.value(require_array(problem.current, "current portfolio"))
    if not start > target + _SAME:
        raise InputError(
            "the objective of current_portfolio is no worse than the optimum's: no improvement is possible"
        )
    return start - trading.required_improvement * (start - target)


def cheapest(
    problem: PortfolioProblem, trading: RebalancingRules, value: float, *, most_programs: int = 400
) -> Certified:
    """Certify the cheapest admissible trades with an objective of at most `value`; raises as `minimum`."""
    aim = PortfolioAim(PortfolioGoal.COST, objective_cap=value, costs=trading.costs)
    search = _Search(problem, aim, trading.min_trade, most_programs)
    best = search.minimum()
    current = require_array(problem.current, "current portfolio")
    return replace(best, weights=np.where(np.abs(best.weights - current) <= SLACK, current, best.weights))


class _Search(IntervalSearch):
    """Search over names that are kept, traded by at least the minimum, or sold in full."""

    def __init__(self, problem: PortfolioProblem, aim: PortfolioAim, ticket: float, most_programs: int) -> None:
        self.problem, self.aim = problem, aim
        held = require_array(problem.current, "current portfolio").tolist()
        bounds = zip(problem.lower_bounds().tolist(), problem.upper_bounds().tolist(), strict=True)
        names = zip(held, bounds, strict=True)
        allowed = Intervals.of([intersect(ticket_intervals(now, ticket), [bound]) for now, bound in names])
        super().__init__(allowed, most_programs=most_programs)

    def program(self, lower: Floats, upper: Floats) -> Formulation:
        return formulate_portfolio(self.problem, self.aim, bounds=(lower, upper))


def approximate_weights(problem: PortfolioProblem, aim: PortfolioAim) -> Floats:
    """(n,) Unproved solver weights of an aim without a minimum trade; raises as `find`."""
    formulation = formulate_portfolio(problem, aim)
    weights = find(formulation).x[formulation.weights]
    current = require_array(problem.current, "current portfolio")
    return np.where(np.abs(weights - current) < _ROUGH, current, weights)
