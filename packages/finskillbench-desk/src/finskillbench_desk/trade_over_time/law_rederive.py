"""Independent derivation of a case's forecasts and best book from the visible tables and the law.

Shares no code with `law_posterior`. One effect with normal residuals is filtered week by week with conjugate updates;
other effects by probabilities on a Gauss-Legendre grid of sizes, from stretch to stretch, with ends as hazards. The
best book is the first block of one dense system of optimality conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.trade_over_time.laws import Law

_DATES = tuple(range(75, 375, 25))
_GRID, _REACH = 96, 6.0
_PAIR_GRID, _FINE = 40, 0.0095
"""Number of nodes for each of two effects, and the deviation of sizes above which it grows in proportion."""
WIDE = 1.5
"""Multiple of the reach where backfilled values count as evidence of two effects; with 1, forecasts err by 2e-4."""


@dataclass(frozen=True, eq=False)
class LawCase:
    """Visible numbers of a case: signals (T + 1, n, S), residual returns (T, n) in specific volatilities."""

    law: Law
    vendors: tuple[str, ...]
    decay: Floats
    since: Integers
    place: Integers
    signals: Floats
    residuals: Floats


def read_law_case(tables: Mapping[str, pl.DataFrame], law: Law) -> LawCase:
    """Read the tables `names`, `history`, `current`, `factor_returns`, and `signals` with `half_life` and `since`."""
    names, offers, history = tables["names"], tables["signals"], tables["history"].sort("week", maintain_order=True)
    n, columns = names.height, offers["signal"].to_list()
    shape = (history.height // n, n)
    past = history.select(columns).to_numpy().reshape(*shape, -1)
    now = tables["current"].select(columns).to_numpy()[None]
    specific = names["specific_volatility"].to_numpy()
    factors = tables["factor_returns"].drop("week")
    explained = np.zeros(shape)
    for factor in factors.columns:
        exposure = names[factor].to_numpy() if factor in names.columns else (names["sector"] == factor).to_numpy()
        beta = names["market_beta"].to_numpy() if factor == "market" else exposure.astype(float)
        explained += np.outer(factors[factor].to_numpy(), beta)
    returns = history["next_return"].to_numpy().reshape(shape) / 1e5
    keys = {
        "market": [0.0] * n,
        "block": [sorted(set(names["sector"])).index(each) // 3 for each in names["sector"]],
        "size": _thirds(names["benchmark_weight"].to_list()),
        "volatility": _thirds(names["specific_volatility"].to_list()),
    }[law.place]
    return LawCase(
        law,
        tuple(offers["vendor"]),
        np.exp(-math.log(2.0) / offers["half_life"].to_numpy()),
        offers["since"].to_numpy() - 1,
        np.array(keys, dtype=int),
        np.concatenate([past, now]) / 100.0,
        (returns - explained) / specific,
    )


def _thirds(values: list[float]) -> list[int]:
    """Return the class of each value, the largest third first; of equal values the earlier counts as larger."""
    ahead = [sum(b > a or (b == a and j < i) for j, b in enumerate(values)) for i, a in enumerate(values)]
    return [3 * rank // len(values) for rank in ahead]


def _candidates(case: LawCase) -> list[tuple[int, ...]]:
    count = len(case.vendors)
    if case.law.form in ("level", "delayed", "trend"):
        return [(one,) for one in range(count)]
    pairs = permutations(range(count), 2) if case.law.form == "gate" else combinations(range(count), 2)
    return [pair for pair in pairs if case.vendors[pair[0]] == case.vendors[pair[1]]]


def _feature(case: LawCase, chosen: tuple[int, ...], week: int, known: int) -> Floats:
    """Return (n,) expected feature of a week (from 0), given signals up to week `known`."""
    form, lag = case.law.form, case.law.delay

    def value(column: int, at: int) -> Floats:
        return case.signals[min(at, known), :, column] * case.decay[column] ** max(at - known, 0)

    first = value(chosen[0], week)
    if form == "level":
        return first
    if form == "delayed":
        return value(chosen[0], week - lag)
    if form == "trend":
        return (first - value(chosen[0], week - lag)) / math.sqrt(2.0 * (1.0 - case.decay[chosen[0]] ** lag))
    partner = value(chosen[1], week)
    if form == "spread":
        return (first - partner) / math.sqrt(2.0)
    if form == "product":
        return first * partner
    doubt = 1.0 - case.decay[chosen[1]] ** (2 * max(week - known, 0))
    if doubt <= 0.0:
        return math.sqrt(2.0) * np.where(partner > 0.0, first, 0.0)
    above = [0.5 * math.erfc(-each / math.sqrt(2.0 * doubt)) for each in partner]
    return math.sqrt(2.0) * first * np.array(above)


def _panel(case: LawCase) -> Floats:
    """Return features (T, n, C) of the past, 0 while a signal is backfilled or a delay reaches before it."""
    chosen, weeks = _candidates(case), len(case.residuals)
    panel = np.zeros((weeks, len(case.place), len(chosen)))
    for column, each in enumerate(chosen):
        begun = max(int(case.since[one]) for one in each) + case.law.delay
        for week in range(begun, weeks):
            panel[week, :, column] = _feature(case, each, week, weeks)
    return panel


def law_forecasts(case: LawCase, ahead: int, wide: float = 1.0) -> Floats:
    """Return (ahead, n) expected effects of the coming weeks, in units of specific volatility.

    `wide` multiplies the reach of the grid of sizes where a place has two effects.
    """
    law, panel, weeks = case.law, _panel(case), len(case.residuals)
    count = int(case.place.max()) + 1
    inside = [(panel[:, case.place == g], case.residuals[:, case.place == g]) for g in range(count)]
    if law.course == "break":
        sizes = _after_break(law, inside) if law.effects == 1 else _two_after_break(law, inside, wide)
    elif law.course == "fading":
        sizes = [_fading(law, *each, ahead) for each in inside]
    elif law.course == "ends":
        sizes = [_one_end(law, *each) for each in inside]
    else:
        sizes = [_on_and_off(law, *each, ahead) for each in inside]
    found = np.zeros((ahead, len(case.place)))
    for column, chosen in enumerate(_candidates(case)):
        for step in range(ahead):
            feature = _feature(case, chosen, weeks + step, weeks)
            for g, size in enumerate(sizes):
                mean = size[min(step, len(size) - 1), column]
                found[step, case.place == g] += mean * feature[case.place == g]
    return found


def _signs(law: Law) -> tuple[float, ...]:
    return (1.0, -1.0) if law.either_sign else (1.0,)


class _Conjugate:
    """Normal size of each sign and candidate: precision, mean and log evidence, updated by week; shape (..., Z, C)."""

    def __init__(self, law: Law, lead: tuple[int, ...], count: int) -> None:
        signs = np.array(_signs(law))
        self.precision = np.full((*lead, len(signs), count), (law.strength * law.spread) ** -2.0)
        self.mean = np.broadcast_to(law.strength * signs[:, None], self.precision.shape).copy()
        self.log = np.full(self.precision.shape, -math.log(len(signs) * count))

    def update(self, force: Floats | float, features: Floats, returns: Floats) -> None:
        precision = self.precision + np.square(force) * (features**2).sum(axis=0)
        mean = (self.precision * self.mean + force * (returns @ features)) / precision
        self.log += (np.log(self.precision / precision) + precision * mean**2 - self.precision * self.mean**2) / 2.0
        self.precision, self.mean = precision, mean


def _after_break(law: Law, inside: list[tuple[Floats, Floats]]) -> list[Floats]:
    found: list[list[Floats]] = []
    logs: list[float] = []
    for date in (*_DATES, None):
        log, means = math.log(1.0 - law.change if date is None else law.change / len(_DATES)), list[Floats]()
        for panel, returns in inside:
            state = _Conjugate(law, (), panel.shape[2])
            for week, (features, now) in enumerate(zip(panel, returns, strict=True)):
                if week == date:
                    log += math.log(law.nothing + (1.0 - law.nothing) * float(np.exp(state.log).sum()))
                    state = _Conjugate(law, (), panel.shape[2])
                state.update(1.0, features, now)
            chance = (1.0 - law.nothing) * np.exp(state.log)
            whole = law.nothing + float(chance.sum())
            log += math.log(whole)
            means.append((chance * state.mean).sum(axis=0) / whole)
        logs.append(log)
        found.append(means)
    return _mixed(logs, found)


def _fading(law: Law, panel: Floats, returns: Floats, ahead: int) -> Floats:
    dates = np.array([*_DATES, math.inf])
    prior = np.array([law.change / len(_DATES)] * len(_DATES) + [1.0 - law.change])
    state = _Conjugate(law, (len(dates),), panel.shape[2])

    def force(week: int) -> Floats:
        return np.exp2(-np.clip(week - dates, 0.0, None) / law.life)

    for week, (features, now) in enumerate(zip(panel, returns, strict=True)):
        state.update(force(week)[:, None, None], features, now)
    chance = (1.0 - law.nothing) * prior[:, None, None] * np.exp(state.log)
    means = (chance * state.mean).sum(axis=1) / (law.nothing + chance.sum())
    return np.array([force(len(panel) + step) @ means for step in range(ahead)])


def _grid(law: Law, nodes: int, reach: float = _REACH) -> tuple[Floats, Floats]:
    """Return sizes and prior probabilities of a Gauss-Legendre grid, of both signs where they are possible."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    weights = weights * np.exp(-((reach * points) ** 2) / 2.0)
    size, signs = law.strength * (1.0 + law.spread * reach * points), _signs(law)
    return np.concatenate([sign * size for sign in signs]), np.tile(weights / weights.sum() / len(signs), len(signs))


def _density_ratio(law: Law, features: Floats, returns: Floats, size: Floats) -> Floats:
    """Return (K, C) log likelihood of weeks under each size, against no effect."""
    found = np.zeros((len(size), features.shape[-1]))
    for place, each in enumerate(size):
        left = returns[..., None] - each * features
        if math.isinf(law.tail):
            gained = (returns[..., None] ** 2 - left**2) / 2.0
        else:
            scale = law.tail - 2.0
            gained = (law.tail + 1.0) / 2.0 * np.log((scale + returns[..., None] ** 2) / (scale + left**2))
        found[place] = gained.reshape(-1, features.shape[-1]).sum(axis=0)
    return found


def _stretches(weeks: int, change: float) -> Iterator[tuple[int, int, float]]:
    """Yield first and last week of each stretch, and the probability that a live effect has ended before it."""
    left = 1.0
    for first, last in zip((0, *_DATES), (*_DATES, weeks), strict=True):
        hazard = change / len(_DATES) / left if first else 0.0
        left -= change / len(_DATES) if first else 0.0
        yield first, last, hazard


def _one_end(law: Law, panel: Floats, returns: Floats) -> Floats:
    size, weights = _grid(law, _GRID)
    live = (1.0 - law.nothing) * np.repeat(weights[:, None], panel.shape[2], axis=1) / panel.shape[2]
    gone, none = 0.0, law.nothing
    for first, last, hazard in _stretches(len(panel), law.change):
        gone, live = gone + hazard * float(live.sum()), live * (1.0 - hazard)
        logs = _density_ratio(law, panel[first:last], returns[first:last], size)
        shift = max(float(logs.max()), 0.0)
        live, gone, none = live * np.exp(logs - shift), gone * math.exp(-shift), none * math.exp(-shift)
        total = float(live.sum()) + gone + none
        live, gone, none = live / total, gone / total, none / total
    return (size @ live)[None]


def _on_and_off(law: Law, panel: Floats, returns: Floats, ahead: int) -> Floats:
    size, weights = _grid(law, _GRID)
    on = (1.0 - law.nothing) / 2.0 * np.repeat(weights[:, None], panel.shape[2], axis=1) / panel.shape[2]
    off, none = on.copy(), law.nothing
    for features, now in zip(panel, returns, strict=True):
        on = on * np.exp(_density_ratio(law, features, now, size))
        on, off = on + law.change * (off - on), off + law.change * (on - off)
        total = float(on.sum() + off.sum()) + none
        on, off, none = on / total, off / total, none / total
    means: list[Floats] = []
    for _ in range(ahead):
        means.append(size @ on)
        on, off = on + law.change * (off - on), off + law.change * (on - off)
    return np.array(means)


def _two_after_break(law: Law, inside: list[tuple[Floats, Floats]], wide: float) -> list[Floats]:
    """Return expected sizes with two effects in a place, by probabilities on a grid of both sizes."""
    nodes = round(_PAIR_GRID * wide * max(law.strength * law.spread / _FINE, 1.0))
    size, weights = _grid(law, nodes, _REACH * wide)
    count = inside[0][0].shape[2]
    one, two = np.array(list(combinations(range(count), 2))).T
    prior = np.log((1.0 - law.nothing) / len(one)) + np.log(weights[:, None]) + np.log(weights)

    def mass(panel: Floats, returns: Floats) -> tuple[float, Floats]:
        """Return the log evidence, and the probabilities of pairs and sizes."""
        inner = np.einsum("tnc,tnd->cd", panel, panel, optimize=True)
        score = np.einsum("tnc,tn->c", panel, returns)
        alone = np.outer(score, size) - np.outer(np.diag(inner), size**2) / 2.0
        logs = prior + alone[one][:, :, None] + alone[two][:, None, :]
        logs -= inner[one, two][:, None, None] * np.outer(size, size)
        top = max(float(logs.max()), 0.0)
        found = np.exp(logs - top)
        whole = law.nothing * math.exp(-top) + float(found.sum())
        return top + math.log(whole), found / whole

    logs, found = list[float](), list[list[Floats]]()
    for date in (*_DATES, None):
        log, means = math.log(1.0 - law.change if date is None else law.change / len(_DATES)), list[Floats]()
        for panel, returns in inside:
            if date is not None:
                log += mass(panel[:date], returns[:date])[0]
            evidence, after = mass(panel[date or 0 :], returns[date or 0 :])
            log += evidence
            mean = np.zeros(count)
            mean += np.bincount(one, after.sum(axis=2) @ size, count) + np.bincount(
                two, after.sum(axis=1) @ size, count
            )
            means.append(mean)
        logs.append(log)
        found.append(means)
    return _mixed(logs, found)


def _mixed(logs: list[float], found: list[list[Floats]]) -> list[Floats]:
    """Return the expected sizes by place, mixed over dates with the log weights of the dates."""
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    return [np.tensordot(weights, np.array([means[g] for means in found]), 1)[None] for g in range(len(found[0]))]


def best_book(
    forecasts: Floats,
    covariance: Floats,
    impact: Floats,
    aversion: Floats,
    benchmark: Floats,
    book: Floats,
    limits: Mapping[int, tuple[Floats, Floats]],
) -> Floats:
    """Return the (n,) best book of the first week of H: forecasts and benchmark (H, n), aversion (H,).

    `limits` maps weeks to rows and amounts that the book must meet.
    """
    weeks, n = forecasts.shape
    rows = sum(len(amounts) for _, amounts in limits.values())
    system, target = np.zeros((weeks * n + rows, weeks * n + rows)), np.zeros(weeks * n + rows)
    at = weeks * n
    for week in range(weeks):
        block = slice(week * n, week * n + n)
        system[block, block] = aversion[week] * covariance + np.diag(impact * (1.0 if week == weeks - 1 else 2.0))
        target[block] = forecasts[week] + aversion[week] * covariance @ benchmark[week]
        if week:
            before = slice(week * n - n, week * n)
            system[block, before] = system[before, block] = -np.diag(impact)
        else:
            target[block] += impact * book
        if week in limits:
            matrix, amounts = limits[week]
            system[at : at + len(amounts), block] = matrix
            system[block, at : at + len(amounts)] = matrix.T
            target[at : at + len(amounts)] = amounts
            at += len(amounts)
    solved: Floats = np.asarray(np.linalg.solve(system, target), dtype=float)
    return solved[:n]
