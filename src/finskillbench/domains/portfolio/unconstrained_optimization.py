"""Unconstrained optimisation: long-only, fully invested weights that optimise one of four objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, permuted
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.portfolio import worth
from finskillbench.domains.portfolio.definitions import (
    METADATA,
    OBJECTIVE_NAME,
    PRECISION,
    SKILL,
    data_read,
    portfolio_conventions,
)
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.examples import optimisation as examples
from finskillbench.domains.portfolio.examples.exploits import uncorrelated
from finskillbench.domains.portfolio.inputs import UnconstrainedInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects
from finskillbench.domains.portfolio.objects.binding import market_fields, month_problem
from finskillbench.domains.portfolio.proofs import Recheck
from finskillbench.engines.holdings import has_dust
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import numbers, parameter

NAME = "unconstrained_optimization"
METHOD = "l2_distance_and_objective"
_LISTS = 12
"""Approved lists tried per objective and month-end."""
_SHARES = (0.65, 1.0)
_DRAWN = {
    Objective.MAX_RETURN: 1 / 20,
    Objective.RISK_PARITY: 1 / 8,
    Objective.MIN_VARIANCE: 3 / 8,
    Objective.MAX_SHARPE: 1,
}
"""Shares of the episodes; the last takes the rest. max_return and risk_parity are trivial or linear."""
_SHORTCUT = 0.45
"""Maximum score of a closed formula under the other two objectives."""


class UnconstrainedOptimization(Answer):
    """Answer: the optimal portfolio."""

    weights: dict[str, float] = Field(
        description="Ticker to portfolio weight, as a fraction of NAV (0.05 is 5 %); >= 0, summing to 1. "
        "A ticker left out has weight 0."
    )


def _build(context: BuildContext, objects: PortfolioObjects) -> list[BuiltTask]:
    """Build tasks over month-ends, objectives and `_LISTS` approved lists that discriminate and differ."""
    count = objects.settings["episodes_per_subtask"]
    tasks: list[BuiltTask] = []
    for objective, share in _DRAWN.items():
        wanted = min(len(tasks) + math.ceil(share * count), count)
        kept: list[Mapping[str, float]] = []
        for variant, month in product(range(_LISTS), permuted(objects.month_ends, context.generator(NAME, objective))):
            if len(tasks) >= wanted:
                break
            task = _task(context, objects, month, objective, variant)
            if task is not None and worth.is_different(weights := task.truth.expected_output["weights"], kept):
                kept.append(weights)
                tasks.append(task)
    return sorted(tasks, key=lambda task: task.episode.task_id)


def _task(
    context: BuildContext, objects: PortfolioObjects, month: MonthEnd, objective: Objective, variant: int
) -> BuiltTask | None:
    rng = context.generator(NAME, month.as_of, objective, variant)
    month = month.of_list(rng, float(rng.uniform(*_SHARES)))
    aversion = float(rng.choice(objects.settings["unconstrained_risk_aversions"]))
    task_input: UnconstrainedInput = {**market_fields(month, objective, aversion), "constraints": {"long_only": True}}
    task_input["conventions"] = portfolio_conventions(task_input)
    problem = month_problem(month, task_input)
    best = optimise(problem)
    if not best.uniqueness.outcome.proved or has_dust(clean(best.weights)):
        return None
    trivial = worth.zero_value(problem, best.value)
    if trivial - best.value < worth.LEAST_SPREAD or _by_formula(problem, best.value, trivial) > _SHORTCUT:
        return None
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{objective}_l{variant}"
    prompt = Prompt(
        f"Build the long-only, fully invested portfolio of {OBJECTIVE_NAME[objective]} over the {len(month.tickers)} "
        f"names of the approved list as of {month.as_of}, from {data_read(task_input)}. The objective is "
        "defined exactly in conventions.",
        f"Submit a JSON object with weights: every ticker's optimal weight as a fraction of NAV. {PRECISION}",
    )
    return BuiltTask(
        Episode(task_id, SKILL, NAME, month.as_of, "easy", task_input, prompt, {"objective": objective, **METADATA}),
        Truth(
            task_id,
            NAME,
            {"weights": month.by_ticker(clean(best.weights))},
            {"optimal_value": best.value, "trivial_value": trivial},
            proof_of(best),
        ),
        certificate_of(best),
    )


def _by_formula(problem: PortfolioProblem, optimal: float, zero: float) -> float:
    """Return the best score of a closed formula; 0 if the answer itself is one."""
    if problem.objective in (Objective.MAX_RETURN, Objective.RISK_PARITY):
        return 0.0
    formulas = examples.cut_short_positions(problem), uncorrelated(problem)
    return max(worth.judge_weights(problem, weights, optimal, zero).value for weights in formulas)


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """l2_distance_and_objective: clip(1 - L2/(4θ)), θ = `weight_l2_threshold`, default 0.05; no weights: 0."""
    del task_input
    expected = numbers(truth.expected_output.get("weights"))
    threshold = parameter(truth.verification, "weight_l2_threshold", 0.05)
    value = worth.weight_score(numbers(answer.get("weights")), expected, threshold)
    return Score(value, {"weights": value})


def _certified(answer: JsonObject, truth: Truth, task_input: UnconstrainedInput) -> Score:
    """Objective gap if limits hold, scaled so that equal weights score 0 and every optimum scores 1."""
    return worth.score_weights(answer, truth, problem_from(task_input))


def _proof(label: Label[UnconstrainedInput], findings: Findings) -> None:
    """Check that the weights are feasible and optimal, and the zero of `certified` against the trivial answer."""
    recheck = Recheck(label, findings)
    weights = recheck.vector(label.truth.expected_output["weights"])
    recheck.within_limits(weights)
    problem = problem_from(label.task_input)
    value = recheck.optimum(problem, weights)
    if recheck.states_value("trivial_value"):
        recheck.trivial_value(worth.zero_value(problem, value), value)


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_uncon",
    input=UnconstrainedInput,
    answer=UnconstrainedOptimization,
    definitions=portfolio_conventions,
    template_of=lambda episode, _: f"{episode.input['objective']} {episode.as_of_date}",
    build=_build,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={"weight_l2_threshold": 0.05, "ground_truth_source": "certified optimiser"},
        proved=("optimal_value", "trivial_value"),
    ),
    baselines=Baselines(
        no_skill=Naive(
            ("objective", "expected_returns", "covariance_matrix"), lambda data: {"weights": worth.rule_of_thumb(data)}
        ),
        trivial=Naive(
            ("expected_returns",), lambda data: {"weights": worth.equal_weights(data.get("expected_returns"))}
        ),
        heuristic="optimum without correlations",
    ),
    examples=Examples(
        graded=examples.graded_examples,
        exploits=exploits.unconstrained_exploits,
        shortcuts=Shortcuts(examples.unconstrained_shortcuts, most=0.4),
    ),
)
