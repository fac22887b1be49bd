"""Rebalancing: from the current portfolio to the optimum with the least one-way turnover."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Label, Naive, Subtask
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio import second
from finskillbench.domains.portfolio.audits import exploits
from finskillbench.domains.portfolio.audits.ladders import rebalancing as ladders
from finskillbench.domains.portfolio.audits.ladders.written import of_digits
from finskillbench.domains.portfolio.definitions import METADATA, OBJECTIVE_NAME, PRECISION, SKILL, conventions
from finskillbench.domains.portfolio.inputs import RebalancingInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects
from finskillbench.domains.portfolio.objects.tiers import market_fields, month_problem, sized_limits
from finskillbench.domains.portfolio.proofs import EXACT, WEIGHT_TOLERANCE, Recheck
from finskillbench.domains.portfolio.worth.distinct import is_different
from finskillbench.domains.portfolio.worth.merit import (
    LEAST_SPREAD,
    judge_weights,
    submitted_weights,
    weight_score,
    zero_value,
)
from finskillbench.domains.portfolio.worth.naive import rule_of_thumb
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.formulation import Aim, Goal
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, clean, turnover
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.engines.portfolio.rebalance import OBJECTIVE_TOLERANCE, rebalance
from finskillbench.engines.portfolio.rebalance import Rebalancing as Solved
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InternalError
from finskillbench.findings import Findings
from finskillbench.scoring.measures import clip, mean, ramp
from finskillbench.scoring.values import first_numbers, number, numbers, weighted

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

_TRADES_AGREE = (1.001e-3, 5e-3)
"""Trades and weights rounded to three decimals each differ by 0.1 % of NAV; half a percent is another trade."""
_TURNOVER_AGREES = (2.5e-3, 1e-2)
"""Rounding thirty weights to three decimals moves their turnover by a quarter of a percent; one percent is wrong."""
_FLOOR = 1e-9
_L2_THRESHOLD = 0.05  # 4θ = 0.2
_WEIGHTS = {
    "weights": ("weight_l2_component_weight", 0.5),
    "turnover": ("turnover_component_weight", 0.25),
    "trades": ("trade_list_component_weight", 0.25),
}
"""Each part of the published score, the key by which a verification may set its weight, and the default."""


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


def definitions(task_input: JsonObject) -> dict[str, str]:
    """What an input of this subtask states; turnover is defined although the mandate does not limit it."""
    return conventions(task_input, "max_turnover") | {"two_stages": TWO_STAGES}


def build(context: BuildContext, objects: PortfolioObjects) -> list[Task]:
    """12 month-ends x 3 tiers x 4 objectives; 40 drawn by tier and objective.

    One that does not discriminate, or repeats an answer, is replaced by another month-end of its own stratum while
    there is one.
    """
    cells: list[tuple[MonthEnd, str, Objective]] = [
        (month, tier, objective)
        for month in objects.month_ends
        for tier in objects.settings["tiers"]
        for objective in Objective
    ]
    count = objects.settings["episodes_per_subtask"]
    rng = context.generator(NAME, "draw")
    places = stratified(range(len(cells)), lambda place: cells[place][1:], count, rng)
    spare: list[int] = [place for place in rng.permutation(len(cells)).tolist() if place not in set(places)]
    tasks: list[Task] = []
    kept: list[Mapping[str, float]] = []

    def usable(task: Task | None) -> bool:
        return task is not None and is_different(task.truth.expected_output["new_weights"], kept)

    for place in places:
        stratum = cells[place][1:]
        task = _task(context, objects, *cells[place])
        while not usable(task) and spare:
            spare.sort(key=lambda other: cells[other][1:] != stratum)  # stable: the drawn order stays
            task = _task(context, objects, *cells[spare.pop(0)])
        if task is not None and usable(task):
            kept.append(task.truth.expected_output["new_weights"])
            tasks.append(task)
    return sorted(tasks, key=lambda task: task.episode.task_id)


def _task(
    context: BuildContext, objects: PortfolioObjects, month: MonthEnd, tier_name: str, objective: Objective
) -> Task | None:
    tier = objects.settings["tiers"][tier_name]
    month = month.of_list(context.generator(NAME, month.as_of, tier_name, objective, "list"), tier["listed"])
    current = _drifted_portfolio(context, month, tier_name, objective)
    limits = sized_limits(tier, month)
    task_input: RebalancingInput = {
        **market_fields(month, objective, tier["risk_aversion"]),
        "current_portfolio": month.by_ticker(current),
        "current_portfolio_date": str(month.as_of),
        "constraints": {
            "long_only": limits.get("long_only"),
            "max_weight": limits.get("max_weight"),
            "sector_limits": limits.get("sector_limits"),
        },
        "sector_mapping": month.sector_mapping,
        "objective_tolerance": OBJECTIVE_TOLERANCE,
    }
    task_input["conventions"] = definitions(task_input)
    problem = month_problem(month, task_input)
    try:
        result = rebalance(problem)
        accepted = result.target.value + OBJECTIVE_TOLERANCE * abs(result.target.value)
        trivial = min(problem.value(current), zero_value(problem, accepted, problem.inverse_variance))
    except UndecidedError:
        return None
    if trivial - accepted < LEAST_SPREAD or not _worth_asking(result, current):
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
    task = Task(
        Episode(task_id, SKILL, NAME, month.as_of, tier_name, task_input, prompt, {"objective": objective, **METADATA}),
        Truth(
            task_id,
            NAME,
            {"trade_list": trades, "new_weights": month.by_ticker(weights), "turnover": result.turnover},
            {"accepted_value": accepted, "trivial_value": trivial, "least_turnover": result.turnover},
            proof_of(result.least_trading) | {"stage_1": proof_of(result.target)},
        ),
        {"stage_1": certificate_of(result.target), "stage_2": certificate_of(result.least_trading)},
    )
    return task if _rounds_well(problem, task) else None


def _rounds_well(problem: PortfolioProblem, task: Task) -> bool:
    """Whether fewer decimals cost little: on a narrow scale a typist's error would pass for one of merit."""
    written = of_digits(problem, task.truth.expected_output, "new_weights")
    return all(_judged(problem, rung.answer, task.truth).value >= rung.least for rung in written)


def _worth_asking(result: Solved, current: Floats) -> bool:
    """Whether both stages have one answer, and the second trades enough, and enough less than the first."""
    stages = result.target, result.least_trading
    saved = turnover(result.target.weights, current) - result.turnover
    large_enough = result.turnover >= _LEAST_TURNOVER and abs(result.target.value) >= _LEAST_OBJECTIVE
    return all(stage.uniqueness.outcome.proved for stage in stages) and large_enough and saved >= _LEAST_SAVING


def _drifted_portfolio(context: BuildContext, month: MonthEnd, tier_name: str, objective: Objective) -> Floats:
    """A diversified portfolio of random tilts around the benchmark, drifted by the market since it was bought."""
    rng = context.generator(NAME, month.as_of, tier_name, objective)
    share = float(rng.uniform(0.4, 0.8))
    bought = share * rng.dirichlet(np.full(len(month.tickers), 2.0)) + (1 - share) * month.benchmark
    return month.drifted(bought)


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """turnover_compliance_and_objective: 0.5 clip(1 - L2/0.2) + 0.25 t + 0.25 r; no weights: 0.

    Weights from `new_weights`, else `weights`. t = 1 - min(1, |T̂-T|/max(|T|, 1e-9)), 0 if absent. r = mean over
    the expected tickers of the same ramp on the signed trade, 0 for an absent ticker, 1 if none is expected. The
    verification may name other weights of the three parts.
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
    parts = {"weights": weights, "turnover": t, "trades": r}
    return Score(weighted(parts, _WEIGHTS, truth.verification), parts)


def certified(answer: JsonObject, truth: Truth, task_input: RebalancingInput) -> Score:
    """Objective merit x trading merit x agreement of the reported turnover and trades with the weights.

    The objective is judged beyond the tolerance of stage 2, scaled so that not trading, and trading to equal or to
    inverse-variance weights, scores 0. Turnover beyond the certified least costs in proportion to it: a tenth more
    turnover a tenth, twice the turnover everything. Each report that is missing or disagrees costs half.
    """
    return _judged(problem_from(task_input), answer, truth)


def _judged(problem: PortfolioProblem, answer: JsonObject, truth: Truth) -> Score:
    current = problem.current
    if current is None:
        raise InternalError(f"{truth.task_id}: a rebalancing task without a current portfolio")
    weights = submitted_weights(first_numbers(answer, "new_weights", "weights"), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"})
    known = truth.verification
    merit = judge_weights(problem, weights, known["accepted_value"], known["trivial_value"])
    traded, least = turnover(weights, current), known["least_turnover"]
    trading = clip(1.0 - max(0.0, traded - least - FEASIBILITY_TOLERANCE) / max(least, _FLOOR))
    reported = number(answer.get("turnover"))
    agrees = 0.0 if reported is None else _agrees(abs(reported - traded), _TURNOVER_AGREES)
    trades = _trades_agree(numbers(answer.get("trade_list")), weights - current, problem.tickers)
    value = merit.value * trading * (agrees + trades) / 2
    return Score(value, {**merit.details, "trading": trading, "turnover_agrees": agrees, "trades_agree": trades})


def _trades_agree(trades: dict[str, float], changes: Floats, tickers: tuple[str, ...]) -> float:
    """How well a list that is there and stays in the universe gives every change of weight."""
    if not trades or set(trades) - set(tickers):
        return 0.0
    given = np.array([trades.get(ticker, 0.0) for ticker in tickers])
    return _agrees(float(np.abs(given - changes).max()), _TRADES_AGREE)


def _agrees(apart: float, within: tuple[float, float]) -> float:
    full, none = within
    return clip((none - apart) / (none - full))


def proof(label: Label[RebalancingInput], findings: Findings) -> None:
    """Trades lead from the current to the new weights, which are the certified optimum of both stages."""
    recheck = Recheck(label, findings)
    truth, task_input = label.truth, recheck.task_input
    tolerance = task_input["objective_tolerance"]
    if label.built:
        stated = tolerance == OBJECTIVE_TOLERANCE
        recheck.expect(stated, f"objective_tolerance is not {OBJECTIVE_TOLERANCE:g}, by which the truth is made")
    weights = recheck.vector(truth.expected_output["new_weights"])
    recheck.within_limits(weights)
    _recheck_trades(recheck, weights)
    traded = second.turnover(task_input, weights)
    recheck.close(truth.expected_output["turnover"], traded, "turnover")
    problem = problem_from(task_input)
    solved = rebalance(problem, tolerance)
    accepted = solved.target.value + tolerance * abs(solved.target.value)
    value = second.objective(task_input, recheck.covariance, weights)
    recheck.expect(value <= accepted + EXACT, f"its objective {value:.9g} is beyond the accepted {accepted:.9g}")
    recheck.close(traded, solved.turnover, "least turnover", 1e-8)
    recheck.same_weights(weights, solved.weights)
    known = truth.verification
    if recheck.states_value("accepted_value"):
        recheck.close(known["accepted_value"], accepted, "accepted value")
        current = recheck.vector(task_input["current_portfolio"])
        unmoved = second.objective(task_input, recheck.covariance, current)
        trivial = min(unmoved, zero_value(problem, accepted, problem.inverse_variance))
        recheck.trivial_value(trivial, accepted)
        recheck.close(known["least_turnover"], traded, "stated least turnover")
    if label.certificate:
        _recheck_stages(recheck, problem, solved, tolerance)


def _recheck_trades(recheck: Recheck, weights: Floats) -> None:
    current = recheck.vector(recheck.task_input["current_portfolio"])
    listed: dict[str, float] = recheck.label.truth.expected_output["trade_list"]
    trades = recheck.vector({**dict.fromkeys(recheck.tickers, 0.0), **listed})
    missed = np.abs(current + trades - weights)
    for ticker, difference in zip(recheck.tickers, missed.tolist(), strict=True):
        allowed = EXACT if ticker in listed else LEAST_TRADE
        recheck.expect(
            difference <= allowed, f"{ticker}: current weight and trade miss the new weight by {difference:.1e}"
        )


def _recheck_stages(recheck: Recheck, problem: PortfolioProblem, solved: Solved, tolerance: float) -> None:
    """The certificates of both stages; where several portfolios trade as little, the label is the nearest of them."""
    first, stage_2, summary = (
        *(recheck.label.certificate[name] for name in ("stage_1", "stage_2")),
        recheck.label.truth.proof,
    )
    recheck.certificate(problem, Aim(), first, summary["stage_1"], solved.target, unique=False)
    cap = first["objective"] + tolerance * abs(first["objective"])
    proved = recheck.certificate(problem, Aim(Goal.TURNOVER, cap), stage_2, summary, solved.least_trading)
    if not proved and stage_2["programs_solved"] == 1:
        # The nearest is unique by a program of its own.
        difference = float(np.abs(solved.weights - np.array(stage_2["weights"])).max())
        recheck.expect(
            difference <= WEIGHT_TOLERANCE,
            f"is not the nearest of several portfolios of least turnover, by {difference:.1e}",
        )
        recheck.findings.add("ties_broken")


def by_hand(data: Mapping[str, Any]) -> JsonObject:
    """All the way to the rule of thumb, limits and turnover aside."""
    weights, current = rule_of_thumb(data), data["current_portfolio"]
    trades = {name: weights[name] - current.get(name, 0.0) for name in weights}
    return {"trade_list": trades, "new_weights": weights, "turnover": math.fsum(map(abs, trades.values())) / 2}


def trivial(data: Mapping[str, Any]) -> JsonObject:
    """The portfolio left as it is."""
    return {"trade_list": {}, "new_weights": data.get("current_portfolio") or {}, "turnover": 0.0}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_rebal",
    method=METHOD,
    parameters={"ground_truth_source": "certified optimiser, two stages"},
    proved=("accepted_value", "trivial_value", "least_turnover"),
    answer=Rebalancing,
    input=RebalancingInput,
    definitions=definitions,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
    proof=proof,
    ladder=ladders.ladder,
    exploits=exploits.rebalancing,
    by_hand=Naive(("objective", "expected_returns", "covariance_matrix", "current_portfolio"), by_hand),
    heuristic="optimum without correlations within the caps",
    trivial=Naive(("current_portfolio",), trivial),
)
