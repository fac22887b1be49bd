"""Rebalancing: from the current portfolio to the optimum with the least one-way turnover."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, MonthEnd, Task
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio.merit import (
    LEAST_SPREAD,
    ROUNDING,
    judge_weights,
    submitted_weights,
    trivial_value,
)
from finskillbench.domains.portfolio.tiers import (
    METADATA,
    OBJECTIVE_NAME,
    PRECISION,
    SKILL,
    Tier,
    conventions,
    market_fields,
    month_problem,
)
from finskillbench.domains.portfolio.weights import weight_score
from finskillbench.domains.proofs import certificate_of, proof_of
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, clean, turnover
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.engines.portfolio.rebalance import OBJECTIVE_TOLERANCE, rebalance
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InternalError
from finskillbench.scoring.measures import clip, mean, ramp
from finskillbench.scoring.values import first_numbers, number, numbers

NAME = "rebalancing"
METHOD = "turnover_compliance_and_objective"
LEAST_TRADE = 1e-5
"""A change of weight below a tenth of a basis point is no trade: independent solvers differ by as much."""
_LEAST_SAVING = 1e-3
"""Turnover that stage 2 must save at least, or it is not tested."""
_LEAST_OBJECTIVE = 1e-3
"""An optimum nearer to 0 than this leaves stage 2 a band of less than 1e-7, which no solver but an exact one enters."""
_LEAST_TURNOVER = 0.05
"""A rebalancing that trades less than this is no test of trading."""
TWO_STAGES = (
    "f is the objective written as a minimum: risk_aversion*w'Sw - expected_returns'w, w'Sw, -expected_returns'w, or "
    "the risk_parity form; stage 1: f* = min f under the limits; stage 2: least one-way turnover with "
    "f(w) <= f* + objective_tolerance*|f*| under the same limits, ties by least ||w - current_portfolio||^2"
)

_FLOOR = 1e-9
_L2_THRESHOLD = 0.05  # 4θ = 0.2


class Rebalancing(Answer):
    """Answer: the trades, where they lead and what they cost in turnover."""

    trade_list: dict[str, float] = Field(
        description="Ticker to signed change of weight, new minus current, as a fraction of NAV (0.01 is +1 %; "
        "a sale is negative). A ticker left out is not traded."
    )
    new_weights: dict[str, float] = Field(
        description="Ticker to weight after the trades, as a fraction of NAV; >= 0, summing to 1."
    )
    turnover: float = Field(description="One-way turnover: half the sum of absolute changes of weight; >= 0.")


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """turnover_compliance_and_objective: 0.5 clip(1 - L2/0.2) + 0.25 t + 0.25 r; no weights: 0.

    Weights from `new_weights`, else `weights`. t = 1 - min(1, |T̂-T|/max(|T|, 1e-9)), 0 if absent. r = mean over
    the expected tickers of the same ramp on the signed trade, 0 for an absent ticker, 1 if none is expected.
    """
    del task_input
    expected = truth.expected_output
    predicted = first_numbers(answer, "new_weights", "weights")
    if not predicted:
        return Score(0.0, {"weights": 0.0, "turnover": 0.0, "trades": 0.0})
    weights = weight_score(predicted, first_numbers(expected, "new_weights", "weights"), _L2_THRESHOLD)
    traded = number(expected.get("turnover"))
    t = 0.0 if traded is None else ramp(number(answer.get("turnover")), traded, floor=_FLOOR)
    given, wanted = numbers(answer.get("trade_list")), numbers(expected.get("trade_list"))
    ramps = [ramp(given.get(ticker), trade, floor=_FLOOR) for ticker, trade in wanted.items()]
    r = mean(ramps) if ramps else 1.0
    return Score(0.5 * weights + 0.25 * t + 0.25 * r, {"weights": weights, "turnover": t, "trades": r})


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Objective merit x trading merit x agreement of the reported turnover and trades with the weights.

    The objective is judged beyond the tolerance of stage 2, scaled so that not trading, and trading to equal or to
    inverse-variance weights, scores 0. Half of the trading merit has to be earned by stage 2: it falls from the
    certified least turnover to 0 at the turnover of stage 1. Each report that is missing or disagrees costs half.
    """
    problem = problem_from(task_input)
    current = problem.current
    if current is None:
        raise InternalError(f"{truth.task_id}: a rebalancing task without a current portfolio")
    weights = submitted_weights(first_numbers(answer, "new_weights", "weights"), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"})
    known = truth.verification
    merit = judge_weights(problem, weights, known["accepted_value"], known["trivial_value"])
    traded, least = turnover(weights, current), known["least_turnover"]
    excess = max(0.0, traded - least - 2 * ROUNDING) / (known["stage_1_turnover"] - least)
    trading = 0.5 + 0.5 * clip(1.0 - excess)
    reported = number(answer.get("turnover"))
    agrees = float(reported is not None and abs(reported - traded) <= FEASIBILITY_TOLERANCE)
    trades = _trades_agree(numbers(answer.get("trade_list")), weights - current, problem.tickers)
    value = merit.value * trading * (agrees + trades) / 2
    return Score(value, {**merit.details, "trading": trading, "turnover_agrees": agrees, "trades_agree": trades})


def _trades_agree(trades: dict[str, float], changes: Floats, tickers: tuple[str, ...]) -> float:
    """1 if the list is there, stays in the universe and gives every change of weight within the tolerance."""
    if not trades or set(trades) - set(tickers):
        return 0.0
    given = np.array([trades.get(ticker, 0.0) for ticker in tickers])
    return float(np.abs(given - changes).max() <= FEASIBILITY_TOLERANCE)


def build(context: BuildContext, objects: object) -> list[Task]:
    """12 month-ends x 3 tiers x 4 objectives; 40 drawn by tier and objective.

    One that does not discriminate is replaced by another month-end of its own stratum while there is one.
    """
    slots: list[tuple[MonthEnd, str, Objective]] = [
        (month, tier, objective)
        for month in context.month_ends
        for tier in context.catalog["tiers"]
        for objective in Objective
    ]
    count = context.catalog["episodes_per_subtask"]
    rng = context.generator(NAME, "draw")
    places = stratified(range(len(slots)), lambda place: slots[place][1:], count, rng)
    spare = [place for place in rng.permutation(len(slots)).tolist() if place not in set(places)]
    tasks = []
    for place in places:
        task = _task(context, *slots[place])
        while task is None and spare:
            spare.sort(key=lambda other: slots[other][1:] != slots[place][1:])  # stable: the drawn order stays
            task = _task(context, *slots[spare.pop(0)])
        if task is not None:
            tasks.append(task)
    return sorted(tasks, key=lambda task: task.episode.task_id)


def _task(context: BuildContext, month: MonthEnd, tier_name: str, objective: Objective) -> Task | None:
    tier = Tier.of(context, tier_name, month)
    current = _drifted_book(context, month, tier_name, objective)
    kept = ("long_only", "max_weight", "sector_limits")
    task_input = market_fields(month, objective, tier.risk_aversion) | {
        "current_portfolio": month.by_ticker(current),
        "current_portfolio_date": str(month.as_of),
        "constraints": {name: tier.constraints[name] for name in kept},
        "sector_mapping": dict(zip(month.tickers, month.sectors, strict=True)),
        "objective_tolerance": OBJECTIVE_TOLERANCE,
        "conventions": conventions(objective, "long_only", "sector_limits", "max_turnover")
        | {"two_stages": TWO_STAGES},
    }
    problem = month_problem(month, task_input)
    try:
        result = rebalance(problem)
        trivial = min(problem.value(current), trivial_value(problem, problem.inverse_variance))
    except UndecidedError:
        return None
    accepted = result.target.value + OBJECTIVE_TOLERANCE * abs(result.target.value)
    if not result.least_trading.uniqueness.outcome.proved or trivial - accepted < LEAST_SPREAD:
        return None
    if result.turnover < _LEAST_TURNOVER or abs(result.target.value) < _LEAST_OBJECTIVE:
        return None
    stage_1_turnover = turnover(result.target.weights, current)
    if not result.target.uniqueness.outcome.proved or stage_1_turnover - result.turnover < _LEAST_SAVING:
        return None
    weights = clean(result.weights)
    trades = {
        ticker: change for ticker, change in month.by_ticker(weights - current).items() if abs(change) > LEAST_TRADE
    }
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{tier_name}_{objective}"
    prompt = Prompt(
        f"Rebalance the current portfolio as of {month.as_of} towards {OBJECTIVE_NAME[objective]} under the limits in "
        "constraints. Among the portfolios whose objective is as good as the optimum within objective_tolerance, take "
        "the one that needs the least one-way turnover; conventions defines both stages exactly.",
        "Submit a JSON object with trade_list (ticker to signed change of weight), new_weights (ticker to weight) and "
        f"turnover (one-way). {PRECISION}",
    )
    return Task(
        Episode(task_id, SKILL, NAME, month.as_of, tier_name, task_input, prompt, {"objective": objective, **METADATA}),
        Truth(
            task_id,
            NAME,
            {"trade_list": trades, "new_weights": month.by_ticker(weights), "turnover": result.turnover},
            {
                "method": METHOD,
                "accepted_value": accepted,
                "trivial_value": trivial,
                "least_turnover": result.turnover,
                "stage_1_turnover": stage_1_turnover,
                "ground_truth_source": "certified optimiser, two stages",
            },
            proof_of(result.least_trading) | {"stage_1": proof_of(result.target)},
        ),
        {"stage_1": certificate_of(result.target), "stage_2": certificate_of(result.least_trading)},
    )


def _drifted_book(context: BuildContext, month: MonthEnd, tier_name: str, objective: Objective) -> Floats:
    """A diversified book of random tilts around the benchmark, drifted by the market since it was bought."""
    rng = context.generator(NAME, month.as_of, tier_name, objective)
    share = float(rng.uniform(0.4, 0.8))
    book = share * rng.dirichlet(np.full(len(month.tickers), 2.0)) + (1 - share) * month.benchmark
    return month.drifted(book)


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_rebal",
    method=METHOD,
    answer=Rebalancing,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
)
