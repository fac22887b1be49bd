"""Exact evidence for effects that begin and end, one at most in each place at a time, and what it implies for today.

A place is a set of names that share an effect; places (n,) are codes from 0, -1 for none. A law says how large effects
are and how long they last. Periods are split into segments in every possible way; sizes, candidates, signs and dates
are integrated out. Shapes: T periods, G places, C candidates.
"""

# pyright: basic
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from features import Form, feature
from scipy import special

from panels import Floats, Market

logsumexp: Any = special.logsumexp

_USUAL_KURTOSIS = 3.4
_WALL, _CPU = time.perf_counter(), time.process_time()


class Law(NamedTuple):
    """Sizes are normal with `mean` and deviation `ratio` * mean, or minus that if `both`; deviations of return.

    A place has no effect with probability `nothing`. A state ends with probability `hazard` a period, in all places at
    once if `common`. With `half_life`, an effect halves in so many periods after its start. With `chain` (probabilities
    to leave and to enter) each effect goes off and on for ever, and `hazard` is not used.
    """

    mean: float
    ratio: float = 0.35
    both: bool = True
    nothing: float = 0.4
    hazard: float = 0.0
    common: bool = False
    half_life: float = 0.0
    chain: tuple[float, float] | None = None


class Episode(NamedTuple):
    """A likely effect of the past or present; periods from 1, `last` None if it may go on."""

    place: int
    label: str
    first: int
    last: int | None
    probability: float
    size: float


@dataclass(frozen=True)
class Explained:
    """Explained returns of a law: `log` evidence against none, effects today (n,) and their covariance (n, n).

    `path` (T + 1, G, C) is the expected effect in each period given all of them; `episodes` are the likely effects.
    """

    log: float
    alpha: Floats
    doubt: Floats
    path: Floats
    episodes: list[Episode]
    labels: list[str]
    features: Floats
    places: Floats

    def effects(self, values: Floats) -> Floats:
        """Return effects (n,) of one row (n, C) of features, such as those of `older 2` where `older 5` was fitted."""
        return (values * self.path[-1][np.maximum(self.places, 0)]).sum(1) * (self.places >= 0)

    def parts(self) -> Floats:
        """Return the part (n, C) of each candidate in today's effects, for `decisions.path_of` with its half-life."""
        return self.features[-1] * self.path[-1][np.maximum(self.places, 0)] * (self.places >= 0)[:, None]

    def returns(self, labels: Sequence[str] | None = None, place: int | None = None) -> Floats:
        """Return the explained part (T, n) of past returns, of some labels or one place only."""
        path = self.path[:-1].copy()
        if labels is not None:
            path[:, :, [label not in labels for label in self.labels]] = 0
        if place is not None:
            path[:, np.arange(path.shape[1]) != place] = 0
        spread = np.where((self.places >= 0)[None, :, None], path[:, np.maximum(self.places, 0)], 0)
        return (self.features[:-1] * spread).sum(2)


def scores(z: Floats) -> tuple[Floats, float]:
    """Return the score of standardised residuals and its information: a Student law if tails are fat, else normal."""
    known = z[np.isfinite(z)]
    if np.mean(known**4) / np.mean(known**2) ** 2 < _USUAL_KURTOSIS:
        return z, 1.0
    best = -np.inf, 0.0, 1.0
    for freedom in (2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0):
        square = float(np.median(known**2))
        for _ in range(25):
            square = float(np.mean((freedom + 1) * known**2 / (freedom + known**2 / square)))
        shape = special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2) - 0.5 * np.log(freedom * square)
        log = len(known) * shape - (freedom + 1) / 2 * np.log1p(known**2 / freedom / square).sum()
        best = max(best, (float(log), freedom, square))
    _, freedom, square = best
    return (freedom + 1) * z / (freedom * square + z**2), (freedom + 1) / (freedom + 3) / square


def sums(market: Market, features: Floats, places: Floats) -> tuple[Floats, Floats]:
    """Return information and score (T, G, C) of an effect of each candidate in each place and period."""
    score, information = scores(market.residuals / market.specific)
    member = (np.arange(places.max() + 1)[:, None] == places).astype(np.float32)
    x = features[:-1] / market.specific[None, :, None].astype(np.float32)
    return member @ (x * x) * np.float32(information), member @ (x * score[:, :, None].astype(np.float32))


def log_factors(x: Floats, y: Floats, mean: Any, deviation: Any) -> tuple[Floats, Floats]:
    """Return (common, turned) parts of log Bayes factors: common + turned for sizes +mean, minus for -mean."""
    width = 1 + x * deviation**2
    return -0.5 * np.log(width) + 0.5 * (y * y * deviation**2 - mean**2 * x) / width, y * mean / width


def _cumulated(x: Floats, y: Floats, start: int, ends: Floats, half_life: float) -> tuple[Floats, Floats]:
    """Return sums from a period to each of the later `ends`, of an effect that may halve as it ages."""
    age = np.arange(ends[-1] - start, dtype=np.float32)
    weight = (2.0 ** (-age / half_life) if half_life else np.ones_like(age))[:, None, None]
    cuts = np.r_[0, np.asarray(ends)[:-1] - start]
    both = x[start : ends[-1]] * weight**2, y[start : ends[-1]] * weight
    a, b = (np.cumsum(np.add.reduceat(each, cuts, axis=0), axis=0) for each in both)
    return a, b


def clock() -> float:
    """Return seconds since an arbitrary time, by the wall or by the processor, of which the sandbox limits both."""
    return max(time.perf_counter() - _WALL, time.process_time() - _CPU)


def in_time(deadline: float) -> None:
    """Raise TimeoutError if `clock` has passed the deadline."""
    if clock() > deadline:
        raise TimeoutError


def segments(x: Floats, y: Floats, laws: Sequence[Law], bounds: Floats, deadline: float = np.inf) -> Floats:
    """Return log evidence (B, B, laws, G) of each segment between bounds; laws share their half-life.

    Raises TimeoutError if `clock` passes the deadline.
    """
    out = np.zeros((len(bounds), len(bounds), len(laws), x.shape[1]), np.float32)
    for i, start in enumerate(bounds[:-1]):
        in_time(deadline)
        a, b = _cumulated(x, y, int(start), bounds[i + 1 :], laws[0].half_life)
        for mean, ratio in {(law.mean, law.ratio) for law in laws}:
            common, turned = log_factors(a, b, mean, mean * ratio)
            top = (common + np.abs(turned)).max(2)
            up, down = (np.exp(common + sign * turned - top[..., None]).mean(2) for sign in (1, -1))
            for p, law in enumerate(laws):
                if (law.mean, law.ratio) == (mean, ratio):
                    found = np.log((up + down) / 2 if law.both else up + 1e-38) + top
                    out[i, i + 1 :, p] = np.logaddexp(np.log(law.nothing), np.log(1 - law.nothing) + found)
    return out


def _ends(bounds: Floats, law: Law) -> tuple[Floats, Floats]:
    """Return log probabilities that a state lasts from bound to bound, and that it lasts so long and ends there."""
    hazard, step = max(law.hazard, 1e-12), float(np.diff(bounds).mean())
    stay = np.log1p(-hazard) * np.maximum(bounds[None, :] - bounds[:, None] - step, 0)
    return stay, stay + np.log(1 - (1 - hazard) ** step)


def log_evidence(logs: Floats, bounds: Floats, law: Law) -> float:
    """Return the log evidence of a law from the evidence (B, B, G) of its segments."""
    logs = logs.sum(-1, keepdims=True) if law.common else logs
    if law.hazard == 0:
        return float(logs[0, -1].sum())
    return float(_forward(logs, bounds, law)[-1].sum())


def _forward(logs: Floats, bounds: Floats, law: Law) -> Floats:
    stay, end = _ends(bounds, law)
    total = np.zeros((len(bounds), logs.shape[-1]))
    for j in range(1, len(bounds)):
        weight = (stay if j == len(bounds) - 1 else end)[:j, j, None]
        total[j] = logsumexp(total[:j] + logs[:j, j] + weight, axis=0)
    return total


def _likely_segments(logs: Floats, bounds: Floats, law: Law) -> Iterator[tuple[int, int, Floats]]:
    """Yield (first bound, last bound, probability (G,)) of the segments that matter, given all periods."""
    count, last = logs.shape[-1], len(bounds) - 1
    if law.hazard == 0:
        yield 0, last, np.ones(count)
        return
    joint = logs.sum(-1, keepdims=True) if law.common else logs
    stay, end = _ends(bounds, law)
    before, after = _forward(joint, bounds, law), np.zeros((last + 1, joint.shape[-1]))
    for i in range(last - 1, -1, -1):
        weight = np.r_[end[i, i + 1 : last], stay[i, last]][:, None]
        after[i] = logsumexp(joint[i, i + 1 :] + weight + after[i + 1 :], axis=0)
    for i in range(last):
        for j in range(i + 1, last + 1):
            weight = stay[i, j] if j == last else end[i, j]
            p = np.exp(before[i] + joint[i, j] + weight + after[j] - before[-1])
            if p.max() > 1e-3:
                yield i, j, np.broadcast_to(p, count)


def _moments(x: Floats, y: Floats, law: Law) -> tuple[Floats, Floats, Floats]:
    """Return probability, and first and second moment (G, C) of sizes times it, in one segment."""
    deviation, signs = law.mean * law.ratio, (1, -1) if law.both else (1,)
    common, turned = log_factors(x, y, law.mean, deviation)
    logs = np.stack([common + sign * turned for sign in signs]) + np.log((1 - law.nothing) / x.shape[1] / len(signs))
    weight = np.exp(logs - np.logaddexp(logsumexp(logs, axis=(0, 2)), np.log(law.nothing))[None, :, None])
    mean = np.stack([(y + sign * law.mean / deviation**2) / (x + 1 / deviation**2) for sign in signs])
    return weight.sum(0), (weight * mean).sum(0), (weight * (mean**2 + 1 / (x + 1 / deviation**2))).sum(0)


def _regimes(x: Floats, y: Floats, law: Law, bounds: Floats) -> tuple[float, Floats, Floats, list[Any]]:
    """Return log evidence, path (T + 1, G, C), second moment today, and likely segments with their moments."""
    periods = len(x)
    logs = segments(x, y, [law], bounds)[:, :, 0].astype(float)
    path, square, likely = np.zeros((periods + 1, *x.shape[1:])), np.zeros(x.shape[1:]), []
    for first, last, p in _likely_segments(logs, bounds, law):
        i, j = int(bounds[first]), int(bounds[last])
        squared, crossed = _cumulated(x, y, i, np.array([j]), law.half_life)
        share, mean, squares = _moments(squared[0], crossed[0], law)
        fade = 2.0 ** (-np.arange(j - i + 1) / law.half_life) if law.half_life else np.ones(j - i + 1)
        path[i:j] += fade[:-1, None, None] * (p[:, None] * mean)
        if j == periods:
            path[periods] += fade[-1] * (1 - law.hazard) * p[:, None] * mean
            square += fade[-1] ** 2 * (1 - law.hazard) * p[:, None] * squares
        likely.append((i, j, p[:, None] * share, p[:, None] * mean))
    return log_evidence(logs, bounds, law), path, square, likely


def _chain_ahead(x: Floats, y: Floats, law: Law) -> tuple[Floats, Floats, Floats]:
    """Return log factors of on and off (T, 2, signs, G, C), log of transitions, log filter (T + 1, 2, signs, G, C)."""
    leave, enter = law.chain or (0.1, 0.1)
    signs = np.array([1.0, -1.0] if law.both else [1.0])[:, None, None]
    on = signs * law.mean * y[:, None] - 0.5 * law.mean**2 * x[:, None]
    seen = np.stack([on, np.zeros_like(on)], axis=1)
    turn = np.log([[1 - leave, leave], [enter, 1 - enter]])
    ahead = np.empty((len(x) + 1, *seen.shape[1:]))
    ahead[0] = np.log(np.array([enter, leave]) / (enter + leave))[:, None, None, None]
    for t in range(len(x)):
        state = ahead[t] + seen[t]
        ahead[t + 1] = [np.logaddexp(state[0] + turn[0, k], state[1] + turn[1, k]) for k in (0, 1)]
    return seen, turn, ahead


def _chain_exists(ahead: Floats, law: Law) -> tuple[float, Floats]:
    total = np.logaddexp(ahead[-1, 0], ahead[-1, 1])
    logs = total + np.log((1 - law.nothing) / total.shape[2] / total.shape[0])
    norm = np.logaddexp(logsumexp(logs, axis=(0, 2)), np.log(law.nothing))
    return float(norm.sum()), np.exp(logs - norm[None, :, None])


def chain_evidence(x: Floats, y: Floats, law: Law) -> float:
    """Return the log evidence of a law whose effects go off and on."""
    return _chain_exists(_chain_ahead(x, y, law)[2], law)[0]


def _chained(x: Floats, y: Floats, law: Law) -> tuple[float, Floats, Floats, list[Any]]:
    """Return the results of `_regimes` for effects that go off and on."""
    seen, turn, ahead = _chain_ahead(x, y, law)
    log, exists = _chain_exists(ahead, law)
    total, signs = np.logaddexp(ahead[-1, 0], ahead[-1, 1]), np.array([law.mean, -law.mean][: ahead.shape[2]])
    path, later = np.zeros((len(x) + 1, *x.shape[1:])), np.zeros_like(ahead[0])
    for t in range(len(x), -1, -1):
        if t < len(x):
            later = seen[t] + [np.logaddexp(turn[k, 0] + later[0], turn[k, 1] + later[1]) for k in (0, 1)]
        path[t] = np.tensordot(signs, exists * np.exp(ahead[t, 0] + later[0] - total), 1)
    square = (exists * np.exp(ahead[-1, 0] - total)).sum(0) * law.mean**2
    return log, path, square, [(0, len(x), exists.sum(0), path.mean(0))]


def grid(periods: int, step: int) -> Floats:
    """Return bounds from 0 to the last period, `step` apart; the first segment may be shorter."""
    bounds = np.arange(periods, -1, -step)[::-1]
    return bounds if bounds[0] == 0 else np.r_[0, bounds]


def explain(market: Market, form: Form, places: Floats, law: Law, step: int = 1) -> Explained:
    """Weigh all candidates of one form and one division into places under one law; dates are `step` periods apart."""
    values, labels = feature(market, form)
    x, y = (each.astype(float) for each in sums(market, values, places))
    log, path, square, likely = _chained(x, y, law) if law.chain else _regimes(x, y, law, grid(len(x), step))
    episodes = [
        Episode(
            int(g), labels[c], i + 1, None if j == len(x) else j, float(share[g, c]), float(first[g, c] / share[g, c])
        )
        for i, j, share, first in likely
        for g, c in zip(*np.nonzero(share > 0.15), strict=True)
    ]
    alpha, doubt = np.zeros(len(places)), np.zeros((len(places), len(places)))
    for g in range(path.shape[1]):
        k = np.flatnonzero(places == g)
        today = values[-1, k].astype(float)
        alpha[k] = today @ path[-1, g]
        doubt[np.ix_(k, k)] = (today * square[g]) @ today.T - np.outer(alpha[k], alpha[k])
    episodes.sort(key=lambda each: -each.probability)
    return Explained(log, alpha, doubt, path, episodes, labels, values, places)


def layers(
    market: Market, picks: Sequence[tuple[Form, Floats, Law]], rounds: int = 4, step: int = 1
) -> list[Explained]:
    """Explain returns by several effects at once, each fitted to what the others leave, in turn until they agree.

    Picks may share places: two effects in one place as one model. The sum of `alpha` and of `doubt` is the forecast;
    `log` of each is its evidence given the others.
    """
    found: list[Explained | None] = [None] * len(picks)
    for _ in range(rounds):
        for k, (form, places, law) in enumerate(picks):
            kept = [each.returns() for i, each in enumerate(found) if each is not None and i != k]
            rest = np.sum(kept, axis=0) if kept else 0.0
            found[k] = explain(replace(market, residuals=market.residuals - rest), form, places, law, step)
    return [each for each in found if each is not None]
