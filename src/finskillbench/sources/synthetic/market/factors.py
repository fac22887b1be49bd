"""Factor returns of the fictional market: calm years, four sell-offs, fat tails.

Returns are drawn, then rounded to the data library's two decimals of a percent: what is published is exactly what
drives the stocks, so a regression on the published factors has no errors in its variables.
"""

from dataclasses import dataclass
from datetime import date

import numpy as np

from finskillbench.arrays import FACTORS, Floats

CALM_VOLATILITY = 0.15
_CALM_DRIFT = 0.15
_ANNUAL = 252
_STYLE_VOLATILITY = {"smb": 0.075, "hml": 0.095, "rmw": 0.06, "cma": 0.055, "mom": 0.11}


@dataclass(frozen=True, slots=True)
class Regime:
    """A stretch of sessions with its own market volatility and cumulative log moves of factors."""

    name: str
    first: date
    last: date
    market_volatility: float
    moves: dict[str, float]


REGIMES = (
    Regime("2018Q4 selloff", date(2018, 10, 1), date(2018, 12, 24), 0.24, {"mkt_rf": -0.20, "smb": -0.05}),
    Regime("COVID crash", date(2020, 2, 20), date(2020, 3, 23), 0.70, {"mkt_rf": -0.40, "smb": -0.08, "hml": -0.12}),
    Regime("COVID rebound", date(2020, 3, 24), date(2020, 6, 8), 0.32, {"mkt_rf": 0.34, "smb": 0.08}),
    Regime(
        "2022 tightening",
        date(2022, 1, 3),
        date(2022, 10, 14),
        0.23,
        {"mkt_rf": -0.28, "hml": 0.24, "rmw": 0.08, "cma": 0.18, "mom": 0.12},
    ),
    Regime("2025 tariffs", date(2025, 3, 24), date(2025, 4, 8), 0.38, {"mkt_rf": -0.13}),
    Regime("2025 relief", date(2025, 4, 9), date(2025, 5, 16), 0.28, {"mkt_rf": 0.17}),
)


def volatility_multiplier(days: tuple[date, ...]) -> Floats:
    """(T,) market volatility over its calm level; styles, sectors and names move with its square root."""
    multiplier = np.ones(len(days))
    for regime in REGIMES:
        multiplier[[regime.first <= day <= regime.last for day in days]] = regime.market_volatility / CALM_VOLATILITY
    return multiplier


def draw_factors(days: tuple[date, ...], rng: np.random.Generator) -> Floats:
    """(T, 6) daily simple factor returns in the order of `FACTORS`, decimals on a grid of 0.0001."""
    count = len(days)
    multiplier = volatility_multiplier(days)
    # Student t with 5 degrees of freedom has variance 5/3.
    shock = rng.standard_t(5, size=(count, len(FACTORS))) * (3 / 5) ** 0.5
    # Value and investment go together, momentum leans against value and the market (data library since 1963).
    mkt, smb, hml, rmw, cma, mom = (shock[:, i] for i in range(len(FACTORS)))
    mixed = {
        "smb": smb,
        "hml": hml,
        "rmw": rmw * 0.95 - smb * 0.31,
        "cma": cma * 0.85 + hml * 0.53,
        "mom": mom * 0.92 - hml * 0.30 - mkt * 0.25,
    }
    columns = {"mkt_rf": mkt * multiplier * (CALM_VOLATILITY / _ANNUAL**0.5) + _CALM_DRIFT / _ANNUAL}
    for name, volatility in _STYLE_VOLATILITY.items():
        columns[name] = mixed[name] * np.sqrt(multiplier) * (volatility / _ANNUAL**0.5)
    _steady_years(columns["mkt_rf"], days)
    for regime in REGIMES:
        inside = np.array([regime.first <= day <= regime.last for day in days])
        for name, move in regime.moves.items():
            target = move * (1 + 0.15 * (rng.random() - 0.5))
            columns[name][inside] += (target - columns[name][inside].sum()) / inside.sum()
    factors: Floats = np.stack([columns[name] for name in FACTORS], axis=1)
    rounded: Floats = np.round(np.clip(factors, -0.15, 0.15), 4)
    return rounded


def _steady_years(market: Floats, days: tuple[date, ...]) -> None:
    """Pull each year's mean two thirds of the way to the drift: ten drawn years would often hold a +-50 % one."""
    years = np.array([day.year for day in days])
    for year in np.unique(years):
        inside = years == year
        market[inside] -= (market[inside].mean() - _CALM_DRIFT / _ANNUAL) * (2 / 3)
