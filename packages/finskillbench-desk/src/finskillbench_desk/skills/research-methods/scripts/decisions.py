"""From forecasts to trades: one book net of costs, or trades on successive dates; averages of several forecasts.

All functions take numbers as you state them and prove what they return, or report how far they are from it.
"""

# pyright: basic
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from panels import Floats


def average(
    alphas: Sequence[Floats], doubts: Sequence[Floats], log_weights: Sequence[float] | Floats
) -> tuple[Floats, Floats]:
    """Return mean and covariance of a mixture; pass log prior plus log evidence as `log_weights`."""
    p = np.exp(np.asarray(log_weights) - np.max(log_weights))
    p = p / p.sum()
    mean = np.tensordot(p, np.array(alphas), 1)
    square = np.tensordot(p, np.array([d + np.outer(a, a) for a, d in zip(alphas, doubts, strict=True)]), 1)
    return mean, square - np.outer(mean, mean)


def utility(
    w: Floats, mean: Floats, covariance: Floats, held: Floats, costs: tuple[Floats, Floats], aversion: float
) -> float:
    """Return m'w - aversion / 2 w'Vw - linear'|w - held| - quadratic'(w - held)^2; costs are (linear, quadratic)."""
    trade = w - held
    return float(mean @ w - aversion / 2 * w @ covariance @ w - costs[0] @ np.abs(trade) - costs[1] @ trade**2)


def best_book(
    mean: Floats,
    covariance: Floats,
    held: Floats,
    costs: tuple[Floats, Floats],
    aversion: float,
    limits: tuple[Floats, Floats],
    *,
    cap: float = 1.0,
    turnover: float = 1.0,
    margin: float = 5e-6,
) -> tuple[Floats, dict[str, float]]:
    """Return the book of greatest `utility`, fully invested and long only, and a proof of it.

    `limits` are (rows (k, n), right sides (k,)) of rows @ w <= right; `turnover` is one-way; `margin` leaves room for
    rounding. The report holds `utility`, `gap` and `residual` (both near 0: optimal) and the worst `breach`.
    """
    n, (linear, quadratic), (rows, right) = len(held), costs, limits
    moves = np.hstack([np.eye(n), -np.eye(n)])  # buys and sales
    price = np.diag(2 * quadratic)
    hessian = moves.T @ (aversion * covariance) @ moves + np.block([[price, -price], [-price, price]])
    slope = -moves.T @ (mean - aversion * covariance @ held) + np.r_[linear, linear]
    lhs = np.vstack([-np.eye(2 * n), moves, -moves, rows @ moves, np.full((1, 2 * n), 0.5)])
    room = np.r_[np.zeros(2 * n), cap - margin - held, held, right - margin - rows @ held, turnover - 20 * margin]
    budget, x, y, k = moves.sum(0)[None], np.full(2 * n, 1e-3), np.zeros(1), len(room)
    slack, dual = np.maximum(room - lhs @ x, 1e-3), np.full(k, 1e-3)
    first, gap = np.zeros(2 * n), 1.0

    def farthest(v: Floats, step: Floats) -> float:
        return min(1.0, 1 / max(float(np.max(-step / v)), 1e-16))

    for _ in range(100):
        first = hessian @ x + slope + budget.T @ y + lhs.T @ dual
        equal, below, gap = budget @ x - 1 + held.sum(), lhs @ x + slack - room, float(slack @ dual)
        if max(np.abs(first).max(), np.abs(equal).max(), np.abs(below).max(), gap) < 1e-10:
            break
        kkt = np.block([[hessian + (lhs.T * (dual / slack)) @ lhs, budget.T], [budget, np.zeros((1, 1))]])
        product, change = slack * dual, (np.zeros(0),) * 4
        for target in (0.0, 1.0):  # predictor, corrector
            if target:
                near = (slack + farthest(slack, change[2]) * change[2]) @ (dual + farthest(dual, change[3]) * change[3])
                product = slack * dual + change[2] * change[3] - (near / gap) ** 3 * gap / k
            move = np.linalg.solve(kkt, np.r_[-first - lhs.T @ ((dual * below - product) / slack), -equal])
            step = -below - lhs @ move[:-1]
            change = move[:-1], move[-1:], step, (-product - dual * step) / slack
        far = 0.995 * min(farthest(slack, change[2]), farthest(dual, change[3]))
        x, y, slack, dual = (v + far * d for v, d in zip((x, y, slack, dual), change, strict=True))
    w = np.clip(np.round(held + moves @ x, 6), 0, cap)
    w[np.argmin(np.abs(w - min(cap, 2 / n) / 2))] += 1 - w.sum()
    w = np.round(w, 6)
    breach = max(
        float((rows @ w - right).max(initial=0)), float(w.max()) - cap, float(np.abs(w - held).sum()) / 2 - turnover
    )
    return w, {
        "utility": utility(w, mean, covariance, held, costs, aversion),
        "gap": gap,
        "residual": float(np.abs(first).max()),
        "breach": breach,
        "turnover": float(np.abs(w - held).sum()) / 2,
    }


def path_of(parts: Floats, half_life: Floats, dates: int, end: float = 0.0, fade: float = 0.0) -> Floats:
    """Return expected returns (dates, n) from each signal's part today (n, C): it decays, and the effect may end.

    `end` is the probability per date that the effect ends; with `fade`, it halves in so many dates.
    """
    date = np.arange(dates)[:, None]
    keep = 2.0 ** (-date / half_life) * (1 - end) ** date * (2.0 ** (-date / fade) if fade else 1.0)
    return keep @ parts.T


def trade_path(
    alphas: Floats,
    covariance: Floats,
    aversions: Floats,
    targets: Floats,
    held: Floats,
    quadratic: Floats,
    equal: tuple[Floats, Floats, int] | None = None,
) -> tuple[Floats, float]:
    """Return trades (H, n) that are best for all dates left together, and their value; today's is the first row.

    Each date earns (x - target)'(alpha - aversion / 2 V(x - target)) - quadratic'trade^2, x being held after its trade:
    the value is against holding the target. `equal` is (rows (k, n), right sides of the dates from the first one on
    (H - first, k), first date from 0) of rows @ x = right. Without it the optimum is exact linear algebra; each later
    date will be decided anew, which for a quadratic problem changes nothing today.
    """
    dates, n = alphas.shape
    hessian, slope = np.zeros((dates, n, dates, n)), np.zeros((dates, n))
    for t in range(dates):
        hessian[t, :, t] += aversions[t] * covariance + np.diag(2 * quadratic * (2 if t + 1 < dates else 1))
        slope[t] = alphas[t] + aversions[t] * covariance @ targets[t]
        if t:
            hessian[t, :, t - 1] = hessian[t - 1, :, t] = -np.diag(2 * quadratic)
    slope[0] += 2 * quadratic * held
    full, aim = hessian.reshape(dates * n, dates * n), slope.ravel()
    if equal is not None and equal[2] < dates:
        rows, right, first = equal
        bound = np.kron(np.eye(dates)[first:], rows)
        full = np.block([[full, bound.T], [bound, np.zeros((len(bound), len(bound)))]])
        aim = np.r_[aim, np.asarray(right)[first - dates :].ravel()]
    x = np.linalg.solve(full, aim)[: dates * n].reshape(dates, n)
    trades = np.diff(np.vstack([held, x]), axis=0)
    away: Any = x - targets
    risk = np.einsum("tn,nm,tm->t", away, covariance, away) @ aversions / 2
    return trades, float((alphas * away).sum() - risk - (trades**2 @ quadratic).sum())
