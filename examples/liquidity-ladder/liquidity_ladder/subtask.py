"""Liquidity ladder: days to liquidate each holding, and what share of NAV is liquid within 1, 5 and 20 days."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, draw_evenly, shuffled
from finskillbench.domains.risk.inputs import HoldingsInput, PortfolioInput
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.shared import (
    PLANTED,
    PRECISION,
    SKILL,
    betas_by_ticker,
    holding_count,
    planted_facts,
    sector_mapping,
    values_by_ticker,
)
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, require_field
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.values import closeness, mean, numbers

NAME = "liquidity_ladder"
METHOD = "ladder_error"
EPISODES = 40
RATES = (0.05, 0.10, 0.15, 0.20, 0.25)
"""Shares of a day's volume that a seller may be."""
STEPS = {"within_1_day": 1.0, "within_5_days": 5.0, "within_20_days": 20.0}
"""Steps of the ladder, in trading days."""
FEW = 22
"""Most holdings of an easy episode."""
CONVENTIONS = {
    "units": "weights, participation_rate and the ladder are fractions (0.05 is 5 %); average daily volume and "
    "total_nav are USD; days are trading days and need not be whole",
    "days_to_liquidate": "|weight| x total_nav / (participation_rate x average_daily_volume_usd), for every holding",
    "ladder": "within d days: the sum over holdings of min(|weight|, d x participation_rate x "
    "average_daily_volume_usd / total_nav); cash is not counted",
}


class LadderInput(HoldingsInput):
    """What the agent is given beside what every risk subtask gives; volumes are in USD a day."""

    average_daily_volume_usd: dict[str, float]
    participation_rate: float


class GradedExamples(Answer):
    """Shares of NAV that can be sold within so many trading days."""

    within_1_day: float = Field(description="Fraction of NAV, >= 0 (0.15 is 15 %), sold within 1 day.")
    within_5_days: float = Field(description="Fraction of NAV, >= 0, sold within 5 days.")
    within_20_days: float = Field(description="Fraction of NAV, >= 0, sold within 20 days.")


class LiquidityLadder(Answer):
    """Answer: how long each holding takes to sell, and the ladder of the portfolio."""

    days_to_liquidate: dict[str, float] = Field(description="Trading days, >= 0, by ticker of every holding.")
    ladder: GradedExamples = Field(description="What can be sold within each step.")


def build(context: BuildContext, objects: RiskObjects) -> list[BuiltTask]:
    """Portfolios drawn by type, regime and rate, all of whose holdings are traded."""
    rates = context.generator(NAME, "rates").choice(RATES, size=len(objects.portfolios)).tolist()
    pool = [pair for pair in zip(objects.portfolios, rates, strict=True) if _traded(pair[0])]
    tasks = draw_evenly(
        pool, lambda pair: (pair[0].type, pair[0].regime, pair[1]), EPISODES, context.generator(NAME), _task
    )
    return shuffled(tasks, context.generator(NAME, "order"))


def _traded(case: PortfolioCase) -> bool:
    held = np.abs(case.portfolio.weights) > ZERO_WEIGHT
    return bool((require_field(case.market.dollar_volume, "average daily volume")[held] > 0).all())


def _task(pair: tuple[PortfolioCase, float]) -> BuiltTask:
    case, rate = pair
    market = case.market
    volume = require_field(market.dollar_volume, "average daily volume")
    task_id = f"{SUBTASK.prefix}_{case.as_of}_{case.portfolio_id}"
    task_input: LadderInput = {
        "portfolio": case.to_json(),
        "sector_mapping": sector_mapping(market),
        "factor_exposures": betas_by_ticker(market),
        "average_daily_volume_usd": values_by_ticker(market, volume),
        "participation_rate": rate,
        "conventions": CONVENTIONS,
    }
    sizes = np.abs(case.portfolio.weights)
    a_day = rate * volume / case.portfolio.nav
    days = sizes[sizes > ZERO_WEIGHT] / a_day[sizes > ZERO_WEIGHT]
    names = [ticker for ticker, size in zip(market.tickers, sizes, strict=True) if size > ZERO_WEIGHT]
    expected = {
        "days_to_liquidate": dict(zip(names, days.tolist(), strict=True)),
        "ladder": {step: float(np.minimum(sizes, length * a_day).sum()) for step, length in STEPS.items()},
    }
    prompt = Prompt(
        f"The portfolio as of {case.as_of} must be sold without being more than participation_rate of each name's "
        "average daily volume. Say how many trading days each holding takes, and what share of NAV can be sold within "
        "1, 5 and 20 days. conventions defines both.",
        f"Submit a JSON object with days_to_liquidate (ticker to days) and ladder. {PRECISION}",
    )
    difficulty = "easy" if holding_count(case) <= FEW else "hard"
    return BuiltTask(
        Episode(task_id, SKILL, NAME, case.as_of, difficulty, task_input, prompt),
        Truth(task_id, NAME, expected, planted_facts(case)),
        {"kind": "rederived", "second": second(task_input)},
    )


def second(task_input: LadderInput) -> JsonObject:
    """Days and ladder again, name by name in plain Python."""
    portfolio, rate = task_input["portfolio"], task_input["participation_rate"]
    days: dict[str, float] = {}
    ladder = dict.fromkeys(STEPS, 0.0)
    for holding in portfolio["holdings"]:
        position = abs(holding["weight"]) * portfolio["total_nav"]
        sold_a_day = rate * task_input["average_daily_volume_usd"][holding["symbol"]]
        days[holding["symbol"]] = position / sold_a_day
        for step, length in STEPS.items():
            ladder[step] += min(position, length * sold_a_day) / portfolio["total_nav"]
    return {"days_to_liquidate": days, "ladder": ladder}


def certified(answer: JsonObject, truth: Truth, task_input: LadderInput) -> Score:
    """Mean credit of the days x mean credit of the steps; each in full within 0.2 %, nothing from 2 % on.

    Entries beyond one per holding divide the first factor.
    """
    del task_input
    given, expected = numbers(answer.get("days_to_liquidate")), numbers(truth.expected_output["days_to_liquidate"])
    earned = math.fsum(_near(given.get(name), wanted) for name, wanted in expected.items())
    days = earned / max(len(expected), len(given))
    steps, ladder = numbers(answer.get("ladder")), numbers(truth.expected_output["ladder"])
    step = mean([_near(steps.get(name), wanted) for name, wanted in ladder.items()])
    return Score(days * step, {"days": days, "ladder": step})


def _near(given: float | None, wanted: float) -> float:
    return closeness(given, wanted, full=0.002, full_floor=1e-6, zero=0.02, zero_floor=1e-5)


def _all_at_once(given: JsonObject) -> JsonObject:
    """Everything is sold on the first day."""
    portfolio = cast("PortfolioInput", given["portfolio"])
    invested = math.fsum(abs(holding["weight"]) for holding in portfolio["holdings"])
    days = {holding["symbol"]: 1.0 for holding in portfolio["holdings"]}
    return {"days_to_liquidate": days, "ladder": dict.fromkeys(STEPS, invested)}


SUBTASK = Subtask(
    name=NAME,
    prefix="rm_ll",
    input=LadderInput,
    answer=LiquidityLadder,
    definitions=CONVENTIONS,
    build=build,
    rederive=second,
    scorers={Profile.STRICT: certified, Profile.CERTIFIED: certified},
    verification=Verification(method=METHOD, proved=PLANTED),
    baselines=Baselines(trivial=Naive(("portfolio",), _all_at_once)),
    headline=False,
)
