"""Batches of portfolios across markets, with shared intermediate results for limits and scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from finskillbench.arrays import FACTORS, Booleans, Floats
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio, require_field


@dataclass(frozen=True, eq=False)
class Batch:
    """p portfolios; successive ones in the same market form a run, computed as one matrix product.

    Attributes
    ----------
    weights : (p, n) signed fractions of NAV, n the names of the largest market, 0 beyond the portfolio's own market.
    cash, traded : (p,) fractions of NAV; `traded` is the one-way turnover of the month.
    runs : markets with the rows of their portfolios; together all rows, in order.
    """

    weights: Floats
    cash: Floats
    traded: Floats
    runs: tuple[tuple[MarketSnapshot, slice], ...]

    @classmethod
    def of(cls, portfolios: Sequence[Portfolio], markets: Sequence[MarketSnapshot]) -> Batch:
        """Combine portfolios with their markets (at least one); sort by market for the longest runs."""
        starts = [row for row, market in enumerate(markets) if row == 0 or market is not markets[row - 1]]
        stops = [*starts[1:], len(markets)]
        runs = [(markets[start], slice(start, stop)) for start, stop in zip(starts, stops, strict=True)]
        weights = np.zeros((len(portfolios), max(len(market.tickers) for market, _ in runs)))
        for market, rows in runs:
            weights[rows, : len(market.tickers)] = [portfolio.weights for portfolio in portfolios[rows]]
        cash, traded = (
            np.array([portfolio.cash for portfolio in portfolios]),
            np.array([portfolio.traded for portfolio in portfolios]),
        )
        return cls(weights, cash, traded, tuple(runs))

    @classmethod
    def within(cls, market: MarketSnapshot, weights: Floats, cash: Floats, traded: Floats) -> Batch:
        """Combine portfolios of one market: weights (p, n), cash and traded (p,)."""
        return cls(weights, cash, traded, ((market, slice(0, len(weights))),))

    @cached_property
    def sector_names(self) -> tuple[str, ...]:
        """Sorted sectors of all markets: the order of arrays by sector."""
        return tuple(sorted({name for market, _ in self.runs for name in market.sector_names}))

    @cached_property
    def by_sector(self) -> Floats:
        """(p, sectors, 7) Σ w β of each factor by sector, then the sector's total weight."""
        found = np.zeros((len(self.weights), len(self.sector_names), len(FACTORS) + 1))
        for market, rows in self.runs:
            part = market.betas_by_sector
            totals = (self.weights[rows, : len(part)] @ part.reshape(len(part), -1)).reshape(-1, *part.shape[1:])
            found[rows, self._columns(market)] = totals
        return found

    @cached_property
    def exposures(self) -> Floats:
        """(p, 6) Σ w β of each factor."""
        return np.einsum("psf->pf", self.by_sector)[:, :-1]

    @property
    def sector_weights(self) -> Floats:
        """(p, sectors) Signed sector weights, as a new array."""
        return self.by_sector[:, :, -1].copy()

    @cached_property
    def heaviest_sector(self) -> Floats:
        """(p,) Greatest sector weight within the portfolio's market."""
        totals = self.sector_weights
        for market, rows in self.runs:
            if market.sector_names != self.sector_names:
                absent = [place for place, name in enumerate(self.sector_names) if name not in market.sector_names]
                totals[rows, absent] = -np.inf
        return totals.max(axis=1)

    @cached_property
    def sectors_held(self) -> Booleans:
        """(p, sectors) True if a name of the sector is held."""
        found = np.zeros((len(self.weights), len(self.sector_names)), dtype=bool)
        held = (np.abs(self.weights) > ZERO_WEIGHT).astype(float)
        for market, rows in self.runs:
            found[rows, self._columns(market)] = held[rows, : len(market.tickers)] @ market.membership > 0
        return found

    @cached_property
    def tracking_error(self) -> Floats:
        """(p,) sqrt((w - b)'Σ(w - b)) per year, cash without risk; raises `InputError` for missing data."""
        models = [require_field(market.risk, "covariance_matrix") for market, _ in self.runs]
        active, specific = self.weights.copy(), np.zeros_like(self.weights)
        rotated = np.zeros((len(self.weights), max(len(model.root) for model in models)))
        for (market, rows), model in zip(self.runs, models, strict=True):
            part = active[rows, : model.size]
            part -= require_field(market.benchmark, "benchmark_weights")
            np.matmul(part, model.root.T, out=rotated[rows, : len(model.root)])
            specific[rows, : model.size] = model.diagonal
        return np.sqrt((rotated**2).sum(axis=1) + (specific * active**2).sum(axis=1))

    def _columns(self, market: MarketSnapshot) -> slice | list[int]:
        if market.sector_names == self.sector_names:
            return slice(None)
        return [self.sector_names.index(name) for name in market.sector_names]
