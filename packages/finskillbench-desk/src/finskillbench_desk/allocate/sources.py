"""Sizes, tiers, sources and book of an allocation case; returns, volatilities and costs are quarterly decimals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem

QUARTERS = 44
HALVES = QUARTERS // 2
"""Half-years of two quarters; regimes change at their start."""
GROUPS = 12
GROUP_SIZE = 10
NAMES = GROUPS * GROUP_SIZE
VENDORS = 30
PER_VENDOR = 5
SIGNALS = VENDORS * PER_VENDOR
ANALYSTS = 40
SOURCES = SIGNALS + ANALYSTS
FACTORS = ("market", "size", "value", "quality", "momentum")

UNIT_FACTOR = 10
"""Factor by which a column in the wrong unit is too large."""
RETURN_UNIT = 1e-4
"""Returns are stored as integers of one basis point."""


@dataclass(frozen=True, slots=True)
class AllocationTier:
    """Difficulty settings of a tier.

    `nothing` and `change` are probabilities that a regime has no effect and that one begins with a half-year.
    `strength` is
    a signal's mean effect, return per quarter for a score of 1; `copies` counts noisy copies.
    """

    nothing: float
    strength: float
    change: float
    copies: int
    pitfalls: int


TIERS = {
    "easy": AllocationTier(nothing=0.05, strength=0.024, change=0.12, copies=40, pitfalls=3),
    "medium": AllocationTier(nothing=0.08, strength=0.024, change=0.14, copies=50, pitfalls=3),
    "hard": AllocationTier(nothing=0.10, strength=0.024, change=0.16, copies=60, pitfalls=3),
}

ANALYST_SHARE = 0.4
"""Probability that an effect is an analyst's."""
ANALYST_MEAN, DEVIATION = 0.9, 0.25
"""Mean of an analyst's effect, and standard deviation of any effect if the law is disclosed, in units of its strength.

With freely varying sizes, a few effects have t-values of 6 to 13 and decide the score.
"""

RISK_AVERSION = 4.0
MAX_WEIGHT = 0.035
BAND = 0.03
TURNOVER = 0.30
PENALTY = 0.2
"""Utility charged for each unit of NAV by which a limit is broken."""
LEAST_GAIN = 0.0012
"""Least attainable gain over the textbook answer of a case."""
FIRST_COST = 0.3
"""Least cost of the first planted mistake, as a share of the attainable gain."""
LEAST_COST = 0.10
"""Least cost of each single mistake in a finished case, as a share of the attainable gain."""


_VOLATILITIES = np.array([0.080, 0.030, 0.030, 0.020, 0.035])
PREMIA = np.array([0.0150, 0.0020, 0.0030, 0.0025, 0.0030])


@dataclass(frozen=True)
class AllocationBook:
    """Names in groups of ten, rounded as disclosed: `loadings` (n, k), `factor_covariance` (k, k), otherwise (n,).

    `specific` are standard deviations, `prior` equilibrium returns, `linear` and `quadratic` costs.
    """

    tickers: tuple[str, ...]
    groups: tuple[str, ...]
    loadings: Floats
    factor_covariance: Floats
    specific: Floats
    prior: Floats
    current: Floats
    benchmark: Floats
    linear: Floats
    quadratic: Floats

    @property
    def group_of(self) -> Integers:
        return np.repeat(np.arange(GROUPS), GROUP_SIZE)

    @property
    def covariance(self) -> Floats:
        """(n, n) covariance of returns, without uncertainty of effects."""
        return self.loadings @ self.factor_covariance @ self.loadings.T + np.diag(self.specific**2)

    def problem(self, alpha: Floats, doubt: Floats | None = None) -> TradingProblem:
        """Return the decision problem for expected effects `alpha` (n,) with covariance `doubt` (n, n)."""
        inside = self.benchmark.reshape(GROUPS, GROUP_SIZE).sum(axis=1)
        return TradingProblem(
            expected=self.prior + alpha,
            risk=RiskModel.from_matrix(self.covariance if doubt is None else self.covariance + doubt),
            risk_aversion=RISK_AVERSION,
            held=self.current,
            linear=self.linear,
            quadratic=self.quadratic,
            caps=np.full(NAMES, MAX_WEIGHT),
            groups=self.group_of,
            least=np.maximum(inside - BAND, 0.0),
            most=inside + BAND,
            turnover=TURNOVER,
        )


def book_json(book: AllocationBook) -> dict[str, Any]:
    """Return the book as lists of numbers, the form in which the truth stores it."""
    values = {field.name: getattr(book, field.name) for field in fields(book)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else list(value) for name, value in values.items()}


def book_from_json(stated: Mapping[str, Any]) -> AllocationBook:
    texts = ("tickers", "groups")
    values: dict[str, Any] = {
        name: tuple(value) if name in texts else np.array(value, dtype=float) for name, value in stated.items()
    }
    return AllocationBook(**values)


def draw_book(rng: np.random.Generator, names: Sequence[tuple[str, str]]) -> AllocationBook:
    k = len(FACTORS)
    common = np.repeat(rng.normal(0.0, 0.4, (GROUPS, k - 1)), GROUP_SIZE, axis=0)
    loadings = np.column_stack([rng.normal(1.0, 0.2, NAMES), common + rng.normal(0.0, 0.5, (NAMES, k - 1))]).round(2)
    mixing = np.eye(k) + rng.normal(0.0, 0.15, (k, k))
    correlation = mixing @ mixing.T
    scale = _VOLATILITIES / np.sqrt(np.diag(correlation))
    benchmark = _weights(rng.lognormal(0.0, 0.6, NAMES), 0.025)
    return AllocationBook(
        tickers=tuple(ticker for ticker, _ in names),
        groups=tuple(dict.fromkeys(group for _, group in names)),
        loadings=loadings,
        factor_covariance=(correlation * np.outer(scale, scale)).round(8),
        specific=rng.uniform(0.09, 0.165, NAMES).round(4),
        prior=(loadings @ PREMIA).round(5),
        current=_weights(benchmark * rng.lognormal(0.0, 0.3, NAMES), 0.030),
        benchmark=benchmark,
        linear=rng.uniform(0.0003, 0.0012, NAMES).round(4),
        quadratic=rng.uniform(0.6, 1.5, NAMES).round(2),
    )


def _weights(sizes: Floats, cap: float) -> Floats:
    """Return weights in proportion to sizes, with six decimals, none above the cap, summing to 1."""
    weights = sizes / sizes.sum()
    for _ in range(50):
        weights = np.minimum(weights, cap)
        weights /= weights.sum()
    weights = weights.round(6)
    weights[int(weights.argmin())] += 1.0 - weights.sum()
    return weights.round(6)


def draw_factor_returns(rng: np.random.Generator, book: AllocationBook) -> Floats:
    factors: Floats = rng.multivariate_normal(PREMIA, book.factor_covariance, QUARTERS).round(5)
    return factors


_VENDOR_NAMES = (
    "Aldgate", "Birch", "Calder", "Dunmore", "Elster", "Fathom", "Gorse", "Harrow", "Inver", "Juniper",
    "Kestrel", "Lorne", "Meridian", "Nadir", "Orrin", "Paxton", "Quill", "Rowan", "Selkirk", "Tamar",
    "Ulmus", "Vesper", "Wharf", "Xenia", "Yarrow", "Zephyr", "Ashdown", "Brisco", "Corran", "Delphi",
)  # fmt: skip
SOURCE_NAMES = (
    *(f"S{number:03d}" for number in range(1, SIGNALS + 1)),
    *(f"A{number:02d}" for number in range(1, ANALYSTS + 1)),
)
IS_ANALYST = np.arange(SOURCES) >= SIGNALS
_LATE_VENDORS, _LATE_ANALYSTS, _VOID = 5, 5, 3
"""Numbers of vendors launched late, of analysts who changed late, and of those whose earlier values are void."""
LATE = (QUARTERS - 8, QUARTERS - 2)
"""Quarters of late launches; too few follow for later data to refute the invented history."""
_LOUD = 6
"""Number of analysts with far larger scales than the others."""
STEPS = 150
"""Steps per scale unit; a coarse grid halves the storage of a table."""


@dataclass(frozen=True)
class Sources:
    """Delivered values of all sources.

    `values` (T + 1, n, C) are integers, the last row for the coming quarter; `scale` (C,) turns them into scores.
    `start` (C,) is the first valid quarter, `since` (C,) the launch as tabulated.
    """

    values: Integers = field(repr=False)
    scale: Integers
    start: Integers
    since: Integers


@dataclass(frozen=True)
class VisibleWorld:
    """Visible data of a case: `factor_returns` (T, k) to five decimals and `returns` (T, n) in basis points."""

    book: AllocationBook
    sources: Sources
    factor_returns: Floats = field(repr=False)
    returns: Integers = field(repr=False)

    @property
    def residuals(self) -> Floats:
        """(T, n) returns less what the published factors explain."""
        return self.returns * RETURN_UNIT - self.factor_returns @ self.book.loadings.T


def vendor_of(source: int) -> str:
    return "house analyst" if IS_ANALYST[source] else _VENDOR_NAMES[source // PER_VENDOR]


def columns_of_vendor(vendor: int) -> Integers:
    return np.arange(vendor * PER_VENDOR, (vendor + 1) * PER_VENDOR)


def draw_sources(rng: np.random.Generator, copies: int) -> Sources:
    """Draw autocorrelated scores, some of them noisy copies of others, each in a separate scale."""
    persistence = rng.uniform(0.2, 0.8, SOURCES)
    scores = _drifting(rng, persistence)
    order = rng.permutation(SOURCES)
    copied = order[~IS_ANALYST[order]][:copies]
    originals = order[~np.isin(order, copied)][: copies // 4]
    for place, column in enumerate(copied):
        original = originals[place % len(originals)]
        likeness = rng.uniform(0.85, 0.97)
        scores[:, :, column] *= np.sqrt(1.0 - likeness**2)
        scores[:, :, column] += likeness * scores[:, :, original]
    step = rng.integers(200, 600, SOURCES)
    loud = rng.choice(np.flatnonzero(IS_ANALYST), _LOUD, replace=False)
    step[loud] *= 8
    scale = STEPS * step
    values = np.rint(scores * STEPS).astype(np.int32) * step
    start, since = np.zeros(SOURCES, dtype=np.int64), np.zeros(SOURCES, dtype=np.int64)
    for place, vendor in enumerate(rng.choice(VENDORS, _LATE_VENDORS, replace=False)):
        columns = columns_of_vendor(int(vendor))
        since[columns] = rng.integers(*LATE)
        start[columns] = since[columns] * (place < _VOID)
    for place, column in enumerate(rng.choice(np.flatnonzero(IS_ANALYST), _LATE_ANALYSTS, replace=False)):
        since[column] = rng.integers(*LATE)
        start[column] = since[column] * (place < _VOID)
    return Sources(values, scale, start, since)


def _drifting(rng: np.random.Generator, persistence: Floats) -> Floats:
    """Draw (T + 1, n, C) stationary first-order autoregressions of variance one."""
    scores = rng.standard_normal((QUARTERS + 1, NAMES, SOURCES))
    fresh = np.sqrt(1.0 - persistence**2)
    for quarter in range(1, QUARTERS + 1):
        scores[quarter] *= fresh
        scores[quarter] += persistence * scores[quarter - 1]
    return scores
