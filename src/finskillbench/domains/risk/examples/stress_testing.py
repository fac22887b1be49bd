"""Shortcuts and graded examples of stress testing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.examples.exploits import to_decimals
from finskillbench.domains.risk.inputs import OptionInput, ScenarioInput, StressInput
from finskillbench.domains.risk.rederive import FACTORS, weights
from finskillbench.domains.risk.rederive_stress import (
    RederivedStress,
    delta_of,
    stress_holdings,
    stress_with_var,
    to_stress_answer,
    value_of,
    var_of,
)
from finskillbench.episode import JsonObject

_MARKET, _OVERLAY = "mkt_rf", "option_overlay"
_NONE: dict[str, float] = dict.fromkeys(FACTORS, 0.0)
_ONE = {**_NONE, _MARKET: 1.0}


def shortcuts(task_input: StressInput) -> Mapping[str, JsonObject]:
    """Return one answer per applicable shortcut, right in all other parts."""
    right, scenario, owned = stress_with_var(task_input), task_input["stress_scenario"], weights(task_input)
    linear = stress_holdings(task_input, scenario)

    def holdings(changed_input: StressInput, changed: Mapping[str, Any]) -> RederivedStress:
        return _in_place(right, linear, stress_holdings(changed_input, cast("ScenarioInput", {**scenario, **changed})))

    flat, shocks = dict.fromkeys(scenario["sector_sensitivities"], 0.0), scenario["factor_shocks"]
    gross, net = math.fsum(map(abs, owned.values())), math.fsum(owned.values())
    found = {
        "the market's beta and nothing else": holdings(
            task_input, {"factor_shocks": {**_NONE, _MARKET: shocks[_MARKET]}, "sector_sensitivities": flat}
        ),
        "factors without sectors": holdings(task_input, {"sector_sensitivities": flat}),
        "sectors without factors": holdings(task_input, {"factor_shocks": _NONE}),
        "the stated move of equities for every name": holdings(
            _with_betas(task_input, dict.fromkeys(task_input["sector_mapping"], _ONE)),
            {"factor_shocks": {**_NONE, _MARKET: _equities(scenario)}, "sector_sensitivities": flat},
        ),
        "equal weights": _held(task_input, dict.fromkeys(owned, gross / len(owned))),
        "the weights without cash": _held(task_input, {name: weight / net for name, weight in owned.items()}),
        "cash as equity": _with_cash(task_input, right),
    }
    if any(weight < 0 for weight in owned.values()):
        found["shorts as longs"] = _held(task_input, {name: abs(weight) for name, weight in owned.items()})
    missing = task_input["sector_mapping"].keys() - task_input["factor_exposures"].keys()
    if missing & owned.keys():
        known_betas, proxied = task_input["factor_exposures"], dict.fromkeys(scenario.get("sector_proxies", {}), 0.0)
        zero = _with_betas(task_input, {**known_betas, **dict.fromkeys(missing, _NONE)})
        sectors = {**scenario["sector_sensitivities"], **proxied}
        found["missing sensitivities as zero"] = holdings(zero, {"sector_sensitivities": sectors, "sector_proxies": {}})
        one = _with_betas(task_input, {**known_betas, **dict.fromkeys(missing, _ONE)})
        found["missing betas as a market beta of one"] = holdings(one, {})
        alike = _with(task_input, benchmark_weights=dict.fromkeys(task_input["sector_mapping"], 1.0))
        found["missing betas by a plain mean"] = _in_place(right, linear, stress_holdings(alike, scenario))
    if options := task_input["portfolio"].get("option_overlay", []):
        found["no options"] = _optioned(task_input, [])
        shock = shocks[_MARKET]
        found["options by their delta alone"] = _gained(right, (_sized(one, delta_of(one) * shock) for one in options))
        found["options at their payoff at expiry"] = _gained(right, (_at_expiry(one, shock) for one in options))
        calm = [{**one, "stressed_volatility": one["implied_volatility"]} for one in options]
        found["volatility unchanged"] = _optioned(task_input, calm)
        bought = [{**one, "notional": abs(one["notional"])} for one in options]
        if bought != options:
            found["options sold as bought"] = _optioned(task_input, bought)
    if "spread_widening_bp" in scenario:
        found["no cost of closing"] = stress_with_var(_under(task_input, spread_widening_bp=0.0))
        deep = dict.fromkeys(task_input["sector_mapping"], 1e15)
        found["one spread for liquid and illiquid"] = stress_with_var(_with(task_input, average_daily_volume_usd=deep))
    if "correlation_shift" in scenario:
        found["correlations unmoved"] = replace(right, var=var_of(_under(task_input, correlation_shift=0.0)))
    return {name: to_stress_answer(answer) for name, answer in found.items()}


def _with(task_input: StressInput, **changes: Any) -> StressInput:
    return cast("StressInput", {**task_input, **changes})


def _with_betas(task_input: StressInput, betas: Mapping[str, Mapping[str, float]]) -> StressInput:
    return _with(task_input, factor_exposures=betas)


def _under(task_input: StressInput, **changes: float) -> StressInput:
    return _with(task_input, stress_scenario={**task_input["stress_scenario"], **changes})


def _equities(scenario: ScenarioInput) -> float:
    return scenario["market_shocks"].get("equity_change_pct", 0.0) / 100


def _in_place(right: RederivedStress, old: RederivedStress, new: RederivedStress) -> RederivedStress:
    """Replace the P&L of the holdings in the right answer."""

    def moved(right: Mapping[str, float], old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
        return {name: amount - old.get(name, 0.0) + new.get(name, 0.0) for name, amount in right.items()}

    return replace(
        right,
        pnl=right.pnl - old.pnl + new.pnl,
        by_sector=moved(right.by_sector, old.by_sector, new.by_sector),
        by_factor=moved(right.by_factor, old.by_factor, new.by_factor),
    )


def _held(task_input: StressInput, held: Mapping[str, float]) -> RederivedStress:
    rows = [{"symbol": name, "weight": weight} for name, weight in held.items()]
    return stress_with_var(_with(task_input, portfolio={**task_input["portfolio"], "holdings": rows}))


def _optioned(task_input: StressInput, options: list[Any]) -> RederivedStress:
    return stress_with_var(_with(task_input, portfolio={**task_input["portfolio"], "option_overlay": options}))


def _gained(right: RederivedStress, gains: Iterable[float]) -> RederivedStress:
    """Replace the gain of the options in the right answer."""
    gained = math.fsum(gains)
    new = {_OVERLAY: gained}
    return replace(
        right,
        pnl=right.pnl - right.by_factor[_OVERLAY] + gained,
        by_sector=right.by_sector | new,
        by_factor=right.by_factor | new,
    )


def _sized(option: OptionInput, gain: float) -> float:
    return option["notional"] * gain


def _at_expiry(option: OptionInput, shock: float) -> float:
    """Return the payoff at expiry less today's value."""
    return _sized(option, max(0.0, option["strike"] - 1.0 - shock) - value_of(option, 1.0, "implied_volatility"))


def _with_cash(task_input: StressInput, right: RederivedStress) -> RederivedStress:
    """Let cash move with the market."""
    lost = task_input["portfolio"]["cash_weight"] * task_input["stress_scenario"]["factor_shocks"][_MARKET]
    by_factor = {**right.by_factor, _MARKET: right.by_factor[_MARKET] + lost}
    return replace(right, pnl=right.pnl + lost, by_sector={**right.by_sector, "Cash": lost}, by_factor=by_factor)


_SENSITIVITY = "sector_sensitivity"


def graded_examples(label: Label[StressInput]) -> list[GradedExample]:
    """Return examples from the truth to a wrong sign; three decimals are too few for a VaR."""
    truth = label.truth.expected_output
    headline = label.task_input["stress_scenario"]["market_shocks"].get("equity_change_pct", 0.0) / 100
    by_factor = [row for row in truth["attribution"]["by_factor"] if row["factor"] != _SENSITIVITY]
    var = truth.get("stressed_var_pct")
    examples = [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six decimals", to_decimals(truth, 6), 1.0, 1.0),
        GradedExample("four decimals", to_decimals(truth, 4), 0.99, 1.0),
        GradedExample("three decimals, four of the VaR", _with_var(to_decimals(truth, 3), var), 0.9, 1.0),
        GradedExample("without the sectors' own moves by factor", _attributed(truth, by_factor=by_factor), 0.75, 0.97),
        GradedExample("P&L and sectors only", _attributed(truth, by_factor=[]), 0.75, 0.75),
        GradedExample("P&L alone", _attributed(truth, by_factor=[], by_sector=[]), 0.5, 0.5),
    ]
    if var is not None:
        examples.append(GradedExample("a VaR that is a twentieth less", _with_var(truth, 0.95 * var), 0.25, 0.25))
    return [
        *examples,
        GradedExample("the market's move for the P&L", _only(headline), 0.0, 0.5),
        GradedExample("a gain for the loss", _times(truth, -1.0), 0.0, 0.0),
        GradedExample("per cent for decimals", _times(truth, 100.0), 0.0, 0.0),
        GradedExample("nothing lost", _only(0.0), 0.0, 0.0),
    ]


def _with_var(truth: JsonObject, var: float | None) -> JsonObject:
    return truth if var is None else {**truth, "stressed_var_pct": round(var, 4)}


def _attributed(truth: JsonObject, **splits: list[Any]) -> JsonObject:
    return {**truth, "attribution": {**truth["attribution"], **splits}}


def _only(pnl: float) -> JsonObject:
    return {"estimated_pnl_pct": pnl, "attribution": {"by_sector": [], "by_factor": []}}


def _times(truth: JsonObject, factor: float) -> JsonObject:
    splits = {
        name: [{**row, "contribution_pct": row["contribution_pct"] * factor} for row in rows]
        for name, rows in truth["attribution"].items()
    }
    return {**truth, "estimated_pnl_pct": truth["estimated_pnl_pct"] * factor, "attribution": splits}
