"""Compute the trades of one date, when forecasts decay and trades cost.

Payload: names (ticker, sector, benchmark_weight, impact, specific_volatility, loadings), factors (standard deviations),
current (ticker, holding, a column per signal), signals, signal_unit; coefficient (signal to expected return in units
of specific volatility per unit of the signal), half_lives (signal to weeks), signals_age (weeks since the signals in
current were measured; 0 if they are of this date); aversion and capital, one number for each date from this one to the
last; impact_clip (the size of trade that `impact` basis points are stated for); limit_from: the first of these dates,
from 1, on which each sector must hold the benchmark's share of the capital, or null for no limit on any of them. Other
keys are refused.
Maximises, over all dates, holding'alpha - aversion / 2 * active' Sigma active - impact / clip * 1e-4 * trade^2.
Result: step (ticker to amount to buy now; two decimals), measures of this date before and after the step, and the
share of the way to the best book of one period without costs. Later dates are planned, not returned.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import list_of, mapping, number, refuse_unknown, require, texts_of
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.panel_table import Names, by_signal, column, names_of, signals_of, unit_of
from finskillbench_desk.engines.trading.over_time import Limits, Step, solve

_KEYS = (
    *("names", "factors", "current", "signals", "signal_unit", "coefficient", "half_lives", "signals_age"),
    *("aversion", "capital", "impact_clip", "limit_from"),
)


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Plan all dates, return the first step."""
    refuse_unknown(payload, _KEYS, "decay_target")
    require(payload, "aversion", "capital", "impact_clip", "signal_unit", "signals_age", "coefficient", "half_lives")
    if "limit_from" not in payload:
        raise InputError("limit_from must be given: the first date of the limit on sectors, or null for none")
    names, current = names_of(payload), mapping(payload, "current")
    if texts_of(current.get("ticker")) != names.tickers:
        raise InputError("current and names do not list the same names in the same order; inject both as they are")
    aversion, capital = (_per_date(payload, name) for name in ("aversion", "capital"))
    if len(aversion) != len(capital):
        raise InputError(
            f"aversion has {len(aversion)} dates and capital {len(capital)}; give both for every date left"
        )
    if (clip := number(payload, "impact_clip", "the call")) <= 0:
        raise InputError("impact_clip must be positive: the size of trade that `impact` is stated for")
    impact = 2e-4 * names.column("impact") / clip
    benchmark, book = names.column("benchmark_weight"), column(current, "holding", "current")
    steps = _steps(payload, names, benchmark, aversion, capital)
    forecasts = _forecasts(payload, names, len(steps))
    policy = solve(names.covariance, impact, steps)
    best = policy.best(0, policy.aim(0, forecasts), book)
    trade = (best - book).round(2)
    alone = solve(names.covariance, np.full(len(impact), 1e-12), steps[:1]).aim(0, forecasts[:1])
    way = alone - book
    return rounded(
        {
            "step": dict(zip(names.tickers, trade.tolist(), strict=True)),
            "before": _measures(names, forecasts[0], book, steps[0]),
            "after": _measures(names, forecasts[0], book + trade, steps[0]),
            "cost": float(trade**2 @ impact) / 2,
            "share_of_the_way": float(trade @ way / max(float(way @ way), 1e-300)),
            "used": {
                "dates": len(steps),
                "limit_from": payload["limit_from"],
                "largest_coefficient": float(
                    np.abs(by_signal(mapping(payload, "coefficient"), signals_of(payload), "coefficient")).max()
                ),
            },
        }
    )


def _per_date(payload: dict[str, Any], name: str) -> list[float]:
    values = list_of(payload[name])
    if not values:
        raise InputError(f"{name} must list one number for each date from this one to the last")
    return [number({name: value}, name, "the call") for value in values]


def _forecasts(payload: dict[str, Any], names: Names, dates: int) -> Floats:
    """(dates, n) expected returns, each signal decayed from when it was measured."""
    signals = signals_of(payload)
    half_lives = by_signal(mapping(payload, "half_lives"), signals, "half_lives")
    if (half_lives <= 0).any():
        raise InputError("half_lives: a half-life is a positive number of weeks")
    table, unit = mapping(payload, "current"), unit_of(payload, "signal_unit")
    values = np.stack([column(table, signal, "current") for signal in signals], axis=-1) / unit
    if (age := number(payload, "signals_age", "the call")) < 0:
        raise InputError("signals_age must be 0 or more: the weeks since the signals in current were measured")
    ages = age + np.arange(dates)[:, None]
    decayed = by_signal(mapping(payload, "coefficient"), signals, "coefficient") * 0.5 ** (ages / half_lives)
    return (decayed @ values.T) * names.specific


def _steps(
    payload: dict[str, Any], names: Names, benchmark: Floats, aversion: Sequence[float], capital: Sequence[float]
) -> list[Step]:
    first = payload["limit_from"]
    begin = len(aversion) + 1 if first is None else number(payload, "limit_from", "the call")
    if first is not None and (begin != int(begin) or begin < 1):
        raise InputError("limit_from must be a whole number of dates from 1, the date of this step, or null for none")
    if not (sectors := texts_of(names.table.get("sector"))) and first is not None:
        raise InputError("names has no column sector, which limit_from needs; inject the table as it is")
    sectors = sectors or ()
    rows = np.array([[of == sector for of in sectors] for sector in sorted(set(sectors))], dtype=float)
    return [
        Step(risk, size * benchmark, Limits(rows, rows @ (size * benchmark)) if place >= begin else None)
        for place, (risk, size) in enumerate(zip(aversion, capital, strict=True), 1)
    ]


def _measures(names: Names, forecast: Floats, book: Floats, step: Step) -> dict[str, float]:
    active = book - step.benchmark
    return {
        "expected_return": float(forecast @ book),
        "active_risk": float(np.sqrt(active @ names.covariance @ active)),
        "charge_for_risk": float(step.aversion * (active @ names.covariance @ active) / 2),
        "invested": float(book.sum()),
        "gross_active": float(np.abs(active).sum()),
    }


if __name__ == "__main__":
    cli(main)
