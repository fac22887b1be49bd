"""Rebalancing: reach a required share of the attainable improvement at the lowest trading cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, stratified
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.definitions import (
    METADATA,
    MINIMISED,
    OBJECTIVE_NAME,
    PRECISION,
    SKILL,
    portfolio_conventions,
)
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.examples import rebalancing as examples
from finskillbench.domains.portfolio.examples.exploits import of_digits
from finskillbench.domains.portfolio.inputs import RebalancingInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects
from finskillbench.domains.portfolio.objects.binding import market_fields, month_problem, sized_limits
from finskillbench.domains.portfolio.optimality import OptimalityCheck
from finskillbench.domains.portfolio.proofs import EXACT, Recheck
from finskillbench.domains.portfolio.worth import (
    EXTRA_COST,
    SHORTFALL,
    is_different,
    judge_rebalancing,
    marks,
    rule_of_thumb,
    weight_score,
)
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import BROKEN, FEASIBILITY_TOLERANCE, clean
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.engines.portfolio.rebalance import Rebalancing as Solved
from finskillbench.engines.portfolio.rebalance import RebalancingRules, approximate_weights, rebalance, required_value
from finskillbench.engines.portfolio.trivial import within_caps
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number, first_numbers, mean, numbers, ramp, weighted_score

NAME = "rebalancing"
METHOD = "turnover_compliance_and_objective"
LEAST_TRADE = 1e-5
"""Smaller changes of weight are not trades: independent solvers differ by as much."""
_LEAST_IMPROVEMENT = 1e-3
"""Minimum improvement of the objective per year; below it, rounding decides the result."""
_LEAST_TURNOVER = 0.05
_LEAST_LEFT = 0.005
"""Minimum remainder of a partial sale."""
_MOST_NAMES = 40
_STEP = 0.0025
"""Minimum trades are multiples of this."""
_ALIKE = 0.55
"""Maximum score of minimising turnover instead of cost, both without a minimum trade."""


class _Bounds(NamedTuple):
    """Limits of a tier's episodes: score of repairing minimum trades by hand, trades below the minimum, and convex
    programs.
    """

    shortcut: float
    small: int
    programs: int


_BOUNDS = {"easy": _Bounds(0.75, 2, 24), "medium": _Bounds(0.6, 3, 30), "hard": _Bounds(0.5, 4, 60)}
TRADING_DEFINITIONS = {
    "limits": "new_weights keep every limit in constraints; current_portfolio has drifted and may exceed some",
    "trading_costs_bps": "one-way cost of each name in basis points of the amount bought or sold (commission, spread "
    "and impact, as the trading desk estimates them); total = sum of trading_costs_bps*|w - current_portfolio|",
    "min_trade": "each trade is 0 or at least min_trade in size, a fraction of NAV; only a sale of the whole position "
    "may be smaller",
    "marks": f"trading cost: full marks up to {EXTRA_COST[0]:.1%} above the least, falling to 0 at {EXTRA_COST[1]:.0%} "
    f"above; required improvement: full marks up to {SHORTFALL[0]:.1%} short of it, falling to 0 at {SHORTFALL[1]:.0%} "
    f"short; a trade: full marks up to {FEASIBILITY_TOLERANCE} under min_trade, falling to 0 at a further {BROKEN:.0%} "
    f"of min_trade under it, or at a further {FEASIBILITY_TOLERANCE} if that is more",
}
"""Definitions specific to this subtask, except the two stages."""

_FLOOR = 1e-9
_L2_THRESHOLD = 0.05  # 4θ = 0.2
_WEIGHTS = {
    "weights": ("weight_l2_component_weight", 0.5),
    "turnover": ("turnover_component_weight", 0.25),
    "trades": ("trade_list_component_weight", 0.25),
}
"""Parts of the published score: the verification key of their weight, and its default."""


class _Rebalancing(Answer):
    """Answer: the trades, where they lead and what they cost in turnover."""

    trade_list: dict[str, float] = Field(
        description="Ticker to signed change of weight, new minus current, as a fraction of NAV (0.01 is +1 %; "
        "a sale is negative). A ticker left out is not traded."
    )
    new_weights: dict[str, float] = Field(
        description="Ticker to weight after the trades, as a fraction of NAV; >= 0, summing to 1."
    )
    turnover: float = Field(description="One-way turnover: half the sum of absolute changes of weight; >= 0.")


def _definitions(task_input: JsonObject) -> dict[str, str]:
    """Return the definitions for an input, including turnover, which the mandate does not limit."""
    return portfolio_conventions(task_input, "turnover") | TRADING_DEFINITIONS | {"two_stages": _stages(task_input)}


def _stages(task_input: JsonObject) -> str:
    return (
        f"f is the objective written as a minimum: {MINIMISED.get(task_input.get('objective'))}. Stage 1: f* = least f "
        "under the limits, without costs and min_trade. Stage 2: under the same limits and min_trade, of the "
        "portfolios with f(w) <= f(current_portfolio) - required_improvement*(f(current_portfolio) - f*) the one whose "
        "trades cost least; it is unique"
    )


_Cell = tuple[MonthEnd, str, Objective, int]
"""Date, tier, objective, and number of the drawn current portfolio."""


def _build(context: BuildContext, objects: PortfolioObjects) -> list[BuiltTask]:
    """Build 40 tasks by tier and objective; replace those that do not discriminate or repeat a label within their
    stratum.
    """
    cells: list[_Cell] = [
        (month, tier, objective, draw)
        for draw in range(objects.settings["rebalancing"]["draws"])
        for month in objects.month_ends
        for tier in objects.settings["tiers"]
        for objective in Objective
    ]
    first = len(cells) // objects.settings["rebalancing"]["draws"]
    count = objects.settings["episodes_per_subtask"]
    rng = context.generator(NAME, "draw")
    places = stratified(range(first), lambda place: cells[place][1:3], count, rng)
    spare: list[int] = [place for place in rng.permutation(first).tolist() if place not in set(places)]
    spare += range(first, len(cells))
    tasks: dict[str, BuiltTask] = {}
    kept: list[Mapping[str, float]] = []

    def attempt(place: int) -> bool:
        task = _task(context, objects, *cells[place]) if _task_id(*cells[place][:3]) not in tasks else None
        if task is None or not is_different(task.truth.expected_output["new_weights"], kept):
            return False
        kept.append(task.truth.expected_output["new_weights"])
        tasks[task.episode.task_id] = task
        return True

    for place in places:
        stratum, found = cells[place][1:3], attempt(place)
        while not found and spare:
            spare.sort(key=lambda other: cells[other][1:3] != stratum)  # stable sort keeps the drawn order
            found = attempt(spare.pop(0))
    return [tasks[task_id] for task_id in sorted(tasks)]


def _task_id(month: MonthEnd, tier_name: str, objective: Objective) -> str:
    return f"{SUBTASK.prefix}_{month.as_of}_{tier_name}_{objective}"


def _task(
    context: BuildContext, objects: PortfolioObjects, month: MonthEnd, tier_name: str, objective: Objective, draw: int
) -> BuiltTask | None:
    tier, rules = objects.settings["tiers"][tier_name], objects.settings["rebalancing"]
    share = min(tier["listed"], _MOST_NAMES / len(month.tickers))
    month = month.of_list(context.generator(NAME, month.as_of, tier_name, objective, draw, "list"), share)
    bought = _bought(context.generator(NAME, month.as_of, tier_name, objective, draw), month)
    limits = sized_limits(tier, month)
    least = max(round(rules["min_trade"] / len(month.tickers) / _STEP), 1) * _STEP
    task_input: RebalancingInput = {
        **market_fields(month, objective, tier["risk_aversion"]),
        "current_portfolio": month.by_ticker(bought),
        "current_portfolio_date": str(month.as_of),
        "constraints": {
            "long_only": limits.get("long_only"),
            "max_weight": limits.get("max_weight"),
            "sector_limits": limits.get("sector_limits"),
        },
        "sector_mapping": month.sector_mapping,
        "trading_costs_bps": month.by_ticker(month.trading_costs),
        "min_trade": least,
        "required_improvement": rules["required_improvement"],
    }
    # Bought within the limits, then drifted with the market.
    current = month.drifted(within_caps(month_problem(month, task_input), bought))
    task_input["current_portfolio"] = month.by_ticker(current)
    task_input["conventions"] = _definitions(task_input)
    problem = month_problem(month, task_input)
    trading = RebalancingRules.of(task_input, problem)
    result = _solved(problem, trading, _BOUNDS[tier_name])
    if result is None:
        return None
    weights = clean(result.weights)
    if ((weights < np.minimum(current, _LEAST_LEFT)) & (weights > 0)).any():
        return None
    changes = month.by_ticker(weights - current)
    trades = {ticker: change for ticker, change in changes.items() if abs(change) > LEAST_TRADE}
    answer = {"trade_list": trades, "new_weights": month.by_ticker(weights), "turnover": result.turnover}
    task = _worded(month, tier_name, task_input, trading, result, answer)
    return task if _rounds_well(problem, task) else None


def _worded(
    month: MonthEnd,
    tier: str,
    task_input: RebalancingInput,
    rules: RebalancingRules,
    result: Solved,
    answer: JsonObject,
) -> BuiltTask:
    """Return the task of an input and its answer, with the prompt and the proof of both stages."""
    objective = Objective(task_input["objective"])
    task_id = _task_id(month, tier, objective)
    prompt = Prompt(
        f"Rebalance the current portfolio as of {month.as_of} towards {OBJECTIVE_NAME[objective]} under the limits in "
        f"constraints. Gain at least {rules.required_improvement:.0%} of the improvement of the objective that "
        f"is attainable under them, at the least trading cost, in trades of {rules.min_trade:.2%} of NAV or more; "
        "conventions defines both stages, costs and trades exactly.",
        "Submit a JSON object with trade_list (ticker to signed change of weight), new_weights (ticker to weight) and "
        f"turnover (one-way). {PRECISION}",
    )
    return BuiltTask(
        Episode(task_id, SKILL, NAME, month.as_of, tier, task_input, prompt, {"objective": objective, **METADATA}),
        Truth(
            task_id,
            NAME,
            answer,
            {"required_value": result.required_value, "least_cost_bps": result.cost},
            proof_of(result.cheapest) | {"stage_1": proof_of(result.target)},
        ),
        {"stage_1": certificate_of(result.target), "stage_2": certificate_of(result.cheapest)},
    )


def _rounds_well(problem: PortfolioProblem, task: BuiltTask) -> bool:
    """Return True if fewer decimals cost little, so that rounding is not scored as an error."""
    written = of_digits(problem, task.truth.expected_output, "new_weights", fewest=4)
    task_input = cast("RebalancingInput", task.episode.input)
    scored = (_certified(example.answer, task.truth, task_input, problem=problem).value for example in written)
    return all(score >= example.least for score, example in zip(scored, written, strict=True))


def _solved(problem: PortfolioProblem, rules: RebalancingRules, bounds: _Bounds) -> Solved | None:
    """Solve both stages, cheap tests first; None without a unique answer, or if a shortcut comes near it."""
    current = problem.current
    if current is None:
        return None
    try:
        value = problem.value(approximate_weights(problem, PortfolioAim()))
        if problem.value(current) - value < _LEAST_IMPROVEMENT:
            return None
        value = required_value(problem, value, rules)
        relaxed = approximate_weights(problem, PortfolioAim(PortfolioGoal.COST, value, costs=rules.costs))
        if examples.small_trades(problem, rules, relaxed).sum() > bounds.small:
            return None
        simple = [exploits.rebalancing_answer(problem, weights) for weights in examples.mended(problem, rules, relaxed)]

        def near(least: float) -> bool:
            return any(judge_rebalancing(problem, rules, one, value, least).value > bounds.shortcut for one in simple)

        least = rules.cost(relaxed, current)
        if near(least):  # a minimum trade only raises the least cost, and so the shortcuts' score
            return None
        alike = approximate_weights(problem, PortfolioAim(PortfolioGoal.COST, value, costs=np.ones(problem.size)))
        if marks(rules.cost(alike, current) / least - 1.0, EXTRA_COST) > min(bounds.shortcut, _ALIKE):
            return None
        result = rebalance(problem, rules, most_programs=bounds.programs)
    except (InfeasibleError, UndecidedError):
        return None
    unique, large = result.cheapest.uniqueness.outcome.proved, result.turnover >= _LEAST_TURNOVER
    return result if unique and large and not near(result.cost) else None


def _bought(rng: np.random.Generator, month: MonthEnd) -> Floats:
    share = float(rng.uniform(0.4, 0.8))
    return share * rng.dirichlet(np.full(len(month.tickers), 2.0)) + (1 - share) * month.benchmark


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """turnover_compliance_and_objective: 0.5 clip(1 - L2/0.2) + 0.25 t + 0.25 r; no weights: 0.

    t = 1 - min(1, |T̂-T|/max(|T|, 1e-9)), 0 if absent. r = mean over the expected tickers of the same ramp on the signed
    trade, 0 for an absent ticker, 1 if none is expected. The verification may set other weights.
    """
    del task_input
    expected = truth.expected_output
    predicted = first_numbers(answer, "new_weights", "weights")
    if not predicted:
        return Score(0.0, {"weights": 0.0, "turnover": 0.0, "trades": 0.0})
    weights = weight_score(predicted, first_numbers(expected, "new_weights", "weights"), _L2_THRESHOLD)
    traded = as_number(expected.get("turnover"))
    t = 0.0 if traded is None else ramp(as_number(answer.get("turnover")), traded, floor=_FLOOR)
    listed, wanted = numbers(answer.get("trade_list")), numbers(expected.get("trade_list"))
    ramps = [ramp(listed.get(ticker), trade, floor=_FLOOR) for ticker, trade in wanted.items()]
    r = mean(ramps) if ramps else 1.0
    parts = {"weights": weights, "turnover": t, "trades": r}
    return Score(weighted_score(parts, _WEIGHTS, truth.verification), parts)


def _certified(
    answer: JsonObject, truth: Truth, task_input: RebalancingInput, *, problem: PortfolioProblem | None = None
) -> Score:
    """Limits and minimum trade x required improvement x trading cost x agreement of the reports.

    Each report (turnover, trades) that is missing or disagrees with the weights costs half.
    """
    problem = problem or problem_from(task_input)
    required, least = (truth.verification[name] for name in ("required_value", "least_cost_bps"))
    return judge_rebalancing(problem, RebalancingRules.of(task_input, problem), answer, required, least)


def _proof(label: Label[RebalancingInput], findings: Findings) -> None:
    """Check that trades lead to the new weights and that these are the certified optimum of both stages."""
    recheck = Recheck(label, findings)
    truth, task_input = label.truth, recheck.task_input
    weights = recheck.vector(truth.expected_output["new_weights"])
    recheck.within_limits(weights)
    recheck.trades(weights, LEAST_TRADE)
    recheck.close(truth.expected_output["turnover"], rederive.turnover_from_current(task_input, weights), "turnover")
    missed = rederive.trade_shortfall(task_input, weights)
    recheck.expect(missed <= EXACT, f"a trade misses min_trade by {missed:.1e}")
    problem = problem_from(task_input)
    trading_rules = RebalancingRules.of(task_input, problem)
    solve = cache(partial(rebalance, problem, trading_rules))
    first, last = (label.certificate.get(name) for name in ("stage_1", "stage_2"))
    least = first["objective"] if first else solve().target.value
    current = recheck.vector(task_input["current_portfolio"])
    start, value = (rederive.objective(task_input, recheck.covariance, each) for each in (current, weights))
    enough = start - task_input["required_improvement"] * (start - least)
    recheck.expect(value <= enough + EXACT, f"its objective {value:.9g} misses the required {enough:.9g}")
    cost = rederive.trading_cost(task_input, weights)
    recheck.close(cost, last["objective"] if last else solve().cost, "least cost", 1e-7)
    recheck.same_weights(weights, recheck.stored(last) if last else solve().weights)
    known = truth.verification
    if recheck.states_value("required_value"):
        recheck.close(known["required_value"], enough, "required value")
        recheck.close(known["least_cost_bps"], cost, "stated least cost", 1e-7)
    if first and last:
        aim, branched = PortfolioAim(PortfolioGoal.COST, enough, costs=trading_rules.costs), last["programs_solved"] > 1
        recheck.certificate(
            problem, PortfolioAim(), first, truth.proof["stage_1"], lambda: solve().target, unique=False
        )
        recheck.certificate(problem, aim, last, truth.proof, lambda: solve().cheapest)
        recheck.cannot_gain("stage_1", OptimalityCheck(task_input, recheck.stored(first)).gain())
        prices, at_end = (
            recheck.vector(task_input["trading_costs_bps"]),
            OptimalityCheck(task_input, recheck.stored(last)),
        )
        recheck.cannot_gain("stage_2", at_end.gain(prices, enough, same_trades=branched))


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    weights, current = rule_of_thumb(data), data["current_portfolio"]
    trades = {name: weights[name] - current.get(name, 0.0) for name in weights}
    return {"trade_list": trades, "new_weights": weights, "turnover": math.fsum(map(abs, trades.values())) / 2}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_rebal",
    input=RebalancingInput,
    answer=_Rebalancing,
    definitions=_definitions,
    template_of=lambda episode, _: f"{episode.input['objective']} {episode.as_of_date}",
    build=_build,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        METHOD, {"ground_truth_source": "certified optimiser, two stages"}, ("required_value", "least_cost_bps")
    ),
    baselines=Baselines(
        no_skill=Naive(("objective", "expected_returns", "covariance_matrix", "current_portfolio"), _no_skill_baseline),
        trivial=Naive(
            ("current_portfolio",),
            lambda data: {"trade_list": {}, "new_weights": data.get("current_portfolio") or {}, "turnover": 0.0},
        ),
        heuristic="optimum without correlations within the caps",
    ),
    examples=Examples(
        graded=examples.graded_examples, exploits=exploits.rebalancing_exploits, shortcuts=Shortcuts(examples.shortcuts)
    ),
)
