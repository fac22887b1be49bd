"""Panels at one month-end as arrays over the same tickers, with trading costs by volatility and volume."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.building import CovarianceTable
from finskillbench.engines.portfolio.measures import portfolio_sector_weights
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.panels import Panels
from finskillbench.panels.market.benchmark_weights import capped
from finskillbench.panels.market.share_counts import VOLUME_SESSIONS

COMMISSION, TYPICAL, POWER = 1.0, 12.0, 1.5
"""Commission, and coefficient and exponent of spread and impact in (volatility / median) * sqrt(median volume /
volume).
"""
LEAST, MOST = 2.0, 80.0
"""Bounds of the costs, basis points of the amount traded."""


def trading_costs(panels: Panels, as_of: date, tickers: tuple[str, ...], volatility: Floats) -> Floats:
    """Return one-way costs (n,) in basis points from the dollar volume of the last 21 sessions, to one decimal."""
    window = pl.col("date") <= as_of
    close, volume = (
        panels.prices_of(field).filter(window).tail(VOLUME_SESSIONS).select(tickers).to_numpy()
        for field in ("close", "volume")
    )
    dollars = np.maximum(np.nan_to_num(close * volume).mean(axis=0), 1.0)
    strain = (volatility / np.median(volatility)) * np.sqrt(np.median(dollars) / dollars)
    return np.clip(COMMISSION + TYPICAL * strain**POWER, LEAST, MOST).round(1)


LISTED = 2 / 3
"""Share on an approved list. Without lists, one high-beta name would always win and inverse variances hardly change."""
MOST_LISTED = 60
"""Maximum names on an approved list; with hundreds, most weights would be below a holding."""


@dataclass(frozen=True, slots=True, eq=False)
class MonthEnd:
    """Panels at one month-end over n tickers: returns and risk annualised, benchmark weights, {factor: (n,) betas}."""

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
        """Return the month-end restricted to a random approved list with a share of the names."""
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
        """Return ticker to number, in ticker order."""
        return {ticker: float(value) for ticker, value in zip(self.tickers, values, strict=True)}

    @property
    def sector_mapping(self) -> dict[str, str]:
        return dict(zip(self.tickers, self.sectors, strict=True))

    @property
    def benchmark_sectors(self) -> dict[str, float]:
        return portfolio_sector_weights(self.benchmark, self.sectors)

    @property
    def covariance_table(self) -> CovarianceTable:
        """Reference to the covariance, as stored in the edition."""
        return {"tickers": list(self.tickers), "ref": f"panels/covariance/{self.as_of}.npz"}

    def drifted(self, weights: Floats) -> Floats:
        """Return weights after the returns of the drift window, renormalised."""
        unscaled = weights * self.growth
        return unscaled / unscaled.sum()
