"""The desk's book and the house's factor model: what is known of the names before any source is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench_desk.allocate.dials import (
    BAND,
    FACTORS,
    GROUP_SIZE,
    GROUPS,
    MAX_WEIGHT,
    NAMES,
    RISK_AVERSION,
    TURNOVER,
)
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem

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
