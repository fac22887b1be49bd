"""Views panel (signals, z-scores and expected total returns) and covariance panel (Ledoit-Wolf, 252 sessions, annual).

The expected return is the bill rate, the premium at which the benchmark is optimal (reverse optimisation, Sharpe 1974;
Black & Litterman 1992) and the forecast of the signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.engines.statistics.covariance import RIDGE, Covariance, ledoit_wolf
from finskillbench.errors import SourceError
from finskillbench.panels.columns import DATE, SYMBOL, PanelColumn
from finskillbench.panels.filings.statements import Fact, Series, trailing_year
from finskillbench.panels.market.regimes import annual_volatility
from finskillbench.sources.market.collection import Statements

WINDOW = 252
LARGE_FACTORS = 20
"""Factors in universes with more names than window sessions: 252 sessions give 252 directions, mostly noise.

Optimisation time grows with each; variances remain those of Ledoit-Wolf.
"""


class CovariancePanel(NamedTuple):
    """Covariance and shrinkage per date, and the dates that needed a ridge."""

    covariance: Mapping[date, Covariance]
    shrinkage: Mapping[date, float]
    ridged: tuple[date, ...]


def build_covariance(
    universe: tuple[str, ...], sessions: tuple[date, ...], simple: Floats, members: Mapping[int, NDArray[np.intp]]
) -> CovariancePanel:
    """Estimate the covariance of simple returns (T, n) over the 252 sessions up to each row of `members` (row to
    places).

    If shrinkage vanishes, the ridge 1e-8 is added to specific variances so that they are positive. Universes with more
    names than window sessions are reduced to `LARGE_FACTORS` factors. Raises SourceError for a missing return.
    """
    estimates: dict[date, Covariance] = {}
    shrinkage: dict[date, float] = {}
    ridged: list[date] = []
    for row, places in members.items():
        day = sessions[row]
        if row < WINDOW:
            raise SourceError(
                "prices", f"{row} returns before {day}, the covariance needs {WINDOW}", remedy="add earlier prices"
            )
        window = np.ascontiguousarray(simple[row - WINDOW + 1 : row + 1, places])
        symbols = tuple(map(universe.__getitem__, places))
        missing = np.isnan(window).sum(axis=0)
        if missing.any():
            place = int(np.argmax(missing))
            hole = sessions[row - WINDOW + 1 + int(np.argmax(np.isnan(window[:, place])))]
            raise SourceError(
                f"prices of {symbols[place]}",
                f"{missing[place]} of the {WINDOW} returns up to {day} are missing, the first on {hole}",
                remedy="supply the prices or leave the name out of the universe",
            )
        intensity, estimate = ledoit_wolf(window, symbols)
        if len(symbols) > WINDOW:
            estimate = estimate.reduced(LARGE_FACTORS)
        if estimate.least_eigenvalue_bound() <= 0:
            estimate = replace(estimate, specific=estimate.specific + RIDGE)
            ridged.append(day)
        estimates[day], shrinkage[day] = estimate, intensity
    return CovariancePanel(estimates, shrinkage, tuple(ridged))


SIGNAL_WEIGHTS: Mapping[str, float] = {
    "earnings_yield": 0.25,
    "roe": 0.20,
    "momentum_12_1": 0.25,
    "eps_revision": 0.15,
    "low_volatility": 0.15,
}
INFORMATION_COEFFICIENT = 0.05
"""Assumed correlation of score and later return (Grinold & Kahn 1999, ch. 10: alpha = IC σ z)."""
EQUITY_PREMIUM = 0.05
"""Expected return of the benchmark above bills, per year.

Historical and implied premia of large US stocks are 4 % to 6 %. A fixed risk aversion of 2.5 would give 5 % at a
volatility of 14 %, but 1 % in a calm year and 20 % after March 2020. So the premium is fixed instead.
"""
Z_LIMIT = 3.0
"""Limit of scores in standard deviations (population, ddof 0) across the universe."""
MOMENTUM_SESSIONS = (21, 252)
REVISION_SESSIONS = 63
VOLATILITY_SESSIONS = 252
MAX_STATEMENT_AGE_DAYS = 550
"""Maximum age of earnings or equity: an annual report, its lag and a quarter's delay."""

_RATIO = "decimal"
_SCORE = "standard deviations"
COLUMNS: Mapping[str, PanelColumn] = {
    "date": DATE,
    "symbol": SYMBOL,
    "earnings_yield": PanelColumn("decimal per year", "4 quarters trailing", "trailing EPS over close"),
    "roe": PanelColumn("decimal per year", "4 quarters trailing", "trailing net income over latest equity"),
    "momentum_12_1": PanelColumn(_RATIO, "252 to 21 sessions before", "P_(t-21) / P_(t-252) - 1 of the adjusted close"),
    "eps_revision": PanelColumn(_RATIO, "63 sessions", "change of trailing EPS known, over close"),
    "low_volatility": PanelColumn("decimal per year", "252 sessions trailing", "minus annual_volatility"),
    **{
        f"z_{name}": PanelColumn(_SCORE, "point in time", f"{name} across the universe, cut off at 3; 0 where absent")
        for name in SIGNAL_WEIGHTS
    },
    "composite_z": PanelColumn(_SCORE, "point in time", "weighted sum of the five scores, standardised once more"),
    "annual_volatility": PanelColumn("decimal per year", "252 sessions trailing", "deviation of returns x sqrt(252)"),
    "risk_free": PanelColumn("decimal per year", "1 year ahead", "DGS3MO, the three-month bill rate of the date"),
    "equilibrium_premium": PanelColumn(
        "decimal per year",
        "1 year ahead",
        f"delta S b of the benchmark weights b and the covariance S, delta = {EQUITY_PREMIUM} / b'Sb: beta to the "
        f"benchmark x {EQUITY_PREMIUM}",
    ),
    "alpha": PanelColumn(
        "decimal per year",
        "1 year ahead",
        f"IC x annual_volatility x composite_z, IC = {INFORMATION_COEFFICIENT} (Grinold & Kahn)",
    ),
    "expected_return": PanelColumn("decimal per year", "1 year ahead", "risk_free + equilibrium_premium + alpha"),
    "earnings_as_of": PanelColumn("date", "point in time", "end of the four quarters of trailing earnings", pl.Date),
}


class ViewsPanel(NamedTuple):
    """Long table, and per signal the number of (date, symbol) pairs without it."""

    frame: pl.DataFrame
    absent: Mapping[str, int]


class ViewInputs(NamedTuple):
    """Names of a date with their caps in USD, benchmark, covariance and bill rate."""

    places: NDArray[np.intp]
    market_cap: Floats
    benchmark: Floats
    covariance: Covariance
    risk_free: float


def build_views(
    symbols: tuple[str, ...],
    sessions: tuple[date, ...],
    adj_close: Floats,
    simple: Floats,
    statements: Mapping[str, Statements],
    inputs: Mapping[int, ViewInputs],
) -> ViewsPanel:
    """Score the names of each row (keys of `inputs`) on known data and compute their expected returns.

    EPS over price is trailing net income over market capitalisation, also in the revision. Reported EPS is not used:
    its base changes at splits (CMG's quarters read 10.50, then 0.25 in 2023), and fourth quarters are missing. Absent
    signals are null with a score of 0, the universe's mean.

    adj_close, simple : (T, N), of all symbols.
    """
    flows = {s: _trailing(statements[s]) for s in symbols}
    equities = {s: Series.of(statements[s].equity) for s in symbols}
    pieces: list[pl.DataFrame] = []
    absent = dict.fromkeys(SIGNAL_WEIGHTS, 0)
    for row, at_date in inputs.items():
        day, places = sessions[row], at_date.places
        names = list(map(symbols.__getitem__, places))
        earnings = _known(flows, names, day)
        income, book, cap = _values(earnings), _values(_known(equities, names, day)), at_date.market_cap
        volatility = _last_volatility(simple[:, places], row)
        revision = np.full(len(names), np.nan)
        if row >= REVISION_SESSIONS:
            revision = (income - _values(_known(flows, names, sessions[row - REVISION_SESSIONS]))) / cap
        signals = {
            "earnings_yield": income / cap,
            "roe": np.divide(income, book, out=np.full_like(book, np.nan), where=book > 0),
            "momentum_12_1": _momentum(adj_close, row)[places],
            "eps_revision": revision,
            "low_volatility": -volatility,
        }
        scores = {name: z_scores(values) for name, values in signals.items()}
        # Grinold and Kahn's score has unit variance; the mean of five imperfectly correlated ones does not.
        composite = z_scores(np.sum([SIGNAL_WEIGHTS[name] * z for name, z in scores.items()], axis=0))
        for name, values in signals.items():
            absent[name] += int(np.isnan(values).sum())
        figures = {
            **signals,
            **{f"z_{name}": values for name, values in scores.items()},
            "composite_z": composite,
            "annual_volatility": volatility,
            **_expected(at_date, INFORMATION_COEFFICIENT * volatility * composite),
        }
        table = {name: pl.Series(values, dtype=pl.Float64).fill_nan(None) for name, values in figures.items()}
        ends = pl.Series([fact.end if fact else None for fact in earnings], dtype=pl.Date)
        piece = pl.DataFrame({"symbol": names, **table, "earnings_as_of": ends})
        pieces.append(piece.select(pl.lit(day, dtype=pl.Date).alias("date"), pl.all()))
    return ViewsPanel(pl.concat(pieces), absent)


def _expected(inputs: ViewInputs, alpha: Floats) -> dict[str, Floats]:
    """Return the parts (n,) of the expected return and their sum; the benchmark earns the equity premium over bills."""
    benchmark = inputs.benchmark
    marginal = inputs.covariance.times(benchmark)
    premium = EQUITY_PREMIUM / float(benchmark @ marginal) * marginal
    rate = np.full(len(alpha), inputs.risk_free)
    return {
        "risk_free": rate,
        "equilibrium_premium": premium,
        "alpha": alpha,
        "expected_return": rate + premium + alpha,
    }


def _momentum(adj_close: Floats, row: int) -> Floats:
    """Return the return (n,) of the year before the last month; NaN where a price is missing."""
    near, far = MOMENTUM_SESSIONS
    if row < far:
        return np.full_like(adj_close[0], np.nan)
    momentum: Floats = adj_close[row - near] / adj_close[row - far] - 1
    return momentum


def z_scores(values: Floats) -> Floats:
    """Standardise values (n,) over those present (ddof 0), cut off at ±3; 0 if absent or all equal."""
    present = ~np.isnan(values)
    scores = np.zeros_like(values)
    if present.any():
        known = values[present]
        spread = known.std()
        if spread > 1e-12 * np.abs(known).max():  # equal values differ by rounding only
            scores[present] = np.clip((known - known.mean()) / spread, -Z_LIMIT, Z_LIMIT)
    return scores


def _trailing(statements: Statements) -> Series:
    return trailing_year(Series.of(statements.net_income_quarterly), Series.of(statements.net_income_annual))


def _known(series: Mapping[str, Series], names: Sequence[str], day: date) -> list[Fact | None]:
    """Return the figures known of each name on a day; None if unknown or too old."""
    facts = [series[name].known(day) for name in names]
    return [fact if fact is not None and fact.age(day) <= MAX_STATEMENT_AGE_DAYS else None for fact in facts]


def _values(facts: Sequence[Fact | None]) -> Floats:
    return np.array([np.nan if fact is None else fact.value for fact in facts], dtype=np.float64)


def _last_volatility(simple: Floats, row: int) -> Floats:
    """Return annual volatility (n,) over the sessions up to the row; NaN where a return is missing."""
    window = simple[max(row - VOLATILITY_SESSIONS + 1, 0) : row + 1]
    if len(window) < VOLATILITY_SESSIONS:
        return np.full_like(simple[0], np.nan)
    return annual_volatility(window, VOLATILITY_SESSIONS)[-1]
