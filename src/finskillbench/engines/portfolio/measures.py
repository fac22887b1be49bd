"""Measures of a portfolio (turnover, tracking error, exposures, names) and its limit checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.portfolio.problem import PortfolioProblem, require_array
from finskillbench.engines.statistics.risk_model import RiskModel

FEASIBILITY_TOLERANCE = 5e-4
"""Tolerated excess over a limit (5 basis points of NAV): rounding of a weight list."""
BROKEN = 0.05
"""Relative excess that makes a submitted portfolio worthless: 15.75 % under a limit of 15 %."""
ROUNDING = 5.001e-4
"""Rounding error of a number with three decimals."""
MOST_CASH = 0.005
"""Maximum deviation from the full budget at no cost, for any number of rounded names."""
COUNTS = ("min_names", "max_names")
BROKEN_BETA = 0.005
"""Counterpart of `BROKEN` for active betas, whose limits are small relative to a market beta of 1."""


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """Measured value, limit and excess (<= 0 is kept) of one limit."""

    value: float
    limit: float
    excess: float


def clean(weights: Floats) -> Floats:
    """(n,) Weights with a solver's rounding residue (below 1e-12) set to zero."""
    return np.where(np.abs(weights) < 1e-12, 0.0, weights)


def one_way_turnover(weights: Floats, current: Floats) -> float:
    """Return one-way turnover Σ|w − w0|/2, a fraction of NAV."""
    return float(np.abs(weights - current).sum() / 2)


def tracking_error(weights: Floats, benchmark: Floats, risk: RiskModel) -> float:
    """Return the annualised tracking error sqrt((w−b)'Σ(w−b)). Source: Grinold & Kahn (1999), ch. 3."""
    return float(np.sqrt(max(risk.variance(weights - benchmark), 0.0)))


ZERO_WEIGHT = 1e-9
"""Largest weight that counts as 0."""
COUNT_SLACK = 5e-5
"""Tolerance of the holding threshold: rounding of a weight to a basis point."""


def name_count(weights: Floats, slack: float = COUNT_SLACK) -> int:
    """Count the holdings: |weights| of at least `HOLDING_THRESHOLD`, less `slack`."""
    return int((np.abs(weights) >= HOLDING_THRESHOLD - slack).sum())


def portfolio_sector_weights(weights: Floats, sectors: tuple[str, ...]) -> dict[str, float]:
    """Return the total weight of each sector, in order of first appearance."""
    totals: dict[str, float] = dict.fromkeys(sectors, 0.0)
    for sector, weight in zip(sectors, weights, strict=True):
        totals[sector] += float(weight)
    return totals


def check_limits(problem: PortfolioProblem, weights: Floats) -> Mapping[str, LimitCheck]:
    """Measure the budget and all limits of the problem.

    Keys are fully_invested, long_only, and the mandate's fields (max_weight, sector_limits, min_names ...). Excess is
    in the limit's unit: whole names for counts; for a least position, the smallest trade that corrects one name. Raises
    `DimensionError` if a limit's array is missing.
    """
    limits = problem.limits
    total = float(weights.sum())
    checks = {"fully_invested": LimitCheck(total, 1.0, abs(total - 1.0))}
    low, high = float(weights.min()), float(weights.max())
    if limits.long_only:
        checks["long_only"] = LimitCheck(low, 0.0, -low)
    if problem.ceilings is not None:
        over = float((weights - problem.ceilings).max())
        checks["restricted_names"] = LimitCheck(max(over, 0.0), 0.0, over)
    if limits.min_weight:
        checks["min_weight"] = LimitCheck(low, limits.min_weight, limits.min_weight - low)
    if limits.max_weight is not None:
        checks["max_weight"] = LimitCheck(high, limits.max_weight, high - limits.max_weight)
    if limits.sector_limits:
        totals = portfolio_sector_weights(weights, problem.sectors)
        worst = max(limits.sector_limits, key=lambda name: totals.get(name, 0.0) - limits.sector_limits[name])
        cap, total = limits.sector_limits[worst], totals.get(worst, 0.0)
        checks["sector_limits"] = LimitCheck(total, cap, total - cap)
    if limits.max_turnover is not None:
        traded = one_way_turnover(weights, require_array(problem.current, "current portfolio"))
        checks["max_turnover"] = LimitCheck(traded, limits.max_turnover, traded - limits.max_turnover)
    if limits.max_tracking_error is not None:
        error = tracking_error(weights, require_array(problem.benchmark, "benchmark weights"), problem.risk)
        checks["max_tracking_error"] = LimitCheck(error, limits.max_tracking_error, error - limits.max_tracking_error)
    if limits.neutral_factors:
        exposures = require_array(problem.exposures, "factor exposures")
        active = float(np.abs(exposures.T @ (weights - require_array(problem.benchmark, "benchmark weights"))).max())
        tolerance = limits.neutrality_tolerance
        checks["factor_neutrality"] = LimitCheck(active, tolerance, active - tolerance)
    if limits.min_position is not None:
        held = weights[weights > ZERO_WEIGHT]
        short = float(np.minimum(held, limits.min_position - held).max(initial=0.0))
        checks["min_position"] = LimitCheck(float(held.min(initial=1.0)), limits.min_position, short)
    held = name_count(weights)
    if limits.min_names is not None:
        checks["min_names"] = LimitCheck(held, limits.min_names, limits.min_names - held)
    if limits.max_names is not None:
        checks["max_names"] = LimitCheck(held, limits.max_names, held - limits.max_names)
    return checks


def band(name: str, limit: float) -> float:
    """Return the excess beyond `FEASIBILITY_TOLERANCE` of a wholly broken limit."""
    return max(BROKEN * abs(limit), BROKEN_BETA if name == "factor_neutrality" else FEASIBILITY_TOLERANCE)


def breach(name: str, check: LimitCheck) -> float:
    """Grade a breach: 0 within `FEASIBILITY_TOLERANCE`, rising linearly to 1 at `band` beyond it; counts are 0 or 1."""
    if name in COUNTS:
        return float(check.excess > 0)
    return float(np.clip((check.excess - FEASIBILITY_TOLERANCE) / band(name, check.limit), 0.0, 1.0))


def forgiven_budget(names: int) -> float:
    """Return the tolerated deviation from the full budget: the rounding of so many weights, within bounds."""
    return min(max(ROUNDING * names, FEASIBILITY_TOLERANCE), MOST_CASH)


def violations(problem: PortfolioProblem, weights: Floats, tolerance: float = FEASIBILITY_TOLERANCE) -> list[str]:
    """Return the limits that are exceeded by more than `tolerance`."""
    return [name for name, check in check_limits(problem, weights).items() if check.excess > tolerance]
