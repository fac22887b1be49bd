"""Forms in which a source may enter expected returns: functions of its values, of older values, or of two sources.

A form is a text. Single: `level`, `rank`, `sign`, `magnitude`, `extremes`, `soft extremes` (the part beyond one
deviation), `middle`, `top`, `bottom`, `rank in group`, `less group`, `group mean`, `by volatility` (times the specific
volatility of the name). With a number of periods: `older 2`, `change 1`, `mean 4`, `surprise 4` (value less the mean of
the 4 before). Of two sources of a vendor: `product`, `difference`, `sum`, `agreement`, `signed by`, `if high`,
`if low`. One of the other, as often as needed: `rank of change 1`, `older 3 of change 1`, `older 2 of product`,
`product of change 1`, `by volatility of sign`. Several at once: `level|change 1`.
"""

# pyright: basic
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np

from panels import Floats, Market

Form: TypeAlias = str | Callable[[Market], tuple[Any, Any, list[str]]]
"""A text, or a function that returns raw features (T + 1, n, C), where they are valid (T + 1, C), and labels."""


def _lag(x: Floats, count: int) -> Floats:
    return np.concatenate([np.zeros_like(x[:count]), x[:-count]]) if count else x


def _rank(x: Floats) -> Floats:
    return (np.argsort(np.argsort(x, axis=1), axis=1) - (x.shape[1] - 1) / 2) / x.shape[1]


def _within(x: Floats, groups: Floats, how: Callable[[Floats], Any]) -> Floats:
    out = np.empty_like(x)
    for code in np.unique(groups):
        out[:, groups == code] = how(x[:, groups == code])
    return out


_OF_VALUES: Mapping[str, Callable[[Floats, Market], Any]] = {
    "level": lambda x, m: x,
    "rank": lambda x, m: _rank(x),
    "sign": lambda x, m: np.sign(x),
    "magnitude": lambda x, m: np.abs(x),
    "extremes": lambda x, m: x * (np.abs(x) > 1.5),
    "soft extremes": lambda x, m: x - np.clip(x, -1, 1),
    "middle": lambda x, m: x * (np.abs(x) < 1),
    "top": lambda x, m: (x > 1) * 1.0,
    "bottom": lambda x, m: (x < -1) * 1.0,
    "rank in group": lambda x, m: _within(x, m.groups, _rank),
    "less group": lambda x, m: _within(x, m.groups, lambda v: v - v.mean(1, keepdims=True)),
    "group mean": lambda x, m: _within(x, m.groups, lambda v: v.mean(1, keepdims=True)),
    "by volatility": lambda x, m: x * (m.specific / np.median(m.specific))[:, None],
}
_OF_TIME: Mapping[str, Callable[[Floats, int], Any]] = {
    "older": _lag,
    "change": lambda x, k: x - _lag(x, k),
    "mean": lambda x, k: np.mean([_lag(x, i) for i in range(k)], axis=0),
    "surprise": lambda x, k: x - np.mean([_lag(x, i) for i in range(1, k + 1)], axis=0),
}
_OF_PAIRS: Mapping[str, tuple[Callable[[Floats, Floats], Any], bool]] = {
    "product": (lambda a, b: a * b, False),
    "difference": (lambda a, b: a - b, False),
    "sum": (lambda a, b: a + b, False),
    "agreement": (lambda a, b: (a + b) * (a * b > 0), False),
    "signed by": (lambda a, b: a * np.sign(b), True),
    "if high": (lambda a, b: a * (b > 0), True),
    "if low": (lambda a, b: a * (b < 0), True),
}
USUAL = (
    *("level", "rank", "sign", "soft extremes", "magnitude", "rank in group", "less group", "by volatility", "older 1"),
    *("mean 4", "change 1", "change 4", "surprise 4", "sign of change 1", "product", "difference", "agreement"),
    *("signed by", "if high", "if low"),
)
"""Forms to begin with."""
SPANS = (
    *(f"older {k}" for k in range(2, 9)),
    *(f"{name} {k}" for name in ("change", "surprise", "mean") for k in (2, 8, 12)),
)
"""Delays and longer spans, to be screened after `USUAL`."""


def pairs_within(market: Market, *, ordered: bool, largest: int = 10) -> list[tuple[int, int]]:
    """Return pairs of sources of one vendor, for vendors with at most `largest` sources."""
    vendors, arranged = np.array(market.vendors), permutations if ordered else combinations
    members = [np.flatnonzero(vendors == vendor) for vendor in dict.fromkeys(market.vendors)]
    return [(int(a), int(b)) for each in members if 1 < len(each) <= largest for a, b in arranged(each, 2)]


def standardised(raw: Floats, valid: Floats) -> Floats:
    """Centre each feature, divide it by its deviation, and set it to 0 where it is not valid."""
    weight = valid[:, None, :].astype(np.float32)
    count = np.maximum(weight.sum((0, 1)) * raw.shape[1], 1)
    out = (raw - (raw * weight).sum((0, 1)) / count) * weight
    return (out / np.sqrt((out * out).sum((0, 1)) / count + 1e-12)).astype(np.float32)


def feature(market: Market, form: Form, pairs: Sequence[tuple[int, int]] | None = None) -> tuple[Floats, list[str]]:
    """Return features (T + 1, n, C) of deviation 1 and a label for each."""
    if not isinstance(form, str):
        raw, valid, labels = form(market)
        return standardised(raw, valid), labels
    if "|" in form:
        each = [(part, *feature(market, part, pairs)) for part in form.split("|")]
        labels = [f"{part}: {label}" for part, _, names in each for label in names]
        return np.concatenate([values for _, values, _ in each], axis=2), labels
    raw, valid, labels = _raw(market, form, pairs)
    return standardised(raw, valid), labels


def _raw(market: Market, form: str, pairs: Sequence[tuple[int, int]] | None) -> tuple[Floats, Floats, list[str]]:
    """Return a form before it is standardised, its validity and its labels."""
    outer, _, inner = form.partition(" of ")
    raw, valid, labels = market.values, market.valid, list(market.sources)
    if inner:
        raw, valid, labels = _raw(market, inner, pairs)
        raw = raw / np.maximum(raw.std(axis=(0, 1)), 1e-12)
    if outer in _OF_PAIRS and labels == list(market.sources):
        of_two, ordered = _OF_PAIRS[outer]
        chosen = np.array(pairs if pairs is not None else pairs_within(market, ordered=ordered), int).reshape(-1, 2)
        i, j = chosen.T
        labels = [f"{market.sources[a]},{market.sources[b]}" for a, b in chosen]
        return of_two(raw[:, :, i], raw[:, :, j]), valid[:, i] & valid[:, j], labels
    if outer in _OF_VALUES:
        return _OF_VALUES[outer](raw, market), valid, labels
    name, _, count = outer.rpartition(" ")
    if name not in _OF_TIME or not count.isdigit():
        raise ValueError(f"form {form!r} is unknown; see the docstring of features")
    k = int(count)
    needed = {"older": [k], "change": [0, k], "mean": range(k), "surprise": range(k + 1)}[name]
    return _OF_TIME[name](raw, k), np.logical_and.reduce([_lag(valid, each) for each in needed]), labels
