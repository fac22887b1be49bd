"""Portfolio and market snapshot, the inputs of the risk engines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError, InputError

T = TypeVar("T")

ZERO_WEIGHT = 1e-9
"""Largest weight of a name that is not held."""


@dataclass(frozen=True)
class MarketSnapshot:
    """Universe of n names on one date; optional fields are None if the task lacks them.

    Attributes
    ----------
    tickers, sectors : n symbols, the order of every array, and their sectors.
    betas : (n, 6) slopes on `FACTORS`.
    benchmark : (n,) weights, sum 1.
    risk : annualised covariance.
    dollar_volume : (n,) average daily volume, USD.
    factor_volatility : (6,) annualised standard deviations of the returns of `FACTORS`.
    """

    tickers: tuple[str, ...]
    sectors: tuple[str, ...]
    betas: Floats
    benchmark: Floats | None = None
    risk: RiskModel | None = None
    dollar_volume: Floats | None = None
    factor_volatility: Floats | None = None

    def __post_init__(self) -> None:
        n = len(self.tickers)
        sizes = {"sectors": len(self.sectors), "betas": self.betas.shape[0] if self.betas.ndim == 2 else 0}
        sizes |= {} if self.benchmark is None else {"benchmark": self.benchmark.size}
        sizes |= {} if self.risk is None else {"risk": self.risk.size}
        sizes |= {} if self.dollar_volume is None else {"dollar_volume": self.dollar_volume.size}
        wrong = [f"{name} ({size})" for name, size in sizes.items() if size != n]
        if wrong or self.betas.shape[1] != len(FACTORS):
            raise DimensionError(f"market of {n} names: give {', '.join(wrong) or 'betas'} for each name and factor")

    @cached_property
    def sector_names(self) -> tuple[str, ...]:
        """Sorted distinct sectors: the order of arrays by sector."""
        return tuple(sorted(set(self.sectors)))

    @cached_property
    def membership(self) -> Floats:
        """(n, sectors) 1 if a name belongs to a sector, else 0."""
        return np.array([[float(sector == name) for name in self.sector_names] for sector in self.sectors])

    @cached_property
    def betas_by_sector(self) -> Floats:
        """(n, sectors, 7) Betas and a 1 in the column of the name's sector, 0 elsewhere."""
        of_name = np.hstack([self.betas, np.ones((len(self.tickers), 1))])
        return self.membership[:, :, None] * of_name[:, None, :]


@dataclass(frozen=True)
class Portfolio:
    """Signed weights and cash as fractions of NAV (sum 1), NAV in USD.

    `traded` is the one-way turnover already made this month, a fraction of NAV.
    """

    weights: Floats
    cash: float
    nav: float
    traded: float = 0.0


def turnover_of(trades: Floats) -> float:
    """Return one-way turnover of (n,) signed weight changes; the offsetting cash change counts as a trade."""
    return float((np.abs(trades).sum() + abs(trades.sum())) / 2)


def require_field(value: T | None, field: str) -> T:
    """Return an optional market field; raise `InputError` if it is missing."""
    if value is None:
        raise InputError(f"{field} is missing; inject it from the task data")
    return value
