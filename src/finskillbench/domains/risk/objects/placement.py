"""Convex program that places a portfolio inside a mandate; the engines measure the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.engines.optimisation.program import Cone, ProgramBuilder, solve_conic
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, RiskMandate
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.errors import InternalError

_TOLERANCE = 1e-10
_CLIPS = 50
_UPPER = (
    ConstraintKind.POSITION_LIMIT_MAX,
    ConstraintKind.SECTOR_LIMIT_MAX,
    ConstraintKind.TRACKING_ERROR_MAX,
    ConstraintKind.FACTOR_EXPOSURE_MAX,
    ConstraintKind.CASH_MAX,
    ConstraintKind.HHI_MAX,
    ConstraintKind.TURNOVER_MAX_MONTHLY,
)
"""Upper limits in continuous units; cash keeps gross exposure."""


@dataclass(frozen=True)
class AtLeast:
    """Linear constraint coefficients (n,) @ weights >= floor."""

    coefficients: Floats
    floor: float


def tightened(mandate: RiskMandate, share: float, least: float) -> RiskMandate:
    """Tighten every continuous limit by `share` of itself, but at least by `least`."""

    def tight(limit: Constraint) -> Constraint:
        if limit.kind in _UPPER and limit.value is not None:
            return replace(limit, value=limit.value - max(least, share * limit.value))
        if limit.kind is ConstraintKind.POSITION_LIMIT_MIN and limit.value is not None:
            return replace(limit, value=limit.value + max(least, share * limit.value))
        if limit.kind is ConstraintKind.BETA_RANGE:
            low, high = limit.minimum, limit.maximum
            return replace(
                limit,
                minimum=None if low is None else low + max(least, share * low),
                maximum=None if high is None else high - max(least, share * high),
            )
        return limit

    return replace(mandate, constraints=tuple(map(tight, mandate.constraints)))


def place(
    market: MarketSnapshot,
    support: Integers,
    *,
    mandate: RiskMandate | None = None,
    target: Floats | None = None,
    cash: float = 0.0,
    least: float = 0.0,
    ceilings: Floats | None = None,
    demands: Sequence[AtLeast] = (),
) -> Floats | None:
    """Return the long portfolio (n,) of the names in `support` nearest to a target, or None if the solver fails.

    The objective is least squares to `target` (n,), or least tracking error without one. Turnover and name count of the
    mandate are ignored. Weights range from `least` to `ceilings` (n,) within the position limits, and sum to 1 - cash.
    """
    places, k = support, len(support)
    low, high = least, np.ones(k) if ceilings is None else ceilings[places]
    limits = {} if mandate is None else {limit.kind: limit for limit in mandate.constraints}
    if (cap := limits.get(ConstraintKind.POSITION_LIMIT_MAX)) is not None:
        high = np.minimum(high, _number(cap.value))
    if (floor := limits.get(ConstraintKind.POSITION_LIMIT_MIN)) is not None:
        low = max(low, _number(floor.value))
    if low > high.min() or not k * low <= 1 - cash <= high.sum():
        return None

    builder = ProgramBuilder()
    weights = builder.variables(np.ones(k))
    builder.constrain("invested", Cone.ZERO, np.array([1 - cash]), (weights, np.ones((1, k))))
    builder.constrain("least", Cone.NONNEGATIVE, np.full(k, -low), (weights, np.full(k, -1.0)))
    builder.constrain("most", Cone.NONNEGATIVE, high, (weights, np.ones(k)))
    rows = [*_linear(market, places, limits), *((-one.coefficients[places], -one.floor) for one in demands)]
    if rows:
        matrix, rhs = np.array([row for row, _ in rows]), np.array([limit for _, limit in rows])
        builder.constrain("linear", Cone.NONNEGATIVE, rhs, (weights, matrix))
    if (hhi := limits.get(ConstraintKind.HHI_MAX)) is not None:
        radius = np.sqrt(_number(hhi.value))
        rhs = np.concatenate([[radius], np.zeros(k)])
        builder.constrain("hhi", Cone.SECOND_ORDER, rhs, (weights, np.full(k, -1.0), 1))
    error = limits.get(ConstraintKind.TRACKING_ERROR_MAX)
    if error is not None or target is None:
        root = _active_root(market, places)
        if error is not None:
            # ||root (w, -1)|| <= limit bounds the active risk against the whole benchmark.
            rhs = np.concatenate([[_number(error.value)], -root[:, -1]])
            builder.constrain("tracking error", Cone.SECOND_ORDER, rhs, (weights, -root[:, :-1], 1))
        if target is None:
            builder.add_quadratic(weights, 2 * root[:, :-1].T @ root[:, :-1])
            builder.add_linear(weights, -2 * root[:, :-1].T @ root[:, -1])
    if target is not None:
        builder.add_quadratic(weights, np.full(k, 2.0))
        builder.add_linear(weights, -2 * target[places])
    solution = solve_conic(builder.build(), tolerance=_TOLERANCE)
    if solution.status not in ("Solved", "AlmostSolved") or not np.isfinite(solution.x).all():
        return None
    placed = np.zeros(len(market.tickers))
    placed[places] = solution.x[weights]
    return placed


def clipped(portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot) -> Floats:
    """Return weights (n,) without shorts, capped by name and sector; the excess is spread in proportion, else cash."""
    cap, share = mandate.limit(ConstraintKind.POSITION_LIMIT_MAX), mandate.limit(ConstraintKind.SECTOR_LIMIT_MAX)
    cap, share = 1.0 if cap is None else cap, 1.0 if share is None else share
    weights = (
        np.maximum(portfolio.weights, 0.0)
        if mandate.get(ConstraintKind.LONG_ONLY) is not None
        else portfolio.weights.copy()
    )
    invested = float(portfolio.weights.sum())
    for _ in range(_CLIPS):
        weights = np.minimum(weights, cap)
        totals = market.membership.T @ weights
        weights *= market.membership @ np.minimum(1.0, share / np.maximum(totals, share))
        full = market.membership @ (market.membership.T @ weights >= share - _TOLERANCE)
        open_to = np.where((weights >= cap - _TOLERANCE) | (full > 0), 0.0, np.maximum(weights, 0.0))
        short = invested - float(weights.sum())
        if short <= _TOLERANCE or open_to.sum() <= 0:
            break
        weights += short * open_to / open_to.sum()
    weights = np.minimum(weights, cap)
    totals = market.membership.T @ weights
    return weights * (market.membership @ np.minimum(1.0, share / np.maximum(totals, share)))


def _linear(
    market: MarketSnapshot, places: Integers, limits: dict[ConstraintKind, Constraint]
) -> list[tuple[Floats, float]]:
    """Return rows a'w <= b of sector, beta and factor limits over the supported names."""
    rows: list[tuple[Floats, float]] = []
    if (sector := limits.get(ConstraintKind.SECTOR_LIMIT_MAX)) is not None:
        rows += [(column, _number(sector.value)) for column in market.membership[places].T if column.any()]
    if (beta := limits.get(ConstraintKind.BETA_RANGE)) is not None:
        slopes = market.betas[places, FACTORS.index("mkt_rf")]
        rows += [] if beta.maximum is None else [(slopes, beta.maximum)]
        rows += [] if beta.minimum is None else [(-slopes, -beta.minimum)]
    if (exposure := limits.get(ConstraintKind.FACTOR_EXPOSURE_MAX)) is not None:
        for factor in exposure.factors:
            slopes = market.betas[places, FACTORS.index(factor)]
            rows += [(slopes, _number(exposure.value)), (-slopes, _number(exposure.value))]
    return rows


def _active_root(market: MarketSnapshot, places: Integers) -> Floats:
    """Return (r, k + 1) R with ||R (w, -1)|| the tracking error of supported weights w, r <= k + 1."""
    if market.risk is None or market.benchmark is None:
        raise InternalError("the market of a risk date has no covariance or benchmark")
    deviations = np.sqrt(market.risk.diagonal)
    root, specific = market.risk.root[:, places], np.zeros((len(deviations), len(places)))
    specific[places, np.arange(len(places))] = deviations[places]
    benchmark = np.concatenate([market.risk.root @ market.benchmark, deviations * market.benchmark])
    stacked = np.column_stack([np.vstack([root, specific]), benchmark])
    return np.asarray(np.linalg.qr(stacked, mode="r"))


def _number(value: float | None) -> float:
    if value is None:
        raise InternalError("a constraint of the catalog has no value")
    return value
