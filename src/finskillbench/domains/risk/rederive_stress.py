"""The second derivation of the stress labels: name by name, in plain Python, from an episode's JSON input alone.

Written from the definitions that the agent reads and from nothing else: no array library, no engine.
"""

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
class Stressed:
    """P&L under a scenario and its two attributions, decimals of NAV; `var` is None where correlations stay."""

    pnl: float
    by_sector: dict[str, float]
    by_factor: dict[str, float]
    var: float | None = None


def stressed(task_input: HoldingsInput, scenario: ScenarioInput) -> Stressed:
    """What shocks and sensitivities make of the holdings, name by name, and which part of it each explains."""
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
    return Stressed(
        math.fsum(amount for amounts in by_sector.values() for amount in amounts),
        {sector: math.fsum(amounts) for sector, amounts in by_sector.items()},
        {name: math.fsum(amounts) for name, amounts in by_factor.items()},
    )


def betas_of(task_input: HoldingsInput) -> Mapping[str, Mapping[str, float]]:
    """The betas of every name; one without any has those of its sector, by weight in the benchmark."""
    given, sectors = task_input["factor_exposures"], task_input["sector_mapping"]
    found: dict[str, Mapping[str, float]] = dict(given)
    for symbol in sectors.keys() - given.keys():
        index = cast("StressInput", task_input).get("benchmark_weights", {})
        peers = {peer: index[peer] for peer in given if sectors[peer] == sectors[symbol]}
        total = math.fsum(peers.values())
        found[symbol] = {
            factor: math.fsum(weight * given[peer][factor] for peer, weight in peers.items()) / total
            for factor in FACTORS
        }
    return found


def sensitivities_of(scenario: ScenarioInput) -> dict[str, float]:
    """The sensitivity of every sector; one without any has that of its proxy."""
    given = scenario["sector_sensitivities"]
    return {**given, **{sector: given[proxy] for sector, proxy in scenario.get("sector_proxies", {}).items()}}


def whole(task_input: StressInput) -> Stressed:
    """All of an answer; `covariance_matrix` must be resolved where correlations move."""
    return replace(without_var(task_input), var=var_of(task_input))


def without_var(task_input: StressInput) -> Stressed:
    """The P&L of the holdings, of the options, and the cost of closing the holdings."""
    scenario, portfolio = task_input["stress_scenario"], task_input["portfolio"]
    found = stressed(task_input, scenario)
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
    return Stressed(math.fsum(pnl), by_sector, by_factor)


def option_gain(option: OptionInput, shock: float) -> float:
    """What puts gain where the index goes from 1 to 1 + shock and their volatility to the stressed one."""
    stressed_value = value_of(option, 1.0 + shock, "stressed_volatility")
    return option["notional"] * (stressed_value - value_of(option, 1.0, "implied_volatility"))


def value_of(
    option: OptionInput, level: float, volatility: Literal["implied_volatility", "stressed_volatility"]
) -> float:
    """Value of one put on an index at `level` by Black's formula, from N(-x) = erfc(x / sqrt(2)) / 2."""
    strike, total = option["strike"], option[volatility] * math.sqrt(option["years"])
    middle = math.log(level / strike) / total
    return (strike * math.erfc((middle - total / 2) / _ROOT) - level * math.erfc((middle + total / 2) / _ROOT)) / 2


def delta_of(option: OptionInput) -> float:
    """Delta of one put today."""
    total = option["implied_volatility"] * math.sqrt(option["years"])
    return -math.erfc((total / 2 - math.log(option["strike"]) / total) / _ROOT) / 2


def closing_costs(task_input: StressInput) -> dict[str, float]:
    """What closing each holding costs: half of the wider spread, times the root of its days where they are many."""
    half = task_input["stress_scenario"].get("spread_widening_bp", 0.0) / 2 / 1e4
    nav, volumes = task_input["portfolio"]["total_nav"], task_input.get("average_daily_volume_usd", {})
    costs: dict[str, float] = {}
    for symbol, weight in weights(task_input).items():
        days = abs(weight) * nav / volumes[symbol] / 0.2
        costs[symbol] = abs(weight) * half * (math.sqrt(days) if days > 1 else 1.0)
    return costs


def var_of(task_input: StressInput) -> float | None:
    """One-day VaR at 99 % with every correlation moved towards 1; None where the scenario moves none.

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
        exposure = {symbol: own + delta * index[symbol] for symbol, own in exposure.items()}
    risk = cast("IdentificationInput", task_input)  # holds a covariance where correlations move
    apart = deviation(exposure, risk) ** 2
    together = math.fsum(amount * deviation({symbol: 1.0}, risk) for symbol, amount in exposure.items())
    return 2.326 * math.sqrt(((1 - shift) * apart + shift * together * together) / 252)


def stress_answer(task_input: StressInput) -> JsonObject:
    """The answer of stress testing."""
    return answer_of(whole(task_input))


def answer_of(found: Stressed) -> JsonObject:
    """A P&L with its attributions and its VaR in the form of an answer."""
    by_sector = [{"sector": name, "contribution_pct": amount} for name, amount in found.by_sector.items()]
    by_factor = [{"factor": name, "contribution_pct": amount} for name, amount in found.by_factor.items()]
    answer = {"estimated_pnl_pct": found.pnl, "attribution": {"by_sector": by_sector, "by_factor": by_factor}}
    return answer if found.var is None else answer | {"stressed_var_pct": found.var}
