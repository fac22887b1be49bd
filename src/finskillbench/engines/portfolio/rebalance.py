"""Rebalance at the least trading cost: the best objective first, then the cheapest trades that gain enough of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import mapping, number, values_from
from finskillbench.engines.optimisation.certified import Certified, find
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.intervals import SLACK, Intervals, IntervalSearch, common, ticket_intervals
from finskillbench.engines.portfolio.formulation import Aim, Goal, formulate
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem, required
from finskillbench.errors import InputError

_SAME = 1e-9
"""Two values of the objective this close are the same."""

_ROUGH = 1e-6
"""A trade of an interior point below this is rounding."""


@dataclass(frozen=True)
class TradingTerms:
    """What trades cost, how small they may be, and what they have to achieve.

    Attributes
    ----------
    costs : (n,) one-way trading cost of each name, basis points of the amount traded.
    min_trade : least size of a trade, fraction of NAV; only a sale that closes a position may be smaller.
    required_improvement : share of the attainable improvement of the objective, above 0 and below 1.
    """

    costs: Floats
    min_trade: float
    required_improvement: float

    @classmethod
    def of(cls, data: Mapping[str, Any], problem: PortfolioProblem) -> Self:
        """Read the terms of a task input.

        Raises
        ------
        InputError : one line naming the field and the remedy.
        """
        costs = values_from(mapping(data, "trading_costs_bps"), problem.tickers, "trading_costs_bps")
        least, share = (number(data, name, "the task") for name in ("min_trade", "required_improvement"))
        if (costs < 0).any():
            raise InputError("trading_costs_bps holds a negative cost; give basis points of the amount traded")
        if not (0 <= least < 1 and 0 < share < 1):
            raise InputError("min_trade must be a fraction of NAV from 0, required_improvement lie between 0 and 1")
        return cls(costs, least, share)

    def cost(self, weights: Floats, current: Floats) -> float:
        """Trading cost of a move, basis points of NAV."""
        return float(self.costs @ np.abs(weights - current))

    def least_trades(self, weights: Floats, current: Floats, tolerance: float) -> Floats:
        """(n,) the least size of the trade in each name: `min_trade`, or a smaller position that is closed."""
        closed = np.abs(weights) <= tolerance
        return np.where(closed, np.minimum(np.abs(current), self.min_trade), self.min_trade)


@dataclass(frozen=True)
class Rebalancing:
    """Both stages and the trades (n,), signed changes of weight that sum to zero.

    `required_value` is the objective that the second stage has to reach; `turnover` is one-way, `cost` in basis points
    of NAV.
    """

    target: Certified
    required_value: float
    cheapest: Certified
    weights: Floats
    trades: Floats
    turnover: float
    cost: float


def rebalance(problem: PortfolioProblem, terms: TradingTerms, *, most_programs: int = 400) -> Rebalancing:
    """Two-stage rebalancing from `problem.current`, w0.

    Stage 1 finds f*, the least objective f under the limits. Stage 2 minimises Σ costs_i |w_i − w0_i| over the
    portfolios within the limits with f(w) <= f(w0) − required_improvement·(f(w0) − f*), each trade 0 or at least
    `min_trade`.

    Raises
    ------
    InfeasibleError, UndecidedError : as `optimise` and `IntervalSearch.minimum`.
    InputError : the current portfolio is as good as the optimum, or the limits count names.
    """
    if problem.limits.min_names is not None or problem.limits.max_names is not None:
        raise InputError("min_names and max_names are no limits of a rebalancing with a minimum ticket; leave them out")
    current = required(problem.current, "current portfolio")
    target = optimise(problem, unique=False)
    value = required_value(problem, target.value, terms)
    best = cheapest(problem, terms, value, most_programs=most_programs)
    trades = best.weights - current
    turnover = float(np.abs(trades).sum() / 2)
    return Rebalancing(target, value, best, best.weights, trades, turnover, terms.cost(best.weights, current))


def required_value(problem: PortfolioProblem, target: float, terms: TradingTerms) -> float:
    """The objective that has to be reached, given its least value under the limits.

    Raises
    ------
    InputError : the current portfolio is as good as that, since it breaks a limit or is the optimum.
    """
    start = problem.value(required(problem.current, "current portfolio"))
    if not start > target + _SAME:
        raise InputError("the objective of current_portfolio is no worse than the optimum's: nothing is to be gained")
    return start - terms.required_improvement * (start - target)


def cheapest(problem: PortfolioProblem, terms: TradingTerms, value: float, *, most_programs: int = 400) -> Certified:
    """The cheapest trades of at least the minimum ticket to an objective of at most `value`.

    Raises
    ------
    InfeasibleError, UndecidedError : as `IntervalSearch.minimum`.
    """
    aim = Aim(Goal.COST, objective_cap=value, costs=terms.costs)
    search = _Search(problem, aim, terms.min_trade, most_programs)
    best = search.minimum()
    current = required(problem.current, "current portfolio")
    return replace(best, weights=np.where(np.abs(best.weights - current) <= SLACK, current, best.weights))


class _Search(IntervalSearch):
    """Each name is left alone, traded by the minimum at least, or sold in full."""

    def __init__(self, problem: PortfolioProblem, aim: Aim, ticket: float, most_programs: int) -> None:
        self.problem, self.aim = problem, aim
        held = required(problem.current, "current portfolio").tolist()
        bounds = zip(problem.lower_bounds().tolist(), problem.upper_bounds().tolist(), strict=True)
        names = zip(held, bounds, strict=True)
        allowed = Intervals.of([common(ticket_intervals(now, ticket), [bound]) for now, bound in names])
        super().__init__(allowed, most_programs=most_programs)

    def program(self, lower: Floats, upper: Floats) -> Formulation:
        """The least cost of a branch."""
        return formulate(self.problem, self.aim, bounds=(lower, upper))


def estimate(problem: PortfolioProblem, aim: Aim) -> Floats:
    """(n,) weights that reach an aim without a minimum trade, as the solver leaves them: nothing is proved of them.

    Raises
    ------
    InfeasibleError, UndecidedError : as `find`.
    """
    formulation = formulate(problem, aim)
    weights = find(formulation).x[formulation.weights]
    current = required(problem.current, "current portfolio")
    return np.where(np.abs(weights - current) < _ROUGH, current, weights)
