"""From a portfolio problem to a conic program: one block for each limit, named after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from finskillbench.engines.portfolio.problem import HOLDING_THRESHOLD, STUB, Objective, PortfolioProblem
from finskillbench.engines.portfolio.program import Cone, ConicProgram, ProgramBuilder
from finskillbench.engines.portfolio.risk_model import Array
from finskillbench.errors import DimensionError


class Goal(StrEnum):
    """What the program minimises: the problem's objective, one-way turnover, or ||w − w0||²."""

    OBJECTIVE = "objective"
    TURNOVER = "turnover"
    DISTANCE = "distance"


@dataclass(frozen=True)
class NameCounts:
    """Branching decisions on who is a holding: (n,) masks of names forced in and forced out."""

    forced_in: Array
    forced_out: Array


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
    goal: Goal = Goal.OBJECTIVE,
    *,
    objective_cap: float | None = None,
    names: NameCounts | None = None,
    holdings: Array | None = None,
) -> Formulation:
    """Build the program.

    Parameters
    ----------
    goal : what is minimised; TURNOVER and DISTANCE refer to `problem.current`, and TURNOVER replaces the cap on it.
    objective_cap : adds the constraint `problem.value(w) <= objective_cap`.
    names : relaxes the name counts by indicators in [0, 1], with these decisions fixed; None leaves the counts out.
    holdings : (n,) mask of names whose weight must be at least the holding threshold.
    """
    builder = ProgramBuilder()
    lower, upper = problem.lower_bounds(), problem.upper_bounds()
    if holdings is not None:
        lower = np.where(holdings, np.maximum(lower, HOLDING_THRESHOLD), lower)
    weights = builder.variables(np.maximum(np.abs(lower), np.abs(upper)))
    root = _Root(problem, builder, weights)
    curvature: dict[str, float] = {}

    objective_curvature = _add_goal(problem, goal, builder, weights, root)
    n = problem.size
    builder.constrain("fully_invested", Cone.ZERO, np.ones(1), (weights, np.ones((1, n))))
    builder.constrain("lower_bound", Cone.NONNEGATIVE, -lower, (weights, -np.ones(n)))
    builder.constrain("upper_bound", Cone.NONNEGATIVE, upper, (weights, np.ones(n)))
    _add_sectors(problem, builder, weights)
    if goal is Goal.TURNOVER or problem.limits.max_turnover is not None:
        _add_trades(problem, goal, builder, weights)
    if problem.limits.max_tracking_error is not None:
        offset = root.image(_required(problem.benchmark, "benchmark weights"))
        head = np.array([problem.limits.max_tracking_error])
        builder.constrain("max_tracking_error", Cone.SECOND_ORDER, np.concatenate([head, -offset]), *root.rows(-1.0, 1))
        curvature["max_tracking_error"] = problem.risk.smallest_eigenvalue
    _add_neutrality(problem, builder, weights)
    indicators = _add_name_counts(problem, builder, weights, upper, names) if names is not None else None
    if objective_cap is not None:
        _add_objective_cap(problem, objective_cap, builder, weights, root, curvature)
    return Formulation(builder.build(), weights, indicators, objective_curvature, curvature)


class _Root:
    """R with Σ = R'R, applied to the weights: dense below n rows, through k factor variables above.

    `rows(scale, skip)` gives the terms of a block whose rows, after `skip` head rows, are scale·R w.
    """

    def __init__(self, problem: PortfolioProblem, builder: ProgramBuilder, weights: slice) -> None:
        self._risk = problem.risk
        self._weights = weights
        self._factors: slice | None = None
        if not self._risk.is_dense:
            k = self._risk.root.shape[0]
            self._factors = builder.variables(np.abs(self._risk.root).max(axis=1) * 2)
            builder.constrain(
                "factor_exposure", Cone.ZERO, np.zeros(k), (weights, self._risk.root), (self._factors, -np.ones(k))
            )

    def add_variance(self, builder: ProgramBuilder, scale: float) -> None:
        """Add scale·w'Σw to the objective."""
        if self._factors is None:
            builder.add_quadratic(self._weights, 2 * scale * self._risk.matrix)
        else:
            builder.add_quadratic(self._factors, np.full(self._risk.root.shape[0], 2 * scale))
            builder.add_quadratic(self._weights, 2 * scale * self._risk.diagonal)

    def image(self, weights: Array) -> Array:
        """R w."""
        exposure = self._risk.root @ weights
        return exposure if self._factors is None else np.concatenate([exposure, np.sqrt(self._risk.diagonal) * weights])

    def rows(self, scale: float, skip: int) -> list[tuple[slice, Array]]:
        """Terms whose rows are `skip` zeros, then scale·R w."""
        if self._factors is None:
            return [(self._weights, np.vstack([np.zeros((skip, self._risk.size)), scale * self._risk.root]))]
        k, n = self._risk.root.shape
        exposure = np.zeros((skip + k + n, k))
        exposure[skip : skip + k] = scale * np.eye(k)
        specific = np.zeros((skip + k + n, n))
        specific[skip + k :] = np.diag(scale * np.sqrt(self._risk.diagonal))
        return [(self._factors, exposure), (self._weights, specific)]


def _required(array: Array | None, name: str) -> Array:
    if array is None:
        raise DimensionError(f"a limit refers to the {name}, which the problem does not give")
    return array


def _add_goal(problem: PortfolioProblem, goal: Goal, builder: ProgramBuilder, weights: slice, root: _Root) -> float:
    """Add the objective; returns a lower bound on its curvature in the weights."""
    n = problem.size
    if goal is Goal.TURNOVER:
        return 0.0
    if goal is Goal.DISTANCE:
        builder.add_quadratic(weights, np.full(n, 2.0))
        current = _required(problem.current, "current portfolio")
        builder.add_linear(weights, -2 * current)
        builder.constant += float(current @ current)
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
    member = np.array([[sector == name for sector in problem.sectors] for name in caps], dtype=float)
    builder.constrain("sector_limits", Cone.NONNEGATIVE, np.array(list(caps.values())), (weights, member))


def _add_trades(problem: PortfolioProblem, goal: Goal, builder: ProgramBuilder, weights: slice) -> None:
    """Absolute trades u >= |w − w0|, with their half sum minimised or capped."""
    current = _required(problem.current, "current portfolio")
    n = problem.size
    trades = builder.variables(np.full(n, 3.0))
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
    exposures = _required(problem.exposures, "factor exposures").T
    centre = exposures @ _required(problem.benchmark, "benchmark weights")
    tolerance = problem.limits.neutrality_tolerance
    builder.constrain("factor_neutrality_above", Cone.NONNEGATIVE, tolerance + centre, (weights, exposures))
    builder.constrain("factor_neutrality_below", Cone.NONNEGATIVE, tolerance - centre, (weights, -exposures))


def _add_name_counts(
    problem: PortfolioProblem, builder: ProgramBuilder, weights: slice, upper: Array, names: NameCounts
) -> slice:
    """Indicators δ in [0, 1]: w >= threshold·δ and w <= stub + (upper − stub)·δ, with Σδ between the counts."""
    n = problem.size
    least, most = problem.limits.min_names, problem.limits.max_names
    indicators = builder.variables(np.ones(n))
    floor, ceiling = names.forced_in.astype(float), 1.0 - names.forced_out.astype(float)
    builder.constrain("indicator_floor", Cone.NONNEGATIVE, -floor, (indicators, -np.ones(n)))
    builder.constrain("indicator_ceiling", Cone.NONNEGATIVE, ceiling, (indicators, np.ones(n)))
    if least is not None:
        threshold = np.full(n, HOLDING_THRESHOLD)
        builder.constrain("holding", Cone.NONNEGATIVE, np.zeros(n), (weights, -np.ones(n)), (indicators, threshold))
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
    root: _Root,
    curvature: dict[str, float],
) -> None:
    label, n, smallest = "objective_cap", problem.size, problem.risk.smallest_eigenvalue
    if problem.objective is Objective.MAX_RETURN:
        builder.constrain(label, Cone.NONNEGATIVE, np.array([cap]), (weights, -problem.mean[None, :]))
        return
    if problem.objective is Objective.MIN_VARIANCE:
        rhs = np.concatenate([[np.sqrt(cap)], np.zeros(len(root.image(np.zeros(n))))])
        builder.constrain(label, Cone.SECOND_ORDER, rhs, *root.rows(-1.0, 1))
        curvature[label] = smallest
        return
    if problem.objective is Objective.RISK_PARITY:
        anchor = problem.inverse_variance
        rows = root.rows(-np.sqrt(0.5), 1 + n)
        rows.append((weights, _padded(-np.eye(n), 1, len(rows[0][1]))))
        rhs = np.zeros(len(rows[0][1]))
        rhs[0], rhs[1 : n + 1] = np.sqrt(cap), -anchor
        builder.constrain(label, Cone.SECOND_ORDER, rhs, *rows)
        curvature[label] = 1.0 + 0.5 * smallest
        return
    # λ w'Σw <= t with t = cap + μ'w, as ||(2√λ R w, t/a − a)|| <= t/a + a; a² near t keeps the cone well scaled.
    scale = 0.1
    rows = root.rows(-2 * np.sqrt(problem.risk_aversion), 1)
    length = len(rows[0][1]) + 1
    padded = [(place, np.vstack([matrix, np.zeros((1, matrix.shape[1]))])) for place, matrix in rows]
    head = np.zeros((length, n))
    head[0] = head[-1] = -problem.mean / scale
    rhs = np.zeros(length)
    rhs[0], rhs[-1] = cap / scale + scale, cap / scale - scale
    builder.constrain(label, Cone.SECOND_ORDER, rhs, *padded, (weights, head))
    curvature[label] = 4 * problem.risk_aversion * smallest


def _padded(matrix: Array, above: int, rows: int) -> Array:
    result = np.zeros((rows, matrix.shape[1]))
    result[above : above + len(matrix)] = matrix
    return result
