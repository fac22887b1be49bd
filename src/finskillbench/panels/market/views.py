"""The views panel: five signals, their z-scores, and the annualised expected return they imply."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.panels.columns import DATE, SYMBOL, Column
from finskillbench.panels.filings.statements import Fact, Series, trailing_year
from finskillbench.panels.market.returns import annual_volatility
from finskillbench.sources.market import Statements

SIGNAL_WEIGHTS: Mapping[str, float] = {
    "earnings_yield": 0.25,
    "roe": 0.20,
    "momentum_12_1": 0.25,
    "eps_revision": 0.15,
    "low_volatility": 0.15,
}
INFORMATION_COEFFICIENT = 0.05
"""Correlation of score and later return that the views presume (Grinold & Kahn 1999, ch. 10: alpha = IC σ z)."""
Z_LIMIT = 3.0
"""Scores are cut off at so many standard deviations (population, ddof 0) across the universe."""
MOMENTUM_SESSIONS = (21, 252)
REVISION_SESSIONS = 63
VOLATILITY_SESSIONS = 252
MAX_STATEMENT_AGE_DAYS = 550
"""Earnings or equity older than a year and a half (an annual report, its lag and a quarter late) give no signal."""

_RATIO = "decimal"
_SCORE = "standard deviations"
COLUMNS: Mapping[str, Column] = {
    "date": DATE,
    "symbol": SYMBOL,
    "earnings_yield": Column("decimal per year", "4 quarters trailing", "trailing EPS over close"),
    "roe": Column("decimal per year", "4 quarters trailing", "trailing net income over latest equity"),
    "momentum_12_1": Column(_RATIO, "252 to 21 sessions before", "P_(t-21) / P_(t-252) - 1 of the adjusted close"),
    "eps_revision": Column(_RATIO, "63 sessions", "change of trailing EPS known, over close"),
    "low_volatility": Column("decimal per year", "252 sessions trailing", "minus annual_volatility"),
    **{
        f"z_{name}": Column(_SCORE, "point in time", f"{name} across the universe, cut off at 3; 0 where absent")
        for name in SIGNAL_WEIGHTS
    },
    "composite_z": Column(_SCORE, "point in time", "weighted sum of the five scores"),
    "annual_volatility": Column("decimal per year", "252 sessions trailing", "deviation of returns x sqrt(252)"),
    "expected_return": Column("decimal per year", "1 year ahead", "IC x annual_volatility x composite_z"),
    "earnings_as_of": Column("date", "point in time", "end of the four quarters of trailing earnings", pl.Date),
}


class ViewsPanel(NamedTuple):
    """The long table, and per signal the number of (date, symbol) pairs where it is absent."""

    frame: pl.DataFrame
    absent: Mapping[str, int]


def build_views(
    symbols: tuple[str, ...],
    sessions: tuple[date, ...],
    adj_close: Floats,
    simple: Floats,
    market_cap: Mapping[date, Floats],
    statements: Mapping[str, Statements],
    rows: Sequence[int],
) -> ViewsPanel:
    """Score every name at each of the rows' sessions from what was known then.

    EPS is trailing net income over the shares of the benchmark weights, so EPS over price is net income over market
    capitalisation, then and in the revision (both at today's shares): reported EPS changes its base at splits (CMG's
    quarters read 10.50, then 0.25 in 2023) and leaves out fourth quarters. A signal that cannot be computed (no
    earnings known or too old, equity not positive, a price missing) is null, and its score is 0, the universe's mean.

    Parameters
    ----------
    adj_close, simple : (T, n). market_cap : USD (n,) per date of the rows.
    """
    # The five signals stand one under the other, as the text describes them.
    flows = {s: _trailing(statements[s]) for s in symbols}
    equities = {s: Series.of(statements[s].equity) for s in symbols}
    near, far = MOMENTUM_SESSIONS
    pieces: list[pl.DataFrame] = []
    absent = dict.fromkeys(SIGNAL_WEIGHTS, 0)
    for row in rows:
        day, cap = sessions[row], market_cap[sessions[row]]
        earnings = [_fresh(flows[s].known(day), day) for s in symbols]
        equity = [_fresh(equities[s].known(day), day) for s in symbols]
        income = _values(earnings)
        book = _values(equity)
        volatility = _last_volatility(simple, row)
        revision = np.full(len(symbols), np.nan)
        if row >= REVISION_SESSIONS:
            before = sessions[row - REVISION_SESSIONS]
            revision = (income - _values([_fresh(flows[s].known(before), before) for s in symbols])) / cap
        momentum = np.full(len(symbols), np.nan)
        if row >= far:
            momentum = adj_close[row - near] / adj_close[row - far] - 1
        signals = {
            "earnings_yield": income / cap,
            "roe": np.divide(income, book, out=np.full_like(book, np.nan), where=book > 0),
            "momentum_12_1": momentum,
            "eps_revision": revision,
            "low_volatility": -volatility,
        }
        scores = {name: z_scores(values) for name, values in signals.items()}
        composite = sum((weight * scores[name] for name, weight in SIGNAL_WEIGHTS.items()), np.zeros(len(symbols)))
        for name, values in signals.items():
            absent[name] += int(np.isnan(values).sum())
        figures = {
            **signals,
            **{f"z_{name}": values for name, values in scores.items()},
            "composite_z": composite,
            "annual_volatility": volatility,
            "expected_return": INFORMATION_COEFFICIENT * volatility * composite,
        }
        table = {name: pl.Series(values, dtype=pl.Float64).fill_nan(None) for name, values in figures.items()}
        ends = pl.Series([fact.end if fact else None for fact in earnings], dtype=pl.Date)
        pieces.append(
            pl.DataFrame({"symbol": symbols, **table, "earnings_as_of": ends}).select(
                pl.lit(day, dtype=pl.Date).alias("date"), pl.all()
            )
        )
    return ViewsPanel(pl.concat(pieces), absent)


def z_scores(values: Floats) -> Floats:
    """Standardise values (n,) over those present (ddof 0), cut off at ±3; 0 for an absent one and if all are equal."""
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


def _fresh(fact: Fact | None, day: date) -> Fact | None:
    return fact if fact is not None and fact.age(day) <= MAX_STATEMENT_AGE_DAYS else None


def _values(facts: Sequence[Fact | None]) -> Floats:
    return np.array([np.nan if fact is None else fact.value for fact in facts], dtype=np.float64)


def _last_volatility(simple: Floats, row: int) -> Floats:
    """Annual volatility (n,) over the sessions up to the row; NaN where a return is missing."""
    window = simple[max(row - VOLATILITY_SESSIONS + 1, 0) : row + 1]
    if len(window) < VOLATILITY_SESSIONS:
        return np.full_like(simple[0], np.nan)
    return annual_volatility(window, VOLATILITY_SESSIONS)[-1]
