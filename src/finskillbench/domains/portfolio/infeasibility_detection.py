"""Infeasibility detection: can these constraints hold together at all? Never part of the headline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Label, Naive, Subtask
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.checks.proofs import certificate_of, farkas_of, proof_of
from finskillbench.domains.portfolio import second
from finskillbench.domains.portfolio.audits import exploits
from finskillbench.domains.portfolio.audits.ladders import infeasibility as ladders
from finskillbench.domains.portfolio.definitions import EXACT_LIMITS, METADATA, PRECISION, SKILL, conventions
from finskillbench.domains.portfolio.inputs import Constraints, InfeasibilityInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects, Tier
from finskillbench.domains.portfolio.objects.legacy import legacy_portfolio, of_one_style
from finskillbench.domains.portfolio.objects.settings import InfeasibilitySettings
from finskillbench.domains.portfolio.objects.tiers import mandate_fields, month_problem
from finskillbench.domains.portfolio.proofs import EXACT, Recheck
from finskillbench.engines.optimisation.certificate import prove_infeasible
from finskillbench.engines.optimisation.certified import ACCEPTED_VIOLATION, Certified, InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.formulation import Aim, Goal, formulate
from finskillbench.engines.portfolio.mandates.feasibility import least_turnover, shifted
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InternalError, SourceError
from finskillbench.findings import Findings
from finskillbench.scoring.measures import closeness
from finskillbench.scoring.values import boolean, number

NAME = "infeasibility_detection"
METHOD = "infeasibility_detection"
_ATTEMPTS = 480
"""Mandates with current portfolios drawn for one case before the build gives up; a draw takes 10 ms."""
_ATTEMPTS_A_MONTH = 40
_CLOSE = 0.003
"""How near a drawn portfolio's least turnover must come to the one wanted."""
_LIMIT_STEPS = 200
"""Turnover limits are written in halves of a percent."""
_BY_CAPS = 0.7
"""Share of the least turnover that the caps alone may account for: tracking error and factors have to matter."""
_EVIDENCE = {"full": 1e-3, "full_floor": 5e-4, "zero": 0.05, "zero_floor": 1e-3}
"""Error of the least turnover that costs nothing, a tenth of a percent or the rounding to three decimals of a fraction
of NAV; and the one from which the number is no evidence, a twentieth."""
AMBIGUITY = FEASIBILITY_TOLERANCE
"""No verdict changes when every limit, that on turnover included, is wider or narrower by so much."""


class InfeasibilityDetection(Answer):
    """Answer: the verdict, and the quantity that decides it."""

    feasible: bool = Field(description="true if some portfolio satisfies every constraint of the task at once.")
    minimum_turnover: float = Field(
        description="Least one-way turnover (half the sum of absolute changes of weight, a fraction of NAV, >= 0) "
        "from the current portfolio to any portfolio that meets all the other constraints."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A mandate with a current portfolio, its certified least turnover, and the proof that it cannot be kept, if so."""

    month: MonthEnd
    tier: Tier
    task_input: InfeasibilityInput
    least_turnover: Certified
    refutation: dict[str, Any] | None


def definitions(task_input: JsonObject) -> dict[str, str]:
    """What an input of this subtask states; its limits are exact, since no portfolio is submitted."""
    return conventions(task_input) | {"tolerance": EXACT_LIMITS}


def build(context: BuildContext, objects: PortfolioObjects) -> list[Task]:
    """Half feasible, half infeasible cases, none inside the grey band around the turnover limit.

    Mandates and current portfolios are drawn for this subtask alone and alike for both verdicts; the turnover limit
    alone is then set above or below the least turnover. So no other episode gives a verdict away, and neither do the
    distance to the benchmark, the order or the name of an episode. Least turnovers, and the gaps between them and the
    limits, are each spread evenly over their ranges, so that no constant and no share of the limit is near many.
    """
    count = objects.settings["episodes_per_subtask"]
    order = context.generator(NAME, "verdicts").permutation(count).tolist()
    leasts = context.generator(NAME, "least turnovers").permutation(count).tolist()
    half = max(count // 2, 1)
    return [
        _task(_case(context, objects, i, (leasts[i] / count, place % half / half), too_far=place < half), i)
        for i, place in enumerate(order)
    ]


def _case(
    context: BuildContext, objects: PortfolioObjects, index: int, places: tuple[float, float], *, too_far: bool
) -> Case:
    """Draw mandates until one lies clear of the grey band on the wanted side, whatever the tolerance.

    `places` in [0, 1) say where in their ranges the least turnover and the gap between it and the limit are wanted.
    """
    settings, months = objects.settings["infeasibility"], objects.month_ends
    own = index % len(months)
    others = context.generator(NAME, "months", index).permutation(len(months)).tolist()
    order = [own, *(other for other in others if other != own)]
    (least_low, least_high), (gap_low, gap_high) = settings["least_turnover"], settings["gap"]
    for attempt in range(_ATTEMPTS):
        month = months[order[attempt // _ATTEMPTS_A_MONTH % len(months)]]
        rng = context.generator(NAME, month.as_of, index, attempt)
        tier = _varied(objects.tier(settings["tier"], month), month, settings, rng)
        # A universe may not reach a place in the ranges; then others are taken.
        at_least, at_gap = places if attempt < _ATTEMPTS // 2 else rng.uniform(size=2).tolist()
        wanted = least_low * (least_high / least_low) ** at_least + float(rng.uniform(-_CLOSE, _CLOSE))
        try:
            current, least = legacy_portfolio(month, tier, wanted, of_one_style(month, tier.constraints, rng), _CLOSE)
        except (InfeasibleError, UndecidedError):
            continue
        if least is None:
            raise InternalError(f"infeasibility detection needs a turnover limit; the {tier.name} tier sets none")
        gap = 1 + gap_low + (gap_high - gap_low) * at_gap
        limit = round((least.value / gap if too_far else least.value * gap) * _LIMIT_STEPS) / _LIMIT_STEPS
        limited = replace(tier, constraints={**tier.constraints, "max_turnover": limit})
        case = _judged(objects, month, limited, current, least)
        if case is not None and (case.refutation is not None) is too_far:
            return case
    raise SourceError(
        "panels",
        "at no month-end a current portfolio comes near the turnovers that infeasibility detection asks for",
        remedy="use a larger universe",
    )


def _varied(tier: Tier, month: MonthEnd, settings: InfeasibilitySettings, rng: np.random.Generator) -> Tier:
    """The tier with wider sector caps, fewer neutral factors and another limit on tracking error."""
    limits = tier.constraints
    wider = float(rng.uniform(*settings["sector_room"]))
    factors = limits.get("neutral_factors") or []
    order: list[int] = rng.permutation(len(factors)).tolist()
    kept = order[: int(rng.integers(1, max(len(factors), 1) + 1))]
    varied: Constraints = {
        **limits,
        "sector_limits": {name: round(cap + wider, 2) for name, cap in (limits.get("sector_limits") or {}).items()},
        "max_tracking_error": math.ceil(1000 * float(rng.uniform(*settings["tracking_error"]))) / 1000,
        "neutral_factors": [factors[place] for place in sorted(kept)],
    }
    return replace(tier, constraints=varied)


def _judged(objects: PortfolioObjects, month: MonthEnd, tier: Tier, current: Floats, least: Certified) -> Case | None:
    """The case of a mandate and a current portfolio; None where it lies in the grey band or is told by the caps."""
    limit = tier.max_turnover or 0.0
    if abs(least.value - limit) < objects.settings["grey_band"]:
        return None
    task_input: InfeasibilityInput = {
        "covariance_matrix": month.covariance_table,
        **mandate_fields(month, tier.constraints, current),
    }
    task_input["conventions"] = definitions(task_input)
    problem, feasible = month_problem(month, task_input), least.value <= limit
    if _by_caps(problem) > _BY_CAPS * least.value or not decided(problem, feasible=feasible):
        return None
    refutation = None if feasible else _refuted(problem)
    if feasible or refutation is not None:
        return Case(month, tier, task_input, least, refutation)
    return None


def _by_caps(problem: PortfolioProblem) -> float:
    """Least turnover into the caps alone, which is found by hand."""
    limits = replace(problem.limits, max_tracking_error=None, neutral_factors=(), min_names=None, max_names=None)
    return least_turnover(replace(problem, limits=limits, exposures=None)).value


def decided(problem: PortfolioProblem, *, feasible: bool) -> bool:
    """Whether the verdict stays the same with every limit shifted against it by `AMBIGUITY`."""
    shift = -AMBIGUITY if feasible else AMBIGUITY
    limit = problem.limits.max_turnover
    if limit is None:
        return feasible
    try:
        least = least_turnover(replace(problem, limits=shifted(problem.limits, shift))).value
    except InfeasibleError:
        least = np.inf
    except UndecidedError:
        return False
    return (least <= limit + shift) is feasible


def _refuted(problem: PortfolioProblem) -> dict[str, Any] | None:
    """The certificate that no portfolio keeps the limits, or None where no single ray of all of them proves it."""
    try:
        optimise(problem)
    except InfeasibleError as error:
        program = formulate(problem, Aim()).program
        return farkas_of(error, program) if error.complete and len(error.ray) == len(program.rhs) else None
    except UndecidedError:
        return None
    return None


def _task(case: Case, index: int) -> Task:
    month, least = case.month, case.least_turnover
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{index:02d}"
    feasible = case.refutation is None
    prompt = Prompt(
        f"As of {month.as_of}, decide whether any fully invested portfolio keeps every limit in constraints at once, "
        "that on one-way turnover from the current portfolio included. "
        "Find the least one-way turnover from the current portfolio to a portfolio that keeps all the other limits: "
        "it decides the question. The limits hold exactly, without any tolerance; conventions defines each of them.",
        f"Submit a JSON object with feasible (boolean) and minimum_turnover (fraction of NAV). {PRECISION}",
    )
    proof, certificate = proof_of(least), {"least_turnover": certificate_of(least)}
    if case.refutation is None:
        proof |= {"kind": "feasible"}
        certificate["witness"] = least.weights.tolist()
    else:
        certificate["farkas"] = case.refutation
        proof |= {"kind": "infeasible", "farkas_margin": case.refutation["margin"]}
    return Task(
        Episode(task_id, SKILL, NAME, month.as_of, case.tier.name, case.task_input, prompt, dict(METADATA)),
        Truth(
            task_id,
            NAME,
            {"feasible": feasible, "minimum_turnover": least.value},
            {},
            proof,
        ),
        certificate,
    )


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """infeasibility_detection: 1 if the feasibility verdicts agree, else 0."""
    del task_input
    given, wanted = boolean(answer.get("feasible")), boolean(truth.expected_output.get("feasible"))
    value = float(given is not None and given == wanted)
    return Score(value, {"feasible": value})


def certified(answer: JsonObject, truth: Truth, task_input: InfeasibilityInput) -> Score:
    """The verdict gates; its evidence, the least turnover, earns the score in proportion to how near it is.

    A bare verdict is a coin toss, so it earns nothing: the number that decides it must be near.
    """
    verdict = paper(answer, truth, task_input).value
    expected = truth.expected_output["minimum_turnover"]
    given = number(answer.get("minimum_turnover"))
    evidence = closeness(given, expected, **_EVIDENCE)
    return Score(verdict * evidence, {"feasible": verdict, "minimum_turnover": evidence})


def proof(label: Label[InfeasibilityInput], findings: Findings) -> None:
    """The least turnover is certified and decides the verdict, which has a witness or a refutation of its own."""
    recheck = Recheck(label, findings)
    task_input, output = recheck.task_input, label.truth.expected_output
    problem = problem_from(task_input)
    least = least_turnover(problem)
    recheck.close(output["minimum_turnover"], least.value, "minimum turnover", 1e-8)
    others = {**task_input, "constraints": {**task_input["constraints"], "max_turnover": None}}
    name, excess = _worst(others, recheck, least.weights)
    recheck.expect(excess <= EXACT, f"the portfolio of least turnover breaks {name}")
    recheck.close(second.turnover(task_input, least.weights), least.value, "its turnover", 1e-8)
    try:
        optimise(problem)
        feasible = True
    except InfeasibleError:
        feasible = False
    recheck.expect(output["feasible"] is feasible, f"is labelled feasible: {output['feasible']}")
    limit = task_input["constraints"]["max_turnover"]
    recheck.expect((least.value <= limit) is feasible, "the least turnover contradicts the verdict")
    if label.built:
        changed = f"a tolerance of {AMBIGUITY} on every limit changes its verdict"
        recheck.expect(decided(problem, feasible=feasible), changed)
    figures, distance = findings.figures, abs(least.value - limit)
    figures["least_distance_from_limit"] = min(figures.get("least_distance_from_limit", 1.0), distance)
    if not label.certificate:
        return
    free = replace(problem, limits=replace(problem.limits, max_turnover=None))
    stored, summary = label.certificate["least_turnover"], label.truth.proof
    recheck.certificate(free, Aim(Goal.TURNOVER), stored, summary, least, unique=False)
    if summary["kind"] == "feasible":
        name, excess = _worst(task_input, recheck, np.array(label.certificate["witness"], dtype=float))
        recheck.expect(excess <= ACCEPTED_VIOLATION, f"its witness breaks {name} by {excess:.1e}")
        findings.add("witnesses")
    else:
        _recheck_refutation(recheck, problem)


def _worst(task_input: JsonObject, recheck: Recheck, weights: second.Floats) -> tuple[str, float]:
    """The limit that weights exceed most, and by how much."""
    over = second.excesses(task_input, recheck.covariance, weights)
    return max(over.items(), key=lambda limit: limit[1])


def _recheck_refutation(recheck: Recheck, problem: PortfolioProblem) -> None:
    """The stored ray proves that the program of the input has no solution."""
    farkas, findings = recheck.label.certificate["farkas"], recheck.findings
    stated = recheck.label.truth.proof["farkas_margin"]
    recheck.expect(stated == farkas["margin"], "the truth's margin is not the certificate's")
    program = formulate(problem, Aim()).program
    ray = np.concatenate([np.array(farkas["ray"][block.label], dtype=float) for block in program.blocks])
    again = prove_infeasible(program, ray)
    recheck.expect(again.margin > 0, f"its Farkas ray proves nothing: margin {again.margin:.1e}")
    recheck.states(farkas["margin"], again.margin, "margin from the ray")
    smallest = min(findings.figures.get("least_farkas_margin", np.inf), again.margin)
    findings.figures["least_farkas_margin"] = float(smallest)
    findings.add("refuted")


def by_hand(data: Mapping[str, Any]) -> JsonObject:
    """Turnover needed for the name caps alone, which bounds the least turnover from below."""
    limits, current = data["constraints"], data["current_portfolio"]
    needed = math.fsum(max(0.0, weight - limits["max_weight"]) for weight in current.values())
    return {"feasible": needed <= limits["max_turnover"], "minimum_turnover": needed}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_infeas",
    method=METHOD,
    parameters={"ground_truth_source": "certified optimiser"},
    answer=InfeasibilityDetection,
    input=InfeasibilityInput,
    definitions=definitions,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
    proof=proof,
    ladder=ladders.ladder,
    exploits=exploits.infeasibility,
    by_hand=Naive(("constraints", "current_portfolio"), by_hand),
    heuristic="feasible, 90% of the limit",
    trivial=Naive((), lambda data: {"feasible": True, "minimum_turnover": 0.0}),
    headline=False,
)
