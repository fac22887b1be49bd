"""The panels at one month-end, as arrays over the same tickers.

One-way trading costs by name, as traders estimate them from volatility and volume.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.building import CovarianceTable
from finskillbench.engines.portfolio.measures import sector_weights
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.panels import Panels
from finskillbench.panels.market.benchmark_weights import capped
from finskillbench.panels.market.share_counts import VOLUME_SESSIONS

COMMISSION, TYPICAL, POWER = 1.0, 12.0, 1.5
"""Commission; spread and impact of the name of median volatility and volume; how fast these rise.

With x = (volatility / median) * sqrt(median volume / volume), spread and impact are `TYPICAL` * x ** `POWER`.
"""
LEAST, MOST = 2.0, 80.0
"""Costs of the most and the least liquid names, basis points of the amount traded."""


def trading_costs(panels: Panels, as_of: date, tickers: tuple[str, ...], volatility: Floats) -> Floats:
    """(n,) one-way costs in basis points, by the daily dollar volume of the last 21 sessions; one decimal."""
    window = pl.col("date") <= as_of
    close, volume = (
        panels.prices_of(field).filter(window).tail(VOLUME_SESSIONS).select(tickers).to_numpy()
        for field in ("close", "volume")
    )
    dollars = np.maximum(np.nan_to_num(close * volume).mean(axis=0), 1.0)
    strain = (volatility / np.median(volatility)) * np.sqrt(np.median(dollars) / dollars)
    return np.clip(COMMISSION + TYPICAL * strain**POWER, LEAST, MOST).round(1)


LISTED = 2 / 3
"""Share of the universe on an approved list: without lists a single name of high beta would be the answer to every
question for the highest return, and inverse variances would hardly change from one year to the next."""
MOST_LISTED = 60
"""Most names on an approved list: of hundreds most would weigh less than a holding."""


@dataclass(frozen=True, slots=True, eq=False)
class MonthEnd:
    """The panels at one month-end, as arrays over the same n tickers.

    expected_returns (n,) and risk: annualised decimals; benchmark (n,) weights; exposures {factor: (n,) betas}.
    """

    as_of: date
    tickers: tuple[str, ...]
    sectors: tuple[str, ...]
    expected_returns: Floats
    risk: RiskModel
    benchmark: Floats
    exposures: dict[str, Floats]
    risk_free_rate: float
    trading_costs: Floats
    """(n,) one-way, basis points of the amount traded."""
    growth: Floats
    """(n,) gross growth of each name over the drift window."""

    @classmethod
    def of(cls, panels: Panels, as_of: date, drift_sessions: int) -> MonthEnd:
        """Read a month-end; portfolios drift with the returns of the last `drift_sessions` sessions before it."""
        covariance = panels.covariance[as_of]
        tickers = covariance.symbols
        place = {symbol: at for at, symbol in enumerate(panels.symbols)}
        places = [place[ticker] for ticker in tickers]
        risk = RiskModel.from_factors(covariance.loadings, covariance.specific)
        return cls(
            as_of=as_of,
            tickers=tickers,
            sectors=tuple(panels.sectors[ticker] for ticker in tickers),
            expected_returns=panels.expected_returns(as_of),
            risk=risk,
            benchmark=panels.weights(as_of),
            exposures=dict(zip(FACTORS, panels.exposures(as_of).T, strict=True)),
            risk_free_rate=panels.risk_free[as_of],
            trading_costs=trading_costs(panels, as_of, tickers, np.sqrt(risk.variances)),
            growth=np.prod(1.0 + np.nan_to_num(panels.window_returns(as_of, drift_sessions)[1][:, places]), axis=0),
        )

    def of_list(self, rng: np.random.Generator, share: float = LISTED) -> Self:
        """The month-end as a manager sees it whose approved list holds a share of the names, drawn at random."""
        count = min(max(round(share * len(self.tickers)), 1), MOST_LISTED)
        if count == len(self.tickers):
            return self
        places: list[int] = sorted(rng.permutation(len(self.tickers)).tolist()[:count])
        return replace(
            self,
            tickers=tuple(self.tickers[place] for place in places),
            sectors=tuple(self.sectors[place] for place in places),
            expected_returns=self.expected_returns[places],
            risk=RiskModel.from_factors(self.risk.root[:, places], self.risk.diagonal[places]),
            benchmark=capped(self.benchmark[places]),
            exposures={factor: betas[places] for factor, betas in self.exposures.items()},
            trading_costs=self.trading_costs[places],
            growth=self.growth[places],
        )

    def by_ticker(self, values: Floats) -> dict[str, float]:
        """Ticker to number, in ticker order."""
        return {ticker: float(value) for ticker, value in zip(self.tickers, values, strict=True)}

    @property
    def sector_mapping(self) -> dict[str, str]:
        """Ticker to sector."""
        return dict(zip(self.tickers, self.sectors, strict=True))

    @property
    def benchmark_sectors(self) -> dict[str, float]:
        """Benchmark weight of each sector."""
        return sector_weights(self.benchmark, self.sectors)

    @property
    def covariance_table(self) -> CovarianceTable:
        """The covariance by reference, as the edition stores it."""
        return {"tickers": list(self.tickers), "ref": f"panels/covariance/{self.as_of}.npz"}

    def drifted(self, weights: Floats) -> Floats:
        """Weights after the returns of the drift window, renormalised."""
        grown = weights * self.growth
        return grown / grown.sum()
