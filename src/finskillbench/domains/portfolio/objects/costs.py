"""One-way trading costs by name, as traders estimate them from volatility and volume."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.panels import Panels
from finskillbench.panels.market.liquidity import VOLUME_SESSIONS

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
