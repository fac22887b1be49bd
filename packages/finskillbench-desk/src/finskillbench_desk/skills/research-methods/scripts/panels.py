"""Panels as arrays: residuals, values, where values count, classes of names, records filled in, half-lives.

Tables are {column: list}, as a task has them. Shapes: T past periods, n names, C sources. Values are (T + 1, n, C): the
values of a row were known before its period began, and row T belongs to the period to come.
"""

# pyright: basic

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Market:
    """A panel: residuals (T, n) and their deviations `specific` (n,), values (T + 1, n, C), `valid` (T + 1, C).

    `valid` is true where a value counts as evidence. `groups` (n,) are codes from 0, for forms within groups; `vendors`
    has one entry per source, and pairs are formed within a vendor.
    """

    residuals: Floats
    specific: Floats
    values: Floats
    valid: Floats
    sources: list[str]
    groups: Floats
    vendors: list[str] = field(default_factory=list[str])

    def take(self, keep: Sequence[int] | Floats) -> Market:
        """Keep some sources, such as those of one kind or vendor."""
        places = np.asarray(keep, dtype=int)
        sources = [self.sources[k] for k in places]
        vendors = [self.vendors[k] for k in places] if self.vendors else []
        return replace(
            self, values=self.values[:, :, places], valid=self.valid[:, places], sources=sources, vendors=vendors
        )

    def until(self, period: int) -> Market:
        """Return what was known before a period, counted from 0."""
        return replace(
            self, residuals=self.residuals[:period], values=self.values[: period + 1], valid=self.valid[: period + 1]
        )

    def void(self, sources: Sequence[str], period: int = -1) -> Market:
        """Void values of some sources in one row, that of today by default: effects of them and of pairs are 0."""
        valid = self.valid.copy()
        valid[period, [self.sources.index(source) for source in sources]] = False
        return replace(self, valid=valid)

    def less(self, explained: Floats) -> Market:
        """Take explained returns (T, n) off the residuals, to search on without them."""
        return replace(self, residuals=self.residuals - explained)

    def shuffled(self, seed: int = 0) -> Market:
        """Permute periods of the residuals, which leaves no effect to find and keeps everything else."""
        order = np.random.default_rng(seed).permutation(len(self.residuals))
        return replace(self, residuals=self.residuals[order])


def cube(table: Mapping[str, Any], time: str, name: str, columns: Sequence[str], names: Sequence[str]) -> Floats:
    """Return columns of a long table as an array (times, names, columns); missing cells and columns are nan."""
    times, when = np.unique(np.asarray(table[time]), return_inverse=True)
    place = {each: k for k, each in enumerate(names)}
    out = np.full((len(times), len(names), len(columns)), np.nan, np.float32)
    who = np.array([place[each] for each in table[name]])
    for k, column in enumerate(columns):
        if column in table:
            out[when, who, k] = np.asarray(table[column], dtype=float)
    return out


def save(path: str, market: Market, maps: Mapping[str, Floats]) -> float:
    """Write a market and its maps, compressed with values of three digits, and return the size in MiB."""
    small = replace(market, values=market.values.astype(np.float16), residuals=market.residuals.astype(np.float32))
    text = zlib.compress(pickle.dumps((small, dict(maps))), 3)
    Path(path).write_bytes(text)
    if len(text) > 6 * 2**20:
        print("near the limit of 8 MiB for all files: a call that leaves more saves nothing; keep fewer sources (take)")
    return len(text) / 2**20


def load(path: str) -> tuple[Market, dict[str, Floats]]:
    """Read what `save` has written."""
    market, maps = pickle.loads(zlib.decompress(Path(path).read_bytes()))
    return replace(market, values=market.values.astype(np.float32)), maps


def rescaled(values: Floats) -> tuple[Floats, list[tuple[int, int, int]]]:
    """Return values (T, n, C) with units repaired, and what was done: (period from 0, column, power of ten taken off).

    Periods count as in another unit where their size is ten times or more that of the median period, or a tenth.
    """
    size = np.sqrt(np.nanmean(np.asarray(values, float) ** 2, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.nan_to_num(np.round(np.log10(size / np.nanmedian(size, axis=0))), posinf=0, neginf=0).astype(int)
    done = [(int(t), int(k), int(power[t, k])) for t, k in np.argwhere(power)]
    return (values / 10.0 ** power[:, None]).astype(values.dtype), done


def valid_from(first: Sequence[int] | Floats, periods: int) -> Floats:
    """Return `valid` (periods + 1, C) from the first period of each source that counts, from 1."""
    return np.arange(1, periods + 2)[:, None] >= np.asarray(first)[None, :]


def unexplained(returns: Floats, loadings: Floats, factor_returns: Floats) -> Floats:
    """Return returns (T, n) less what factors explain."""
    return np.nan_to_num(returns - factor_returns @ loadings.T)


def parts(amounts: Sequence[float] | Floats, count: int = 3) -> Floats:
    """Return classes 0..count-1 of equal numbers of names, by size of an amount."""
    order = np.argsort(np.argsort(np.asarray(amounts), kind="stable"), kind="stable")
    return order * count // len(order)


def before_and_after(market: Market, launch: Sequence[int] | Floats) -> list[tuple[str, float, float]]:
    """Return (source, t before launch, t from it on) of plain levels over all names, the largest t before it first.

    A record filled in afterwards is strong before its launch and nothing after it.
    """
    z, x = market.residuals / market.specific, market.values[:-1]
    x = x - x.mean(1, keepdims=True)
    score, size = (x * z[:, :, None]).sum(1), (x * x).sum(1)
    after = np.arange(1, len(z) + 1)[:, None] >= np.asarray(launch)[None, :]
    sides = [(score * side).sum(0) / np.sqrt((size * side).sum(0) + 1e-12) for side in (~after, after)]
    rows = [(source, float(a), float(b)) for source, a, b in zip(market.sources, *sides, strict=True)]
    return sorted((row for row in rows if row[1]), key=lambda row: -abs(row[1]))


def half_life(features: Floats, valid: Floats) -> Floats:
    """Return periods in which each feature (T + 1, n, C) loses half of its value, by its correlation over time."""
    both = valid[1:, None] & valid[:-1, None]
    lag = (features[1:] * features[:-1] * both).sum((0, 1)) / np.maximum((features[:-1] ** 2 * both).sum((0, 1)), 1e-12)
    return np.log(0.5) / np.log(np.clip(lag, 1e-3, 0.9999))
