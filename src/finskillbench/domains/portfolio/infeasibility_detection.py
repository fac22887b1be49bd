"""Infeasibility detection: can these constraints hold together at all? Never part of the headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, MonthEnd, Task
from finskillbench.domains.portfolio.legacy import legacy_portfolio
from finskillbench.domains.portfolio.tiers import (
    METADATA,
    PRECISION,
    SKILL,
    Tier,
    constraint_fields,
    conventions,
    covariance_field,
    month_problem,
)
from finskillbench.domains.proofs import certificate_of, farkas_of, proof_of
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import SourceError
from finskillbench.scoring.measures import ramp
from finskillbench.scoring.values import boolean, number

NAME = "infeasibility_detection"
METHOD = "infeasibility_detection"
_ATTEMPTS = 40
"""Current portfolios drawn for one case before the build gives up."""
_CLOSE = 0.003
"""How near a drawn portfolio's least turnover must come to the one wanted."""
TURNOVER_TOLERANCE = 0.02
"""Relative error of the least turnover at which the score reaches 0; within a twentieth of it the answer is right."""


class InfeasibilityDetection(Answer):
    """Answer: the verdict, and the quantity that decides it."""

    feasible: bool = Field(description="true if some portfolio satisfies every constraint of the task at once.")
    minimum_turnover: float = Field(
        description="Least one-way turnover (half the sum of absolute changes of weight, a fraction of NAV, >= 0) "
        "from the current portfolio to any portfolio that meets all the other constraints."
    )


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """infeasibility_detection: 1 if the feasibility verdicts agree, else 0."""
    del task_input
    given, wanted = boolean(answer.get("feasible")), boolean(truth.expected_output.get("feasible"))
    value = float(given is not None and given == wanted)
    return Score(value, {"feasible": value})


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """The verdict gates; its evidence, the least turnover, earns the score by a ramp of 2 % relative error.

    A bare verdict is a coin toss, so it earns nothing: the number that decides it must be right.
    """
    verdict = paper(answer, truth, task_input).value
    expected = truth.expected_output["minimum_turnover"]
    given = number(answer.get("minimum_turnover"))
    evidence = ramp(given, expected, tolerance=TURNOVER_TOLERANCE)
    full = given is not None and abs(given - expected) <= TURNOVER_TOLERANCE * expected / 20
    return Score(verdict * (1.0 if full else evidence), {"feasible": verdict, "minimum_turnover": evidence})


@dataclass(frozen=True, slots=True)
class Case:
    """A mandate with a current portfolio, its certified least turnover, and the proof that it cannot be kept, if so."""

    month: MonthEnd
    tier: Tier
    task_input: Mapping[str, Any]
    least_turnover: Certified
    refutation: InfeasibleError | None


def build(context: BuildContext, objects: object) -> list[Task]:
    """Half feasible, half infeasible cases of the hard tier, none inside the grey band around the turnover limit.

    Current portfolios are drawn for this subtask alone, close to the limit on both sides of it: no other episode gives
    a verdict away, and neither do the distance to the benchmark, the order or the name of an episode.
    """
    count = context.catalog["episodes_per_subtask"]
    verdicts = context.generator(NAME, "verdicts").permutation(count) < count // 2
    months = context.month_ends
    return [_task(_case(context, months[i % len(months)], i, bool(verdicts[i])), i) for i in range(count)]


def _case(context: BuildContext, month: MonthEnd, index: int, too_far: bool) -> Case:
    """Draw current portfolios until one lies clear of the grey band on the wanted side."""
    settings = context.catalog["infeasibility"]
    tier = Tier.of(context, settings["tier"], month)
    limit = tier.constraints["max_turnover"]
    low, high = settings["beyond" if too_far else "within"]
    for attempt in range(_ATTEMPTS):
        rng = context.generator(NAME, month.as_of, index, attempt)
        try:
            current, least = legacy_portfolio(month, tier, limit + float(rng.uniform(low, high)), rng, _CLOSE)
        except (InfeasibleError, UndecidedError):
            continue
        if least is None or abs(least.value - limit) < context.catalog["grey_band"] or (least.value > limit) != too_far:
            continue
        task_input = {"covariance_matrix": covariance_field(month)} | constraint_fields(
            month, tier.constraints, current
        )
        refutation = _refuted(month_problem(month, task_input)) if too_far else None
        if too_far == (refutation is not None):
            return Case(month, tier, task_input, least, refutation)
    raise SourceError(
        f"panels at {month.as_of}",
        f"no current portfolio comes near the turnover limit of the {tier.name} tier",
        remedy="loosen the tier in catalog/portfolio.json or use a larger universe",
    )


def _refuted(problem: PortfolioProblem) -> InfeasibleError | None:
    """The checked ray that no portfolio keeps the limits, or None where a single ray does not prove it."""
    try:
        optimise(problem)
    except InfeasibleError as error:
        return error if error.complete else None
    except UndecidedError:
        return None
    return None


def _task(case: Case, index: int) -> Task:
    month, limits, least = case.month, case.tier.constraints, case.least_turnover
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{index:02d}"
    names = ("long_only", "sector_limits", "names", "max_turnover", "max_tracking_error", "factor_neutrality")
    task_input = dict(case.task_input) | {"conventions": conventions(None, *names)}
    feasible = case.refutation is None
    prompt = Prompt(
        f"As of {month.as_of}, decide whether any fully invested portfolio keeps every limit in constraints at once, "
        f"given the current portfolio and a one-way turnover limit of {limits['max_turnover']:.0%}. "
        "Find the least one-way turnover from the current portfolio to a portfolio that keeps all the other limits: "
        "it decides the question. conventions defines every limit exactly.",
        f"Submit a JSON object with feasible (boolean) and minimum_turnover (fraction of NAV). {PRECISION}",
    )
    proof, certificate = proof_of(least), {"least_turnover": certificate_of(least)}
    if case.refutation is None:
        proof |= {"kind": "feasible"}
        certificate["witness"] = least.weights.tolist()
    else:
        certificate["farkas"] = farkas_of(case.refutation)
        proof |= {"kind": "infeasible", "farkas_margin": certificate["farkas"]["margin"]}
    return Task(
        Episode(task_id, SKILL, NAME, month.as_of, case.tier.name, task_input, prompt, dict(METADATA)),
        Truth(
            task_id,
            NAME,
            {"feasible": feasible, "minimum_turnover": least.value},
            {"method": METHOD, "ground_truth_source": "certified optimiser"},
            proof,
        ),
        certificate,
    )


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_infeas",
    method=METHOD,
    answer=InfeasibilityDetection,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    headline=False,
    build=build,
)
