"""Constrained optimisation: the optimum under a tier of constraints, with the agent's own check of each."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, draw_evenly
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
from finskillbench.domains.portfolio.inputs import ConstrainedInput, Constraints
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects, binding
from finskillbench.domains.portfolio.proofs import EXACT, Recheck
from finskillbench.engines.holdings import has_dust
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import check_limits, clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_object, json_equal, numbers, parameter

NAME = "constrained_optimization"
METHOD = "constraint_satisfaction_and_objective"
_DRAWS = 3
_LISTED = {Objective.RISK_PARITY: 0.8}
"""Share of the universe on the approved list; inverse variances hardly change between month-ends."""


class ConstraintSatisfaction(Answer):
    """One boolean for each constraint that the task sets (true: the weights satisfy it)."""

    long_only: bool = Field(description="true if no weight is negative.")
    max_weight: bool = Field(description="true if no single weight exceeds the maximum weight.")
    min_weight: bool | None = Field(
        None, description="true if no weight is below the minimum weight; only if the task sets min_weight."
    )
    sector_limits: bool = Field(description="true if every sector's total weight is within its limit.")
    min_position: bool | None = Field(
        None, description="true if every weight is 0 or at least min_position; only if the task sets min_position."
    )
    min_names: bool | None = Field(
        None, description="true if there are at least the minimum number of holdings; only if the task sets min_names."
    )
    max_names: bool | None = Field(
        None, description="true if there are at most the maximum number of holdings; only if the task sets max_names."
    )
    max_turnover: bool | None = Field(
        None, description="true if one-way turnover is within its limit; only if the task sets max_turnover."
    )
    max_tracking_error: bool | None = Field(
        None, description="true if tracking error is within its limit; only if the task sets max_tracking_error."
    )
    factor_neutrality: bool | None = Field(
        None, description="true if each neutral factor's active exposure is within tolerance; only if required."
    )


class ConstrainedOptimization(Answer):
    """Answer: the optimal portfolio and which constraints it satisfies."""

    weights: dict[str, float] = Field(
        description="Ticker to portfolio weight, as a fraction of NAV (0.05 is 5 %); >= 0 if long-only, "
        "summing to 1. A ticker left out has weight 0."
    )
    constraint_satisfaction: ConstraintSatisfaction = Field(
        description="Constraint name to boolean: true if the submitted weights satisfy it. One key per constraint that "
        "the task sets. Your statement for the record; the limits are measured on the weights themselves."
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """Parameters of one drawn problem."""

    tier: str
    month: MonthEnd
    objective: Objective
    draw: int


def _build(context: BuildContext, objects: PortfolioObjects) -> list[BuiltTask]:
    """Build tasks in which every limit binds and no label repeats, evenly over tiers, objectives and month-ends."""
    kept: list[Mapping[str, float]] = []

    def usable(cell: Cell) -> BuiltTask | None:
        task = _task(context, objects, cell)
        if task is None or not worth.is_different(weights := task.truth.expected_output["weights"], kept):
            return None
        kept.append(weights)
        return task

    cells = [
        Cell(name, month, objective, draw)
        for name in objects.settings["tiers"]
        for month in objects.month_ends
        for objective in Objective
        for draw in range(_DRAWS)
    ]
    count, rng = objects.settings["episodes_per_subtask"], context.generator(NAME, "draw")
    return sorted(draw_evenly(cells, _traits, count, rng, usable), key=lambda task: task.episode.task_id)


def _traits(cell: Cell) -> tuple[Hashable, ...]:
    return cell.tier, cell.objective, cell.objective, (cell.tier, cell.objective), cell.month.as_of


def _task(context: BuildContext, objects: PortfolioObjects, cell: Cell) -> BuiltTask | None:
    """Build the task of a cell; None if a limit does not bind or the task does not discriminate."""
    tier, objective = objects.settings["tiers"][cell.tier], cell.objective
    rng = context.generator(NAME, cell.month.as_of, cell.tier, objective, cell.draw)
    month = cell.month.of_list(rng, _LISTED.get(objective, 1.0))
    task_input: ConstrainedInput = {
        **binding.market_fields(month, objective, tier["risk_aversion"]),
        **binding.mandate_fields(month, binding.sized_limits(tier, month), month.benchmark),
    }
    try:
        mandate = binding.binding_mandate(binding.month_problem(month, task_input), month, tier["min_position"], rng)
        if mandate is None:
            return None
        changed, current = mandate
        limits: Constraints = {**task_input["constraints"], **changed}
        task_input = {**task_input, **binding.mandate_fields(month, limits, current)}
        task_input["conventions"] = portfolio_conventions(task_input)
        problem = binding.month_problem(month, task_input)
        best = optimise(problem)
        weights = clean(best.weights)
        if not best.uniqueness.outcome.proved or has_dust(weights) or binding.loose(problem, weights):
            return None
        trivial = worth.zero_value(problem, best.value)
    except (InfeasibleError, UndecidedError):
        return None
    if not worth.discriminates(problem, best.value, trivial) or _pays_without_work(problem, best.value, trivial):
        return None
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{cell.tier}_{objective}_{cell.draw}"
    flags = {name: True for name in check_limits(problem, weights) if name != "fully_invested"}
    prompt = Prompt(
        f"Build the fully invested portfolio of {OBJECTIVE_NAME[objective]} as of {month.as_of} that keeps every limit "
        f"in constraints. Objective and limits read {data_read(task_input)} of the task data; conventions defines each "
        "exactly. Check each limit on your final weights.",
        "Submit a JSON object with weights (ticker to fraction of NAV) and constraint_satisfaction (one boolean for "
        f"each limit that is set). {PRECISION}",
    )
    return BuiltTask(
        Episode(task_id, SKILL, NAME, month.as_of, cell.tier, task_input, prompt, {"objective": objective, **METADATA}),
        Truth(
            task_id,
            NAME,
            {"weights": month.by_ticker(weights), "constraint_satisfaction": flags},
            {"optimal_value": best.value, "trivial_value": trivial},
            proof_of(best),
        ),
        certificate_of(best),
    )


def _pays_without_work(problem: PortfolioProblem, optimal: float, zero: float) -> bool:
    """Return True if equal weights, the benchmark or the current portfolio score above 0."""
    known = (np.full(problem.size, 1.0 / problem.size), problem.benchmark, problem.current)
    return any(
        weights is not None and worth.judge_weights(problem, weights, optimal, zero).value > 0 for weights in known
    )


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """constraint_satisfaction_and_objective: every expected flag present and equal, else 0; then the weights.

    clip(1 - L2/(4θ)), θ default 0.05. Extra flags are ignored; an empty expected map leaves L2 alone.
    """
    del task_input
    flags = as_object(answer.get("constraint_satisfaction"))
    wanted = as_object(truth.expected_output.get("constraint_satisfaction"))
    wrong = sorted(key for key in wanted if key not in flags or not json_equal(flags[key], wanted[key]))
    expected = numbers(truth.expected_output.get("weights"))
    threshold = parameter(truth.verification, "weight_l2_threshold", 0.05)
    weights = worth.weight_score(numbers(answer.get("weights")), expected, threshold)
    return Score(0.0 if wrong else weights, {"weights": weights, "wrong_flags": wrong})


def _certified(answer: JsonObject, truth: Truth, task_input: ConstrainedInput) -> Score:
    """Objective gap of the weights, minus the cost of broken limits. Flags do not count: correct ones are all true."""
    return worth.score_weights(answer, truth, problem_from(task_input))


def _proof(label: Label[ConstrainedInput], findings: Findings) -> None:
    """Check the weights as in unconstrained optimisation, and one flag per limit that is set."""
    recheck = Recheck(label, findings)
    weights = recheck.vector(label.truth.expected_output["weights"])
    over = recheck.within_limits(weights)
    over.pop("fully_invested")
    flags = label.truth.expected_output["constraint_satisfaction"]
    recheck.expect(set(flags) == set(over), "its flags are not one for each limit that is set")
    for name in over.keys() & set(flags):
        recheck.expect(flags[name] is (over[name] <= EXACT), f"its flag {name} is {flags[name]}")
    problem = problem_from(label.task_input)
    value = recheck.optimum(problem, weights)
    if recheck.states_value("trivial_value"):
        recheck.trivial_value(worth.zero_value(problem, value), value)


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    limits = data["constraints"]
    settings = ("neutral_factors", "neutrality_tolerance")
    flags = {name: True for name, limit in limits.items() if limit and name not in settings}
    weights = _capped(data["benchmark_weights"], limits.get("max_weight") or 1.0)
    return {"weights": weights, "constraint_satisfaction": flags}


def _capped(weights: Mapping[str, float], cap: float) -> dict[str, float]:
    """Cut weights to the cap and spread the excess in proportion, until none is above."""
    result = dict(weights)
    for _ in range(len(result)):
        excess = math.fsum(max(0.0, weight - cap) for weight in result.values())
        below_cap = math.fsum(weight for weight in result.values() if weight < cap)
        if excess <= 1e-12 or below_cap <= 0:
            break
        result = {name: cap if weight >= cap else weight * (1 + excess / below_cap) for name, weight in result.items()}
    return result


def _trivial(data: Mapping[str, Any]) -> JsonObject:
    limits = as_object(data.get("constraints"))
    limits_set = {name for name, limit in limits.items() if limit is not None and limit is not False}
    flags = {name: True for name in ConstraintSatisfaction.model_fields if name in limits_set}
    return {"weights": worth.equal_weights(data.get("expected_returns")), "constraint_satisfaction": flags}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_con",
    input=ConstrainedInput,
    answer=ConstrainedOptimization,
    definitions=portfolio_conventions,
    template_of=lambda episode, _: " ".join([episode.input["objective"], *sorted(episode.input["constraints"])]),
    build=_build,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={
            "weight_l2_threshold": 0.05,
            "all_constraints_must_satisfy": True,
            "ground_truth_source": "certified optimiser",
        },
        proved=("optimal_value", "trivial_value"),
    ),
    baselines=Baselines(
        no_skill=Naive(("constraints", "benchmark_weights"), _no_skill_baseline),
        trivial=Naive(("expected_returns", "constraints"), _trivial),
        heuristic="optimum without correlations within the caps",
    ),
    examples=Examples(
        graded=examples.graded_examples,
        exploits=exploits.constrained_exploits,
        shortcuts=Shortcuts(examples.constrained_shortcuts),
    ),
)
