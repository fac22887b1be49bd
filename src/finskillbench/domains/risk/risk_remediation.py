"""Risk remediation: find the cheapest trades that restore compliance with headroom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification, by_input
from finskillbench.domains.building import BuildContext, BuiltTask, draw_evenly, shuffled
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples, Shortcuts
from finskillbench.domains.risk import no_skill_baseline, shared
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.examples import exploits
from finskillbench.domains.risk.examples.risk_remediation import graded_examples, shortcuts
from finskillbench.domains.risk.inputs import RemediationInput, TradingRulesInput
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.plain_cures import without_models
from finskillbench.domains.risk.objects.remediation import RemediationPair
from finskillbench.domains.risk.rederive import measure_mandate_after, with_headroom
from finskillbench.domains.risk.remediation.proof import certificate_key, examine_remediation
from finskillbench.domains.risk.remediation.scoring import certified, definitions, paper, strict
from finskillbench.domains.risk.user_catalogs.books import left_out
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk.mandate import ConstraintKind
from finskillbench.engines.risk.portfolio import turnover_of
from finskillbench.engines.risk.remediation import budget_left, remediate, total_excess
from finskillbench.engines.risk.report import significant_trades, trade_list
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Truth
from finskillbench.errors import InternalError

NAME = "risk_remediation"
METHOD = "constraint_satisfaction_plus_cost"
BEYOND = 6
"""Episodes without a cure within the turnover left."""
LIMITED = 10
"""Curable episodes with a turnover limit, so that the limit alone does not reveal an infeasible case."""
FEW_LIMITS, SEVERAL_LIMITS = 8, 10
"""Most limits of an easy and of a medium episode; broken ones count twice."""
MOST_PARTIAL = 0.3
"""Most that a solver without headroom, model-based limits or budget may earn in a drawn episode."""
_PARTIAL_PROGRAMS = 40
"""Program limit of such a solver."""
ROBUST = {4: 0.9, 5: 0.99}
"""Least score of the optimum by decimals of rounding."""


class Trade(Answer):
    """One trade."""

    symbol: str = Field(description="Ticker, at most once in the list.")
    action: Literal["buy", "sell"] = Field(description="buy raises the signed weight, sell lowers it.")
    current_weight: float = Field(description="Signed weight before, as a fraction of NAV (0.05 is 5 %).")
    target_weight: float = Field(description="Signed weight after, as a fraction of NAV.")
    trade_pct: float = Field(description="Target minus current weight, a fraction of NAV; negative for a sale.")


class RiskRemediation(Answer):
    """Answer: the trades, their turnover and whether they cure the portfolio."""

    trades: list[Trade] = Field(description="One entry per ticker whose weight changes; cash takes the rest.")
    total_turnover: float = Field(
        description="One-way turnover of the trades, (sum of |trade_pct| + |sum of trade_pct|)/2; >= 0, a fraction of "
        "NAV, without what was traded earlier in the month."
    )
    post_trade_compliant: bool = Field(
        description="true if the portfolio keeps every limit of its mandate, with its headroom, after the trades."
    )


def _build(context: BuildContext, objects: RiskObjects) -> list[BuiltTask]:
    """Build tasks from the user's books and certified pairs: `BEYOND` infeasible, `LIMITED` with a turnover limit."""
    user_tasks = [(task, pair) for pair in objects.user_pools.remediation if _robust(task := _task(pair), pair)]
    broken = [pair.case for pair in objects.user_pools.remediation]
    why = "rounding its cure causes a breach"
    context.notes.extend(left_out(NAME, broken, [pair.case for _, pair in user_tasks], why))
    pairs: list[RemediationPair] = []
    passed_over: list[RemediationPair] = []
    tasks: list[BuiltTask] = []
    wanted = context.most(EPISODES)
    beyond, limited = (round(wanted * part / EPISODES) for part in (BEYOND, LIMITED))

    def build_one(pair: RemediationPair) -> BuiltTask | None:
        task = _task(pair)
        if not _robust(task, pair):
            return None
        if pair not in passed_over and _partly_cured(task, pair):
            passed_over.append(pair)
            return None
        pairs.append(pair)
        return task

    def draw(name: str, count: int, fits: Callable[[RemediationPair], bool]) -> None:
        side = [pair for pair in objects.remediation if fits(pair) and pair not in (*pairs, *passed_over)]
        count -= len(pairs)
        tasks.extend(draw_evenly(side, _traits, count, context.generator(NAME, "draw", name), build_one))

    def fill(name: str, count: int, group: tuple[bool, bool]) -> None:
        side = [pair for pair in passed_over if pair.group == group]
        tasks.extend(draw_evenly(side, _traits, count - len(pairs), context.generator(NAME, "draw", name), build_one))

    draw("beyond", beyond, lambda pair: not pair.remedy.compliant)
    fill("beyond after all", beyond, (False, True))
    draw("limited", beyond + limited, lambda pair: pair.group == (True, True))
    draw("unlimited", wanted, lambda pair: pair.group == (True, False))
    draw("any", wanted, lambda pair: pair.remedy.compliant)
    fill("any after all", wanted, (True, False))
    if len(tasks) < wanted:
        context.notes.append(
            f"{NAME}: only {len(tasks)} of {wanted} episodes are drawn; no more pairs resist shortcuts."
        )
    return [*(task for task, _ in user_tasks), *shuffled(tasks, context.generator(NAME, "order"))]


def _traits(pair: RemediationPair) -> tuple[str, ...]:
    return _difficulty(pair), pair.case.type, pair.case.regime, pair.mandate.mandate_id


def _difficulty(pair: RemediationPair) -> str:
    """Return the tier from the number of limits and violations, which the input shows."""
    limits = len(pair.mandate.constraints) + len(pair.violations)
    return "easy" if limits <= FEW_LIMITS else "medium" if limits <= SEVERAL_LIMITS else "hard"


def _robust(task: BuiltTask, pair: RemediationPair) -> bool:
    """Check that the optimum rounded to four or five decimals earns `ROBUST`; small roundings can add up."""
    label, task_input = task.truth.expected_output, _resolved(task.episode, pair)
    for digits, least in ROBUST.items():
        rounded = [
            entry | {key: round(entry[key], digits) for key in ("current_weight", "target_weight", "trade_pct")}
            for entry in label["trades"]
        ]
        if certified({**label, "trades": rounded}, task.truth, task_input).value < least:
            return False
    return True


def _partly_cured(task: BuiltTask, pair: RemediationPair) -> bool:
    """Check for a program without headroom, models or budget that earns more than `MOST_PARTIAL`."""
    portfolio, market = pair.case.portfolio, pair.case.market
    partial = [(without_models(pair.mandate), pair.rules)]
    if pair.remedy.compliant:
        partial.append((pair.mandate, replace(pair.rules, headroom={})))
    if pair.group == (True, True):
        partial.append((pair.mandate.without(ConstraintKind.TURNOVER_MAX_MONTHLY), pair.rules))
    for mandate, rules in partial:
        try:
            remedy = remediate(portfolio, mandate, market, rules, most_programs=_PARTIAL_PROGRAMS)
        except (InfeasibleError, UndecidedError):
            continue
        trades = significant_trades(remedy)
        answer = {
            "trades": trade_list(portfolio, trades, market),
            "total_turnover": turnover_of(trades),
            "post_trade_compliant": remedy.compliant,
        }
        if certified(answer, task.truth, _resolved(task.episode, pair)).value > MOST_PARTIAL:
            return True
    return False


def _resolved(episode: Episode, pair: RemediationPair) -> RemediationInput:
    return cast(
        "RemediationInput", {**episode.input, "covariance_matrix": shared.resolved_covariance(pair.case.market)}
    )


def _task(pair: RemediationPair) -> BuiltTask:
    case, market, remedy = pair.case, pair.case.market, pair.remedy
    trades = significant_trades(remedy)
    limited = pair.mandate.get(ConstraintKind.TURNOVER_MAX_MONTHLY) is not None
    beyond = (
        " If the turnover left for the month allows no such trades, find those within it that come nearest; "
        "post_trade_compliant is then false."
    )
    prompt = Prompt(
        f"The portfolio as of {case.as_of} breaks the limits of its mandate that violations lists. Find the trades of "
        "least cost after which it keeps every limit of the mandate with its headroom, using any names of the universe "
        "and cash; none smaller than minimum_trade unless it closes a position."
        f"{beyond if limited else ''} conventions defines costs, "
        f"headroom{', turnover and what comes nearest' if limited else ' and turnover'}.",
        "Submit a JSON object with trades (symbol, action, current_weight, target_weight, trade_pct), total_turnover "
        f"and post_trade_compliant. {shared.PRECISION}",
    )
    rules: TradingRulesInput = {
        "cost_bps": shared.values_by_ticker(market, np.round(100 * pair.rules.costs, 2)),
        "minimum_trade": pair.rules.ticket,
        "headroom": {kind.value: amount for kind, amount in pair.rules.headroom.items()},
    }
    stated = shared.mandate_input(pair, violations=[kind.value for kind in pair.violations], trading_terms=rules)
    task_input = cast("RemediationInput", stated)
    task_input["conventions"] = definitions(task_input)
    episode = replace(
        shared.mandate_episode(NAME, SUBTASK.prefix, pair, prompt, task_input), difficulty=_difficulty(pair)
    )
    label = {
        "trades": trade_list(case.portfolio, trades, market),
        "total_turnover": turnover_of(trades),
        "post_trade_compliant": remedy.compliant,
    }
    verification = {**_bounds(pair), **shared.planted_facts(case)}
    return BuiltTask(
        episode,
        Truth(episode.task_id, NAME, label, verification, _proof(episode, pair, trades)),
        {certificate_key(solved.aim): certificate_of(solved.certified) for solved in remedy.stages},
    )


def _bounds(pair: RemediationPair) -> dict[str, float]:
    """Return the reference values of the score."""
    if pair.remedy.compliant:
        return {"least_cost": pair.remedy.value}
    before = total_excess(pair.case.portfolio, pair.rules.target(pair.mandate), pair.case.market)
    least = pair.remedy.stages[0].certified.value
    return {"least_turnover": least, "least_shortfall": pair.remedy.value, "shortfall_before": before}


def _proved(label: JsonObject) -> tuple[str, ...]:
    """Return the keys of `_bounds` and of `planted_facts`."""
    if label.get("post_trade_compliant") is True:
        return ("least_cost", *shared.PLANTED)
    return ("least_turnover", "least_shortfall", "shortfall_before", *shared.PLANTED)


def _proof(episode: Episode, pair: RemediationPair, trades: Floats) -> dict[str, Any]:
    """Return the proof of every stage; InternalError if the independent derivation disagrees on compliance."""
    remedy, market = pair.remedy, pair.case.market
    inside = with_headroom(_resolved(episode, pair))
    found = measure_mandate_after(inside, dict(zip(market.tickers, trades.tolist(), strict=True)))
    complies = all(one.status == "PASS" for one in found.values())
    if complies is not remedy.compliant:
        raise InternalError(
            f"{episode.task_id}: post_trade_compliant is {remedy.compliant} by the engine, but {complies} by the "
            "independent derivation"
        )
    stages = {certificate_key(solved.aim): proof_of(solved.certified) for solved in remedy.stages}
    left = budget_left(pair.case.portfolio, pair.mandate)
    verdict = {"kind": "optimal"} if remedy.compliant else {"kind": "infeasible", "turnover_left": left}
    return stages[certificate_key(remedy.stages[-1].aim)] | verdict | {"stages": stages}


def _no_skill_answer(data: Mapping[str, Any]) -> JsonObject:
    """Cap names and sectors, and redistribute the excess over the other holdings."""
    weights, _ = no_skill_baseline.weights_and_cash(data)
    limits = {limit["type"]: limit.get("value") for limit in data["mandate"]["constraints"]}
    caps = limits.get("position_limit_max"), limits.get("sector_limit_max")
    after_cuts = no_skill_baseline.cap_weights(weights, data["sector_mapping"], *caps)
    changes = {name: after_cuts[name] - weight for name, weight in weights.items()}
    changes = {name: change for name, change in changes.items() if abs(change) > no_skill_baseline.TRADED}
    return {
        "trades": [
            {
                "symbol": name,
                "action": "buy" if change > 0 else "sell",
                "current_weight": weights[name],
                "target_weight": after_cuts[name],
                "trade_pct": change,
            }
            for name, change in changes.items()
        ],
        "total_turnover": no_skill_baseline.turnover_of_changes(changes.values()),
        "post_trade_compliant": True,
    }


SUBTASK: Subtask[RemediationInput, RiskObjects] = Subtask(
    name=NAME,
    prefix="rm_rr",
    input=RemediationInput,
    answer=RiskRemediation,
    definitions=definitions,
    cluster=by_input("mandate", "mandate_id"),
    build=_build,
    proof=examine_remediation,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict, Profile.CERTIFIED: certified},
    verification=Verification(
        method=METHOD,
        parameters={
            "metrics": ["post_trade_compliant", "cost_vs_optimal"],
            "tolerance": {"turnover_excess_pct": 50},
            "ground_truth_source": "certified optimiser",
        },
        proved=_proved,
    ),
    baselines=Baselines(
        no_skill=Naive(("portfolio", "mandate", "sector_mapping"), _no_skill_answer),
        trivial=Naive((), lambda data: {"trades": [], "total_turnover": 0.0, "post_trade_compliant": True}),
        heuristic="30% of the way to the benchmark, said it complies",
    ),
    examples=Examples(graded=graded_examples, exploits=exploits.remediation_exploits, shortcuts=Shortcuts(shortcuts)),
)
