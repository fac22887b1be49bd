"""Portfolios inside a mandate: the convex program that places one, whose result the engines then measure.

Nothing here proves anything. A portfolio placed by it is a witness: that it keeps a mandate, or carries a planted risk,
is what `engines.risk.monitor` and `engines.risk.exposures` find on its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.engines.optimisation.program import Cone, ProgramBuilder, solve
from finskillbench.engines.risk.mandate import Constraint, Kind, Mandate
from finskillbench.engines.risk.portfolio import Market, Portfolio
from finskillbench.errors import InternalError

_TOLERANCE = 1e-10
_CLIPS = 50
_UPPER = (
    Kind.POSITION_LIMIT_MAX,
    Kind.SECTOR_LIMIT_MAX,
    Kind.TRACKING_ERROR_MAX,
    Kind.FACTOR_EXPOSURE_MAX,
    Kind.CASH_MAX,
    Kind.HHI_MAX,
    Kind.TURNOVER_MAX_MONTHLY,
)
"""Constraints whose `value` is an upper limit in continuous units; gross exposure is met by holding cash."""


@dataclass(frozen=True)
class AtLeast:
    """One linear demand on a placed portfolio: coefficients (n,) times weights >= floor."""

    coefficients: Floats
    floor: float


def tightened(mandate: Mandate, share: float, least: float) -> Mandate:
    """The mandate with every continuous limit drawn in by `share` of itself, but by no less than `least`."""

    def tight(limit: Constraint) -> Constraint:
        if limit.kind in _UPPER and limit.value is not None:
            return replace(limit, value=limit.value - max(least, share * limit.value))
        if limit.kind is Kind.POSITION_LIMIT_MIN and limit.value is not None:
            return replace(limit, value=limit.value + max(least, share * limit.value))
        if limit.kind is Kind.BETA_RANGE:
            low, high = limit.minimum, limit.maximum
            return replace(
                limit,
                minimum=None if low is None else low + max(least, share * low),
                maximum=None if high is None else high - max(least, share * high),
            )
        return limit

    return replace(mandate, constraints=tuple(map(tight, mandate.constraints)))


def place(
    market: Market,
    support: Integers,
    *,
    mandate: Mandate | None = None,
    target: Floats | None = None,
    cash: float = 0.0,
    least: float = 0.0,
    ceilings: Floats | None = None,
    demands: Sequence[AtLeast] = (),
) -> Floats | None:
    """The long portfolio (n,) of the names at `support` inside a mandate that is nearest to a target.

    Least squares to `target` (n,), or the least tracking error where there is none; the mandate's turnover and name
    count do not enter (the number of names is the caller's, through `support` and the lower bound). Every supported
    name weighs at least `least` and at most its entry of `ceilings` (n,), within the mandate's own position limits, and
    all sum to 1 - cash. None where the solver finds no such portfolio.
    """
    places, k = support, len(support)
    low, high = least, np.ones(k) if ceilings is None else ceilings[places]
    limits = {} if mandate is None else {limit.kind: limit for limit in mandate.constraints}
    if (cap := limits.get(Kind.POSITION_LIMIT_MAX)) is not None:
        high = np.minimum(high, _number(cap.value))
    if (floor := limits.get(Kind.POSITION_LIMIT_MIN)) is not None:
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
    if (hhi := limits.get(Kind.HHI_MAX)) is not None:
        radius = np.sqrt(_number(hhi.value))
        rhs = np.concatenate([[radius], np.zeros(k)])
        builder.constrain("hhi", Cone.SECOND_ORDER, rhs, (weights, np.full(k, -1.0), 1))
    error = limits.get(Kind.TRACKING_ERROR_MAX)
    if error is not None or target is None:
        root = _active_root(market, places)
        if error is not None:
            # ||root (w, -1)|| <= limit, the active risk of w against the whole benchmark.
            rhs = np.concatenate([[_number(error.value)], -root[:, -1]])
            builder.constrain("tracking error", Cone.SECOND_ORDER, rhs, (weights, -root[:, :-1], 1))
        if target is None:
            builder.add_quadratic(weights, 2 * root[:, :-1].T @ root[:, :-1])
            builder.add_linear(weights, -2 * root[:, :-1].T @ root[:, -1])
    if target is not None:
        builder.add_quadratic(weights, np.full(k, 2.0))
        builder.add_linear(weights, -2 * target[places])
    solution = solve(builder.build(), tolerance=_TOLERANCE)
    if solution.status not in ("Solved", "AlmostSolved") or not np.isfinite(solution.x).all():
        return None
    placed = np.zeros(len(market.tickers))
    placed[places] = solution.x[weights]
    return placed


def clipped(portfolio: Portfolio, mandate: Mandate, market: Market) -> Floats:
    """The weights (n,) of the plainest cure: no shorts, cut positions and sectors at their limits, spread the rest.

    What is cut off goes to the other holdings in proportion to their weights, and to cash where none has room.
    """
    cap, share = mandate.limit(Kind.POSITION_LIMIT_MAX), mandate.limit(Kind.SECTOR_LIMIT_MAX)
    cap, share = 1.0 if cap is None else cap, 1.0 if share is None else share
    weights = (
        np.maximum(portfolio.weights, 0.0) if mandate.get(Kind.LONG_ONLY) is not None else portfolio.weights.copy()
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


def _linear(market: Market, places: Integers, limits: dict[Kind, Constraint]) -> list[tuple[Floats, float]]:
    """Rows a'w <= b of the mandate's sector, beta and factor limits, over the supported names."""
    rows: list[tuple[Floats, float]] = []
    if (sector := limits.get(Kind.SECTOR_LIMIT_MAX)) is not None:
        rows += [(column, _number(sector.value)) for column in market.membership[places].T if column.any()]
    if (beta := limits.get(Kind.BETA_RANGE)) is not None:
        slopes = market.betas[places, FACTORS.index("mkt_rf")]
        rows += [] if beta.maximum is None else [(slopes, beta.maximum)]
        rows += [] if beta.minimum is None else [(-slopes, -beta.minimum)]
    if (exposure := limits.get(Kind.FACTOR_EXPOSURE_MAX)) is not None:
        for factor in exposure.factors:
            slopes = market.betas[places, FACTORS.index(factor)]
            rows += [(slopes, _number(exposure.value)), (-slopes, _number(exposure.value))]
    return rows


def _active_root(market: Market, places: Integers) -> Floats:
    """(r, k + 1) R with ||R (w, -1)|| the tracking error of supported weights w, r at most k + 1.

    The triangular factor of the stacked square roots: the program's size depends on the support, not on the universe.
    """
    if market.risk is None or market.benchmark is None:
        raise InternalError("the market of a risk date comes without its covariance or benchmark")
    deviations = np.sqrt(market.risk.diagonal)
    root, own = market.risk.root[:, places], np.zeros((len(deviations), len(places)))
    own[places, np.arange(len(places))] = deviations[places]
    benchmark = np.concatenate([market.risk.root @ market.benchmark, deviations * market.benchmark])
    stacked = np.column_stack([np.vstack([root, own]), benchmark])
    return np.asarray(np.linalg.qr(stacked, mode="r"))


def _number(value: float | None) -> float:
    if value is None:
        raise InternalError("a constraint of the catalog comes without its value")
    return value
