"""Infeasibility detection: can these constraints hold together at all? Never part of the headline."""

from __future__ import annotations

from pydantic import Field

from finskillbench.engines.portfolio.optimise import InfeasibleError
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InternalError
from finskillbench.scoring.measures import ramp
from finskillbench.scoring.values import boolean, number
from finskillbench.subtasks.base import Answer, Subtask
from finskillbench.subtasks.building import BuildContext, Task
from finskillbench.subtasks.constrained_optimization import Case, pool
from finskillbench.subtasks.portfolio import METADATA, SKILL, conventions
from finskillbench.subtasks.proofs import certificate_of, farkas_of, proof_of

NAME = "infeasibility_detection"
METHOD = "infeasibility_detection"
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


def build(context: BuildContext) -> list[Task]:
    """Half feasible, half infeasible cases of the hard tier, none inside the grey band around the turnover limit."""
    hard = [case for case in pool(context) if case.tier.legacy["infeasible"] is not None]
    rng = context.generator(NAME, "draw")
    half = context.catalog["episodes_per_subtask"] // 2
    chosen = []
    for infeasible in (False, True):
        members = [case for case in hard if isinstance(case.outcome, InfeasibleError) == infeasible]
        chosen += [members[index] for index in rng.permutation(len(members))[:half]]
    # Shuffled and numbered, so that neither the order nor the name of an episode tells its verdict.
    return [_task(chosen[index], number) for number, index in enumerate(rng.permutation(len(chosen)))]


def _task(case: Case, index: int) -> Task:
    month, limits = case.month, case.tier.constraints
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{index:02d}"
    keep = ("constraints", "covariance_matrix", "benchmark_weights", "current_portfolio", "sector_mapping")
    task_input = {field: case.task_input[field] for field in (*keep, "factor_exposures")}
    names = ("long_only", "sector_limits", "names", "max_turnover", "max_tracking_error", "factor_neutrality")
    task_input["conventions"] = conventions(None, *names)
    feasible = not isinstance(case.outcome, InfeasibleError)
    prompt = Prompt(
        f"As of {month.as_of}, decide whether any fully invested portfolio keeps every limit in constraints at once, "
        f"given the current portfolio and a one-way turnover limit of {limits['max_turnover']:.0%}. "
        "Find the least one-way turnover from the current portfolio to a portfolio that keeps all the other limits: "
        "it decides the question. conventions defines every limit exactly.",
        "Submit a JSON object with feasible (boolean) and minimum_turnover (fraction of NAV).",
    )
    least = case.least_turnover
    if least is None:
        raise InternalError(f"{case.name}: a tier without a turnover limit cannot be decided by the least turnover")
    decision = proof_of(least)
    if isinstance(case.outcome, InfeasibleError):
        refutation = farkas_of(case.outcome)
        proof = decision | {"kind": "infeasible", "farkas_margin": refutation["margin"]}
        certificate = {"least_turnover": certificate_of(least), "farkas": refutation}
    else:
        proof = decision | {"kind": "feasible"}
        certificate = {
            "least_turnover": certificate_of(least),
            "witness": case.outcome.weights.tolist(),
        }
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
    skill=SKILL,
    prefix="pc_infeas",
    method=METHOD,
    answer=InfeasibilityDetection,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    headline=False,
    build=build,
)
