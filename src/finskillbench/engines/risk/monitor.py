"""Which constraints of a mandate a portfolio breaks, and by how much: one matrix pass for any number of portfolios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Booleans, Floats, Integers
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.mandate import COLUMN, COMPLIANCE_TOLERANCE, RANGES, Constraint, Kind, Mandate
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio

HARD_KINDS = frozenset({Kind.LONG_ONLY, Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT, Kind.TURNOVER_MAX_MONTHLY})
"""The constraints that remediation never gives up; all others count in `relative_excess`."""
LEAST_SCALE = 0.01
"""An excess is relative to the size of its limit, but to no less than this: a limit may be 0 (no cash)."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One constraint as met by a portfolio.

    `value` and `excess` are in the unit of the limit (<= 0 is kept; a name count in whole names); `worst` is the
    ticker, sector or factor that gives the value, where one does.
    """

    kind: Kind
    value: float
    excess: float
    passed: bool
    worst: str | None = None


def measure(
    portfolio: Portfolio, mandate: Mandate, market: Market, tolerance: float = COMPLIANCE_TOLERANCE
) -> tuple[Measure, ...]:
    """Check every constraint of the mandate, in its order.

    `tolerance` is what an excess may be and still pass; of names, how far a weight may be from counting, or from 0 and
    still not be held.

    Raises
    ------
    InputError : a constraint needs a field that the market does not give; it is never skipped.
    """
    batch = Batch.within(market, portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    values, excess = measure_pairs(batch, np.zeros(1, dtype=int), (mandate,), tolerance)
    columns = mandate.columns
    return tuple(
        Measure(
            constraint.kind,
            float(value),
            float(over),
            bool(over <= tolerance),
            _worst(constraint, batch, tolerance),
        )
        for constraint, value, over in zip(mandate.constraints, values[0, columns], excess[0, columns], strict=True)
    )


def measure_all(
    weights: Floats,
    cash: Floats,
    traded: Floats,
    mandate: Mandate,
    market: Market,
    tolerance: float = COMPLIANCE_TOLERANCE,
) -> tuple[Floats, Floats]:
    """Measure p portfolios of one market against one mandate of c constraints.

    Parameters
    ----------
    weights : (p, n) signed. cash, traded : (p,), fractions of NAV; `traded` is one-way turnover of the month.

    Returns
    -------
    values, excess : (p, c) in the mandate's order; `excess` is the distance beyond the limit (<= 0 is kept).
    """
    batch, count = Batch.within(market, weights, cash, traded), len(weights)
    values, excess = measure_pairs(batch, np.arange(count), (mandate,) * count, tolerance)
    return values[:, mandate.columns], excess[:, mandate.columns]


def measure_pairs(
    batch: Batch, rows: Integers, mandates: Sequence[Mandate], tolerance: float = COMPLIANCE_TOLERANCE
) -> tuple[Floats, Floats]:
    """Measure m pairs, each of a portfolio of the batch and a mandate: every portfolio once, then limits by lookup.

    Parameters
    ----------
    rows : (m,) the portfolio of each pair. mandates : m, the mandate of each.

    Returns
    -------
    values, excess : (m, kinds) in the order of `mandate.COLUMN`; `excess` is the distance beyond the limit (<= 0 is
        kept), nan where the mandate does not limit the kind.

    Raises
    ------
    InputError : a mandate limits the tracking error and a market of the batch gives no covariance or no benchmark.
    """
    low, high = np.concatenate([mandate.limits for mandate in mandates]).reshape(-1, 2, len(Kind)).swapaxes(0, 1)
    tracked = not np.isnan(low[:, COLUMN[Kind.TRACKING_ERROR_MAX]]).all()
    of_portfolio, most, least, empty = _measured(batch, tracked, tolerance)
    values = of_portfolio[rows]
    limited = np.flatnonzero(~np.isnan(high[:, COLUMN[Kind.FACTOR_EXPOSURE_MAX]]))
    listed = np.array([mandates[pair].limited_factors for pair in limited.tolist()]).reshape(-1, len(FACTORS))
    sizes = np.abs(batch.exposures[rows[limited]])
    values[limited, COLUMN[Kind.FACTOR_EXPOSURE_MAX]] = (sizes * listed).max(axis=1)
    excess = np.maximum(low - values, values - high)
    count, floor = COLUMN[Kind.NAME_COUNT], COLUMN[Kind.POSITION_LIMIT_MIN]
    excess[:, count] = np.maximum(low[:, count] - most[rows], least[rows] - high[:, count])
    # Nothing held, nothing too small.
    excess[empty[rows] & ~np.isnan(low[:, floor]), floor] = 0.0
    return values, excess


def relative_excess(values: Floats, excess: Floats, mandate: Mandate) -> float:
    """V: sum of excess over the size of its limit, over the constraints that remediation may give up.

    Parameters
    ----------
    values, excess : (c,) of one portfolio, as `measure_all` returns them; the value says which end of a range is
        broken.

    Returns
    -------
    V, dimensionless; 0 where all of these constraints are kept.
    """
    total = 0.0
    for constraint, value, over in zip(mandate.constraints, values, excess, strict=True):
        if constraint.kind not in HARD_KINDS:
            below, above = limit_scales(constraint)
            total += max(float(over), 0.0) / (below if value < constraint.bounds[0] else above)
    return total


def limit_scales(constraint: Constraint) -> tuple[float, float]:
    """What an excess below the minimum, and above the maximum (or beyond the value), is divided by in V."""
    ends = (constraint.minimum, constraint.maximum) if constraint.kind in RANGES else (constraint.value,) * 2
    low, high = (max(abs(end or 0.0), LEAST_SCALE) for end in ends)
    return low, high


def constraint_report(
    portfolio: Portfolio, mandate: Mandate, market: Market, tolerance: float = COMPLIANCE_TOLERANCE
) -> dict[str, Any]:
    """The answer of constraint monitoring: verdicts, values, limits, and the distance beyond a broken limit."""
    rows: list[dict[str, Any]] = []
    for constraint, found in zip(mandate.constraints, measure(portfolio, mandate, market, tolerance), strict=True):
        whole = constraint.kind is Kind.NAME_COUNT
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
    Kind.LONG_ONLY: "worst_symbol",
    Kind.POSITION_LIMIT_MAX: "worst_symbol",
    Kind.POSITION_LIMIT_MIN: "worst_symbol",
    Kind.SECTOR_LIMIT_MAX: "worst_sector",
}


def _held(weights: Floats, tolerance: float) -> Booleans:
    return np.abs(weights) > max(ZERO_WEIGHT, tolerance)


def _measured(batch: Batch, tracked: bool, tolerance: float) -> tuple[Floats, Integers, Integers, Booleans]:
    """Each portfolio by itself, with or without its tracking error.

    Returns
    -------
    values : (p, kinds), nan for what depends on the mandate (factor_exposure_max) or is not asked for.
    most, least : (p,) number of holdings when a weight within `tolerance` of counting does, or does not.
    empty : (p,) whether nothing is held; the extremes over the holdings are then 0.
    """
    # Names by portfolios: reductions over the names then add whole rows of memory.
    weights = np.ascontiguousarray(batch.weights.T)
    sizes = np.abs(weights)
    held = _held(weights, tolerance)
    empty = np.logical_not(held.any(axis=0))
    values = np.full((len(batch.weights), len(Kind)), np.nan)
    for kind, value in {
        Kind.LONG_ONLY: np.where(held, weights, np.inf).min(axis=0),
        Kind.POSITION_LIMIT_MAX: np.where(held, weights, -np.inf).max(axis=0),
        Kind.POSITION_LIMIT_MIN: np.where(held, sizes, np.inf).min(axis=0),
    }.items():
        values[:, COLUMN[kind]] = np.where(empty, 0.0, value)
    values[:, COLUMN[Kind.SECTOR_LIMIT_MAX]] = batch.heaviest_sector
    if tracked:
        values[:, COLUMN[Kind.TRACKING_ERROR_MAX]] = batch.tracking_error
    values[:, COLUMN[Kind.BETA_RANGE]] = batch.exposures[:, 0]
    values[:, COLUMN[Kind.TURNOVER_MAX_MONTHLY]] = batch.traded
    values[:, COLUMN[Kind.CASH_MAX]] = batch.cash
    values[:, COLUMN[Kind.GROSS_EXPOSURE_MAX]] = sizes.sum(axis=0)
    values[:, COLUMN[Kind.HHI_MAX]] = (weights**2).sum(axis=0)
    counts = [
        (sizes >= HOLDING_THRESHOLD - slack).sum(axis=0)
        for slack in (ZERO_WEIGHT, tolerance, 2 * ZERO_WEIGHT - tolerance)
    ]
    values[:, COLUMN[Kind.NAME_COUNT]], most, least = counts
    return values, most, least, empty


def _worst(constraint: Constraint, batch: Batch, tolerance: float) -> str | None:
    """Where the value of the one portfolio comes from; of several, the first by name, whatever their order."""
    weights, ((market, _),) = batch.weights[0], batch.runs
    match constraint.kind:
        case Kind.LONG_ONLY:
            sizes = weights
        case Kind.POSITION_LIMIT_MAX:
            sizes = -weights
        case Kind.POSITION_LIMIT_MIN:
            sizes = np.abs(weights)
        case Kind.SECTOR_LIMIT_MAX:
            return _first(-batch.sector_weights[0], batch.sector_names)
        case Kind.FACTOR_EXPOSURE_MAX:
            places = [FACTORS.index(factor) for factor in constraint.factors]
            return _first(-np.abs(batch.exposures[0, places]), constraint.factors)
        case _:
            return None
    held = np.flatnonzero(_held(weights, tolerance))
    return _first(sizes[held], [market.tickers[place] for place in held]) if held.size else None


def _first(sizes: Floats, names: Any) -> str:
    return min(zip(np.round(sizes, 12).tolist(), names, strict=True))[1]
