"""Rolling least squares with intercept, for many regressands on common regressors.

Rows are cut into spans of a window's length, so that every window is the tail of one span plus the head of the next.
Its sums add one tail sum and one head sum: a few operations per row, and no subtraction as in running totals. Data are
centred over the two spans first: uncentred running totals are wrong by 0.03 at a level of 1e4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.errors import DimensionError, InputError

WINDOW = 252
MIN_OBSERVATIONS = 120

_COLUMNS = 256
"""Regressands per product, which limits memory to tens of megabytes."""
_COLLINEAR = 1e-12
"""Minimum share of a regressor's variance that earlier ones leave unexplained."""


@dataclass(frozen=True, slots=True, eq=False)
class RollingFit:
    """Regressions of m columns in W windows on k regressors.

    Attributes
    ----------
    rows : (W,) last row of each window, increasing.
    alpha : (W, m) intercept, in the unit of y per period.
    beta : (W, m, k) slopes.
    r2 : (W, m) share of variance explained; NaN also for a constant y.
    n_obs : (W, m) rows used. If below the minimum, alpha, beta and r2 are NaN.
    """

    rows: Integers
    alpha: Floats
    beta: Floats
    r2: Floats
    n_obs: Integers


def rolling_ols(
    y: Floats, x: Floats, window: int = WINDOW, min_obs: int = MIN_OBSERVATIONS, *, rows: Integers | None = None
) -> RollingFit:
    """Regress each column of y on x and a constant, over trailing windows of rows.

    Parameters
    ----------
    y : (T, m) regressands; NaN marks a missing observation.
    x : (T, k) regressors; a row with a NaN is missing for all columns of y.
    window : rows per window; the first window ends at row `window - 1`. The result has no windows if T < window.
    min_obs : minimum observed rows per window.
    rows : strictly increasing last rows of windows; by default every row from `window - 1` on.

    Raises `DimensionError` for mismatched shapes. Raises `InputError` for infinite values, a minimum too small to
    identify the slopes, rows that end no window, and collinear regressors.
    """
    y, x = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
    ends = np.arange(window - 1, len(y)) if rows is None else rows.astype(np.int64)
    _refuse_unusable(y, x, ends, window, min_obs)
    present = np.logical_not(np.isnan(x).any(axis=1, keepdims=True))
    observed = ~np.isnan(y) & present
    y, x = np.where(observed, y, 0.0), np.where(present, x, 0.0)
    fit = _unfitted(ends, len(y.T), len(x.T))
    for span in np.unique((ends - window + 1) // window):
        low = int(span) * window
        high = min(low + 2 * window - 1, len(y))
        which = np.flatnonzero((ends - window + 1) // window == span)
        first = ends[which] - window + 1 - low  # first row of each window, relative to the span
        for columns in _same_pattern(observed[low:high]):
            mask = observed[low:high, columns[0]]
            counts = np.rint(_window_sums(mask[:, None].astype(np.float64), window, first)[:, 0]).astype(np.int64)
            fit.n_obs[np.ix_(which, columns)] = counts[:, None]
            keep = counts >= min_obs
            if not keep.any():
                continue
            for part in range(0, len(columns), _COLUMNS):
                some = columns[part : part + _COLUMNS]
                target = np.ix_(which[keep], some)
                fit.alpha[target], fit.beta[target], fit.r2[target] = _fit_windows(
                    y[low:high, some], x[low:high], mask, window, first[keep], low
                )
    return fit


def _unfitted(ends: Integers, columns: int, regressors: int) -> RollingFit:
    return RollingFit(
        rows=ends,
        alpha=np.full((len(ends), columns), np.nan),
        beta=np.full((len(ends), columns, regressors), np.nan),
        r2=np.full((len(ends), columns), np.nan),
        n_obs=np.zeros((len(ends), columns), dtype=np.int64),
    )


def _refuse_unusable(y: Floats, x: Floats, ends: Integers, window: int, min_obs: int) -> None:
    if y.ndim != 2 or x.ndim != 2 or len(y) != len(x):
        raise DimensionError(f"rolling_ols: y {y.shape} and x {x.shape} must be (T, m) and (T, k) with one T")
    if np.isinf(y).any() or np.isinf(x).any():
        raise InputError("rolling_ols: infinite value in y or x; mark missing observations by NaN")
    least = len(x.T) + 2
    if not least <= min_obs <= window:
        raise InputError(f"rolling_ols: min_obs {min_obs} must lie between k + 2 = {least} and window {window}")
    if len(ends) and (ends[0] < window - 1 or ends[-1] >= len(y) or (np.diff(ends) <= 0).any()):
        raise InputError(f"rolling_ols: rows must increase strictly within [{window - 1}, {len(y) - 1}]")


def _same_pattern(observed: Booleans) -> list[Integers]:
    """Group columns with equal missing rows: each group needs one Gram matrix."""
    if observed.all():
        return [np.arange(observed.shape[1])] if observed.shape[1] else []
    groups: dict[bytes, list[int]] = {}
    for column, pattern in enumerate(np.packbits(observed, axis=0).T):
        groups.setdefault(pattern.tobytes(), []).append(column)
    return [np.array(columns) for columns in groups.values()]


def _window_sums(values: Floats, window: int, first: Integers) -> Floats:
    """Sum values (R, q) over windows that begin at rows `first` (W,) < window <= R; returns (W, q)."""
    tails = values[window - 1 :: -1].cumsum(axis=0)[::-1]
    sums = tails[first]
    crossing = np.flatnonzero(first)
    if len(crossing):
        heads = values[window:].cumsum(axis=0)
        sums[crossing] += heads[first[crossing] - 1]
    return sums


def _fit_windows(
    y: Floats, x: Floats, mask: Booleans, window: int, first: Integers, offset: int
) -> tuple[Floats, Floats, Floats]:
    """Fit the windows beginning at rows `first` (W,) of y (R, m) and x (R, k), on the rows in `mask` (R,).

    `offset` is the index of row 0 in the caller's table. Returns alpha (W, m), beta (W, m, k), r2 (W, m).
    """
    length = len(y)
    weight = mask.astype(np.float64)[:, None]
    x_level, y_level = x[mask].mean(axis=0), y[mask].mean(axis=0)
    x, y = (x - x_level) * weight, (y - y_level) * weight

    def sums(values: Floats) -> Floats:
        return _window_sums(values.reshape(length, -1), window, first).reshape(-1, *values.shape[1:])

    count = sums(weight)  # (W, 1)
    x_mean, y_mean = sums(x) / count, sums(y) / count
    gram = sums(x[:, :, None] * x[:, None, :]) - (count * x_mean)[:, :, None] * x_mean[:, None, :]
    cross = sums(x[:, :, None] * y[:, None, :]) - (count * x_mean)[:, :, None] * y_mean[:, None, :]
    total = sums(y * y) - count * y_mean**2

    scale = np.sqrt(np.maximum(np.diagonal(gram, axis1=1, axis2=2), 0.0))
    ends = offset + first + window - 1
    for constant in np.flatnonzero((scale == 0).any(axis=1)):
        column = int(np.argmin(scale[constant]))
        raise InputError(f"rolling_ols: regressor {column} is constant in the window ending at row {ends[constant]}")
    correlation = gram / (scale[:, :, None] * scale[:, None, :])
    _require_independent(correlation, ends)
    slopes = np.linalg.solve(correlation, cross / scale[:, :, None]) / scale[:, :, None]  # (W, k, m)
    explained = np.einsum("wkm,wkm->wm", slopes, cross)
    intercept = y_mean + y_level - np.einsum("wk,wkm->wm", x_mean + x_level, slopes)
    # A y that varies by rounding of its level only is constant.
    varies = total > count * (4 * np.finfo(np.float64).eps * np.abs(y_level)) ** 2
    r2 = np.divide(explained, total, out=np.full_like(total, np.nan), where=varies)
    return intercept, slopes.transpose(0, 2, 1), r2


def _require_independent(correlation: Floats, ends: Integers) -> None:
    """Raise `InputError` for windows with a zero pivot of the correlation (W, k, k)."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(correlation), axis1=1, axis2=2) ** 2
        independent = (pivots > _COLLINEAR).all(axis=1)
    except np.linalg.LinAlgError:
        independent = np.linalg.eigvalsh(correlation)[:, 0] > _COLLINEAR
    if not independent.all():
        end = ends[np.argmin(independent)]
        raise InputError(f"rolling_ols: regressors are collinear in the window ending at row {end}; drop one of them")
