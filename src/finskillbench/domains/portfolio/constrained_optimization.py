"""Constrained optimisation: the optimum under a tier of constraints, with the agent's own check of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, MonthEnd, Task
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio.legacy import legacy_portfolio
from finskillbench.domains.portfolio.merit import (
    LEAST_SPREAD,
    agreement,
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
    constraint_fields,
    conventions,
    market_fields,
    month_problem,
)
from finskillbench.domains.portfolio.weights import weight_score
from finskillbench.domains.proofs import certificate_of, proof_of
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandate import problem_from
from finskillbench.engines.portfolio.measures import check_limits, clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import SourceError
from finskillbench.scoring.values import json_equal, mapping, numbers, parameter

NAME = "constrained_optimization"
METHOD = "constraint_satisfaction_and_objective"
_ATTEMPTS = 25
"""Legacy portfolios drawn for one case before the build gives up."""
_CONVENTION_ORDER = ("long_only", "sector_limits", "names", "max_turnover", "max_tracking_error", "factor_neutrality")


class ConstraintSatisfaction(Answer):
    """One boolean for each constraint that the task sets (true: the weights satisfy it)."""

    long_only: bool = Field(description="true if no weight is negative.")
    max_weight: bool = Field(description="true if no single weight exceeds the maximum weight.")
    min_weight: bool | None = Field(
        None, description="true if no weight is below the minimum weight; only if the task sets min_weight."
    )
    sector_limits: bool = Field(description="true if every sector's total weight is within its limit.")
    min_names: bool = Field(description="true if there are at least the minimum number of holdings.")
    max_names: bool = Field(description="true if there are at most the maximum number of holdings.")
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
        description="Constraint name to boolean: true if the submitted weights satisfy it. "
        "One key per constraint that the task sets."
    )


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """constraint_satisfaction_and_objective: every expected flag present and equal, else 0; then the weights.

    Weights as in unconstrained optimisation: clip(1 - L2/(4θ)), θ default 0.05. Extra flags are ignored; an empty
    expected map leaves L2 alone.
    """
    del task_input
    flags = mapping(answer.get("constraint_satisfaction"))
    wanted = mapping(truth.expected_output.get("constraint_satisfaction"))
    wrong = sorted(key for key in wanted if key not in flags or not json_equal(flags[key], wanted[key]))
    expected = numbers(truth.expected_output.get("weights"))
    threshold = parameter(truth.verification, "weight_l2_threshold", 0.05)
    weights = weight_score(numbers(answer.get("weights")), expected, threshold)
    return Score(0.0 if wrong else weights, {"weights": weights, "wrong_flags": wrong})


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Feasibility gates the objective gap; the share of constraint flags that agree with the weights multiplies it.

    The flags are checked on the submitted weights themselves; a flag left out disagrees.
    """
    problem = problem_from(task_input)
    weights = submitted_weights(numbers(answer.get("weights")), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"})
    known = truth.verification
    merit = judge_weights(problem, weights, known["optimal_value"], known["trivial_value"])
    expected = tuple(mapping(truth.expected_output.get("constraint_satisfaction")))
    flags = agreement(problem, weights, mapping(answer.get("constraint_satisfaction")), expected)
    return Score(merit.value * flags, {**merit.details, "weights": merit.value, "flags": flags})


@dataclass(frozen=True, slots=True)
class Case:
    """One problem of the pool: its input, the least turnover that its limit has to allow, its optimum or refutation."""

    month: MonthEnd
    tier: Tier
    task_input: Mapping[str, Any]
    problem: PortfolioProblem
    least_turnover: Certified | None
    outcome: Certified | InfeasibleError

    @property
    def name(self) -> str:
        """Date, tier and objective."""
        return f"{self.month.as_of}_{self.tier.name}_{self.problem.objective}"


def pool(context: BuildContext) -> list[Case]:
    """The 144 problems, 12 month-ends x 3 tiers x 4 objectives, solved."""
    cases = []
    for tier_name in context.catalog["tiers"]:
        slots = [(month, objective) for month in context.month_ends for objective in Objective]
        far = round(context.catalog["tiers"][tier_name]["legacy"]["infeasible_share"] * len(slots))
        beyond = set(context.generator(NAME, tier_name, "far").permutation(len(slots))[:far].tolist())
        for index, (month, objective) in enumerate(slots):
            tier = Tier.of(context, tier_name, month)
            cases.append(_case(context, month, tier, objective, too_far=index in beyond))
    return cases


def _case(context: BuildContext, month: MonthEnd, tier: Tier, objective: Objective, *, too_far: bool) -> Case:
    """Draw a legacy portfolio until the case lies clear of the grey band around the turnover limit."""
    low, high = tier.legacy["infeasible" if too_far else "least_turnover"]
    for attempt in range(_ATTEMPTS):
        rng = context.generator(NAME, month.as_of, tier.name, objective, attempt)
        try:
            current, least = legacy_portfolio(month, tier, float(rng.uniform(low, high)), rng)
        except (InfeasibleError, UndecidedError):
            continue
        if least is not None and abs(least.value - tier.constraints["max_turnover"]) < context.catalog["grey_band"]:
            continue
        task_input = case_input(month, tier, objective, current)
        problem = month_problem(month, task_input)
        try:
            outcome = optimise(problem)
        except InfeasibleError as error:
            if not error.complete:
                continue
            outcome = error
        except UndecidedError:
            continue
        if isinstance(outcome, InfeasibleError) == too_far:
            return Case(month, tier, task_input, problem, least, outcome)
    raise SourceError(
        f"panels at {month.as_of}",
        f"no legacy portfolio makes the {tier.name} tier {'infeasible' if too_far else 'feasible'}",
        remedy="loosen the tier in catalog/portfolio.json or use a larger universe",
    )


def case_input(month: MonthEnd, tier: Tier, objective: Objective, current: Floats) -> dict[str, Any]:
    """The input of one problem as the agent gets it."""
    set_limits = [name for name in _CONVENTION_ORDER if _is_set(tier.constraints, name)]
    return (
        market_fields(month, objective, tier.risk_aversion)
        | constraint_fields(month, tier.constraints, current)
        | {"conventions": conventions(objective, *set_limits)}
    )


def _is_set(constraints: Mapping[str, Any], name: str) -> bool:
    return name == "names" or bool(constraints[name])


def build(context: BuildContext, objects: object) -> list[Task]:
    """Feasible cases of the pool whose optimum is unique and discriminates, drawn by tier and objective."""
    tasks = [task for case in pool(context) if (task := _task(case)) is not None]
    count = context.catalog["episodes_per_subtask"]
    rng = context.generator(NAME, "draw")
    return stratified(tasks, lambda task: (task.episode.difficulty, task.episode.input["objective"]), count, rng)


def _task(case: Case) -> Task | None:
    best = case.outcome
    if isinstance(best, InfeasibleError) or not best.uniqueness.outcome.proved:
        return None
    try:
        trivial = trivial_value(case.problem)
    except UndecidedError:
        return None
    if trivial - best.value < LEAST_SPREAD:
        return None
    month, tier, objective = case.month, case.tier, case.problem.objective
    task_id = f"{SUBTASK.prefix}_{case.name}"
    weights = clean(best.weights)
    flags = {name: True for name in check_limits(case.problem, weights) if name != "fully_invested"}
    prompt = Prompt(
        f"Build the fully invested portfolio of {OBJECTIVE_NAME[objective]} as of {month.as_of} that keeps every limit "
        f"in constraints ({_summary(tier.constraints)}). Benchmark weights, the current portfolio, sectors and factor "
        "exposures are in the task data; conventions defines the objective and every limit exactly. "
        "Check each limit on your final weights.",
        "Submit a JSON object with weights (ticker to fraction of NAV) and constraint_satisfaction (one boolean for "
        f"each limit that is set). {PRECISION}",
    )
    return Task(
        Episode(
            task_id, SKILL, NAME, month.as_of, tier.name, case.task_input, prompt, {"objective": objective, **METADATA}
        ),
        Truth(
            task_id,
            NAME,
            {"weights": month.by_ticker(weights), "constraint_satisfaction": flags},
            {
                "method": METHOD,
                "weight_l2_threshold": 0.05,
                "all_constraints_must_satisfy": True,
                "optimal_value": best.value,
                "trivial_value": trivial,
                "ground_truth_source": "certified optimiser",
            },
            proof_of(best),
        ),
        certificate_of(best),
    )


def _summary(limits: Mapping[str, Any]) -> str:
    """The limits in words, rendered from the values that the truth uses."""
    cap = next(iter(limits["sector_limits"].values()))
    parts = [
        "long-only",
        f"at most {limits['max_weight']:.1%} a name",
        f"at most {cap:.0%} a sector",
        f"{limits['min_names']} to {limits['max_names']} holdings",
    ]
    if limits["max_turnover"] is not None:
        parts.append(f"one-way turnover at most {limits['max_turnover']:.0%}")
    if limits["max_tracking_error"] is not None:
        parts.append(f"tracking error at most {limits['max_tracking_error']:.1%} a year")
    if limits["factor_neutrality"]:
        parts.append(f"neutral on {', '.join(limits['neutral_factors'])}")
    return "; ".join(parts)


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_con",
    method=METHOD,
    answer=ConstrainedOptimization,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
)
