"""Posterior of the coming quarter's effects under a stated law, by quadrature over sizes and sums over regimes.

With one effect in a place, its size is summed over an even grid, so that residuals may have any density. With two,
sizes are integrated in closed form for every pair of a signal and an analyst (normal residuals only). Regimes are
summed exactly: over partitions (Fearnhead 2006), over the date of a common break, or over on and off by the forward
recursion of a hidden Markov chain (Rabiner 1989).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.allocate.laws import EARLIEST, PER_HALF, Law, chances, features, places, sizes
from finskillbench_desk.allocate.sources import ANALYSTS, HALVES, NAMES, SIGNALS, AllocationBook

_NODES, _WIDTH = 49, 7.0
"""Number of grid points of sizes, and their range in standard deviations around the mean.

For a likelihood of standard deviation s times the prior's, the relative error is near exp(-2 (pi s / step)^2); s is at
least 0.27. 32 Gauss-Hermite nodes, twice as far apart in the centre, gave errors of expected effects of up to 4e-5.
"""
_NEGLIGIBLE = 1e-12
"""Smallest probability of a regime that is summed."""


class Effects(NamedTuple):
    """Mean (n,) and covariance (n, n) of the effects on the names in the coming quarter."""

    alpha: Floats
    doubt: Floats


class SizeMoments(NamedTuple):
    """First (G, C) and second (G, C, C) moments of the sizes in force in the coming quarter, by place."""

    mean: Floats
    square: Floats


class _Stretch(NamedTuple):
    """Log evidence (G,) of a stretch of half-years against no effect, and conditional moments if there is an effect."""

    log: Floats
    moments: Callable[[], SizeMoments]


_Evidence = Callable[[int, int], _Stretch]


def law_effects(law: Law, scores: Floats, start: Integers, residuals: Floats, book: AllocationBook) -> Effects:
    """Return the posterior of the effects.

    Parameters
    ----------
    scores : (T + 1, n, sources) standardised values as rightly read; the last row is the coming quarter.
    start : (sources,) first valid quarter.
    residuals : (T, n) returns less what the factors explain.
    """
    found = features(law, scores, start)
    return effects_of(law_moments(law, found, residuals, book), found[-1], places(law, book))


def law_moments(law: Law, found: Floats, residuals: Floats, book: AllocationBook) -> SizeMoments:
    """Return the posterior of sizes, given the features (T + 1, n, C), of which the last row is not used."""
    place_of = places(law, book)
    if law.course == "intermittent":
        return _intermittent(law, _by_half(law, found, residuals, book, place_of))
    evidence = (_double if law.both else _single)(law, found, residuals, book, place_of)
    return (_common_break if law.course == "break" else _partitions)(law, evidence)


def effects_of(moments: SizeMoments, now: Floats, place_of: Integers) -> Effects:
    """Return the effects on names in the places `place_of` (n,), given the coming quarter's features (n, C)."""
    alpha, doubt = np.zeros(NAMES), np.zeros((NAMES, NAMES))
    for place, (mean, square) in enumerate(zip(*moments, strict=True)):
        names = np.flatnonzero(place_of == place)
        today = now[names]
        alpha[names] = today @ mean
        doubt[np.ix_(names, names)] = today @ square @ today.T - np.outer(alpha[names], alpha[names])
    return Effects(alpha, doubt)


def _log_sum(logs: Floats, axis: int | tuple[int, ...]) -> Floats:
    top = logs.max(axis=axis, keepdims=True)
    total: Floats = np.log(np.exp(logs - top).sum(axis=axis)) + top.squeeze(axis)
    return total


def _quadrature(law: Law) -> tuple[Floats, Floats]:
    """Return sizes (C, K) and log weights (K,)."""
    points = np.linspace(-_WIDTH, _WIDTH, _NODES)
    weights = np.exp(-(points**2) / 2.0)
    mean, deviation = sizes(law)
    size, log = mean[:, None] + deviation[:, None] * points, np.log(weights / weights.sum())
    if law.either_sign:
        return np.hstack([size, -size]), np.concatenate([log, log]) - np.log(2.0)
    return size, log


def _by_place(values: Floats, place_of: Integers) -> Floats:
    """Sum (T, n, C) over the names of each place: (T, G, C)."""
    member = (np.arange(int(place_of.max()) + 1)[:, None] == place_of).astype(float)
    return np.matmul(member, values)


def _by_half(law: Law, found: Floats, residuals: Floats, book: AllocationBook, place_of: Integers) -> Floats:
    """Return log likelihood ratios (H, G, C, K) of each size against no effect, by half-year."""
    size, _ = _quadrature(law)
    count = int(place_of.max()) + 1
    logs = np.empty((HALVES, count, *size.shape))
    if np.isinf(law.tail):
        scaled = found[:-1] / book.specific[:, None]
        squares, products = (
            _by_place(part, place_of).reshape(HALVES, PER_HALF, count, -1).sum(axis=1)
            for part in (scaled**2, scaled * (residuals / book.specific)[:, :, None])
        )
        logs[:] = size * products[..., None] - size**2 * squares[..., None] / 2.0
        return logs
    scale = book.specific * np.sqrt(law.tail - 2.0)
    scaled, target = found[:-1] / scale[:, None], (residuals / scale)[:, :, None]
    without = _by_place(np.log1p(target**2), place_of)
    for node in range(size.shape[1]):
        left = _by_place(np.log1p((target - scaled * size[:, node]) ** 2), place_of)
        ratio = (without - left) * (law.tail + 1.0) / 2.0
        logs[..., node] = ratio.reshape(HALVES, PER_HALF, count, -1).sum(axis=1)
    return logs


def _intermittent(law: Law, logs: Floats) -> SizeMoments:
    """Sum over an effect that is on or off in each half-year, independently at the start."""
    size, weight = _quadrature(law)
    stay, turn = np.log1p(-law.change), np.log(law.change)
    on = np.full(logs.shape[1:], -np.log(2.0))
    off = on.copy()
    for half in logs:
        lit = on + half
        on, off = np.logaddexp(lit + stay, off + turn), np.logaddexp(off + stay, lit + turn)
    prior = np.log((1.0 - law.nothing) * chances(law))[:, None] + weight
    total = np.logaddexp(np.log(law.nothing), _log_sum(prior + np.logaddexp(on, off), (1, 2)))
    return _diagonal(np.exp(prior + on - total[:, None, None]), size)


def _diagonal(chance: Floats, size: Floats) -> SizeMoments:
    """Return moments of exclusive effects from the probabilities (G, C, K) of candidates and sizes."""
    square = (chance * size**2).sum(axis=2)
    return SizeMoments((chance * size).sum(axis=2), square[:, :, None] * np.eye(square.shape[1]))


def _single(law: Law, found: Floats, residuals: Floats, book: AllocationBook, place_of: Integers) -> _Evidence:
    """Return the evidence of one effect over a stretch of half-years."""
    size, weight = _quadrature(law)
    prior = np.log((1.0 - law.nothing) * chances(law))[:, None] + weight
    if law.course == "fading":
        scaled = found[:-1] / book.specific[:, None]
        squares = _by_place(scaled**2, place_of)
        products = _by_place(scaled * (residuals / book.specific)[:, :, None], place_of)

        def ratio(first: int, last: int) -> Floats:
            span = slice(first * PER_HALF, last * PER_HALF)
            left = 0.5 ** (np.arange((last - first) * PER_HALF) / law.life)
            x, y = np.tensordot(left**2, squares[span], 1), np.tensordot(left, products[span], 1)
            return size * y[..., None] - size**2 * x[..., None] / 2.0
    else:
        logs = _by_half(law, found, residuals, book, place_of)
        before = np.concatenate([np.zeros((1, *logs.shape[1:])), np.cumsum(logs, axis=0)])

        def ratio(first: int, last: int) -> Floats:
            return before[last] - before[first]

    def evidence(first: int, last: int) -> _Stretch:
        logs = prior + ratio(first, last)
        total = np.logaddexp(np.log(law.nothing), _log_sum(logs, (1, 2)))
        now = 0.5 ** ((last - first) * PER_HALF / law.life)
        return _Stretch(total, lambda: _diagonal(np.exp(logs - total[:, None, None]), now * size))

    return evidence


def _double(law: Law, found: Floats, residuals: Floats, book: AllocationBook, place_of: Integers) -> _Evidence:
    """Return the evidence of a signal and an analyst at the same time over a stretch, (G, S, A) for all pairs."""
    count, number = int(place_of.max()) + 1, found.shape[2]
    inner, cross = np.zeros((HALVES + 1, count, number, number)), np.zeros((HALVES + 1, count, number))
    for place in range(count):
        names = np.flatnonzero(place_of == place)
        scaled = (found[:-1][:, names] / book.specific[names, None]).reshape(HALVES, -1, number)
        target = (residuals[:, names] / book.specific[names]).reshape(HALVES, -1, 1)
        inner[1:, place] = np.cumsum(np.matmul(scaled.transpose(0, 2, 1), scaled), axis=0)
        cross[1:, place] = np.cumsum(np.matmul(scaled.transpose(0, 2, 1), target)[:, :, 0], axis=0)
    mean, deviation = sizes(law)
    prior = 1.0 / deviation**2
    signs = [(a, b) for a in (1.0, -1.0) for b in (1.0, -1.0)] if law.either_sign else [(1.0, 1.0)]
    signal, analyst = slice(0, SIGNALS), slice(SIGNALS, None)
    pull = mean**2 * prior - np.log(prior)
    constant = np.log1p(-law.nothing) - np.log(SIGNALS * ANALYSTS * len(signs))
    constant = constant - (pull[signal, None] + pull[analyst]) / 2.0

    def evidence(first: int, last: int) -> _Stretch:
        x, y = inner[last] - inner[first], cross[last] - cross[first]
        precision = np.diagonal(x, axis1=1, axis2=2) + prior
        a, b, c = precision[:, signal, None], precision[:, None, analyst], x[:, signal, analyst]
        determinant = a * b - c * c
        logs, means = list[Floats](), list[tuple[Floats, Floats]]()
        for left, right in signs:
            p = (y + left * mean * prior)[:, signal, None]
            q = (y + right * mean * prior)[:, None, analyst]
            u, v = (b * p - c * q) / determinant, (a * q - c * p) / determinant
            logs.append(constant + (u * p + v * q - np.log(determinant)) / 2.0)
            means.append((u, v))
        total = np.logaddexp(np.log(law.nothing), _log_sum(np.stack(logs), (0, 2, 3)))

        def moments() -> SizeMoments:
            size, square = np.zeros((count, number)), np.zeros((count, number, number))
            places = np.arange(int(number))
            for log, (u, v) in zip(logs, means, strict=True):
                chance = np.exp(log - total[:, None, None])
                both = chance * (u * v - c / determinant)
                size[:, signal] += (chance * u).sum(axis=2)
                size[:, analyst] += (chance * v).sum(axis=1)
                square[:, places[signal], places[signal]] += (chance * (u * u + b / determinant)).sum(axis=2)
                square[:, places[analyst], places[analyst]] += (chance * (v * v + a / determinant)).sum(axis=1)
                square[:, signal, analyst] += both
                square[:, analyst, signal] += both.transpose(0, 2, 1)
            return SizeMoments(size, square)

        return _Stretch(total, moments)

    return evidence


def _common_break(law: Law, evidence: _Evidence) -> SizeMoments:
    """Sum over the date of one break of all places, if there is one."""
    dates = range(EARLIEST, HALVES)
    whole = evidence(0, HALVES)
    stretches, logs = [whole], [np.log1p(-law.change) + whole.log.sum()]
    for date in dates:
        after = evidence(date, HALVES)
        stretches.append(after)
        logs.append(np.log(law.change / len(dates)) + evidence(0, date).log.sum() + after.log.sum())
    chance = np.exp(np.array(logs) - _log_sum(np.array(logs), 0))
    return _mixed(stretches, np.repeat(chance[:, None], len(whole.log), axis=1))


def _partitions(law: Law, evidence: _Evidence) -> SizeMoments:
    """Sum over all partitions into regimes, place by place."""
    stay, turn = np.log1p(-law.change), np.log(law.change)
    before = [np.zeros_like(evidence(0, 1).log)]
    for last in range(1, HALVES):
        ended = [before[first] + evidence(first, last).log + (last - first - 1) * stay for first in range(last)]
        before.append(_log_sum(np.stack(ended), 0) + turn)
    stretches = [evidence(first, HALVES) for first in range(HALVES)]
    logs = np.stack([before[first] + each.log + (HALVES - first - 1) * stay for first, each in enumerate(stretches)])
    return _mixed(stretches, np.exp(logs - _log_sum(logs, 0)))


def _mixed(stretches: Sequence[_Stretch], chance: Floats) -> SizeMoments:
    """Mix the moments of stretches that end now with the probabilities (S, G) of their starts."""
    mean, square = 0.0, 0.0
    for weight, stretch in zip(chance, stretches, strict=True):
        if weight.max() > _NEGLIGIBLE:
            found = stretch.moments()
            mean = mean + weight[:, None] * found.mean
            square = square + weight[:, None, None] * found.square
    return SizeMoments(np.asarray(mean), np.asarray(square))
