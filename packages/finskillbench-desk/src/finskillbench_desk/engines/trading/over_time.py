"""Trading over time with quadratic costs: the optimal step of today, given forecasts that decay.

At each of T dates a book h (n amounts of money) is traded to x, at a cost of (x - h)' diag(impact) (x - h) / 2; until
the next date it earns x'm and is charged aversion * (x - b)' S (x - b) / 2 for its risk against the amounts b of the
benchmark. From some date on linear limits A x = d must hold exactly. Amounts do not drift: x is what the next date
begins with. Forecasts may be of any kind, as long as trading does not change what is learned; then only their means
matter (certainty equivalence), the value is quadratic in the book, and what an action loses against the best one from
the same book is exactly (x - x*)' G (x - x*) / 2.

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
    """What is known in advance of one date: risk aversion per unit of money, the benchmark's amounts (n,), limits."""

    aversion: float
    benchmark: Floats
    limits: Limits | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """The optimal rule of one date: x* = gain (push + impact * h) + forced.

    `push` is the forecast of the date itself plus what the later dates ask for (see `aims`).

    Attributes
    ----------
    curvature : (n, n) G: what an action x loses is (x - x*)' G (x - x*) / 2.
    gain : (n, n) inverse of G within the directions that the limits leave.
    forced : (n,) what the limits ask for by themselves.
    carried : (n,) the step's own pull, aversion * S b.
    """

    curvature: Floats
    gain: Floats
    forced: Floats
    carried: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """The optimal rules of all dates for one covariance and one vector of impacts (n,)."""

    impact: Floats
    rules: tuple[_Rule, ...]

    def aim(self, first: int, forecasts: Floats) -> Floats:
        """(n,) the book that date `first` would trade to from nothing, given the means of what is to come.

        `forecasts` (T - first, n) are expected returns of the dates from `first` on, as expected at that date.
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
        """(n,) the optimal book after the trade of a date, from the book before it."""
        return aim + self.rules[date].gain @ (self.impact * book)

    def loss(self, date: int, best: Floats, traded: Floats) -> float:
        """The optimal value lost by trading to `traded` where `best` was optimal; both meet the date's limits."""
        apart = traded - best
        return max(0.0, float(apart @ self.rules[date].curvature @ apart) / 2)


def solve(covariance: Floats, impact: Floats, steps: Sequence[Step]) -> Policy:
    """The optimal rules, from the last date back to the first.

    Parameters
    ----------
    covariance : (n, n) of returns per period.
    impact : (n,) second derivatives of the cost of a trade, each > 0.
    steps : the dates in order.

    Raises
    ------
    InputError : if the limits of a date contradict each other or an impact is not positive.
    """
    n = len(impact)
    if covariance.shape != (n, n):
        raise DimensionError(f"covariance has shape {covariance.shape} for {n} impacts")
    if not ((impact > 0) & np.isfinite(impact)).all():
        raise InputError("impact: every name must cost something to trade; give positive, finite numbers")
    rules: list[_Rule] = []
    worth = np.zeros((n, n))  # minus the second derivative of the value of the next date
    for step in reversed(steps):
        curvature = step.aversion * covariance + worth
        curvature[np.diag_indices(n)] += impact
        gain, forced = _within(curvature, step.limits)
        rules.append(_Rule(curvature, gain, forced, step.aversion * (covariance @ step.benchmark)))
        worth = -(impact[:, None] * gain * impact)
        worth[np.diag_indices(n)] += impact
    return Policy(impact, tuple(reversed(rules)))


def _within(curvature: Floats, limits: Limits | None) -> tuple[Floats, Floats]:
    """The inverse of a curvature within the limits, and the point that the limits ask for by themselves."""
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
    """(n,) the nearest book, by the cost of trading there, that meets the limits."""
    if limits is None:
        return book
    open_amounts = limits.amounts - limits.rows @ book
    across = limits.rows.T / impact[:, None]
    return book + across @ np.linalg.solve(limits.rows @ across, open_amounts)
