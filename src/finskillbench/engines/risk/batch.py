"""Portfolios of any number of markets side by side: what every limit and every scenario needs of them, once each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from finskillbench.arrays import FACTORS, Booleans, Floats
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, required


@dataclass(frozen=True, eq=False)
class Batch:
    """p portfolios; those that follow each other in one market are one run, and a run is one matrix product.

    Attributes
    ----------
    weights : (p, n) signed fractions of NAV, n the names of the largest market, 0 beyond those of the own one.
    cash, traded : (p,) fractions of NAV; `traded` is the one-way turnover of the month.
    runs : each market with the rows of its portfolios; together all rows, in order.
    """

    weights: Floats
    cash: Floats
    traded: Floats
    runs: tuple[tuple[Market, slice], ...]

    @classmethod
    def of(cls, portfolios: Sequence[Portfolio], markets: Sequence[Market]) -> Batch:
        """Books, each in its market (p of both, at least one); sorted by market the runs are the longest."""
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
    def within(cls, market: Market, weights: Floats, cash: Floats, traded: Floats) -> Batch:
        """p portfolios of one market: weights (p, n), cash and traded (p,)."""
        return cls(weights, cash, traded, ((market, slice(0, len(weights))),))

    @cached_property
    def sector_names(self) -> tuple[str, ...]:
        """The distinct sectors of all markets, sorted: the order of every array by sector."""
        return tuple(sorted({name for market, _ in self.runs for name in market.sector_names}))

    @cached_property
    def by_sector(self) -> Floats:
        """(p, sectors, 7) Σ w β of each factor over the names of each sector, and last the sector's total weight."""
        found = np.zeros((len(self.weights), len(self.sector_names), len(FACTORS) + 1))
        for market, rows in self.runs:
            spread = market.betas_by_sector
            own = (self.weights[rows, : len(spread)] @ spread.reshape(len(spread), -1)).reshape(-1, *spread.shape[1:])
            found[rows, self._columns(market)] = own
        return found

    @cached_property
    def exposures(self) -> Floats:
        """(p, 6) Σ w β of each factor."""
        return np.einsum("psf->pf", self.by_sector)[:, :-1]

    @property
    def sector_weights(self) -> Floats:
        """(p, sectors) total signed weight of each sector, as a new array."""
        return self.by_sector[:, :, -1].copy()

    @cached_property
    def heaviest_sector(self) -> Floats:
        """(p,) greatest total weight of a sector of the portfolio's own market."""
        totals = self.sector_weights
        for market, rows in self.runs:
            if market.sector_names != self.sector_names:
                absent = [place for place, name in enumerate(self.sector_names) if name not in market.sector_names]
                totals[rows, absent] = -np.inf
        return totals.max(axis=1)

    @cached_property
    def sectors_held(self) -> Booleans:
        """(p, sectors) whether a name of the sector is held."""
        found = np.zeros((len(self.weights), len(self.sector_names)), dtype=bool)
        held = (np.abs(self.weights) > ZERO_WEIGHT).astype(float)
        for market, rows in self.runs:
            found[rows, self._columns(market)] = held[rows, : len(market.tickers)] @ market.membership > 0
        return found

    @cached_property
    def tracking_error(self) -> Floats:
        """(p,) sqrt((w - b)'Σ(w - b)), a decimal per year; cash carries no risk.

        Raises
        ------
        InputError : a market gives no covariance or no benchmark.
        """
        models = [required(market.risk, "covariance_matrix") for market, _ in self.runs]
        active, specific = self.weights.copy(), np.zeros_like(self.weights)
        rotated = np.zeros((len(self.weights), max(len(model.root) for model in models)))
        for (market, rows), model in zip(self.runs, models, strict=True):
            own = active[rows, : model.size]
            own -= required(market.benchmark, "benchmark_weights")
            np.matmul(own, model.root.T, out=rotated[rows, : len(model.root)])
            specific[rows, : model.size] = model.diagonal
        return np.sqrt((rotated**2).sum(axis=1) + (specific * active**2).sum(axis=1))

    def _columns(self, market: Market) -> slice | list[int]:
        """Where the sectors of a market stand among those of all."""
        if market.sector_names == self.sector_names:
            return slice(None)
        return [self.sector_names.index(name) for name in market.sector_names]
