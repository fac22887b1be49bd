"""What a portfolio is: turnover, tracking error, exposures, names; and which limits it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.portfolio.problem import PortfolioProblem, required
from finskillbench.engines.statistics.risk_model import RiskModel

FEASIBILITY_TOLERANCE = 5e-4
"""How far a submitted portfolio may exceed a limit (5 basis points of NAV): the rounding of a weight list."""
BROKEN = 0.05
"""Excess over a limit, as a share of it, from which a submitted portfolio is worth nothing: 15.75 % under 15 %."""
ROUNDING = 5.001e-4
"""What a number written with three decimals may miss."""
MOST_CASH = 0.005
"""What the weights may miss of the full budget at most without cost, however many names were rounded."""
COUNTS = ("min_names", "max_names")
"""Limits on the number of holdings."""
BROKEN_BETA = 0.005
"""The same of an active beta, whose limit is no fraction of NAV but a small number beside a market beta of 1."""


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """One limit as met by given weights: the measured value, the limit, by how much it is exceeded (<= 0 is kept)."""

    value: float
    limit: float
    excess: float


def clean(weights: Floats) -> Floats:
    """(n,) weights with the rounding residue of a solver (below 1e-12) set to zero."""
    return np.where(np.abs(weights) < 1e-12, 0.0, weights)


def turnover(weights: Floats, current: Floats) -> float:
    """One-way turnover Σ|w − w0|/2, a fraction of NAV."""
    return float(np.abs(weights - current).sum() / 2)


def tracking_error(weights: Floats, benchmark: Floats, risk: RiskModel) -> float:
    """Annualised tracking error sqrt((w−b)'Σ(w−b)), decimal per year. Source: Grinold & Kahn (1999), ch. 3."""
    return float(np.sqrt(max(risk.variance(weights - benchmark), 0.0)))


ZERO_WEIGHT = 1e-9
"""A weight of at most this is 0."""
COUNT_SLACK = 5e-5
"""What a holding may miss of the threshold and still count: the rounding of its weight to a basis point."""


def name_count(weights: Floats, slack: float = COUNT_SLACK) -> int:
    """Number of holdings: |weights| of at least `HOLDING_THRESHOLD`, `slack` forgiven."""
    return int((np.abs(weights) >= HOLDING_THRESHOLD - slack).sum())


def sector_weights(weights: Floats, sectors: tuple[str, ...]) -> dict[str, float]:
    """Total weight of each sector, in order of first appearance."""
    totals: dict[str, float] = dict.fromkeys(sectors, 0.0)
    for sector, weight in zip(sectors, weights, strict=True):
        totals[sector] += float(weight)
    return totals


def check_limits(problem: PortfolioProblem, weights: Floats) -> Mapping[str, LimitCheck]:
    """Measure every limit that the problem sets, and the budget, on the weights themselves.

    Keys: fully_invested, long_only, and the names of the mandate's fields (max_weight, sector_limits, min_names ...).
    The excess of a name count is in whole names, of a least position the weight that is to be sold or bought at the
    least for one name; of everything else in the limit's own unit.

    Raises
    ------
    DimensionError : when a limit refers to an array that the problem does not give; it is never skipped.
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
        totals = sector_weights(weights, problem.sectors)
        worst = max(limits.sector_limits, key=lambda name: totals.get(name, 0.0) - limits.sector_limits[name])
        cap, total = limits.sector_limits[worst], totals.get(worst, 0.0)
        checks["sector_limits"] = LimitCheck(total, cap, total - cap)
    if limits.max_turnover is not None:
        traded = turnover(weights, required(problem.current, "current portfolio"))
        checks["max_turnover"] = LimitCheck(traded, limits.max_turnover, traded - limits.max_turnover)
    if limits.max_tracking_error is not None:
        error = tracking_error(weights, required(problem.benchmark, "benchmark weights"), problem.risk)
        checks["max_tracking_error"] = LimitCheck(error, limits.max_tracking_error, error - limits.max_tracking_error)
    if limits.neutral_factors:
        exposures = required(problem.exposures, "factor exposures")
        active = float(np.abs(exposures.T @ (weights - required(problem.benchmark, "benchmark weights"))).max())
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
    """Return the excess beyond `FEASIBILITY_TOLERANCE` from which a limit is wholly broken."""
    return max(BROKEN * abs(limit), BROKEN_BETA if name == "factor_neutrality" else FEASIBILITY_TOLERANCE)


def breach(name: str, check: LimitCheck) -> float:
    """How badly a limit is broken: 0 within `FEASIBILITY_TOLERANCE`, 1 from `band` beyond it, linear in between.

    A count of names is kept or wholly broken.
    """
    if name in COUNTS:
        return float(check.excess > 0)
    return float(np.clip((check.excess - FEASIBILITY_TOLERANCE) / band(name, check.limit), 0.0, 1.0))


def forgiven_budget(names: int) -> float:
    """What the weights of so many names may miss of the full budget without cost: the rounding of each, not all."""
    return min(max(ROUNDING * names, FEASIBILITY_TOLERANCE), MOST_CASH)


def violations(problem: PortfolioProblem, weights: Floats, tolerance: float = FEASIBILITY_TOLERANCE) -> list[str]:
    """Names of the limits that the weights exceed by more than `tolerance`."""
    return [name for name, check in check_limits(problem, weights).items() if check.excess > tolerance]
