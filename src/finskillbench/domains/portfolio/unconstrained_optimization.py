"""Unconstrained optimisation: long-only, fully invested weights that optimise one of four objectives."""

from __future__ import annotations

from pydantic import Field

from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, MonthEnd, Task
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio.merit import LEAST_SPREAD, judge_weights, submitted_weights, trivial_value
from finskillbench.domains.portfolio.tiers import (
    METADATA,
    OBJECTIVE_NAME,
    PRECISION,
    SKILL,
    conventions,
    market_fields,
    month_problem,
)
from finskillbench.domains.portfolio.weights import weight_score
from finskillbench.domains.proofs import certificate_of, proof_of
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.values import numbers, parameter

NAME = "unconstrained_optimization"
METHOD = "l2_distance_and_objective"


class UnconstrainedOptimization(Answer):
    """Answer: the optimal portfolio."""

    weights: dict[str, float] = Field(
        description="Ticker to portfolio weight, as a fraction of NAV (0.05 is 5 %); >= 0, summing to 1. "
        "A ticker left out has weight 0."
    )


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """l2_distance_and_objective: clip(1 - L2/(4θ)), θ = `weight_l2_threshold`, default 0.05; no weights: 0."""
    del task_input
    expected = numbers(truth.expected_output.get("weights"))
    threshold = parameter(truth.verification, "weight_l2_threshold", 0.05)
    value = weight_score(numbers(answer.get("weights")), expected, threshold)
    return Score(value, {"weights": value})


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Feasibility gates the objective gap, scaled so that equal weights score 0; every optimal answer scores 1."""
    problem = problem_from(task_input)
    weights = submitted_weights(numbers(answer.get("weights")), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"})
    known = truth.verification
    return judge_weights(problem, weights, known["optimal_value"], known["trivial_value"])


def build(context: BuildContext, objects: object) -> list[Task]:
    """48 problems, 12 month-ends x 4 objectives; those that are unique and discriminate are drawn by objective."""
    pool = [
        task for month in context.month_ends for objective in Objective if (task := _task(context, month, objective))
    ]
    rng = context.generator(NAME, "draw")
    count = context.catalog["episodes_per_subtask"]
    return stratified(pool, lambda task: task.episode.input["objective"], count, rng)


def _task(context: BuildContext, month: MonthEnd, objective: Objective) -> Task | None:
    aversion = context.catalog["unconstrained_risk_aversion"]
    task_input = market_fields(month, objective, aversion) | {
        "constraints": {"long_only": True},
        "conventions": conventions(objective, "long_only"),
    }
    problem = month_problem(month, task_input)
    best = optimise(problem)
    trivial = trivial_value(problem)
    if not best.uniqueness.outcome.proved or trivial - best.value < LEAST_SPREAD:
        return None
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{objective}"
    prompt = Prompt(
        f"Build the long-only, fully invested portfolio of {OBJECTIVE_NAME[objective]} over the {len(month.tickers)} "
        f"names of the universe, from the expected returns and the covariance matrix as of {month.as_of}. "
        "The objective is defined exactly in conventions.",
        f"Submit a JSON object with weights: every ticker's optimal weight as a fraction of NAV. {PRECISION}",
    )
    return Task(
        Episode(task_id, SKILL, NAME, month.as_of, "easy", task_input, prompt, {"objective": objective, **METADATA}),
        Truth(
            task_id,
            NAME,
            {"weights": month.by_ticker(clean(best.weights))},
            {
                "method": METHOD,
                "weight_l2_threshold": 0.05,
                "optimal_value": best.value,
                "trivial_value": trivial,
                "ground_truth_source": "certified optimiser",
            },
            proof_of(best),
        ),
        certificate_of(best),
    )


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_uncon",
    method=METHOD,
    answer=UnconstrainedOptimization,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
)
