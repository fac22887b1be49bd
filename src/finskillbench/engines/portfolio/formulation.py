"""Conic formulation of a portfolio problem, with one named block per limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.engines.optimisation.branching import Decision
from finskillbench.engines.optimisation.formulation import CovarianceRoot, Formulation, FormulationBuilder
from finskillbench.engines.optimisation.program import Coefficients, Cone
from finskillbench.engines.portfolio.measures import check_limits, portfolio_sector_weights
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem, require_array


class PortfolioGoal(StrEnum):
    """Minimised quantity: the problem's objective, one-way turnover, trading costs, a distance, or a limit."""

    OBJECTIVE = "objective"
    TURNOVER = "turnover"
    COST = "cost"
    DISTANCE = "distance"
    LIMIT = "limit"


@dataclass(frozen=True)
class PortfolioAim:
    """A goal with its parameters.

    TURNOVER refers to `problem.current` and replaces the turnover limit. COST minimises costs'|w − current|, with
    `costs` (n,). DISTANCE minimises ||w − anchor||². LIMIT minimises the attainable value of `limit`: max_weight,
    max_tracking_error, factor_neutrality (its tolerance) or a sector. `objective_cap` adds `problem.value(w) <=
    objective_cap` to any goal.
    """

    goal: PortfolioGoal = PortfolioGoal.OBJECTIVE
    objective_cap: float | None = None
    anchor: Floats | None = None
    costs: Floats | None = None
    limit: str = ""


def formulate_portfolio(
    problem: PortfolioProblem,
    aim: PortfolioAim,
    *,
    decisions: Integers | None = None,
    holdings: Booleans | None = None,
    bounds: tuple[Floats, Floats] | None = None,
) -> Formulation:
    """Build the program.

    Parameters
    ----------
    decisions : (n,) holding decisions; name counts are relaxed by indicators in [0, 1]. None omits the counts.
    holdings : (n,) mask of names that must be held.
    bounds : (n,) least and greatest weights, instead of those of the limits.
    """
    lower, upper = bounds or (problem.lower_bounds(), problem.upper_bounds())
    if aim.limit == "max_weight":
        upper = replace(problem, limits=replace(problem.limits, max_weight=None)).upper_bounds()
    if holdings is not None:
        lower = np.where(holdings, np.maximum(lower, problem.limits.least_held), lower)
    return _PortfolioBuilder(problem, aim, lower, upper).state(decisions)


class _PortfolioBuilder(FormulationBuilder):
    def __init__(self, problem: PortfolioProblem, aim: PortfolioAim, lower: Floats, upper: Floats) -> None:
        # A fully invested portfolio has Σ|w| = 1 + 2·(short sales).
        super().__init__(lower, upper, 1.0 + 2.0 * float(np.maximum(-lower, 0.0).sum()))
        self.problem, self.aim = problem, aim
        self.root = CovarianceRoot(problem.risk, self)
        self.level = self._level() if aim.goal is PortfolioGoal.LIMIT else None

    def state(self, decisions: Integers | None) -> Formulation:
        n, limits, aim = self.n, self.problem.limits, self.aim
        self._add_goal(aim)
        self.constrain("fully_invested", Cone.ZERO, np.ones(1), (self.weights, np.ones((1, n))))
        # In a long-only budget no weight exceeds 1; omitting these rows saves a third without a cap.
        if aim.limit == "max_weight":
            self.bound_weights(np.flatnonzero(self.upper < 0.0))
            self._limit("upper_bound", self.upper, self.upper >= 1.0, (self.weights, np.ones(n)))
        else:
            self.bound_weights(np.flatnonzero(self.upper < 1.0) if (self.lower >= 0).all() else np.arange(n))
        if limits.sector_limits:
            sectors = np.array(list(limits.sector_limits))
            member = (sectors[:, None] == np.array(self.problem.sectors)[None, :]).astype(np.float64)
            caps = np.array(list(limits.sector_limits.values()))
            self._limit("sector_limits", caps, sectors == aim.limit, (self.weights, member))
        if aim.goal in (PortfolioGoal.TURNOVER, PortfolioGoal.COST) or limits.max_turnover is not None:
            self._add_trades(aim)
        if limits.max_tracking_error is not None:
            offset = self.root.image(require_array(self.problem.benchmark, "benchmark weights"))
            smallest = self.problem.risk.smallest_eigenvalue
            rows, most = self.root.rows(-1.0, 1), limits.max_tracking_error
            if self.level is not None and aim.limit == "max_tracking_error":
                rows, most = [*rows, (self.level, -np.ones((1, 1)))], 0.0
            self.cap_norm("max_tracking_error", most, -offset, *rows, curvature=smallest)
        if limits.neutral_factors:
            exposures = require_array(self.problem.exposures, "factor exposures").T
            centre = exposures @ require_array(self.problem.benchmark, "benchmark weights")
            tolerance = np.full(len(centre), limits.neutrality_tolerance)
            free = np.full(len(centre), aim.limit == "factor_neutrality")
            for label, sign in (("factor_neutrality_above", 1.0), ("factor_neutrality_below", -1.0)):
                self._limit(label, tolerance, free, (self.weights, sign * exposures), shift=sign * centre)
        if decisions is not None:
            self._add_name_counts(decisions)
        if aim.objective_cap is not None:
            self._add_objective_cap(aim.objective_cap)
        return self.formulation()

    def _limit(self, label: str, caps: Floats, free: Booleans, term: Coefficients, shift: Floats | float = 0.0) -> None:
        """Add a limit's rows; `free` ones are bounded by the variable that LIMIT minimises."""
        if self.level is None or not free.any():
            self.at_most(label, caps + shift, term)
        else:
            level = (self.level, -free.astype(np.float64)[:, None])
            self.at_most(label, np.where(free, 0.0, caps) + shift, term, level)

    def _level(self) -> slice[int, int, Any]:
        """Add the variable that LIMIT minimises, with its upper bound within the weight bounds."""
        problem, name = self.problem, self.aim.limit
        if name == "max_tracking_error":
            most = (1 + self.gross) * float(np.sqrt(problem.risk.variances.max()))
        elif name == "factor_neutrality":
            most = (1 + self.gross) * float(np.abs(require_array(problem.exposures, "factor exposures")).max())
        else:
            most = self.gross
        level = self.auxiliary(np.array([most]), lambda weights: np.array([level_of(problem, name, weights)]))
        self.add_linear(level, np.ones(1))
        return level

    def _add_goal(self, aim: PortfolioAim) -> None:
        problem = self.problem
        if aim.goal is PortfolioGoal.DISTANCE:
            self.add_squared_distance(self.weights, require_array(aim.anchor, "anchor"))
            self.objective_curvature = 2.0
        if aim.goal is not PortfolioGoal.OBJECTIVE:
            return
        smallest = problem.risk.smallest_eigenvalue
        if problem.objective in (Objective.MAX_RETURN, Objective.MAX_SHARPE):
            self.add_linear(self.weights, -problem.mean)
        if problem.objective is Objective.MAX_SHARPE:
            self.root.add_variance(problem.risk_aversion)
            self.objective_curvature = 2 * problem.risk_aversion * smallest
        elif problem.objective is Objective.MIN_VARIANCE:
            self.root.add_variance(1.0)
            self.objective_curvature = 2 * smallest
        elif problem.objective is Objective.RISK_PARITY:
            self.root.add_variance(0.5)
            self.add_squared_distance(self.weights, problem.inverse_variance)
            self.objective_curvature = 2.0 + smallest

    def _add_trades(self, aim: PortfolioAim) -> None:
        current = require_array(self.problem.current, "current portfolio")
        # Optimal trades need not exceed |w − w0|.
        bounds = np.maximum(np.abs(self.lower - current), np.abs(self.upper - current))
        trades = self.add_trades(self.weights, current, bounds, lambda weights: np.abs(weights - current))
        if aim.goal is PortfolioGoal.COST:
            self.add_linear(trades, require_array(aim.costs, "trading costs"))
        if aim.goal is PortfolioGoal.TURNOVER:
            self.add_turnover(trades)
        elif self.problem.limits.max_turnover is not None:
            self.cap_turnover("max_turnover", trades, self.problem.limits.max_turnover)

    def _add_name_counts(self, decisions: Integers) -> None:
        """Add indicators δ: w >= lower + (held − lower)·δ, w <= stub + (upper − stub)·δ, Σδ in the counts."""
        n, weights, limits = self.n, self.weights, self.problem.limits
        held, stub, apart = limits.least_held, limits.most_not_held, limits.min_position is not None
        floor, ceiling = decisions == Decision.LONG, decisions != Decision.OFF
        indicators = self.add_indicators(
            ("indicator_floor", "indicator_ceiling"),
            floor.astype(np.float64),
            ceiling.astype(np.float64),
            lambda weights: (weights >= held).astype(np.float64),
        )
        if limits.min_names is not None or apart:
            lift = np.maximum(held - self.lower, 0.0)
            self.at_most("holding", -self.lower, (weights, -np.ones(n)), (indicators, lift))
        if limits.min_names is not None:
            self.at_most("min_names", np.array([-float(limits.min_names)]), (indicators, -np.ones((1, n))))
        most = n if limits.max_names is None else limits.max_names
        if most < n or apart:
            reach = np.maximum(self.upper - stub, 0.0)
            self.at_most("stub", np.full(n, stub), (weights, np.ones(n)), (indicators, -reach))
        if most < n:
            self.at_most("max_names", np.array([float(most)]), (indicators, np.ones((1, n))))

    def _add_objective_cap(self, cap: float) -> None:
        problem, root, label, n = self.problem, self.root, "objective_cap", self.n
        smallest = problem.risk.smallest_eigenvalue
        if problem.objective is Objective.MAX_RETURN:
            self.at_most(label, np.array([cap]), (self.weights, -problem.mean[None, :]))
        elif problem.objective is Objective.MIN_VARIANCE:
            self.cap_norm(label, np.sqrt(cap), np.zeros(root.count), *root.rows(-1.0, 1), curvature=smallest)
        elif problem.objective is Objective.RISK_PARITY:
            centre = np.concatenate([-problem.inverse_variance, np.zeros(root.count)])
            rows = (self.weights, -np.ones(n), 1), *root.rows(-np.sqrt(0.5), 1 + n)
            self.cap_norm(label, np.sqrt(cap), centre, *rows, curvature=1.0 + 0.5 * smallest)
        else:  # λ w'Σw <= cap + μ'w
            scale = 0.1
            rows = root.rows(-2 * np.sqrt(problem.risk_aversion), 1)
            self.cap_square(
                label,
                (cap / scale + scale, cap / scale - scale),
                root.count,
                (self.weights, -problem.mean[None, :] / scale),
                *rows,
                curvature=4 * problem.risk_aversion * smallest,
            )


def level_of(problem: PortfolioProblem, limit: str, weights: Floats) -> float:
    """Return the measured value of a limit of `PortfolioGoal.LIMIT`, or of turnover."""
    if limit in problem.limits.sector_limits:
        return portfolio_sector_weights(weights, problem.sectors)[limit]
    return check_limits(problem, weights)[limit].value
