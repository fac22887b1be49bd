"""Independent derivation of the effects under a law: a filter that goes through the quarters, on a grid of sizes.

It shares neither code nor method with `posterior`. Features are written out from their definitions. Weights of all
hypotheses (start of the regime, source, size) are updated quarter by quarter by predictive densities; with two effects,
each pair has a Kalman filter. Source: Adams and MacKay (2007), Bayesian online changepoint detection.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from finskillbench.arrays import Floats
from finskillbench_desk.allocate.laws import Law
from finskillbench_desk.allocate.visible import Visible

_POINTS, _WIDTH = 161, 6.5
"""Number of grid points of sizes, and their range in standard deviations around the mean."""
_SIGNALS, _PER_VENDOR, _ANALYSTS = 150, 5, 40
_FIRST_BREAK = 2


def rederive_effects(law: Law, seen: Visible) -> tuple[Floats, Floats]:
    """Return mean (n,) and covariance (n, n) of the effects on the names in the coming quarter."""
    x = np.stack(list(_features(law, seen)), axis=2)
    n = len(seen.specific)
    groups = [np.flatnonzero(place) for place in _places(law, seen)]
    run = _filter_pairs if law.both else _filter_sizes
    found = [run(law, x[:, names], seen.residuals[:, names], seen.specific[names]) for names in groups]
    logs = np.array([each[0] for each in found])  # (G, starts)
    if law.course == "break":
        logs[:] = logs.sum(axis=0)  # one date for all places
        count = int(logs.shape[1])
        dates = np.arange(count) >= _FIRST_BREAK
        prior = np.where(dates, law.change / dates.sum(), 0.0)
        prior[0] = 1.0 - law.change
        with np.errstate(divide="ignore"):
            logs += np.log(prior)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    alpha, doubt = np.zeros(n), np.zeros((n, n))
    for names, weight, (_, first, square) in zip(groups, weights, found, strict=True):
        alpha[names] = weight @ first
        doubt[np.ix_(names, names)] = np.tensordot(weight, square, 1) - np.outer(alpha[names], alpha[names])
    return alpha, doubt


def _places(law: Law, seen: Visible) -> Iterator[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    n = len(seen.specific)
    if law.place == "market":
        yield np.ones(n, dtype=bool)
    elif law.place == "size":
        falling = sorted(range(n), key=lambda name: (-seen.benchmark[name], name))
        for third in range(3):
            yield np.isin(np.arange(n), falling[third * n // 3 : (third + 1) * n // 3])
    else:
        width = 1 if law.place == "industry" else 3
        for group in range(0, int(seen.industry.max()) + 1, width):
            yield (seen.industry >= group) & (seen.industry < group + width)


def _features(law: Law, seen: Visible) -> Iterator[Floats]:
    """Yield the feature (T + 1, n) of each candidate."""
    columns = [seen.scores[:, :, column] for column in range(seen.scores.shape[2])]
    if law.form in ("gate", "product"):
        choose = permutations if law.form == "gate" else combinations
        for vendor in range(0, _SIGNALS, _PER_VENDOR):
            for one, two in choose(range(vendor, vendor + _PER_VENDOR), 2):
                other = 2.0**0.5 * (columns[two] > 0) if law.form == "gate" else columns[two]
                yield _valid(columns[one] * other, max(seen.start[one], seen.start[two]))
        return
    n = len(seen.specific)
    for column, score in enumerate(columns):
        begun = int(seen.start[column])
        if law.form == "level":
            yield _valid(score, begun)
        elif law.form == "change":
            change = np.zeros_like(score)
            change[1:] = score[1:] - score[:-1]
            yield _valid(change, begun + 1)
        elif law.form == "sign":
            yield _valid((score > 0).astype(float) - (score < 0), begun)
        elif law.form == "extreme":
            yield _valid(np.where((score > 1.5) | (score < -1.5), 1.35 * score, 0.0), begun)
        else:
            rank = np.empty_like(score)
            for quarter, values in enumerate(score):
                rank[quarter, sorted(range(n), key=lambda name: (values[name], name))] = np.arange(n)
            yield _valid(np.where(np.isnan(score), 0.0, 12.0**0.5 * (rank / (n - 1) - 0.5)), begun)


def _valid(values: Floats, begun: int) -> Floats:
    found = np.nan_to_num(values)
    found[:begun] = 0.0
    return found


def _sources(law: Law, count: int) -> tuple[Floats, Floats]:
    """Return probability and mean size (C,) of the candidates."""
    if law.form in ("gate", "product"):
        return np.full(count, 1.0 / count), np.full(count, law.strength)
    analyst = np.arange(count) >= _SIGNALS
    chance = np.where(analyst, 0.4 / _ANALYSTS, 0.6 / _SIGNALS)
    return chance, np.where(analyst, 0.9, 1.0) * law.strength


def _filter_sizes(law: Law, x: Floats, r: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Filter one effect in a place: log weights (starts,), means (starts, n) and second moments (starts, n, n)."""
    quarters, halves, count = len(r), len(r) // 2, x.shape[2]
    chance, mean = _sources(law, count)
    step = np.linspace(-_WIDTH, _WIDTH, _POINTS)
    density = np.exp(-(step**2) / 2.0)
    density /= density.sum()
    size = mean[:, None] + law.spread * law.strength * step
    if law.either_sign:
        size, density = np.hstack([size, -size]), np.concatenate([density, density]) / 2.0
    with np.errstate(divide="ignore"):
        prior = np.log((1.0 - law.nothing) * chance[:, None] * density)
    shape = (halves, *size.shape)
    log, none = np.full(shape, -np.inf), np.full(halves, -np.inf)
    log[0], none[0] = prior, np.log(law.nothing)
    off = prior - np.log(2.0)
    if law.course == "intermittent":
        log[0] = off
    ended = np.zeros(halves)
    for quarter in range(quarters):
        half, fresh = divmod(quarter, 2)
        if not fresh and quarter and law.course == "intermittent":
            log[0], off = _turned(log[0], off, law.change), _turned(off, log[0], law.change)
        elif not fresh and quarter:
            begin = half >= _FIRST_BREAK if law.course == "break" else True
            if law.course == "break":
                ended[half] = _total(log[0], none[0])
                gained = 0.0
            else:
                gained = _total(log, none) + np.log(law.change)
                log, none = log + np.log(1.0 - law.change), none + np.log(1.0 - law.change)
            if begin:
                log[half], none[half] = prior + gained, np.log(law.nothing) + gained
        for start in range(half + 1) if law.course != "intermittent" else (0,):
            if np.isfinite(none[start]):
                log[start] += _gain(law, x[quarter], r[quarter], s, size * 0.5 ** ((quarter - 2 * start) / law.life))
            if law.course in ("renewed", "break") and start == 0:
                shared = _gain(law, x[quarter], r[quarter], s, size)
                for later in range(1, half + 1):
                    log[later] += shared
                break
    first, square = np.zeros((halves, x.shape[1])), np.zeros((halves, x.shape[1], x.shape[1]))
    if law.course == "intermittent":
        log[0], off = _turned(log[0], off, law.change), _turned(off, log[0], law.change)
        whole = np.zeros(halves) - np.inf
        whole[0] = np.logaddexp(_total(log[0], none[0]), np.logaddexp.reduce(off, axis=None))
    else:
        whole = np.array([_total(*each) for each in zip(log, none, strict=True)])
    today = x[-1]
    for start in np.flatnonzero(np.isfinite(whole)):
        weight = np.exp(log[start] - whole[start])
        left = size * 0.5 ** ((quarters - 2 * start) / law.life)
        first[start] = today @ (weight * left).sum(axis=1)
        square[start] = (today * (weight * left**2).sum(axis=1)) @ today.T
    return whole + ended, first, square


def _turned(same: Floats, other: Floats, change: float) -> Floats:
    return np.logaddexp(same + np.log(1.0 - change), other + np.log(change))


def _total(log: Floats, none: Floats) -> float:
    return float(np.logaddexp(np.logaddexp.reduce(log, axis=None), np.logaddexp.reduce(none, axis=None)))


def _gain(law: Law, x: Floats, r: Floats, s: Floats, size: Floats) -> Floats:
    """Return the log density (C, K) of a quarter's residuals (n,) under each size, over that without an effect."""
    if np.isinf(law.tail):
        return size * (x.T @ (r / s**2))[:, None] - size**2 * ((x.T**2) @ (1.0 / s**2))[:, None] / 2.0
    gain = np.zeros_like(size)
    for value, residual, deviation in zip(x, r, s, strict=True):
        spread = deviation**2 * (law.tail - 2.0)
        apart = residual - value[:, None] * size
        gain += np.log((1.0 + residual**2 / spread) / (1.0 + apart**2 / spread)) * (law.tail + 1.0) / 2.0
    return gain


def _filter_pairs(law: Law, x: Floats, r: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """As `_filter_sizes`, for a signal and an analyst with effects at the same time, one Kalman filter for a pair."""
    quarters, halves = len(r), len(r) // 2
    _, mean = _sources(law, x.shape[2])
    signs = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] if law.either_sign else [(1.0, 1.0)]
    begin = [np.broadcast_to(v[:, None, None], (len(signs), _SIGNALS, _ANALYSTS)) for v in np.array(signs).T]
    begin[0] = begin[0] * mean[:_SIGNALS, None]
    begin[1] = begin[1] * mean[_SIGNALS:]
    prior = np.log((1.0 - law.nothing) / (_SIGNALS * _ANALYSTS * len(signs)))
    variance = (law.spread * law.strength) ** 2
    first, square = np.zeros((halves, x.shape[1])), np.zeros((halves, x.shape[1], x.shape[1]))
    ended, whole = np.zeros(halves), np.full(halves, -np.inf)
    states: dict[int, list[Floats]] = {}
    none, log_none = dict[int, float](), float(np.log(law.nothing))
    for quarter in range(quarters):
        half, fresh = divmod(quarter, 2)
        if not fresh:
            gained = 0.0
            if quarter and law.course == "break":
                ended[half] = _total(states[0][0], np.array([none[0]]))
            elif quarter:
                parts = [_total(state[0], np.array([none[start]])) for start, state in states.items()]
                gained = float(np.logaddexp.reduce(parts)) + np.log(law.change)
                for start, state in states.items():
                    state[0] = state[0] + np.log(1.0 - law.change)
                    none[start] += np.log(1.0 - law.change)
            if not quarter or law.course != "break" or half >= _FIRST_BREAK:
                flat = np.full((_SIGNALS, _ANALYSTS), variance)
                weights = np.full(begin[0].shape, prior + gained)
                states[half] = [weights, begin[0], begin[1], flat, flat, np.zeros_like(flat)]
                none[half] = log_none + gained
        scaled, target = x[quarter] / s[:, None], r[quarter] / s
        inner, cross = scaled.T @ scaled, scaled.T @ target
        for start, state in states.items():
            states[start] = _updated(state, inner, cross)
    one, two = x[-1][:, :_SIGNALS], x[-1][:, _SIGNALS:]
    for start, (log, u, v, a, b, c) in states.items():
        whole[start] = _total(log, np.array([none[start]]))
        weight = np.exp(log - whole[start])
        first[start] = one @ (weight * u).sum(axis=(0, 2)) + two @ (weight * v).sum(axis=(0, 1))
        across = one @ (weight * (u * v + c)).sum(axis=0) @ two.T
        square[start] = (one * (weight * (u * u + a)).sum(axis=(0, 2))) @ one.T + across + across.T
        square[start] += (two * (weight * (v * v + b)).sum(axis=(0, 1))) @ two.T
    return whole + ended, first, square


def _updated(state: list[Floats], inner: Floats, cross: Floats) -> list[Floats]:
    """Return weights, means and covariances of all pairs after a quarter."""
    log, u, v, a, b, c = state
    g, h = np.diag(inner)[:_SIGNALS, None], np.diag(inner)[_SIGNALS:]
    k = inner[:_SIGNALS, _SIGNALS:]
    # I + P G, with covariance P = [[a, c], [c, b]] and information G = [[g, k], [k, h]].
    p, q, w, z = 1.0 + a * g + c * k, a * k + c * h, c * g + b * k, 1.0 + c * k + b * h
    determinant = p * z - q * w
    new_a, new_c, new_b = (z * a - q * c) / determinant, (z * c - q * b) / determinant, (p * b - w * c) / determinant
    left, right = cross[:_SIGNALS, None] - g * u - k * v, cross[_SIGNALS:] - k * u - h * v
    gain = u * cross[:_SIGNALS, None] + v * cross[_SIGNALS:] - (g * u * u + 2.0 * k * u * v + h * v * v) / 2.0
    gain += (new_a * left**2 + 2.0 * new_c * left * right + new_b * right**2 - np.log(determinant)) / 2.0
    return [log + gain, u + new_a * left + new_c * right, v + new_c * left + new_b * right, new_a, new_b, new_c]
