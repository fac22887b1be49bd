"""Factor returns and macro series of the fictional economy: calm years, four sell-offs, fat tails.

Returns are rounded to the data library's precision before they drive the stocks, so regressions on published factors
have no errors in variables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from finskillbench.arrays import FACTORS, Floats

CALM_VOLATILITY = 0.15
_CALM_DRIFT = 0.15
_ANNUAL = 252
_STYLE_VOLATILITY = {"smb": 0.075, "hml": 0.095, "rmw": 0.06, "cma": 0.055, "mom": 0.11}


@dataclass(frozen=True, slots=True)
class Regime:
    """A period with its market volatility and cumulative log moves of factors."""

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
    """(T,) market volatility over its calm level; styles, sectors and names scale with its square root."""
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
    # Value and investment correlate; momentum correlates negatively with value and the market (data library since
    # 1963).
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
    """Move each year's mean two thirds towards the drift; unadjusted, a decade often has a +-50 % year."""
    years = np.array([day.year for day in days])
    for year in np.unique(years):
        inside = years == year
        market[inside] -= (market[inside].mean() - _CALM_DRIFT / _ANNUAL) * (2 / 3)


Series = tuple[tuple[date, ...], tuple[float | None, ...]]
"""Dates and values; None is a holiday, which FRED writes as a blank."""

# Levels in percent at the start of each year 2016..2026, close to the actual ones.
_KNOTS: Mapping[str, tuple[float, ...]] = {
    "DGS3MO": (0.25, 0.55, 1.45, 2.40, 1.55, 0.08, 0.10, 4.40, 5.35, 4.35, 3.60),
    "DGS2": (0.95, 1.20, 1.95, 2.50, 1.55, 0.14, 0.85, 4.40, 4.30, 4.25, 3.50),
    "DGS10": (2.10, 2.45, 2.50, 2.65, 1.85, 1.00, 1.65, 3.80, 3.95, 4.55, 4.15),
    "BAMLH0A0HYM2": (6.60, 4.10, 3.50, 4.60, 3.60, 3.80, 3.10, 4.70, 3.50, 2.90, 2.90),
    "DTWEXBGS": (113.0, 117.0, 110.0, 116.0, 115.0, 112.0, 115.5, 121.0, 119.0, 129.0, 121.0),
    "FEDFUNDS": (0.34, 0.65, 1.41, 2.40, 1.55, 0.09, 0.08, 4.33, 5.33, 4.33, 3.70),
    "UNRATE": (4.9, 4.7, 4.1, 4.0, 3.6, 6.3, 4.0, 3.5, 3.7, 4.1, 4.4),
    "CPIAUCSL": (237.7, 243.6, 248.9, 252.6, 259.0, 262.6, 282.4, 300.4, 309.8, 319.1, 326.9),
}
_WANDER = {
    "DGS3MO": 0.05,
    "DGS2": 0.12,
    "DGS10": 0.15,
    "BAMLH0A0HYM2": 0.2,
    "DTWEXBGS": 1.2,
    "FEDFUNDS": 0.04,
    "UNRATE": 0.1,
    "CPIAUCSL": 0.2,
}
_DECIMALS = {"DTWEXBGS": 4, "UNRATE": 1, "CPIAUCSL": 3}
_FLOOR = {"DGS3MO": 0.01, "DGS2": 0.1, "DGS10": 0.5, "FEDFUNDS": 0.04, "BAMLH0A0HYM2": 2.0, "UNRATE": 3.0}
SERIES = ("DGS3MO", "DGS2", "DGS10", "T10Y2Y", "CPIAUCSL", "UNRATE", "VIXCLS", "BAMLH0A0HYM2", "DTWEXBGS", "FEDFUNDS")


def decimals(series: str) -> int:
    """Return the number of decimals that FRED prints for a series."""
    return _DECIMALS.get(series, 2)


def draw_macro(days: tuple[date, ...], rng: np.random.Generator) -> dict[str, Series]:
    """Draw all of `SERIES`: daily ones on weekdays with blank holidays, monthly ones on the first."""
    span = (days[-1] - days[0]).days
    weekdays = tuple(d for d in (days[0] + timedelta(i) for i in range(span + 1)) if d.weekday() < 5)
    months = tuple(date(y, m, 1) for y in range(days[0].year, days[-1].year + 1) for m in range(1, 13))
    trading = frozenset(days)
    stress = volatility_multiplier(weekdays) - 1
    out: dict[str, Series] = {}
    for name in ("DGS3MO", "DGS2", "DGS10", "BAMLH0A0HYM2", "DTWEXBGS"):
        level = _path(name, weekdays, rng)
        if name == "BAMLH0A0HYM2":
            level = level + 1.4 * _smooth(stress)
        out[name] = _daily(weekdays, trading, np.round(level, decimals(name)))
    spread = [
        None if a is None or b is None else round(a - b, 2)
        for a, b in zip(out["DGS10"][1], out["DGS2"][1], strict=True)
    ]
    out["T10Y2Y"] = (weekdays, tuple(spread))
    noise = _wander(len(weekdays), 0.12, rng)
    vix = 100 * CALM_VOLATILITY * (1 + 0.8 * _smooth(stress)) * np.exp(noise)
    out["VIXCLS"] = _daily(weekdays, trading, np.round(np.clip(vix, 9.0, 90.0), 2))
    for name in ("CPIAUCSL", "UNRATE", "FEDFUNDS"):
        values = np.round(_path(name, months, rng), decimals(name))
        if name == "UNRATE":
            jump = np.array([date(2020, 4, 1) <= m <= date(2020, 9, 1) for m in months])
            values = np.round(values + 6.0 * jump, 1)
        out[name] = (months, tuple(float(v) for v in values))
    return {name: out[name] for name in SERIES}


def _path(name: str, dates: tuple[date, ...], rng: np.random.Generator) -> Floats:
    knots = np.array(_KNOTS[name])
    at = [date(2016 + i, 1, 1).toordinal() for i in range(len(knots))]
    level = np.interp([d.toordinal() for d in dates], at, knots) + _wander(len(dates), _WANDER[name], rng)
    return np.maximum(level, _FLOOR.get(name, 0.0))


def _wander(count: int, size: float, rng: np.random.Generator) -> Floats:
    """Draw a mean-reverting walk with standard deviation `size` (half-life some 34 steps)."""
    steps = np.round(rng.standard_normal(count), 6)
    out = np.empty(count)
    state = 0.0
    for i, step in enumerate(steps):
        state = 0.98 * state + 0.199 * float(step)
        out[i] = state
    return out * size


def _smooth(stress: Floats) -> Floats:
    out = np.empty(len(stress))
    state = 0.0
    for i, value in enumerate(stress):
        state = max(float(value), 0.955 * state)
        out[i] = state
    return out


def _daily(weekdays: tuple[date, ...], trading: frozenset[date], values: Floats) -> Series:
    return weekdays, tuple(float(v) if d in trading else None for d, v in zip(weekdays, values, strict=True))
