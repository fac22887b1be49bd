"""Stress P&L with an option overlay and liquidation costs, and VaR at stressed correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.fields import list_of, mapping, number, require, table_of
from finskillbench.engines.risk.exposures import PARTICIPATION, days_to_liquidate
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, require_field
from finskillbench.engines.risk.stress import Scenario, StressResult, apply
from finskillbench.errors import InputError
from finskillbench.sums import exact_sum

OVERLAY, LIQUIDATION = "option_overlay", "liquidation"
"""Attribution entries outside of factors and sectors."""
Z, SESSIONS = 2.326, 252
"""Quantile of a 99 % VaR, and sessions per year."""
_MARKET = FACTORS.index("mkt_rf")

PNL: Mapping[str, str] = {
    "pnl": "estimated P&L as a decimal of NAV: sum over holdings of weight_i x (sum over the six factors f of "
    "beta_i,f x factor_shocks_f + sector_sensitivities of the holding's sector); betas by factor_exposures; cash 0",
    "by_sector": "one entry per sector held: the sum above over the holdings of the sector",
    "by_factor": "one entry per factor f: (sum over holdings of weight x beta_f) x factor_shocks_f; and one entry "
    '"sector_sensitivity": sum over holdings of weight x sector_sensitivities of its sector',
    "additivity": "each attribution adds up to the P&L",
    "shocks": "factor_shocks and sector_sensitivities are decimals (-0.2 is -20 %); market_shocks are descriptive only "
    "(_pct in per cent, _bp in basis points)",
}
"""Definitions of the P&L, shown to agents."""
MISSING_BETAS = {
    "missing_betas": "a name that factor_exposures lacks has, for each factor, the mean beta of the names of its "
    "sector that have betas, weighted by their benchmark_weights"
}
MISSING_SENSITIVITIES = {
    "missing_sensitivities": "a sector that sector_sensitivities lacks has the sensitivity of the sector that "
    "sector_proxies names for it"
}
OPTIONS = {
    "option_overlay": "the P&L also has the portfolio's puts on the market, revalued at once and in full: sum of "
    "notional x (V(1 + s, stressed_volatility) - V(1, implied_volatility)), s = the shock to mkt_rf; notional is a "
    "decimal of NAV, separate from holdings and cash, negative if puts are sold; each attribution has it as one entry "
    f'"{OVERLAY}"',
    "option_value": "V(F, vol) = K N(-d2) - F N(-d1), a put by Black's formula without interest and dividends on an "
    "index at F, which is 1 today: K = strike, T = years, d1 = ln(F / K) / (vol sqrt(T)) + vol sqrt(T) / 2, "
    "d2 = d1 - vol sqrt(T), N the standard normal distribution; volatilities are decimals per year",
}
LIQUIDITY = {
    "liquidation": "the P&L also has the cost of closing every holding, as a loss: sum of |weight_i| x "
    "spread_widening_bp / 20000 x max(1, sqrt(days_i)), days_i = |weight_i| x total_nav / "
    f'({PARTICIPATION:g} x average_daily_volume_usd_i); by_factor has it as one entry "{LIQUIDATION}", by_sector '
    "has the cost of each holding in the entry of its sector"
}
CORRELATION = {
    "stressed_var_pct": f"one-day VaR at 99 % before closing, a positive decimal of NAV: {Z} x sqrt(x'S x / "
    f"{SESSIONS}); x_i = weight_i of every name of the universe, where there are puts + benchmark_weights_i x sum of "
    "notional x delta, delta = -N(-d1) at today's index and implied_volatility; S is covariance_matrix with its "
    "volatilities and each correlation c replaced by c + correlation_shift x (1 - c)"
}
"""Definitions of optional parts of a portfolio or scenario."""


@dataclass(frozen=True, slots=True)
class Option:
    """Market puts: signed notional (decimal of NAV), strike relative to today's index, years to expiry."""

    notional: float
    strike: float
    years: float
    implied_volatility: float
    stressed_volatility: float

    @property
    def delta(self) -> float:
        """Delta of one put today, from -1 to 0."""
        return -_NORMAL.cdf(-_d1(1.0, self.strike, self.years, self.implied_volatility))

    def pnl(self, shock: float) -> float:
        """Return the P&L of a relative market move at stressed volatility; raise `InputError` at -100 % or below."""
        if shock <= -1.0:
            raise InputError(f"factor_shocks: mkt_rf is {shock:g}; with an option_overlay give a number above -1")
        stressed = put_value(1.0 + shock, self.strike, self.years, self.stressed_volatility)
        return self.notional * (stressed - put_value(1.0, self.strike, self.years, self.implied_volatility))


_NORMAL = NormalDist()


def put_value(level: float, strike: float, years: float, volatility: float) -> float:
    """Return a put's value by Black's formula, without interest and dividends, for positive arguments."""
    d1 = _d1(level, strike, years, volatility)
    return strike * _NORMAL.cdf(volatility * math.sqrt(years) - d1) - level * _NORMAL.cdf(-d1)


def _d1(level: float, strike: float, years: float, volatility: float) -> float:
    deviation = volatility * math.sqrt(years)
    return math.log(level / strike) / deviation + deviation / 2


_OPTION_FIELDS = ("notional", "strike", "years", "implied_volatility", "stressed_volatility")


def overlay_from(task_input: Mapping[str, Any]) -> tuple[Option, ...]:
    """Read `portfolio.option_overlay`, empty if absent; raise `InputError` with field and remedy."""
    data = mapping(task_input, "portfolio").get("option_overlay")
    if data is None:
        return ()
    if (rows := list_of(data)) is None:
        raise InputError(f"portfolio: option_overlay must be a list of objects with {', '.join(_OPTION_FIELDS)}")
    return tuple(_option(table_of(row) or {}, f"option_overlay[{at}]") for at, row in enumerate(rows))


def _option(row: Mapping[str, Any], where: str) -> Option:
    notional, *positive = (number(row, name, where) for name in _OPTION_FIELDS)
    for name, value in zip(_OPTION_FIELDS[1:], positive, strict=True):
        if value <= 0:
            raise InputError(f"{where}: {name} is {value:g}; give a number above 0")
    return Option(notional, *positive)


def with_estimated_betas(task_input: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the estimated betas of `MISSING_BETAS`; raise `InputError` if a sector has no benchmark name with betas."""
    sectors, known = mapping(task_input, "sector_mapping"), mapping(task_input, "factor_exposures")
    missing = [ticker for ticker in sectors if ticker not in known]
    if not missing:
        return task_input
    require(task_input, "benchmark_weights")
    estimated: dict[str, dict[str, float]] = {}
    for ticker in missing:
        peers = [peer for peer in sectors if peer in known and sectors[peer] == sectors[ticker]]
        sizes = np.array(
            [number(mapping(task_input, "benchmark_weights"), peer, "benchmark_weights", 0.0) for peer in peers]
        )
        if not sizes.sum() > 0:
            raise InputError(f"factor_exposures lacks {ticker}, and no name of its sector has betas; give them")
        rows = [
            [number(table_of(known[peer]) or {}, factor, f"factor_exposures of {peer}") for factor in FACTORS]
            for peer in peers
        ]
        estimated[ticker] = dict(zip(FACTORS, (sizes @ np.array(rows) / sizes.sum()).tolist(), strict=True))
    return {**task_input, "factor_exposures": {**known, **estimated}}


def stress(portfolio: Portfolio, overlay: Sequence[Option], scenario: Scenario, market: MarketSnapshot) -> StressResult:
    """Compute the full effect of a scenario on a portfolio with options; raise `InputError` for missing market data."""
    found = apply(portfolio, scenario, market)
    by_sector, by_factor = dict(found.by_sector), dict(found.by_factor)
    pnl, var = found.pnl, None
    if overlay:
        gained = exact_sum(option.pnl(float(scenario.factor_shocks[_MARKET])) for option in overlay)
        by_sector[OVERLAY] = by_factor[OVERLAY] = gained
        pnl += gained
    if scenario.spread_widening_bp is not None:
        costs = liquidation_costs(portfolio, scenario.spread_widening_bp, market)
        for sector, cost in zip(market.sector_names, (costs @ market.membership).tolist(), strict=True):
            if sector in by_sector:
                by_sector[sector] -= cost
        by_factor[LIQUIDATION] = -float(costs.sum())
        pnl += by_factor[LIQUIDATION]
    if scenario.correlation_shift is not None:
        var = stressed_var(portfolio, overlay, scenario.correlation_shift, market)
    return replace(found, pnl=pnl, by_sector=by_sector, by_factor=by_factor, stressed_var=var)


def liquidation_costs(portfolio: Portfolio, widening: float, market: MarketSnapshot) -> Floats:
    """(n,) Closing costs, decimals of NAV, at spreads wider by `widening` bp; raise `InputError` without volume."""
    days = days_to_liquidate(portfolio, market)
    if not np.isfinite(days).all():
        name = market.tickers[int(np.argmin(np.isfinite(days)))]
        raise InputError(f"average_daily_volume_usd of {name} is 0: it is held and cannot be sold; correct the volume")
    return np.abs(portfolio.weights) * widening / 20000 * np.maximum(1.0, np.sqrt(days))


def stressed_var(portfolio: Portfolio, overlay: Sequence[Option], shift: float, market: MarketSnapshot) -> float:
    """Return the one-day 99 % VaR after every correlation moved by `shift` of its distance to 1 (`CORRELATION`).

    With volatilities v the shifted covariance is (1 - shift) S + shift v v'. Raises `InputError` for missing
    covariance, or benchmark with options.
    """
    risk, exposure = require_field(market.risk, "covariance_matrix"), portfolio.weights
    if overlay:
        delta = exact_sum(option.notional * option.delta for option in overlay)
        exposure = exposure + delta * require_field(market.benchmark, "benchmark_weights")
    together = float(exposure @ np.sqrt(risk.variances))
    variance = (1.0 - shift) * risk.variance(exposure) + shift * together**2
    return Z * float(np.sqrt(max(variance, 0.0) / SESSIONS))
