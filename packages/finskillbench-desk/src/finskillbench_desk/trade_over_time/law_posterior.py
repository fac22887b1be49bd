"""Posterior of the coming weeks' effects under a stated law, and the optimum of a case judged with it.

With one effect in a place, its size is summed by the trapezoid rule, which converges exponentially for smooth
densities (Trefethen and Weideman 2014), so that residuals may have any density. With two, sizes are integrated in
closed form for every pair of candidates (normal residuals and a common break only). Dates are summed exactly; on and
off by the forward recursion of a hidden Markov chain (Rabiner 1989). Places are independent given the date of a break.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.trade_over_time.law_world import LawWorld
from finskillbench_desk.trade_over_time.laws import DATES, Law, expected_features, features, last_on, places
from finskillbench_desk.trade_over_time.optimum import TradingSetup, losses
from finskillbench_desk.trade_over_time.world import DECISIONS

NODES, REACH = 49, 6.0
"""Number of quadrature nodes, and the reach of the grid in standard deviations; tests measure the error."""
_ENDS = np.array([*map(float, DATES), np.inf])


class Moments(NamedTuple):
    """Posterior mean (H, G, C) of the sizes in force in each coming week, second moments (G, C, C) in the first."""

    mean: Floats
    square: Floats


class _Stretch(NamedTuple):
    """Log evidence (G,) of a stretch of weeks, and posterior moments (G, C) and (G, C, C) of the sizes in it."""

    log: Floats
    mean: Floats
    square: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """Data of a case, seen under a law.

    Attributes
    ----------
    signals, residuals : (T, n, S) and (T, n), history and decisions; a posterior uses weeks before its own only.
    decay : (S,) share of a signal left after a week; `start` (S,) first valid week.
    place_of : (n,) place of each name under the law.
    """

    law: Law
    signals: Floats
    residuals: Floats
    decay: Floats
    start: Integers
    place_of: Integers
    nodes: int = NODES

    @cached_property
    def found(self) -> Floats:
        """(T, n, C) features."""
        return features(self.law, self.signals, self.decay, self.start)

    @cached_property
    def sizes(self) -> tuple[Floats, Floats]:
        """Sizes (K,) and their log prior weights (K,)."""
        points = np.linspace(-REACH, REACH, self.nodes)
        size, log = self.law.strength * (1.0 + self.law.spread * points), -(points**2) / 2.0
        log = log - _log_sum(log, 0)
        if self.law.either_sign:
            return np.concatenate([size, -size]), np.concatenate([log, log]) - np.log(2.0)
        return size, log

    @cached_property
    def prior(self) -> Floats:
        """(K,) log prior of a size of one candidate, not of nothing."""
        return np.log((1.0 - self.law.nothing) / self.found.shape[2]) + self.sizes[1]

    @cached_property
    def member(self) -> Floats:
        """(G, n) one where a name belongs to a place."""
        return np.equal.outer(np.arange(int(self.place_of.max()) + 1), self.place_of).astype(np.float64)

    @cached_property
    def sums(self) -> tuple[Floats, Floats]:
        """Weekly sums over the names of each place, (T, G, C): squared features, and features times residuals."""
        return np.matmul(self.member, self.found**2), np.matmul(self.member, self.found * self.residuals[:, :, None])

    @cached_property
    def weekly(self) -> Floats:
        """(T, G, C, K) log likelihood ratios of each size against no effect, by week."""
        size = self.sizes[0]
        if np.isinf(self.law.tail):
            squares, products = self.sums
            return size * products[..., None] - size**2 * squares[..., None] / 2.0
        scale, found, target = self.law.tail - 2.0, self.found, self.residuals[:, :, None]
        without = np.log1p(target**2 / scale)
        parts = [np.matmul(self.member, without - np.log1p((target - found * each) ** 2 / scale)) for each in size]
        return np.stack(parts, axis=-1) * ((self.law.tail + 1.0) / 2.0)

    @cached_property
    def before(self) -> Floats:
        """(T + 1, G, C, K) log likelihood ratios of all weeks before each."""
        return np.concatenate([np.zeros((1, *self.weekly.shape[1:])), np.cumsum(self.weekly, axis=0)])

    @cached_property
    def chain(self) -> tuple[Floats, Floats]:
        """Log likelihood ratios with the effect on or off in each week, (T + 1, G, C, K), of all weeks before it."""
        stay, turn = np.log1p(-self.law.change), np.log(self.law.change)
        on = np.full((len(self.weekly) + 1, *self.weekly.shape[1:]), -np.log(2.0))
        off = on.copy()
        for week, each in enumerate(self.weekly):
            lit = on[week] + each
            on[week + 1] = np.logaddexp(lit + stay, off[week] + turn)
            off[week + 1] = np.logaddexp(off[week] + stay, lit + turn)
        return on, off

    def moments(self, week: int, weeks: int) -> Moments:
        """Return moments for `weeks` weeks from `week` (from 0) on, from returns before it."""
        if self.law.course == "break":
            return _common_break(self, week, weeks)
        return (_intermittent if self.law.course == "intermittent" else _dated)(self, week, weeks)

    def forecasts(self, known: int, first: int, last: int) -> Floats:
        """Return (last - first, n) expected effects of weeks, given signals up to week `known` and returns before."""
        mean = self.moments(known, last - known).mean[first - known :]
        found = [
            expected_features(self.law, self.signals[: known + 1], self.decay, week - known)
            for week in range(first, last)
        ]
        return np.einsum("hnc,hnc->hn", np.stack(found), mean[:, self.place_of])


def _log_sum(logs: Floats, axis: int | tuple[int, ...]) -> Floats:
    total: Floats = np.logaddexp.reduce(logs, axis=axis)
    return total


def _date_prior(law: Law) -> Floats:
    """(D,) log probabilities of the dates, the last for no change."""
    return np.log(np.append(np.full(len(DATES), law.change / len(DATES)), 1.0 - law.change))


def _diagonal(values: Floats) -> Floats:
    """Return (G, C, C) matrices with the diagonals (G, C)."""
    return values[:, :, None] * np.eye(values.shape[1])


def _dated(seen: Evidence, week: int, weeks: int) -> Moments:
    """Sum over the date from which an effect has ended or fades."""
    law, size = seen.law, seen.sizes[0]
    force = last_on(law, _ENDS, week + weeks)
    if law.course == "ends":
        logs = seen.before[np.minimum(_ENDS, week).astype(int)]
    else:
        squares, products = (part[:week] for part in seen.sums)
        x, y = np.tensordot(force[:, :week] ** 2, squares, 1), np.tensordot(force[:, :week], products, 1)
        logs = size * y[..., None] - size**2 * x[..., None] / 2.0
    logs = logs + seen.prior + _date_prior(law)[:, None, None, None]
    chance = np.exp(logs - np.logaddexp(np.log(law.nothing), _log_sum(logs, (0, 2, 3)))[:, None, None])
    mean = np.einsum("dh,dgc->hgc", force[:, week:], chance @ size)
    return Moments(mean, _diagonal(np.einsum("d,dgc->gc", force[:, week] ** 2, chance @ size**2)))


def _common_break(seen: Evidence, week: int, weeks: int) -> Moments:
    """Sum over the date of one break of all places, if there is one."""
    stretch = _pair_stretch if seen.law.effects == 2 else _single_stretch
    whole = stretch(seen, 0, week)
    past = [*(stretch(seen, 0, date).log for date in DATES), np.zeros_like(whole.log)]
    now = [*(stretch(seen, date, week) for date in DATES), whole]
    logs = _date_prior(seen.law) + np.array([a.sum() + b.log.sum() for a, b in zip(past, now, strict=True)])
    weight = np.exp(logs - _log_sum(logs, 0))
    mean = np.tensordot(weight, np.stack([each.mean for each in now]), 1)
    square = np.tensordot(weight, np.stack([each.square for each in now]), 1)
    return Moments(np.repeat(mean[None], weeks, axis=0), square)


def _single_stretch(seen: Evidence, first: int, last: int) -> _Stretch:
    logs = seen.before[last] - seen.before[first] + seen.prior
    total = np.logaddexp(np.log(seen.law.nothing), _log_sum(logs, (1, 2)))
    chance, size = np.exp(logs - total[:, None, None]), seen.sizes[0]
    return _Stretch(total, chance @ size, _diagonal(chance @ size**2))


def _pair_stretch(seen: Evidence, first: int, last: int) -> _Stretch:
    """Sum over all pairs of candidates, with sizes in closed form."""
    law, number = seen.law, seen.found.shape[2]
    one, two = np.triu_indices(number, 1)
    precision = (law.spread * law.strength) ** -2.0
    signs = np.array([(a, b) for a in (1.0, -1.0) for b in (1.0, -1.0)] if law.either_sign else [(1.0, 1.0)])
    prior = np.log((1.0 - law.nothing) * precision / len(one) / len(signs)) - law.strength**2 * precision
    regions = int(seen.place_of.max()) + 1
    log, mean, square = np.zeros(regions), np.zeros((regions, number)), np.zeros((regions, number, number))
    for place in range(regions):
        names = np.flatnonzero(seen.place_of == place)
        part = seen.found[first:last][:, names].reshape(-1, number)
        x, y = part.T @ part, seen.residuals[first:last][:, names].ravel() @ part
        a, b, c = x[one, one] + precision, x[two, two] + precision, x[one, two]
        p = y[one] + signs[:, :1] * law.strength * precision
        q = y[two] + signs[:, 1:] * law.strength * precision
        determinant = a * b - c * c
        u, v = (b * p - c * q) / determinant, (a * q - c * p) / determinant
        logs = prior + (u * p + v * q - np.log(determinant)) / 2.0
        log[place] = np.logaddexp(np.log(law.nothing), _log_sum(logs, (0, 1)))
        chance = np.exp(logs - log[place])
        np.add.at(mean[place], one, (chance * u).sum(axis=0))
        np.add.at(mean[place], two, (chance * v).sum(axis=0))
        np.add.at(square[place], (one, one), (chance * (u**2 + b / determinant)).sum(axis=0))
        np.add.at(square[place], (two, two), (chance * (v**2 + a / determinant)).sum(axis=0))
        both = (chance * (u * v - c / determinant)).sum(axis=0)
        np.add.at(square[place], (one, two), both)
        np.add.at(square[place], (two, one), both)
    return _Stretch(log, mean, square)


def _intermittent(seen: Evidence, week: int, weeks: int) -> Moments:
    """Sum over an effect that is on or off in each week."""
    law, size = seen.law, seen.sizes[0]
    on, off = seen.chain[0][week] + seen.prior, seen.chain[1][week] + seen.prior
    total = np.logaddexp(np.log(law.nothing), _log_sum(np.logaddexp(on, off), (1, 2)))[:, None, None]
    lit, dark = np.exp(on - total), np.exp(off - total)
    kept = (1.0 + (1.0 - 2.0 * law.change) ** np.arange(weeks)) / 2.0
    mean = kept[:, None, None] * (lit @ size) + (1.0 - kept)[:, None, None] * (dark @ size)
    return Moments(mean, _diagonal(lit @ size**2))


def evidence_of(case: LawWorld, law: Law | None = None, nodes: int = NODES) -> Evidence:
    """Return the data of a case as seen under its own law or another one."""
    law, world = law or case.law, case.world
    place_of = places(law, world.sector_of, world.book.benchmark, world.risk.specific)
    decay, start = world.signals.decay, world.signals.live_from
    return Evidence(law, case.signals, case.residuals, decay, start, place_of, nodes)


def law_aims(case: LawWorld, seen: Evidence) -> Floats:
    """Return (12, n) aims of the optimal policy that believes in the law of `seen`."""
    world, setup = case.world, TradingSetup.of(case.world)
    weeks, specific = world.draws.weeks, world.risk.specific
    return np.array(
        [
            setup.policy(place).aim(
                place, seen.forecasts(weeks + world.delivered(place), weeks + place, weeks + DECISIONS) * specific
            )
            for place in range(DECISIONS)
        ]
    )


def followed_aims(setup: TradingSetup, aims: Floats) -> list[Floats]:
    """Return the 12 books (n,) of a policy with these aims."""
    books = [setup.book.holdings]
    for place in range(DECISIONS):
        books.append(setup.policy(place).best(place, aims[place], books[-1]))
    return books[1:]


def unclipped_share(setup: TradingSetup, best: Floats, aims: Floats, zero: float) -> float:
    """Return the unclipped share of the gain over a loss `zero` that a policy with these aims earns."""
    return 1.0 - float(losses(setup, best, followed_aims(setup, aims)).sum()) / zero
