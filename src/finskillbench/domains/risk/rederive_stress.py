"""Independent derivation of the stress labels in plain Python, from JSON input and printed definitions alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from finskillbench.domains.risk.inputs import (
    HoldingsInput,
    IdentificationInput,
    OptionInput,
    ScenarioInput,
    StressInput,
)
from finskillbench.domains.risk.rederive import FACTORS, deviation, weights
from finskillbench.episode import JsonObject

_ROOT = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class RederivedStress:
    """P&L and its two attributions, fractions of NAV; `var` is None without a correlation shift."""

    pnl: float
    by_sector: dict[str, float]
    by_factor: dict[str, float]
    var: float | None = None


def stress_holdings(task_input: HoldingsInput, scenario: ScenarioInput) -> RederivedStress:
    """Apply shocks and sensitivities to the holdings, and attribute the P&L by sector and factor."""
    betas, sensitivities = betas_of(task_input), sensitivities_of(scenario)
    by_sector: dict[str, list[float]] = {}
    by_factor: dict[str, list[float]] = {factor: [] for factor in (*FACTORS, "sector_sensitivity")}
    for symbol, weight in weights(task_input).items():
        sector = task_input["sector_mapping"][symbol]
        parts = {factor: weight * betas[symbol][factor] * scenario["factor_shocks"][factor] for factor in FACTORS}
        parts["sector_sensitivity"] = weight * sensitivities[sector]
        for name, amount in parts.items():
            by_factor[name].append(amount)
        by_sector.setdefault(sector, []).extend(parts.values())
    return RederivedStress(
        math.fsum(amount for amounts in by_sector.values() for amount in amounts),
        {sector: math.fsum(amounts) for sector, amounts in by_sector.items()},
        {name: math.fsum(amounts) for name, amounts in by_factor.items()},
    )


def betas_of(task_input: HoldingsInput) -> Mapping[str, Mapping[str, float]]:
    """Return the betas of every name; missing ones are benchmark-weighted sector means."""
    betas, sectors = task_input["factor_exposures"], task_input["sector_mapping"]
    found: dict[str, Mapping[str, float]] = dict(betas)
    for symbol in sectors.keys() - betas.keys():
        index = cast("StressInput", task_input).get("benchmark_weights", {})
        peers = {peer: index[peer] for peer in betas if sectors[peer] == sectors[symbol]}
        total = math.fsum(peers.values())
        found[symbol] = {
            factor: math.fsum(weight * betas[peer][factor] for peer, weight in peers.items()) / total
            for factor in FACTORS
        }
    return found


def sensitivities_of(scenario: ScenarioInput) -> dict[str, float]:
    """Return the sensitivity of every sector; missing ones come from the proxy."""
    stated = scenario["sector_sensitivities"]
    return {**stated, **{sector: stated[proxy] for sector, proxy in scenario.get("sector_proxies", {}).items()}}


def stress_with_var(task_input: StressInput) -> RederivedStress:
    """Stress holdings and options with VaR; a correlation shift requires a resolved `covariance_matrix`."""
    return replace(stress_without_var(task_input), var=var_of(task_input))


def stress_without_var(task_input: StressInput) -> RederivedStress:
    """Return the P&L of holdings and options, less the cost of closing the holdings."""
    scenario, portfolio = task_input["stress_scenario"], task_input["portfolio"]
    found = stress_holdings(task_input, scenario)
    pnl, by_sector, by_factor = [found.pnl], dict(found.by_sector), dict(found.by_factor)
    options, shock = portfolio.get("option_overlay", []), scenario["factor_shocks"]["mkt_rf"]
    if options:
        gains = [option_gain(one, shock) for one in options]
        by_sector["option_overlay"] = by_factor["option_overlay"] = math.fsum(gains)
        pnl += gains
    if "spread_widening_bp" in scenario:
        costs = closing_costs(task_input)
        for symbol, cost in costs.items():
            by_sector[task_input["sector_mapping"][symbol]] -= cost
        by_factor["liquidation"] = -math.fsum(costs.values())
        pnl += [by_factor["liquidation"]]
    return RederivedStress(math.fsum(pnl), by_sector, by_factor)


def option_gain(option: OptionInput, shock: float) -> float:
    """Return the gain of puts if the index moves from 1 to 1 + shock and volatility to its stressed level."""
    stressed_value = value_of(option, 1.0 + shock, "stressed_volatility")
    return option["notional"] * (stressed_value - value_of(option, 1.0, "implied_volatility"))


def value_of(
    option: OptionInput, level: float, volatility: Literal["implied_volatility", "stressed_volatility"]
) -> float:
    """Return the Black value of a put on an index at `level`, with N(-x) = erfc(x / sqrt(2)) / 2."""
    strike, total = option["strike"], option[volatility] * math.sqrt(option["years"])
    middle = math.log(level / strike) / total
    return (strike * math.erfc((middle - total / 2) / _ROOT) - level * math.erfc((middle + total / 2) / _ROOT)) / 2


def delta_of(option: OptionInput) -> float:
    """Return the current delta of a put."""
    total = option["implied_volatility"] * math.sqrt(option["years"])
    return -math.erfc((total / 2 - math.log(option["strike"]) / total) / _ROOT) / 2


def closing_costs(task_input: StressInput) -> dict[str, float]:
    """Return the cost of closing each holding: half the wider spread, times sqrt(days to sell) if over one day."""
    half = task_input["stress_scenario"].get("spread_widening_bp", 0.0) / 2 / 1e4
    nav, volumes = task_input["portfolio"]["total_nav"], task_input.get("average_daily_volume_usd", {})
    costs: dict[str, float] = {}
    for symbol, weight in weights(task_input).items():
        days = abs(weight) * nav / volumes[symbol] / 0.2
        costs[symbol] = abs(weight) * half * (math.sqrt(days) if days > 1 else 1.0)
    return costs


def var_of(task_input: StressInput) -> float | None:
    """Return the one-day 99 % VaR with correlations shifted towards 1; None without a shift.

    The sum over pairs of x_i x_j v_i v_j (c + shift (1 - c)) is (1 - shift) x'Sx + shift (sum of x_i v_i)^2.
    """
    shift = task_input["stress_scenario"].get("correlation_shift")
    if shift is None:
        return None
    options, held = task_input["portfolio"].get("option_overlay", []), weights(task_input)
    exposure = {symbol: held.get(symbol, 0.0) for symbol in task_input["sector_mapping"]}
    if options:
        delta = math.fsum(one["notional"] * delta_of(one) for one in options)
        index = task_input.get("benchmark_weights", {})
        exposure = {symbol: amount + delta * index[symbol] for symbol, amount in exposure.items()}
    risk = cast("IdentificationInput", task_input)  # a scenario with a correlation shift has a covariance
    apart = deviation(exposure, risk) ** 2
    together = math.fsum(amount * deviation({symbol: 1.0}, risk) for symbol, amount in exposure.items())
    return 2.326 * math.sqrt(((1 - shift) * apart + shift * together * together) / 252)


def rederived_stress_answer(task_input: StressInput) -> JsonObject:
    """Return the answer of stress testing."""
    return to_stress_answer(stress_with_var(task_input))


def to_stress_answer(found: RederivedStress) -> JsonObject:
    """Format a derived P&L as an answer."""
    by_sector = [{"sector": name, "contribution_pct": amount} for name, amount in found.by_sector.items()]
    by_factor = [{"factor": name, "contribution_pct": amount} for name, amount in found.by_factor.items()]
    answer = {"estimated_pnl_pct": found.pnl, "attribution": {"by_sector": by_sector, "by_factor": by_factor}}
    return answer if found.var is None else answer | {"stressed_var_pct": found.var}
