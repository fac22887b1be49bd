"""Dynamic trading with quadratic costs: the optimal step of today, given forecasts that decay.

Trading a book h (n amounts) to x costs (x - h)' diag(impact) (x - h) / 2. Until the next date x earns x'm less
aversion * (x - b)' S (x - b) / 2, the risk against the benchmark b. Limits A x = d may hold from some date on. If
trading does not affect learning, only forecast means matter, and an action loses (x - x*)' G (x - x*) / 2.

Source: Gârleanu and Pedersen (2013), "Dynamic trading with predictable returns and transaction costs", with a finite
horizon, equality limits and a benchmark; Bertsekas (2017), ch. 3, for the recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Equalities A x = d on the book after a trade: `rows` is A (k, n), `amounts` is d (k,)."""

    rows: Floats
    amounts: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Known inputs of one date: risk aversion per unit of money, benchmark amounts (n,), limits."""

    aversion: float
    benchmark: Floats
    limits: Limits | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """Optimal rule of one date: x* = gain (push + impact * h) + forced.

    `push` is the date's forecast plus the later dates' demand. `curvature` (n, n) is G, `gain` (n, n) its inverse
    within the limits, `forced` (n,) the limits' demand, `carried` (n,) the step's term aversion * S b.
    """

    curvature: Floats
    gain: Floats
    forced: Floats
    carried: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TradingPolicy:
    """Optimal rules of all dates for one covariance and one vector of impacts (n,)."""

    impact: Floats
    rules: tuple[_Rule, ...]

    def aim(self, first: int, forecasts: Floats) -> Floats:
        """Return the (n,) book that date `first` would trade to from nothing.

        `forecasts` (T - first, n) are expected returns of the dates from `first` on, as expected then.
        """
        if forecasts.shape != (len(self.rules) - first, len(self.impact)):
            raise DimensionError(
                f"forecasts have shape {forecasts.shape}; give {len(self.rules) - first} x {len(self.impact)}"
            )
        later = np.zeros(len(self.impact))
        aim = later
        for rule, forecast in zip(self.rules[first:][::-1], forecasts[::-1], strict=True):
            aim = rule.gain @ (forecast + rule.carried + later) + rule.forced
            later = self.impact * aim
        return aim

    def best(self, date: int, aim: Floats, book: Floats) -> Floats:
        """Return the (n,) optimal book after a date's trade from the book before it."""
        return aim + self.rules[date].gain @ (self.impact * book)

    def loss(self, date: int, best: Floats, traded: Floats) -> float:
        """Return the value lost by trading to `traded` instead of `best`; both satisfy the date's limits."""
        apart = traded - best
        return max(0.0, float(apart @ self.rules[date].curvature @ apart) / 2)


def solve(covariance: Floats, impact: Floats, steps: Sequence[Step]) -> TradingPolicy:
    """Compute the optimal rules by backward recursion over the dates.

    `covariance` (n, n) is per period, `impact` (n,) > 0 are second derivatives of trading costs. InputError for
    contradictory or redundant limits, or an impact that is not positive.
    """
    n = len(impact)
    if covariance.shape != (n, n):
        raise DimensionError(f"covariance has shape {covariance.shape} for {n} impacts")
    if not ((impact > 0) & np.isfinite(impact)).all():
        raise InputError("impact: every name must cost something to trade; give positive, finite numbers")
    rules: list[_Rule] = []
    worth = np.zeros((n, n))  # minus the second derivative of the next date's value
    for step in reversed(steps):
        curvature = step.aversion * covariance + worth
        curvature[np.diag_indices(n)] += impact
        gain, forced = _within(curvature, step.limits)
        rules.append(_Rule(curvature, gain, forced, step.aversion * (covariance @ step.benchmark)))
        worth = -(impact[:, None] * gain * impact)
        worth[np.diag_indices(n)] += impact
    return TradingPolicy(impact, tuple(reversed(rules)))


def _within(curvature: Floats, limits: Limits | None) -> tuple[Floats, Floats]:
    """Return the inverse of a curvature within the limits, and the least-cost point that satisfies them."""
    inverse = np.linalg.inv(curvature)
    inverse = (inverse + inverse.T) / 2
    if limits is None:
        return inverse, np.zeros(len(curvature))
    across = inverse @ limits.rows.T
    try:
        weights = np.linalg.solve(limits.rows @ across, across.T)
    except np.linalg.LinAlgError:
        raise InputError("limits: two of them say the same or contradict each other; drop one") from None
    return inverse - across @ weights, weights.T @ limits.amounts


def completed(book: Floats, impact: Floats, limits: Limits | None) -> Floats:
    """Return the (n,) book that satisfies the limits at the least cost of trading there."""
    if limits is None:
        return book
    open_amounts = limits.amounts - limits.rows @ book
    across = limits.rows.T / impact[:, None]
    return book + across @ np.linalg.solve(limits.rows @ across, open_amounts)
