"""From a portfolio problem to a conic program: one block for each limit, named after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench.engines.optimisation.program import Cone, ConicProgram, ProgramBuilder, Term
from finskillbench.engines.portfolio.problem import HOLDING_THRESHOLD, STUB, Objective, PortfolioProblem, required
from finskillbench.engines.statistics.risk_model import RiskModel


class Goal(StrEnum):
    """What the program minimises: the problem's objective, one-way turnover, or the distance to an anchor."""

    OBJECTIVE = "objective"
    TURNOVER = "turnover"
    DISTANCE = "distance"


@dataclass(frozen=True)
class Aim:
    """A goal with what belongs to it.

    TURNOVER refers to `problem.current` and replaces the cap on it; DISTANCE minimises ||w − anchor||²;
    `objective_cap` adds the constraint `problem.value(w) <= objective_cap` to any goal.
    """

    goal: Goal = Goal.OBJECTIVE
    objective_cap: float | None = None
    anchor: Floats | None = None


@dataclass(frozen=True)
class NameCounts:
    """Branching decisions on who is a holding: (n,) masks of names forced in and forced out."""

    forced_in: Booleans
    forced_out: Booleans


@dataclass(frozen=True)
class Formulation:
    """A conic program with what is needed to read it back.

    `curvature` maps a second-order block to a lower bound on the curvature, in the weights, of ½(||s1||² − s0²);
    `objective_curvature` is the same of the objective. Both feed the uniqueness proof.
    """

    program: ConicProgram
    weights: slice
    indicators: slice | None
    objective_curvature: float
    curvature: dict[str, float] = field(default_factory=dict)


def formulate(
    problem: PortfolioProblem,
    aim: Aim,
    *,
    names: NameCounts | None = None,
    holdings: Booleans | None = None,
) -> Formulation:
    """Build the program.

    Parameters
    ----------
    names : relaxes the name counts by indicators in [0, 1], with these decisions fixed; None leaves the counts out.
    holdings : (n,) mask of names whose weight must be at least the holding threshold.
    """
    builder = ProgramBuilder()
    lower, upper = problem.lower_bounds(), problem.upper_bounds()
    if holdings is not None:
        lower = np.where(holdings, np.maximum(lower, HOLDING_THRESHOLD), lower)
    weights = builder.variables(np.maximum(np.abs(lower), np.abs(upper)))
    # A fully invested portfolio has Σ|w| = 1 + 2·(short sales).
    gross = 1.0 + 2.0 * float(np.maximum(-lower, 0.0).sum())
    root = Root(problem.risk, builder, weights, gross)
    curvature: dict[str, float] = {}

    objective_curvature = _add_goal(problem, aim, builder, weights, root)
    n = problem.size
    builder.constrain("fully_invested", Cone.ZERO, np.ones(1), (weights, np.ones((1, n))))
    builder.constrain("lower_bound", Cone.NONNEGATIVE, -lower, (weights, -np.ones(n)))
    # Of a long-only budget no weight exceeds 1: a third of the rows of a problem without a cap.
    capped = np.flatnonzero(upper < 1.0) if (lower >= 0).all() else np.arange(n)
    if capped.size == n:
        builder.constrain("upper_bound", Cone.NONNEGATIVE, upper, (weights, np.ones(n)))
    elif capped.size:
        builder.constrain("upper_bound", Cone.NONNEGATIVE, upper[capped], (weights, np.eye(n)[capped]))
    _add_sectors(problem, builder, weights)
    if aim.goal is Goal.TURNOVER or problem.limits.max_turnover is not None:
        _add_trades(problem, aim.goal, builder, weights)
    if problem.limits.max_tracking_error is not None:
        offset = root.image(required(problem.benchmark, "benchmark weights"))
        head = np.array([problem.limits.max_tracking_error])
        builder.constrain("max_tracking_error", Cone.SECOND_ORDER, np.concatenate([head, -offset]), *root.rows(-1.0, 1))
        curvature["max_tracking_error"] = problem.risk.smallest_eigenvalue
    _add_neutrality(problem, builder, weights)
    indicators = _add_name_counts(problem, builder, weights, lower, upper, names) if names is not None else None
    if aim.objective_cap is not None:
        _add_objective_cap(problem, aim.objective_cap, builder, weights, root, curvature)
    return Formulation(builder.build(), weights, indicators, objective_curvature, curvature)


class Root:
    """R with Σ = R'R, applied to the weights: dense below n rows, through k factor variables above.

    `rows(scale, skip)` gives the terms of a block whose rows, after `skip` head rows, are the `count` rows scale·R w;
    `factors` are the factor variables, or None where there are none; `gross` is the most that Σ|w| can be.
    """

    def __init__(self, risk: RiskModel, builder: ProgramBuilder, weights: slice, gross: float) -> None:
        self._risk = risk
        self._weights = weights
        self.factors: slice | None = None
        self.count = self._risk.root.shape[0]
        if not self._risk.is_dense:
            k = self.count
            self.count += self._risk.size
            # |F w| <= max|F| Σ|w|
            self.factors = builder.variables(np.abs(self._risk.root).max(axis=1) * gross)
            builder.constrain(
                "factor_exposure", Cone.ZERO, np.zeros(k), (weights, self._risk.root), (self.factors, -np.ones(k))
            )

    def add_variance(self, builder: ProgramBuilder, scale: float) -> None:
        """Add scale·w'Σw to the objective."""
        if self.factors is None:
            builder.add_quadratic(self._weights, 2 * scale * self._risk.matrix)
        else:
            builder.add_quadratic(self.factors, np.full(self._risk.root.shape[0], 2 * scale))
            builder.add_quadratic(self._weights, 2 * scale * self._risk.diagonal)

    def image(self, weights: Floats) -> Floats:
        """R w."""
        exposure = self._risk.root @ weights
        return exposure if self.factors is None else np.concatenate([exposure, np.sqrt(self._risk.diagonal) * weights])

    def rows(self, scale: float, skip: int) -> list[Term]:
        """Terms whose rows are `skip` zeros, then scale·R w."""
        if self.factors is None:
            return [(self._weights, scale * self._risk.root, skip)]
        k = self._risk.root.shape[0]
        specific = scale * np.sqrt(self._risk.diagonal)
        return [(self.factors, np.full(k, scale), skip), (self._weights, specific, skip + k)]


def _add_goal(problem: PortfolioProblem, aim: Aim, builder: ProgramBuilder, weights: slice, root: Root) -> float:
    """Add the objective; returns a lower bound on its curvature in the weights."""
    n = problem.size
    if aim.goal is Goal.TURNOVER:
        return 0.0
    if aim.goal is Goal.DISTANCE:
        builder.add_quadratic(weights, np.full(n, 2.0))
        anchor = required(aim.anchor, "anchor")
        builder.add_linear(weights, -2 * anchor)
        builder.constant += float(anchor @ anchor)
        return 2.0
    smallest = problem.risk.smallest_eigenvalue
    if problem.objective is Objective.MAX_RETURN:
        builder.add_linear(weights, -problem.mean)
        return 0.0
    if problem.objective is Objective.MIN_VARIANCE:
        root.add_variance(builder, 1.0)
        return 2 * smallest
    if problem.objective is Objective.MAX_SHARPE:
        root.add_variance(builder, problem.risk_aversion)
        builder.add_linear(weights, -problem.mean)
        return 2 * problem.risk_aversion * smallest
    root.add_variance(builder, 0.5)
    builder.add_quadratic(weights, np.full(n, 2.0))
    anchor = problem.inverse_variance
    builder.add_linear(weights, -2 * anchor)
    builder.constant += float(anchor @ anchor)
    return 2.0 + smallest


def _add_sectors(problem: PortfolioProblem, builder: ProgramBuilder, weights: slice) -> None:
    caps = problem.limits.sector_limits
    if not caps:
        return
    member = (np.array(list(caps))[:, None] == np.array(problem.sectors)[None, :]).astype(float)
    builder.constrain("sector_limits", Cone.NONNEGATIVE, np.array(list(caps.values())), (weights, member))


def _add_trades(problem: PortfolioProblem, goal: Goal, builder: ProgramBuilder, weights: slice) -> None:
    """Absolute trades u >= |w − w0|, with their half sum minimised or capped."""
    current = required(problem.current, "current portfolio")
    n = problem.size
    # A trade need not exceed |w − w0|: lowering it to that keeps every limit and does not raise the goal.
    lower, upper = problem.lower_bounds(), problem.upper_bounds()
    trades = builder.variables(np.maximum(np.abs(lower - current), np.abs(upper - current)))
    builder.constrain("buys", Cone.NONNEGATIVE, current, (weights, np.ones(n)), (trades, -np.ones(n)))
    builder.constrain("sells", Cone.NONNEGATIVE, -current, (weights, -np.ones(n)), (trades, -np.ones(n)))
    if goal is Goal.TURNOVER:
        builder.add_linear(trades, np.full(n, 0.5))
    else:
        cap = np.array([problem.limits.max_turnover], dtype=float)
        builder.constrain("max_turnover", Cone.NONNEGATIVE, cap, (trades, np.full((1, n), 0.5)))


def _add_neutrality(problem: PortfolioProblem, builder: ProgramBuilder, weights: slice) -> None:
    if not problem.limits.neutral_factors:
        return
    exposures = required(problem.exposures, "factor exposures").T
    centre = exposures @ required(problem.benchmark, "benchmark weights")
    tolerance = problem.limits.neutrality_tolerance
    builder.constrain("factor_neutrality_above", Cone.NONNEGATIVE, tolerance + centre, (weights, exposures))
    builder.constrain("factor_neutrality_below", Cone.NONNEGATIVE, tolerance - centre, (weights, -exposures))


def _add_name_counts(
    problem: PortfolioProblem, builder: ProgramBuilder, weights: slice, lower: Floats, upper: Floats, names: NameCounts
) -> slice:
    """Indicators δ in [0, 1]: w >= lower + (threshold − lower)·δ, w <= stub + (upper − stub)·δ, Σδ in the counts."""
    n = problem.size
    least, most = problem.limits.min_names, problem.limits.max_names
    indicators = builder.variables(np.ones(n))
    floor, ceiling = names.forced_in.astype(float), 1.0 - names.forced_out.astype(float)
    builder.constrain("indicator_floor", Cone.NONNEGATIVE, -floor, (indicators, -np.ones(n)))
    builder.constrain("indicator_ceiling", Cone.NONNEGATIVE, ceiling, (indicators, np.ones(n)))
    if least is not None:
        lift = np.maximum(HOLDING_THRESHOLD - lower, 0.0)
        builder.constrain("holding", Cone.NONNEGATIVE, -lower, (weights, -np.ones(n)), (indicators, lift))
        builder.constrain("min_names", Cone.NONNEGATIVE, np.array([-float(least)]), (indicators, -np.ones((1, n))))
    if most is not None and most < n:
        reach = np.maximum(upper - STUB, 0.0)
        builder.constrain("stub", Cone.NONNEGATIVE, np.full(n, STUB), (weights, np.ones(n)), (indicators, -reach))
        builder.constrain("max_names", Cone.NONNEGATIVE, np.array([float(most)]), (indicators, np.ones((1, n))))
    return indicators


def _add_objective_cap(
    problem: PortfolioProblem,
    cap: float,
    builder: ProgramBuilder,
    weights: slice,
    root: Root,
    curvature: dict[str, float],
) -> None:
    label, n, smallest = "objective_cap", problem.size, problem.risk.smallest_eigenvalue
    if problem.objective is Objective.MAX_RETURN:
        builder.constrain(label, Cone.NONNEGATIVE, np.array([cap]), (weights, -problem.mean[None, :]))
        return
    if problem.objective is Objective.MIN_VARIANCE:
        rhs = np.concatenate([[np.sqrt(cap)], np.zeros(root.count)])
        builder.constrain(label, Cone.SECOND_ORDER, rhs, *root.rows(-1.0, 1))
        curvature[label] = smallest
        return
    if problem.objective is Objective.RISK_PARITY:
        anchor = problem.inverse_variance
        rhs = np.concatenate([[np.sqrt(cap)], -anchor, np.zeros(root.count)])
        distance = (weights, -np.ones(n), 1)
        builder.constrain(label, Cone.SECOND_ORDER, rhs, distance, *root.rows(-np.sqrt(0.5), 1 + n))
        curvature[label] = 1.0 + 0.5 * smallest
        return
    # λ w'Σw <= t with t = cap + μ'w, as ||(2√λ R w, t/a − a)|| <= t/a + a; a² near t keeps the cone well scaled.
    scale = 0.1
    reward = -problem.mean[None, :] / scale
    rhs = np.concatenate([[cap / scale + scale], np.zeros(root.count), [cap / scale - scale]])
    rows = root.rows(-2 * np.sqrt(problem.risk_aversion), 1)
    builder.constrain(label, Cone.SECOND_ORDER, rhs, (weights, reward), *rows, (weights, reward, 1 + root.count))
    curvature[label] = 4 * problem.risk_aversion * smallest
