"""Forecasts of returns from a panel of signals by published methods, without knowledge of any law.

Features of several forms are tried in several divisions of the names into places. In a place, at most one candidate has
an effect at a time; effects change at unknown dates, and sizes have a normal prior around plus or minus a usual size.
All candidates and dates are summed over; pairs of form and places are averaged by their evidence, and what they explain
is taken off before the next layer.

Sources: Barry and Hartigan (1992), product partition models; George and McCulloch (1993), spike and slab; Hoeting et
al. (1999), Bayesian model averaging; Mallat and Zhang (1993), matching pursuit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Signals and what followed.

    Attributes
    ----------
    values : (T + H, n, S) standardised signals; the last H rows belong to coming periods.
    valid : (T + H, S) true where a signal counts.
    targets : (T, n) residual returns, divided by their deviations.
    unit : (n,) factors by which a name's features are multiplied.
    vendor : (S,) vendor of each signal; pairs are formed within vendors of at most ten.
    places : divisions of the names into places, (n,) codes from 0.
    block : number of periods between possible changes.
    """

    values: Floats
    valid: Booleans
    targets: Floats
    unit: Floats
    vendor: Integers
    places: Mapping[str, Integers]
    block: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the program: what is tried, and priors.

    Attributes
    ----------
    sizes : usual sizes of effects that are tried, in deviations of a target for a feature of 1.
    spread : deviation of sizes, as a share of the usual size.
    change, nothing : probability of a change at each block, and that a place has no effect.
    layers : greatest number of effects in a place at the same time.
    trust : factor of all forecasts.
    """

    forms: tuple[str, ...]
    places: tuple[str, ...]
    sizes: tuple[float, ...]
    change: float
    nothing: float = 0.2
    spread: float = 0.35
    layers: int = 3
    trust: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A form in a division into places: its weight, log evidence against no effect, and moments (G, C) of sizes now."""

    form: str
    place: str
    weight: float
    log: float
    mean: Floats
    square: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Mean (H, n) and covariance (n, n; of the first period) of the effects of coming periods."""

    mean: Floats
    doubt: Floats


def _older(x: Floats, count: int) -> Floats:
    return np.concatenate([np.zeros_like(x[:count]), x[:-count]])


def _rank(x: Floats) -> Floats:
    return np.argsort(np.argsort(x, axis=1), axis=1) - (x.shape[1] - 1) / 2


_SINGLE: Mapping[str, Callable[[Floats], Floats]] = {
    "level": lambda x: x,
    "rank": _rank,
    "sign": np.sign,
    "extremes": lambda x: x * (np.abs(x) > 1.5),
}
_OVER_TIME: Mapping[str, Callable[[Floats, int], Floats]] = {"older": _older, "change": lambda x, k: x - _older(x, k)}
_OF_PAIRS: Mapping[str, tuple[Callable[[Floats, Floats], Floats], Any]] = {
    "product": (lambda a, b: a * b, combinations),
    "difference": (lambda a, b: a - b, combinations),
    "if high": (lambda a, b: a * (b > 0), permutations),
}


def feature(panel: Panel, form: str) -> Floats:
    """Return features (T + H, n, C) of deviation 1, times the unit of each name; 0 where they are not valid."""
    known = np.nan_to_num(panel.values)
    valid = panel.valid & ~np.isnan(panel.values).any(axis=1)
    name, _, count = form.partition(" ")
    if form in _OF_PAIRS:
        combined, chosen = _OF_PAIRS[form]
        members = [np.flatnonzero(panel.vendor == each) for each in np.unique(panel.vendor)]
        pairs = np.array([pair for each in members if len(each) <= 10 for pair in chosen(each, 2)]).T
        raw, valid = combined(known[:, :, pairs[0]], known[:, :, pairs[1]]), valid[:, pairs[0]] & valid[:, pairs[1]]
    elif form in _SINGLE:
        raw = _SINGLE[form](known)
    else:
        raw = _OVER_TIME[name](known, int(count))
        earlier = np.concatenate([np.zeros_like(valid[: int(count)]), valid[: -int(count)]])
        valid = earlier if name == "older" else valid & earlier
    raw = np.where(valid[:, None, :], raw, 0.0).astype(np.float32)
    past = raw[: len(panel.targets)]
    squares = np.einsum("tnc,tnc->c", past, past)
    deviation = np.sqrt(squares / np.maximum(valid[: len(past)].sum(axis=0) * raw.shape[1], 1) + 1e-9)
    return raw / deviation.astype(np.float32) * panel.unit[:, None].astype(np.float32)


_NEGLIGIBLE = 0.02
"""Weight below which a model is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Log evidence against no effect; posterior mean sizes (B, G, C) by block, and moments (G, C) of the last block."""

    log: float
    path: Floats
    mean: Floats
    square: Floats


def _fit(x: Floats, y: Floats, settings: Settings, size: float) -> _Fit:
    """Sum over candidates and dates, from sums of squares and products (B, G, C) by block.

    A stretch of blocks [i, j) has at most one effect; forward and backward sums over partitions give its probability.
    """
    blocks, places, count = x.shape
    stay, turn = np.log1p(-settings.change), np.log(settings.change)
    before_x, before_y = (np.concatenate([np.zeros((1, *each.shape[1:])), np.cumsum(each, axis=0)]) for each in (x, y))
    precision = (settings.spread * size) ** -2.0
    one, none = np.log((1.0 - settings.nothing) / count / 2.0), np.log(settings.nothing)
    forward: list[Floats] = [np.zeros(places)]
    kept: list[tuple[Floats, Floats, Floats]] = []
    for last in range(1, blocks + 1):
        a = before_x[last] - before_x[:last] + precision
        b = before_y[last] - before_y[:last]
        base = (np.log(precision) - np.log(a) - size**2 * precision) / 2.0 + one
        plus, minus = ((b + sign * size * precision) / a for sign in (1.0, -1.0))
        up, down = base + plus**2 * a / 2.0, base + minus**2 * a / 2.0
        top = np.maximum(up, down).max(axis=2, keepdims=True)
        p, q = np.exp(up - top), np.exp(down - top)
        total = np.logaddexp(none, np.log((p + q).sum(axis=2)) + top[..., 0])
        scale = np.exp(top - total[..., None])
        p, q = p * scale, q * scale
        kept.append((total, p * plus + q * minus, p * plus**2 + q * minus**2 + (p + q) / a))
        starts = np.arange(last)
        logs = np.array(forward) + total + ((last - 1 - starts) * stay + (starts > 0) * turn)[:, None]
        forward.append(np.logaddexp.reduce(logs, axis=0))
    backward = [np.zeros(places)] * (blocks + 1)
    path, now = np.zeros((blocks, places, count)), kept[-1]
    mean = square = np.zeros((places, count))
    for first in range(blocks - 1, -1, -1):
        logs = list[Floats]()
        for last in range(first + 1, blocks + 1):
            after = backward[last] + (turn if last < blocks else 0.0)
            logs.append(kept[last - 1][0][first] + (last - first - 1) * stay + after)
            weight = np.exp(forward[first] + (turn if first else 0.0) + logs[-1] - forward[blocks])[:, None]
            if weight.max() > 1e-4:
                path[first:last] += weight * kept[last - 1][1][first]
                if last == blocks:
                    mean, square = mean + weight * now[1][first], square + weight * now[2][first]
        backward[first] = np.logaddexp.reduce(np.array(logs), axis=0)
    return _Fit(float(forward[-1].sum()), path, mean, square)


def fit_models(panel: Panel, settings: Settings) -> list[Model]:
    """Weigh models layer by layer, each on what the earlier layers leave unexplained."""
    periods = len(panel.targets)
    left = panel.targets.copy()
    found = {form: feature(panel, form)[:periods] for form in settings.forms}
    edges = np.arange(periods % panel.block, periods, panel.block)
    edges[0] = 0
    lengths = np.diff(np.append(edges, periods))
    member = {name: _member(panel.places[name]).astype(np.float32) for name in settings.places}
    squares = {
        (form, place): np.matmul(inside, np.add.reduceat(past**2, edges, axis=0)).astype(np.float64)
        for form, past in found.items()
        for place, inside in member.items()
    }
    chosen = list[Model]()
    for _ in range(settings.layers):
        fits: dict[tuple[str, str], _Fit] = {}
        for form, past in found.items():
            products = np.add.reduceat(past * left[:, :, None].astype(np.float32), edges, axis=0)
            for place, inside in member.items():
                y = np.matmul(inside, products).astype(np.float64)
                tried = [_fit(squares[form, place], y, settings, size) for size in settings.sizes]
                fits[form, place] = max(tried, key=lambda each: each.log)
        logs = np.array([each.log for each in fits.values()])
        weights = np.exp(logs - np.logaddexp.reduce(np.append(logs, np.log(len(fits)))))
        explained = np.zeros_like(left)
        for (form, place), weight in zip(fits, weights.tolist(), strict=True):
            if weight >= _NEGLIGIBLE:
                fit = fits[form, place]
                path = np.repeat(fit.path, lengths, axis=0)[:, panel.places[place]]
                explained += weight * np.einsum("tnc,tnc->tn", found[form], path)
                chosen.append(Model(form, place, weight, fit.log, fit.mean, fit.square))
        if not explained.any():
            break
        left -= explained
    return chosen


def predict(panel: Panel, models: list[Model], settings: Settings) -> Forecast:
    """Add the forecasts of models; those of later periods shrink, as effects may change."""
    periods, names = panel.targets.shape
    ahead = len(panel.values) - periods
    mean, doubt = np.zeros((ahead, names)), np.zeros((names, names))
    lasting: Floats = (1.0 - settings.change) ** (np.arange(ahead, dtype=np.float64) / panel.block)
    coming = {form: feature(panel, form)[periods:] for form in {model.form for model in models}}
    for model in models:
        today, of = coming[model.form], panel.places[model.place]
        alpha: Floats = np.einsum("hnc,nc->hn", today, model.mean[of]) * lasting[:, None]
        together = _member(of).T @ _member(of)
        uncentred = (today[0] * model.square[of]) @ today[0].T
        mean += model.weight * alpha
        doubt += model.weight * together * (uncentred - np.outer(alpha[0], alpha[0]))
    return Forecast(settings.trust * mean, doubt)


def _member(of: Integers) -> Floats:
    """Return (G, n) one where a name belongs to a place."""
    return np.equal.outer(np.arange(int(of.max()) + 1), of).astype(np.float64)
