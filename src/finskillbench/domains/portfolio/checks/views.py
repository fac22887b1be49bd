"""The expected returns derived again, from prices, covariances, caps and the signals, without the panel's own code."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.checks.market import columns_of, simple_returns
from finskillbench.findings import Findings
from finskillbench.panels import Panels

_WEIGHTS = {
    "earnings_yield": 0.25,
    "roe": 0.20,
    "momentum_12_1": 0.25,
    "eps_revision": 0.15,
    "low_volatility": 0.15,
}
_IC = 0.05
_PREMIUM = 0.05
_CUT = 3.0
_TOLERANCE = 1e-9
_YEAR, _MONTH = 252, 21


def expected_returns(subject: Subject, findings: Findings) -> None:
    """Bill rate, premium and alpha of every name at every month-end are what the definitions say, and add up."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days, simple = simple_returns(panels)
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    for day in panels.month_ends:
        with examining(f"views {day}", findings):
            _check_day(panels, day, days.index(day), simple, adjusted, findings)
    findings.figures |= {"month_ends": len(panels.month_ends), "rows": panels.views.height}


def _check_day(
    panels: Panels, day: date, end: int, simple: np.ndarray, adjusted: np.ndarray, findings: Findings
) -> None:
    estimate = panels.covariance[day]
    columns = columns_of(panels, estimate)
    rows = panels.views.filter(pl.col("date") == day).sort("symbol")
    same = rows["symbol"].to_list() == sorted(estimate.symbols)
    findings.expect(same, f"views {day}", "does not cover every name once")
    if not same:
        return
    window = simple[end - _YEAR + 1 : end + 1, columns]
    deviation = np.sqrt(((window - window.mean(axis=0)) ** 2).sum(axis=0) / (_YEAR - 1) * _YEAR)
    total = np.sum([weight * _standardised(rows[name]) for name, weight in _WEIGHTS.items()], axis=0)
    score = _standardised(pl.Series(total))
    weights = panels.benchmark_weights.filter(pl.col("date") == day).sort("symbol")["weight"].to_numpy()
    # Beta to the benchmark by the covariance of the date: the benchmark's own premium is then the stated one.
    covered = estimate.matrix() @ weights
    derived = {
        "low_volatility": -deviation,
        "momentum_12_1": adjusted[end - _MONTH, columns] / adjusted[end - _YEAR, columns] - 1,
        "annual_volatility": deviation,
        "composite_z": score,
        "risk_free": np.full(len(columns), panels.risk_free[day]),
        "equilibrium_premium": _PREMIUM * covered / (weights @ covered),
        "alpha": _IC * deviation * score,
    }
    derived["expected_return"] = derived["risk_free"] + derived["equilibrium_premium"] + derived["alpha"]
    for name, values in derived.items():
        off = np.abs(rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() - values)
        worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
        findings.widest("greatest_difference", 0.0 if np.isnan(off[worst]) else off[worst])
        findings.expect(
            off[worst] <= _TOLERANCE,
            f"{rows['symbol'][worst]} {day}",
            f"{name} is {rows[name][worst]} in the views and {values[worst]:.10g} derived again",
        )


def _standardised(signal: pl.Series) -> np.ndarray:
    """Deviations from the mean in standard deviations over the names that have the signal, cut off; 0 without it."""
    values = signal.drop_nulls().to_numpy()
    spread = math.sqrt(float(((values - values.mean()) ** 2).mean())) if len(values) else 0.0
    if spread <= 1e-12 * float(np.abs(values).max(initial=0.0)):
        return np.zeros(len(signal))
    return ((signal - float(values.mean())) / spread).clip(-_CUT, _CUT).fill_null(0.0).to_numpy()
