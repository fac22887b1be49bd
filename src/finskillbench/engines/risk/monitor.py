"""Constraint checks of any number of portfolios in one matrix pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Booleans, Floats, Integers
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.mandate import (
    COLUMN,
    COMPLIANCE_TOLERANCE,
    RANGES,
    Constraint,
    ConstraintKind,
    RiskMandate,
)
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio

HARD_KINDS = frozenset(
    {
        ConstraintKind.LONG_ONLY,
        ConstraintKind.POSITION_LIMIT_MIN,
        ConstraintKind.NAME_COUNT,
        ConstraintKind.TURNOVER_MAX_MONTHLY,
    }
)
"""Constraints that remediation never relaxes; all others count in `total_relative_excess`."""
LEAST_SCALE = 0.01
"""Minimum divisor of a relative excess, since a limit may be 0."""


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
    """Result of one constraint.

    `value` and `excess` (<= 0 is kept) are in the limit's unit, a name count in whole names. `worst` is the ticker,
    sector or factor behind the value, if any.
    """

    kind: ConstraintKind
    value: float
    excess: float
    passed: bool
    worst: str | None = None


def check_constraints(
    portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, tolerance: float = COMPLIANCE_TOLERANCE
) -> tuple[ConstraintCheck, ...]:
    """Check all constraints of the mandate, in its order.

    `tolerance` is the largest passing excess. For names it is the distance from the holding threshold, or from 0, that
    is forgiven. Raises `InputError` for missing market data.
    """
    batch = Batch.within(market, portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    values, excess = measure_pairs(batch, np.zeros(1, dtype=int), (mandate,), tolerance)
    columns = mandate.columns
    return tuple(
        ConstraintCheck(
            constraint.kind, float(value), float(over), bool(over <= tolerance), _worst(constraint, batch, tolerance)
        )
        for constraint, value, over in zip(mandate.constraints, values[0, columns], excess[0, columns], strict=True)
    )


def measure_all(
    weights: Floats,
    cash: Floats,
    traded: Floats,
    mandate: RiskMandate,
    market: MarketSnapshot,
    tolerance: float = COMPLIANCE_TOLERANCE,
) -> tuple[Floats, Floats]:
    """Measure p portfolios of one market against a mandate of c constraints.

    Parameters
    ----------
    weights : (p, n) signed. cash, traded : (p,), fractions of NAV; `traded` is one-way turnover of the month.

    Returns
    -------
    values, excess : (p, c) in the mandate's order; `excess` <= 0 is kept.
    """
    batch, count = Batch.within(market, weights, cash, traded), len(weights)
    values, excess = measure_pairs(batch, np.arange(count), (mandate,) * count, tolerance)
    return values[:, mandate.columns], excess[:, mandate.columns]


def measure_pairs(
    batch: Batch, rows: Integers, mandates: Sequence[RiskMandate], tolerance: float = COMPLIANCE_TOLERANCE
) -> tuple[Floats, Floats]:
    """Measure m pairs of a batch portfolio and a mandate; each portfolio is measured once.

    Parameters
    ----------
    rows : (m,) portfolio of each pair. mandates : m, mandate of each.

    Returns
    -------
    values, excess : (m, kinds) in the order of `mandate.COLUMN`; `excess` <= 0 is kept, nan without a limit.

    Raises `InputError` if a tracking-error limit lacks covariance or benchmark.
    """
    limits = np.concatenate([mandate.limits for mandate in mandates])
    low, high = limits.reshape(-1, 2, len(ConstraintKind)).swapaxes(0, 1)
    tracked = not np.isnan(low[:, COLUMN[ConstraintKind.TRACKING_ERROR_MAX]]).all()
    of_portfolio, most, least, empty = _measured(batch, tracked, tolerance)
    values = of_portfolio[rows]
    limited = np.flatnonzero(~np.isnan(high[:, COLUMN[ConstraintKind.FACTOR_EXPOSURE_MAX]]))
    listed = np.array([mandates[pair].limited_factors for pair in limited.tolist()]).reshape(-1, len(FACTORS))
    sizes = np.abs(batch.exposures[rows[limited]])
    values[limited, COLUMN[ConstraintKind.FACTOR_EXPOSURE_MAX]] = (sizes * listed).max(axis=1)
    excess = np.maximum(low - values, values - high)
    count, floor = COLUMN[ConstraintKind.NAME_COUNT], COLUMN[ConstraintKind.POSITION_LIMIT_MIN]
    excess[:, count] = np.maximum(low[:, count] - most[rows], least[rows] - high[:, count])
    # An empty portfolio has no position below the minimum.
    excess[empty[rows] & ~np.isnan(low[:, floor]), floor] = 0.0
    return values, excess


def total_relative_excess(values: Floats, excess: Floats, mandate: RiskMandate) -> float:
    """Return V: the sum of relative excesses over the constraints that remediation may relax.

    `values`, `excess` (c,) are those of one portfolio from `measure_all`; the value identifies the broken end of a
    range.
    """
    total = 0.0
    for constraint, value, over in zip(mandate.constraints, values, excess, strict=True):
        if constraint.kind not in HARD_KINDS:
            below, above = limit_scales(constraint)
            total += max(float(over), 0.0) / (below if value < constraint.bounds[0] else above)
    return total


def limit_scales(constraint: Constraint) -> tuple[float, float]:
    """Return the divisors in V for an excess below the minimum and above the maximum."""
    ends = (constraint.minimum, constraint.maximum) if constraint.kind in RANGES else (constraint.value,) * 2
    low, high = (max(abs(end or 0.0), LEAST_SCALE) for end in ends)
    return low, high


def constraint_report(
    portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, tolerance: float = COMPLIANCE_TOLERANCE
) -> dict[str, Any]:
    """Return the answer of constraint monitoring: verdicts, values, limits, and excesses."""
    rows: list[dict[str, Any]] = []
    for constraint, found in zip(
        mandate.constraints, check_constraints(portfolio, mandate, market, tolerance), strict=True
    ):
        whole = constraint.kind is ConstraintKind.NAME_COUNT
        row: dict[str, Any] = {"type": found.kind.value, "status": "PASS" if found.passed else "FAIL"}
        row["value"] = int(found.value) if whole else found.value
        if constraint.kind in RANGES:
            ends = {"min": constraint.minimum, "max": constraint.maximum}
            row |= {name: int(end) if whole else end for name, end in ends.items() if end is not None}
        else:
            row["limit"] = constraint.value
        if found.worst is not None and found.kind in _WORST_FIELD:
            row[_WORST_FIELD[found.kind]] = found.worst
        if not found.passed:
            row["violation_magnitude"] = found.excess
        rows.append(row)
    failed = sum(row["status"] == "FAIL" for row in rows)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}


_WORST_FIELD = {
    ConstraintKind.LONG_ONLY: "worst_symbol",
    ConstraintKind.POSITION_LIMIT_MAX: "worst_symbol",
    ConstraintKind.POSITION_LIMIT_MIN: "worst_symbol",
    ConstraintKind.SECTOR_LIMIT_MAX: "worst_sector",
}


def _held(weights: Floats, tolerance: float) -> Booleans:
    return np.abs(weights) > max(ZERO_WEIGHT, tolerance)


def _measured(batch: Batch, tracked: bool, tolerance: float) -> tuple[Floats, Integers, Integers, Booleans]:
    """Measure each portfolio, optionally with tracking error.

    Returns
    -------
    values : (p, kinds), nan for factor_exposure_max (depends on the mandate) and unrequested kinds.
    most, least : (p,) number of holdings with and without weights within `tolerance` of the threshold.
    empty : (p,) True if nothing is held; extremes over holdings are then 0.
    """
    # Names by portfolios: reductions over names then add contiguous rows.
    weights = np.ascontiguousarray(batch.weights.T)
    sizes = np.abs(weights)
    held = _held(weights, tolerance)
    empty = np.logical_not(held.any(axis=0))
    values = np.full((len(batch.weights), len(ConstraintKind)), np.nan)
    for kind, value in {
        ConstraintKind.LONG_ONLY: np.where(held, weights, np.inf).min(axis=0),
        ConstraintKind.POSITION_LIMIT_MAX: np.where(held, weights, -np.inf).max(axis=0),
        ConstraintKind.POSITION_LIMIT_MIN: np.where(held, sizes, np.inf).min(axis=0),
    }.items():
        values[:, COLUMN[kind]] = np.where(empty, 0.0, value)
    values[:, COLUMN[ConstraintKind.SECTOR_LIMIT_MAX]] = batch.heaviest_sector
    if tracked:
        values[:, COLUMN[ConstraintKind.TRACKING_ERROR_MAX]] = batch.tracking_error
    values[:, COLUMN[ConstraintKind.BETA_RANGE]] = batch.exposures[:, 0]
    values[:, COLUMN[ConstraintKind.TURNOVER_MAX_MONTHLY]] = batch.traded
    values[:, COLUMN[ConstraintKind.CASH_MAX]] = batch.cash
    values[:, COLUMN[ConstraintKind.GROSS_EXPOSURE_MAX]] = sizes.sum(axis=0)
    values[:, COLUMN[ConstraintKind.HHI_MAX]] = (weights**2).sum(axis=0)
    counts = [
        (sizes >= HOLDING_THRESHOLD - slack).sum(axis=0)
        for slack in (ZERO_WEIGHT, tolerance, 2 * ZERO_WEIGHT - tolerance)
    ]
    values[:, COLUMN[ConstraintKind.NAME_COUNT]], most, least = counts
    return values, most, least, empty


def _worst(constraint: Constraint, batch: Batch, tolerance: float) -> str | None:
    """Return the source of a single portfolio's value; ties go to the first name."""
    weights, ((market, _),) = batch.weights[0], batch.runs
    match constraint.kind:
        case ConstraintKind.LONG_ONLY:
            sizes = weights
        case ConstraintKind.POSITION_LIMIT_MAX:
            sizes = -weights
        case ConstraintKind.POSITION_LIMIT_MIN:
            sizes = np.abs(weights)
        case ConstraintKind.SECTOR_LIMIT_MAX:
            return _first(-batch.sector_weights[0], batch.sector_names)
        case ConstraintKind.FACTOR_EXPOSURE_MAX:
            places = [FACTORS.index(factor) for factor in constraint.factors]
            return _first(-np.abs(batch.exposures[0, places]), constraint.factors)
        case _:
            return None
    held = np.flatnonzero(_held(weights, tolerance))
    return _first(sizes[held], [market.tickers[place] for place in held]) if held.size else None


def _first(sizes: Floats, names: Any) -> str:
    return min(zip(np.round(sizes, 12).tolist(), names, strict=True))[1]
