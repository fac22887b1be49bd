"""Forms in which a source may enter expected returns: functions of its values, of older values, or of two sources.

A form is a text. Single: `level`, `rank`, `sign`, `magnitude`, `extremes`, `middle`, `top`, `bottom`, `rank in group`,
`less group`, `group mean`. With a number of periods: `older 2`, `change 1`, `mean 4`, `surprise 4` (value less the mean
of the 4 before). One of the other: `rank of change 1`. Of two sources of a vendor: `product`, `difference`, `sum`,
`agreement`, `signed by`, `if high`, `if low`. Several at once: `level|change 1`.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
# Sibling modules are found by the search path of the sandbox.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


_OF_VALUES: Mapping[str, Callable[[Floats, Floats], Any]] = {
    "level": lambda x, g: x,
    "rank": lambda x, g: _rank(x),
    "sign": lambda x, g: np.sign(x),
    "magnitude": lambda x, g: np.abs(x),
    "extremes": lambda x, g: x * (np.abs(x) > 1.5),
    "middle": lambda x, g: x * (np.abs(x) < 1),
    "top": lambda x, g: (x > 1) * 1.0,
    "bottom": lambda x, g: (x < -1) * 1.0,
    "rank in group": lambda x, g: _within(x, g, _rank),
    "less group": lambda x, g: _within(x, g, lambda v: v - v.mean(1, keepdims=True)),
    "group mean": lambda x, g: _within(x, g, lambda v: v.mean(1, keepdims=True)),
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
    *("level", "rank", "sign", "extremes", "magnitude", "rank in group", "less group", "older 1", "mean 4", "change 1"),
    *("change 4", "surprise 4", "sign of change 1", "product", "difference", "agreement", "signed by", "if high"),
    "if low",
)
"""Forms to begin with."""


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
    if form in _OF_PAIRS:
        of_two, ordered = _OF_PAIRS[form]
        chosen = np.array(pairs if pairs is not None else pairs_within(market, ordered=ordered), int).reshape(-1, 2)
        i, j = chosen.T
        raw = of_two(market.values[:, :, i], market.values[:, :, j])
        labels = [f"{market.sources[a]},{market.sources[b]}" for a, b in chosen]
        return standardised(raw, market.valid[:, i] & market.valid[:, j]), labels
    raw, needed = _single(market, form)
    older: Iterable[Any] = (_lag(market.valid, k) for k in range(needed + 1))
    return standardised(raw, np.logical_and.reduce(list(older))), list(market.sources)


def _single(market: Market, form: str) -> tuple[Floats, int]:
    """Return a form of single sources and the number of older values that it needs."""
    outer, of, inner = form.partition(" of ")
    if of:
        raw, needed = _single(market, inner)
        raw = raw / np.maximum(raw.std(axis=(0, 1)), 1e-12)
        return _OF_VALUES[outer](raw, market.groups), needed
    if form in _OF_VALUES:
        return _OF_VALUES[form](market.values, market.groups), 0
    name, _, count = form.rpartition(" ")
    if name not in _OF_TIME or not count.isdigit():
        raise ValueError(f"form {form!r} is unknown; see the docstring of features")
    return _OF_TIME[name](market.values, int(count)), int(count) - (name == "mean")
