"""Stress testing: estimate and attribute the P&L of a portfolio under a scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from pydantic import Field

from finskillbench.arrays import FACTORS
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification, by_input
from finskillbench.domains.building import BuildContext, BuiltTask, draw_evenly, merge_conventions, shuffled
from finskillbench.domains.examples import Examples, Shortcuts
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.examples import exploits
from finskillbench.domains.risk.examples.stress_testing import graded_examples, shortcuts
from finskillbench.domains.risk.inputs import ScenarioInput, StressInput
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.scenarios import SEVERE
from finskillbench.domains.risk.objects.stress import LEAST_PNL, StressCase, StressPair, as_stated, at_tier, tiers_of
from finskillbench.domains.risk.rederive_stress import rederived_stress_answer as second_answer
from finskillbench.domains.risk.rederive_stress import stress_holdings, stress_with_var, to_stress_answer
from finskillbench.domains.risk.shared import (
    BENCHMARK,
    PLANTED,
    PRECISION,
    SKILL,
    covariance_field,
    dense_covariance,
    planted_facts,
    sector_mapping,
    values_by_ticker,
)
from finskillbench.engines.risk import full_stress
from finskillbench.engines.risk.portfolio import require_field
from finskillbench.engines.risk.report import stress_answer
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.values import (
    as_array,
    as_number,
    as_object,
    as_text,
    clip,
    closeness,
    keyed_numbers,
    mean,
    mean_absolute_error,
    objects,
    parameter,
    ramp,
    weighted_score,
)
from finskillbench.sums import exact_sum

NAME = "stress_testing"
METHOD = "absolute_error"
_WEIGHTS = {"pnl": ("pnl_score_weight", 0.7), "by_sector": ("attribution_score_weight", 0.3)}
"""Parts of the published score: weight key of the verification, and default weight."""
ROUNDING = 5.1e-4
"""Full credit of `certified`: half of a tenth of a per cent of NAV, the rounding error of an answer, with slack."""
MATERIAL = 1e-3
"""Error, a fraction of NAV, from which `certified` gives no credit; smaller contributions are not judged."""
NO_VAR = 0.25
"""Factor for a missing or wrong VaR."""
EARNED = {"easy": 0.5, "medium": 0.5, "hard": NO_VAR}
"""Most that a shortcut may earn on a drawn episode, by tier: a change of `certified` also changes what is drawn."""


class SectorContribution(Answer):
    """One sector's part of the P&L."""

    sector: str = Field(description="Sector name, as the task spells it, or an entry that conventions names.")
    contribution_pct: float = Field(
        description="The sector's part of the P&L, decimal of NAV (-0.01 is -1 %); a loss is negative."
    )


class FactorContribution(Answer):
    """One factor's part of the P&L."""

    factor: str = Field(
        description='Factor name, as the scenario\'s factor_shocks spell it, "sector_sensitivity" for what the '
        "scenario's sector_sensitivities contribute, or an entry that conventions names."
    )
    contribution_pct: float = Field(
        description="The factor's part of the P&L, decimal of NAV (-0.01 is -1 %); a loss is negative."
    )


class Attribution(Answer):
    """The P&L, split twice; each split adds up to it."""

    by_sector: list[SectorContribution] = Field(description="Entries as conventions lists them.")
    by_factor: list[FactorContribution] = Field(description="Entries as conventions lists them.")


class StressTesting(Answer):
    """Answer: P&L and its attribution."""

    estimated_pnl_pct: float = Field(
        description="Portfolio P&L under the scenario, decimal of NAV (-0.167 is -16.7 %); a loss is negative."
    )
    attribution: Attribution = Field(description="Contributions by sector and by factor.")
    stressed_var_pct: float | None = Field(
        default=None,
        description="VaR as conventions defines it, positive decimal of NAV (0.021 is 2.1 %); only if the task asks "
        "for it (stress_scenario has a correlation_shift), and then required.",
    )


def _paper(answer: JsonObject, truth: Truth, task_input: StressInput) -> Score:
    """absolute_error: s = clip(1 - (|ŷ-y| - 0.1τ)/(3τ)), τ = `tolerance_pct`/100, default 1 %.

    With expected sector attribution: 0.7 s + 0.3 x mean of (1 - min(1, relerr/0.05)) over expected sectors.
    Denominators
    have a floor of 1e-8; absent sectors score 0, extra ones are ignored. Without a P&L the score is 0. The verification
    may set the weights and `attribution_tolerance_pct`.
    """
    del task_input
    answered, wanted = _by_sector(answer), _by_sector(truth.expected_output)
    tolerance = parameter(truth.verification, "attribution_tolerance_pct", 5.0) / 100.0
    sectors = mean([ramp(answered.get(name), amount, tolerance=tolerance) for name, amount in wanted.items()])
    return _published(answer, truth, sectors if wanted else None)


def _strict(answer: JsonObject, truth: Truth, task_input: StressInput) -> Score:
    """Variant of `paper` with sectors by max(0, 1 - MAE/τ) over the union, if `sector_attribution_mae` is a metric."""
    del task_input
    wanted = _by_sector(truth.expected_output)
    if not wanted or "sector_attribution_mae" not in as_array(truth.verification.get("metrics")):
        return _published(answer, truth, None)
    error = mean_absolute_error(_by_sector(answer), wanted)
    return _published(answer, truth, max(0.0, 1.0 - error / _tolerance(truth)))


def _published(answer: JsonObject, truth: Truth, sectors: float | None) -> Score:
    """Combine P&L and attribution; without an attribution only the P&L counts, without a P&L the score is 0."""
    stated = as_number(answer.get("estimated_pnl_pct"))
    if stated is None:
        return Score(0.0, {"pnl": 0.0})
    pnl = _pnl_score(stated, truth)
    if sectors is None:
        return Score(pnl, {"pnl": pnl})
    parts = {"pnl": pnl, "by_sector": sectors}
    return Score(weighted_score(parts, _WEIGHTS, truth.verification), parts)


def _certified(answer: JsonObject, truth: Truth, task_input: StressInput) -> Score:
    """P&L x (0.5 + 0.25 sector + 0.25 factor attribution), with a VaR also x (0.25 + 0.75 VaR).

    See `_near` and `_attributed`. The VaR earns full credit within 0.2 % or 0.5 bp of NAV, and none from 1 % or 2 bp.
    """
    del task_input
    wanted = as_number(truth.expected_output.get("estimated_pnl_pct"))
    if wanted is None:
        return Score(0.0, {"pnl": 0.0, "by_sector": 0.0, "by_factor": 0.0})
    stated = as_number(answer.get("estimated_pnl_pct"))
    parts = {
        "pnl": _near(stated, wanted),
        "by_sector": _attributed(answer, truth, "by_sector", "sector", stated),
        "by_factor": _attributed(answer, truth, "by_factor", "factor", stated),
    }
    value = parts["pnl"] * (0.5 + 0.25 * (parts["by_sector"] + parts["by_factor"]))
    if (risk := as_number(truth.expected_output.get("stressed_var_pct"))) is not None:
        stated_var = as_number(answer.get("stressed_var_pct"))
        parts["var"] = closeness(stated_var, risk, full=0.002, full_floor=5e-5, zero=0.01, zero_floor=2e-4)
        value *= NO_VAR + (1.0 - NO_VAR) * parts["var"]
    return Score(value, parts)


def _near(value: float | None, wanted: float) -> float:
    """Return the credit of the P&L or of one entry: full within 0.2 % or `ROUNDING`, none from 1 % or 10 bp of NAV."""
    return closeness(value, wanted, full=0.002, full_floor=ROUNDING, zero=0.01, zero_floor=MATERIAL)


def _attributed(answer: JsonObject, truth: Truth, split: str, key: str, submitted: float | None) -> float:
    """Return max(0, 2c - 1) of the mean entry credit c; 0 if the split does not sum to the submitted P&L.

    Entries earn `_near`; absent or contradictory ones earn nothing. Entries below `MATERIAL` are scaled by the mean
    credit of the others. Each invented name counts as one more missed.
    """
    expected = {name: amounts[0] for name, amounts in _contributions(truth.expected_output, split, key).items()}
    contributions = _contributions(answer, split, key)
    total = exact_sum(amount for amounts in contributions.values() for amount in amounts)
    if submitted is None or not abs(total - submitted) <= 2 * ROUNDING + 0.5 * ROUNDING * len(contributions):
        return 0.0
    right = {
        name: _near(amounts[0], expected.get(name, 0.0)) if len(amounts) == 1 else 0.0
        for name, amounts in contributions.items()
    }
    credit = {name: right.get(name, 0.0) for name in expected}
    material = [credit[name] for name, amount in expected.items() if abs(amount) >= MATERIAL]
    small = [credit[name] for name, amount in expected.items() if abs(amount) < MATERIAL]
    invented = math.fsum(1.0 - earned for name, earned in right.items() if name not in expected)
    earned = math.fsum(material) + math.fsum(small) * mean(material)
    return clip(2.0 * earned / max(len(expected) + invented, 1) - 1.0)


def _contributions(source: JsonObject, split: str, key: str) -> dict[str, list[float]]:
    """Return the distinct amounts per name, in lower case with `_` for `-` and space."""
    found: dict[str, dict[float, None]] = {}  # dict keeps this linear for ten thousand amounts
    for item in objects(as_object(source.get("attribution")).get(split)):
        name, amount = as_text(item.get(key)), as_number(item.get("contribution_pct"))
        if name is not None and amount is not None:
            found.setdefault(name.strip().lower().replace("-", "_").replace(" ", "_"), {})[amount] = None
    return {name: list(amounts) for name, amounts in found.items()}


def _tolerance(truth: Truth) -> float:
    return parameter(truth.verification, "tolerance_pct", 1.0) / 100.0


def _pnl_score(stated: float, truth: Truth) -> float:
    wanted = as_number(truth.expected_output.get("estimated_pnl_pct"))
    if wanted is None:
        return 0.0
    tolerance = _tolerance(truth)
    return clip(1.0 - (abs(stated - wanted) - 0.1 * tolerance) / (3.0 * tolerance))


def _by_sector(source: JsonObject) -> dict[str, float]:
    return keyed_numbers(as_object(source.get("attribution")).get("by_sector"), "sector", "contribution_pct")


def _build(context: BuildContext, objects: RiskObjects) -> list[BuiltTask]:
    """Build tasks from the user's books and drawn pairs that resist shortcuts."""
    rng = context.generator(NAME, "tiers")
    pool = tiers_of([pair for pair in objects.stress if pair.large_enough], rng)

    def made(item: tuple[StressPair, str]) -> BuiltTask | None:
        case = at_tier(*item, objects.scenarios, rng)
        task = None if case is None or abs(case.result.pnl) < LEAST_PNL else _task(case)
        return task if task is not None and case is not None and _resists_shortcuts(task, case) else None

    tasks = draw_evenly(pool, _traits, context.most(EPISODES), context.generator(NAME, "draw"), made)
    user_tasks = [_task(as_stated(pair)) for pair in objects.user_pools.stress]
    return [*user_tasks, *shuffled(tasks, context.generator(NAME, "order"))]


def _traits(item: tuple[StressPair, str]) -> tuple[str, ...]:
    pair, tier = item
    return tier, pair.scenario["scenario_id"], pair.case.type, pair.case.regime


def _resists_shortcuts(task: BuiltTask, case: StressCase) -> bool:
    resolved = cast("StressInput", {**task.episode.input, "covariance_matrix": dense_covariance(case.market)})
    return all(
        _certified(answer, task.truth, resolved).value <= EARNED[case.tier] for answer in shortcuts(resolved).values()
    )


def _definitions(task_input: StressInput) -> Mapping[str, str]:
    """Return the conventions for the parts of the episode."""
    scenario = task_input["stress_scenario"]
    missing = task_input["sector_mapping"].keys() - task_input["factor_exposures"].keys()
    units = [
        "weights, cash_weight and P&L are decimals of NAV (0.05 is 5 %), also in answer fields that end in _pct; betas "
        "are ratios; total_nav is in USD",
        *(["average_daily_volume_usd is in USD"] if "average_daily_volume_usd" in task_input else []),
        *(["covariance is annualised"] if "covariance_matrix" in task_input else []),
    ]
    parts = [
        (BENCHMARK, "benchmark_weights" in task_input),
        (full_stress.MISSING_BETAS, bool(missing)),
        (full_stress.MISSING_SENSITIVITIES, "sector_proxies" in scenario),
        (full_stress.OPTIONS, "option_overlay" in task_input["portfolio"]),
        (full_stress.LIQUIDITY, "spread_widening_bp" in scenario),
        (full_stress.CORRELATION, "correlation_shift" in scenario),
    ]
    return merge_conventions({"units": "; ".join(units)}, full_stress.PNL, *(part for part, there in parts if there))


def _task(case: StressCase) -> BuiltTask:
    of, scenario, market = case.pair.case, case.scenario, case.market
    task_id = f"{SUBTASK.prefix}_{of.as_of}_{of.portfolio_id}_{scenario['scenario_id']}"
    portfolio = of.to_json()
    if case.overlay:
        portfolio["option_overlay"] = list(case.overlay)
    task_input: StressInput = {
        "portfolio": portfolio,
        "stress_scenario": scenario,
        "sector_mapping": sector_mapping(market),
        "factor_exposures": case.exposures,
        "conventions": {},
    }
    if case.missing or (case.overlay and "correlation_shift" in scenario):
        task_input["benchmark_weights"] = values_by_ticker(market, require_field(market.benchmark, "benchmark weights"))
    if "spread_widening_bp" in scenario:
        volumes = require_field(market.dollar_volume, "average daily volume")
        task_input["average_daily_volume_usd"] = values_by_ticker(market, volumes)
    if "correlation_shift" in scenario:
        task_input["covariance_matrix"] = covariance_field(market, of.as_of)
    task_input["conventions"] = dict(_definitions(task_input))
    label = stress_answer(case.result)
    options = ", its options included," if case.overlay else ""
    closing = ", closed at the wider spreads," if "spread_widening_bp" in scenario else ""
    var = "stressed_var_pct" in label
    prompt = Prompt(
        f"Estimate what the portfolio{options} as of {of.as_of}{closing} would make or lose under the stress scenario "
        f"{scenario['name']!r}, and attribute the P&L by sector and by factor. "
        + ("Measure its VaR before closing, at the scenario's correlations. " if var else "")
        + f"conventions defines the P&L{', the VaR' if var else ''} and both attributions exactly.",
        "Submit a JSON object with estimated_pnl_pct"
        + (", stressed_var_pct" if var else "")
        + " and attribution (by_sector: sector, contribution_pct; by_factor: factor, contribution_pct). Answer fields "
        + f"that end in _pct are decimals of NAV. {PRECISION}",
    )
    return BuiltTask(
        Episode(
            task_id,
            SKILL,
            NAME,
            of.as_of,
            case.tier,
            task_input,
            prompt,
            {"scenario_type": scenario["type"], "scenario": scenario["scenario_id"]},
        ),
        Truth(task_id, NAME, label, planted_facts(of)),
        {
            "kind": "rederived",
            "decisions": case.decisions,
            "second": asdict(stress_with_var({**task_input, "covariance_matrix": dense_covariance(market)})),
        },
    )


def _no_skill_answer(data: Mapping[str, Any]) -> JsonObject:
    """Apply stated betas and sensitivities, which solves easy episodes; ignore everything else."""
    task_input = cast("StressInput", data)
    known = {
        **dict.fromkeys(task_input["sector_mapping"], dict.fromkeys(FACTORS, 0.0)),
        **task_input["factor_exposures"],
    }
    scenario = task_input["stress_scenario"]
    flat = {**dict.fromkeys(task_input["sector_mapping"].values(), 0.0), **scenario["sector_sensitivities"]}
    plain = {"stress_scenario": {**scenario, "sector_sensitivities": flat}, "factor_exposures": known}
    linear = stress_holdings(
        cast("StressInput", {**task_input, **plain}), cast("ScenarioInput", plain["stress_scenario"])
    )
    return {**to_stress_answer(linear), "stressed_var_pct": None}


def _no_loss(data: Mapping[str, Any]) -> JsonObject:
    del data
    return {"estimated_pnl_pct": 0.0, "attribution": {"by_sector": [], "by_factor": []}, "stressed_var_pct": 0.0}


SUBTASK: Subtask[StressInput, RiskObjects] = Subtask(
    name=NAME,
    prefix="rm_st",
    input=StressInput,
    answer=StressTesting,
    definitions=_definitions,
    cluster=by_input("stress_scenario", "scenario_id"),
    template_of=lambda episode, _: episode.input["stress_scenario"]["scenario_id"].removesuffix(SEVERE),
    build=_build,
    rederive=second_answer,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _strict, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        # Read by `paper` and `strict`; `certified` uses `_near`.
        parameters={"tolerance_pct": 1.0, "metrics": ["pnl_absolute_error", "sector_attribution_mae"]},
        proved=PLANTED,
    ),
    baselines=Baselines(
        no_skill=Naive(("portfolio", "stress_scenario", "sector_mapping", "factor_exposures"), _no_skill_answer),
        trivial=Naive((), _no_loss),
        heuristic="the shock to the market",
    ),
    examples=Examples(graded=graded_examples, exploits=exploits.stress_exploits, shortcuts=Shortcuts(shortcuts)),
)
