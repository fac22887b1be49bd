"""Signals and analysts: what they said of every name in every quarter, as integers in their own scale.

What makes a case of `allocate` hard, in one place: sizes, strengths of effects, shares of nothing, limits and costs.

All returns, volatilities and costs are of one quarter, as decimals.

The desk's book and the house's factor model: what is known of the names before any source is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem

QUARTERS = 44
HALVES = QUARTERS // 2
"""Half-years of two quarters; regimes change at their beginning."""
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
"""A column in the wrong unit is so many times too large."""
RETURN_UNIT = 1e-4
"""Returns are stored as integers of one basis point."""


@dataclass(frozen=True, slots=True)
class Tier:
    """The dials that differ by tier.

    Attributes
    ----------
    nothing : chance that no source moves an industry in a regime.
    strength : mean of a signal's effect, return per quarter for one score.
    change : chance that a new regime begins with a half-year.
    copies : how many of the signals are another source with noise.
    places : how many places a trap could be, at most.
    """

    nothing: float
    strength: float
    change: float
    copies: int
    places: int


TIERS = {
    "easy": Tier(nothing=0.05, strength=0.024, change=0.12, copies=40, places=3),
    "medium": Tier(nothing=0.08, strength=0.024, change=0.14, copies=50, places=3),
    "hard": Tier(nothing=0.10, strength=0.024, change=0.16, copies=60, places=3),
}

ANALYST_SHARE = 0.4
"""Chance that a live effect is an analyst's."""
ANALYST_MEAN, DEVIATION = 0.9, 0.25
"""Mean of an analyst's effect, and standard deviation of any effect, in units of the tier's strength.

Effects are of one size, give or take a quarter: where sizes vary freely, the few large ones have t-values of 6 to 13,
carry the score, and are found by whoever looks for the largest t.
"""

RISK_AVERSION = 4.0
MAX_WEIGHT = 0.035
BAND = 0.03
TURNOVER = 0.30
PENALTY = 0.2
"""Utility charged for each unit of NAV by which a limit is broken."""
LEAST_GAIN = 0.001
"""Least attainable gain over the textbook answer that a case must offer."""
FIRST_COST, PLANTED_COST = 0.3, 0.15
"""Shares of the attainable gain that a mistake at the first place, and at a further one, must cost when planted."""
LEAST_COST = 0.10
"""Least share of the attainable gain that a trap must cost whoever falls for it alone and errs nowhere else."""


_VOLATILITIES = np.array([0.080, 0.030, 0.030, 0.020, 0.035])
PREMIA = np.array([0.0150, 0.0020, 0.0030, 0.0025, 0.0030])


@dataclass(frozen=True)
class Book:
    """Names in groups of ten, in the order of every array; one quarter, decimals, rounded as they are disclosed.

    `loadings` is (n, k), `factor_covariance` (k, k), `specific` (n,) standard deviations, `prior` (n,) equilibrium
    expected returns, `current` and `benchmark` (n,) weights, `linear` and `quadratic` (n,) costs.
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
        """(n,) the place of each name's group."""
        return np.repeat(np.arange(GROUPS), GROUP_SIZE)

    @property
    def covariance(self) -> Floats:
        """(n, n) of returns, without any doubt about effects."""
        return self.loadings @ self.factor_covariance @ self.loadings.T + np.diag(self.specific**2)

    def problem(self, alpha: Floats, doubt: Floats | None = None) -> TradingProblem:
        """The decision under expected effects `alpha` (n,) with covariance `doubt` (n, n) of their own."""
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


def draw_book(rng: np.random.Generator, names: Sequence[tuple[str, str]]) -> Book:
    """A book over `names`, pairs of ticker and group in the order of the groups."""
    k = len(FACTORS)
    common = np.repeat(rng.normal(0.0, 0.4, (GROUPS, k - 1)), GROUP_SIZE, axis=0)
    loadings = np.column_stack([rng.normal(1.0, 0.2, NAMES), common + rng.normal(0.0, 0.5, (NAMES, k - 1))]).round(2)
    mixing = np.eye(k) + rng.normal(0.0, 0.15, (k, k))
    correlation = mixing @ mixing.T
    scale = _VOLATILITIES / np.sqrt(np.diag(correlation))
    benchmark = _weights(rng.lognormal(0.0, 0.6, NAMES), 0.025)
    return Book(
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
    """Weights of a basis point's hundredth in proportion to sizes, none above the cap, that sum to 1."""
    weights = sizes / sizes.sum()
    for _ in range(50):
        weights = np.minimum(weights, cap)
        weights /= weights.sum()
    weights = weights.round(6)
    weights[int(weights.argmin())] += 1.0 - weights.sum()
    return weights.round(6)


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
"""How many vendors were launched, and analysts took over, of late; of how many the earlier values are void."""
LATE = (QUARTERS - 8, QUARTERS - 2)
"""Quarters of late launches: so late that what came after cannot refute what was made up before."""
_LOUD = 6
"""Analysts who speak in far greater numbers than the others."""
STEPS = 150
"""Sources are delivered in steps of a part of their scale, which a table holds in half the room of free numbers."""


@dataclass(frozen=True)
class Sources:
    """What was delivered.

    Attributes
    ----------
    values : (T + 1, n, C) integers; the last row is what is delivered for the coming quarter.
    scale : (C,) the dispersion of each column by which its values are divided.
    start : (C,) first quarter of which a column's values say anything; those before are void.
    since : (C,) launch of a signal's vendor or an analyst's first quarter on the desk, as the table of sources has it.
    parent : (C,) the source that a column copies, itself where it copies none.
    """

    values: Integers = field(repr=False)
    scale: Integers
    start: Integers
    since: Integers
    parent: Integers

    def cluster(self, source: int) -> Integers:
        """A source with all that copy it or are copied by it."""
        return np.flatnonzero(self.parent == self.parent[source])


def vendor_of(source: int) -> str:
    """Who delivers a signal; analysts are the house's own."""
    return "house analyst" if IS_ANALYST[source] else _VENDOR_NAMES[source // PER_VENDOR]


def columns_of_vendor(vendor: int) -> Integers:
    """The signals of a vendor."""
    return np.arange(vendor * PER_VENDOR, (vendor + 1) * PER_VENDOR)


def draw_sources(rng: np.random.Generator, copies: int) -> Sources:
    """Scores that drift from quarter to quarter, some of them copies of another with noise, in scales of their own."""
    persistence = rng.uniform(0.2, 0.8, SOURCES)
    scores = _drifting(rng, persistence)
    parent = np.arange(SOURCES)
    order = rng.permutation(SOURCES)
    copied = order[~IS_ANALYST[order]][:copies]
    originals = order[~np.isin(order, copied)][: copies // 4]
    for place, column in enumerate(copied):
        original = originals[place % len(originals)]
        likeness = rng.uniform(0.85, 0.97)
        parent[column] = original
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
    return Sources(values, scale, start, since, parent)


def _drifting(rng: np.random.Generator, persistence: Floats) -> Floats:
    """(T + 1, n, C) stationary first-order autoregressions of variance one."""
    scores = rng.standard_normal((QUARTERS + 1, NAMES, SOURCES))
    fresh = np.sqrt(1.0 - persistence**2)
    for quarter in range(1, QUARTERS + 1):
        scores[quarter] *= fresh
        scores[quarter] += persistence * scores[quarter - 1]
    return scores
