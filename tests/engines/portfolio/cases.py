"""Random portfolio problems, an independent solver (cvxpy) for them, and random portfolios that keep their limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel

SECTORS = 7
FACTORS = ("mkt_rf", "smb", "hml")
EASY = PortfolioLimits(
    max_weight=0.06, sector_limits={f"S{i}": 0.25 for i in range(SECTORS)}, min_names=20, max_names=30
)
MEDIUM = PortfolioLimits(
    max_weight=0.066,
    sector_limits={f"S{i}": 0.2 for i in range(SECTORS)},
    min_names=18,
    max_names=30,
    max_turnover=0.2,
    max_tracking_error=0.03,
)
HARD = PortfolioLimits(
    max_weight=0.077,
    sector_limits={f"S{i}": 0.18 for i in range(SECTORS)},
    min_names=15,
    max_names=30,
    max_turnover=0.15,
    max_tracking_error=0.02,
    neutral_factors=FACTORS,
)
TIERS = {"easy": EASY, "medium": MEDIUM, "hard": HARD}


def case(
    n: int, seed: int, objective: Objective, limits: PortfolioLimits | None = None, **changes: Any
) -> PortfolioProblem:
    """A market factor, five weaker ones and specific variance, annualised; a benchmark inside the tiers' caps."""
    rng = np.random.default_rng(seed)
    loadings = np.vstack([rng.normal(0.17, 0.05, n), rng.normal(0, 0.08, (5, n))])
    benchmark = rng.uniform(0.6, 1.4, n)
    current = benchmark * rng.lognormal(0, 0.2, n)
    limits = PortfolioLimits() if limits is None else limits
    exposures = rng.normal(0, 0.4, (n, len(limits.neutral_factors)))
    problem = PortfolioProblem(
        tickers=tuple(f"T{i}" for i in range(n)),
        risk=RiskModel.from_matrix(loadings.T @ loadings + np.diag(rng.uniform(0.02, 0.08, n))),
        objective=objective,
        limits=limits,
        expected_returns=rng.normal(0.06, 0.05, n),
        risk_aversion=4.0,
        sectors=tuple(f"S{i % SECTORS}" for i in range(n)),
        benchmark=benchmark / benchmark.sum(),
        current=current / current.sum(),
        exposures=exposures if limits.neutral_factors else None,
    )
    return replace(problem, **changes)


class Oracle:
    """The problem as cvxpy states it; bounds are parameters, so that sets of holdings can be enumerated cheaply."""

    def __init__(
        self,
        problem: PortfolioProblem,
        goal: str = "objective",
        objective_cap: float | None = None,
        costs: Floats | None = None,
    ) -> None:
        n, limits = problem.size, problem.limits
        self.weights = w = cp.Variable(n)
        self.low, self.high = cp.Parameter(n), cp.Parameter(n)
        floor = 0.0 if limits.long_only else -1.0
        self.low.value = np.full(n, floor if limits.min_weight is None else limits.min_weight)
        self.high.value = np.full(n, 1.0 if limits.max_weight is None else limits.max_weight)
        covariance = cp.psd_wrap(problem.risk.root.T @ problem.risk.root + np.diag(problem.risk.diagonal))
        goals = {
            "objective": _objective(problem, w, covariance),
            "turnover": cp.norm1(w - problem.current) / 2,
            "cost": 0.0 if costs is None else costs @ cp.abs(w - problem.current),
            "distance": cp.sum_squares(w - problem.current),
        }
        constraints = [cp.sum(w) == 1, w >= self.low, w <= self.high]
        for name, cap in limits.sector_limits.items():
            constraints.append(cp.sum(w[[i for i, sector in enumerate(problem.sectors) if sector == name]]) <= cap)
        if limits.max_turnover is not None:
            constraints.append(cp.norm1(w - problem.current) <= 2 * limits.max_turnover)
        if limits.max_tracking_error is not None:
            root = np.linalg.cholesky(problem.risk.matrix).T
            constraints.append(cp.norm2(root @ (w - problem.benchmark)) <= limits.max_tracking_error)
        if problem.exposures is not None:
            active = cp.abs(problem.exposures.T @ (w - problem.benchmark))
            constraints.append(active <= limits.neutrality_tolerance)
        if objective_cap is not None:
            constraints.append(goals["objective"] <= objective_cap)
        self.stated = cp.Problem(cp.Minimize(goals[goal]), constraints)

    def solve(self) -> float:
        """The least value; infinite where the constraints conflict."""
        return float(self.stated.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9))

    def solve_counted(self, least: int, most: int, position: float | None = None) -> float:
        """The least value over every set of holdings of an allowed size: 0.1 % at least each, or a least position."""
        low, high, best = self.low.value.copy(), self.high.value.copy(), np.inf
        for held in _subsets(len(low), least, most):
            self.low.value = np.where(held, np.maximum(low, position or 0.001), low)
            self.high.value = np.where(held, high, np.minimum(high, 0.0009 if position is None else 0.0))
            if (self.low.value <= self.high.value).all() and self.high.value.sum() >= 1:
                best = min(best, self.solve())
        return best


def _objective(problem: PortfolioProblem, w: Any, covariance: Any) -> Any:
    variance, mean = cp.quad_form(w, covariance), problem.expected_returns
    if problem.objective is Objective.MAX_SHARPE:
        return problem.risk_aversion * variance - mean @ w
    if problem.objective is Objective.MIN_VARIANCE:
        return variance
    if problem.objective is Objective.MAX_RETURN:
        return -mean @ w
    anchor = 1 / np.diag(problem.risk.matrix)
    return cp.sum_squares(w - anchor / anchor.sum()) + 0.5 * variance


def _subsets(n: int, least: int, most: int) -> Iterator[Floats]:
    for size in range(least, most + 1):
        for names in combinations(range(n), size):
            held = np.zeros(n, dtype=bool)
            held[list(names)] = True
            yield held


def random_portfolios(problem: PortfolioProblem, seed: int, count: int) -> Floats:
    """(count, n) portfolios that keep the limits: mixtures of extreme ones, feasible by convexity."""
    rng = np.random.default_rng(seed)
    plain = replace(problem.limits, min_names=None, max_names=None)
    corners = []
    for _ in range(6):
        towards = replace(
            problem, objective=Objective.MAX_RETURN, limits=plain, expected_returns=rng.normal(size=problem.size)
        )
        corners.append(optimise(towards).weights)
    return rng.dirichlet(np.full(len(corners), 0.5), count) @ np.array(corners)
