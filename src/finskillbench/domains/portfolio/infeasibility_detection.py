"""Infeasibility detection: decide whether a draft mandate is feasible, and which limits conflict.

The answer gives the verdict from the current portfolio, the smallest set of conflicting limits (waiving any one of
them suffices), and the least attainable value of one limit. Not part of the headline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.portfolio import definitions, rederive
from finskillbench.domains.portfolio.examples import infeasibility as examples
from finskillbench.domains.portfolio.inputs import InfeasibilityInput
from finskillbench.domains.portfolio.objects import PortfolioObjects, conflicts
from finskillbench.domains.portfolio.objects.binding import mandate_fields
from finskillbench.domains.portfolio.optimality import margin
from finskillbench.domains.portfolio.proofs import Recheck
from finskillbench.engines.optimisation.certified import ACCEPTED_VIOLATION
from finskillbench.engines.portfolio.formulation import formulate_portfolio
from finskillbench.engines.portfolio.mandates import feasibility
from finskillbench.engines.portfolio.mandates.feasibility import aim_at, least_attainable
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.problem import require_array
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth, lowest_raw
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_array, as_boolean, as_number, closeness, is_array

NAME = "infeasibility_detection"
METHOD = "infeasibility_detection"
_BELOW = 1e-6
"""Relative distance below the least attainable value at which a value is refuted."""
_SAME_MARGIN = 1e-7
_EVIDENCE = {"full": 1e-3, "full_floor": 2e-5, "zero": 0.02, "zero_floor": 1e-4}
"""Errors of the least attainable value that cost nothing (0.1 % or 0.2 bp) or everything (2 %)."""


class InfeasibilityDetection(Answer):
    """Answer: the verdict, what is in conflict, and the value that decides."""

    feasible: bool = Field(description="true if some portfolio satisfies every constraint of the task at once.")
    conflicting_limits: list[str] = Field(
        description=f"If infeasible, the smallest set of limits that cannot hold together, names of "
        f"{', '.join(definitions.WAIVABLE)}; if feasible, an empty list."
    )
    least_attainable: float = Field(
        description="Least value of limit_to_relax at which all limits can hold together, the others unchanged, "
        "whether above or below the present one; in the unit of that limit, >= 0."
    )


def _definitions(task_input: JsonObject) -> dict[str, str]:
    """Return the definitions for an input; its limits are exact, since no portfolio is submitted."""
    also = {
        "restricted_names": "weight 0; current holdings of them are sold, within max_turnover",
        "waivable": f"{', '.join(definitions.WAIVABLE)}, each as a whole: all sectors, all neutral factors; no other "
        "limit is",
        "conflicting_limits": "each of them is needed: with any one waived, all the other limits can hold; waiving a "
        "limit that is not listed does not help",
        "limit_to_relax": "factor_neutrality means neutrality_tolerance, sector_limits.X the cap of X alone",
        "tolerance": definitions.EXACT_LIMITS,
    }
    return definitions.portfolio_conventions(task_input) | also


def _build(context: BuildContext, objects: PortfolioObjects) -> list[BuiltTask]:
    """Build mandates, half of them feasible in every tier and for every limit to relax.

    The limit to relax is as far above its least attainable value in feasible mandates as below it in infeasible ones.
    The
    tier sets the number of limits in conflict: two (easy), three (medium), four or five (hard).
    """
    count = objects.settings["episodes_per_subtask"]
    found = list(conflicts.draw_cases(context, objects, count))
    order: list[int] = context.generator(NAME, "order").permutation(len(found)).tolist()
    if len(found) < count:
        context.notes.append(f"Of {count} mandates for infeasibility detection {len(found)} were found.")
    return [_task(found[place], index) for index, place in enumerate(order)]


def _input(found: conflicts.MandateDraft, value: float) -> InfeasibilityInput:
    problem = conflicts.problem_at(found, value)
    limits, ceilings = problem.limits, require_array(problem.ceilings, "restricted names")
    task_input: InfeasibilityInput = {
        "covariance_matrix": found.month.covariance_table,
        "limit_to_relax": f"sector_limits.{found.limit}" if found.cause == "sector_limits" else found.limit,
        **mandate_fields(
            found.month,
            {
                "long_only": True,
                "restricted_names": [problem.tickers[place] for place in np.flatnonzero(ceilings == 0)],
                "max_weight": limits.max_weight,
                "sector_limits": dict(limits.sector_limits),
                "max_turnover": limits.max_turnover,
                "max_tracking_error": limits.max_tracking_error,
                "factor_neutrality": True,
                "neutral_factors": list(limits.neutral_factors),
                "neutrality_tolerance": limits.neutrality_tolerance,
            },
            require_array(problem.current, "current portfolio"),
        ),
    }
    task_input["conventions"] = _definitions(task_input)
    return task_input


def _task(case: conflicts.MandateCase, index: int) -> BuiltTask:
    found, least = case.draft, case.least
    task_input = _input(found, case.value)
    as_of, named = found.month.as_of, task_input["limit_to_relax"]
    task_id, feasible = f"{SUBTASK.prefix}_{as_of}_{index:02d}", case.farkas is None
    prompt = Prompt(
        f"A client's draft mandate, as of {as_of}: decide whether any fully invested portfolio keeps every limit in "
        "constraints at once, including that on one-way turnover from the current portfolio. If none does, name the "
        "limits in conflict for the committee: the smallest set that cannot hold together. In either case find the "
        f"least value of {_phrase(named)} at which all limits can hold together, the others unchanged: it decides "
        "feasibility. The limits hold exactly, without any tolerance; conventions defines each of them.",
        "Submit a JSON object with feasible (boolean), conflicting_limits (names, [] where feasible) and "
        f"least_attainable (number). {definitions.PRECISION}",
    )
    proof, certificate = proof_of(least), {"least_attainable": certificate_of(least)}
    # Every smaller set of limits must be shown to be feasible.
    certificate |= {"floor": _labelled(case), "decisions": 2**case.size - 2}
    if case.farkas is None:
        proof |= {"kind": "feasible"}
    else:
        certificate |= {"farkas": case.farkas, "waivers": case.waivers}
        proof |= {"kind": "infeasible", "farkas_margin": case.farkas["margin"]}
    output = {"feasible": feasible, "conflicting_limits": list(case.waivers), "least_attainable": least.value}
    return BuiltTask(
        Episode(task_id, definitions.SKILL, NAME, as_of, case.tier, task_input, prompt, dict(definitions.METADATA)),
        Truth(task_id, NAME, output, {}, proof),
        certificate,
    )


def _phrase(limit: str) -> str:
    if definitions.family(limit) == "sector_limits":
        return f"the {definitions.sector_of(limit)} sector cap"
    return "neutrality_tolerance" if limit == "factor_neutrality" else limit


def _labelled(case: conflicts.MandateCase) -> dict[str, list[float]]:
    """Return the multipliers of the least attainable value by limit; they refute every smaller value."""
    program = formulate_portfolio(case.draft.problem, aim_at(case.draft.limit)).program
    return {block.label: case.least.multipliers[block.rows].tolist() for block in program.blocks}


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """infeasibility_detection: 1 if the feasibility verdicts agree, else 0."""
    del task_input
    verdict, wanted = as_boolean(answer.get("feasible")), as_boolean(truth.expected_output.get("feasible"))
    value = float(verdict is not None and verdict == wanted)
    return Score(value, {"feasible": value})


def _certified(answer: JsonObject, truth: Truth, task_input: InfeasibilityInput) -> Score:
    """Verdict x accuracy of the least attainable value; half of the product depends on the overlap of conflicting
    limits.
    """
    verdict, expected = _paper(answer, truth, task_input).value, truth.expected_output
    stated, least = as_number(answer.get("least_attainable")), expected["least_attainable"]
    evidence = closeness(stated, least, **_EVIDENCE)
    named = answer.get("conflicting_limits")
    conflict = _in_common(as_array(named), expected["conflicting_limits"]) if is_array(named) else 0.0
    parts = {"feasible": verdict, "least_attainable": evidence, "conflicting_limits": conflict}
    value = verdict * evidence * (1 + conflict) / 2
    full, none = (max(_EVIDENCE[end] * abs(least), _EVIDENCE[f"{end}_floor"]) for end in ("full", "zero"))
    answered = stated is not None and as_boolean(answer.get("feasible")) is not None
    unlimited = (none - abs(stated - least)) / (none - full) if answered else None
    return Score(value, parts, None if value else lowest_raw(unlimited))


def _in_common(named: list[Any], expected: list[str]) -> float:
    listed = {one if isinstance(one, str) else "" for one in named}
    every = listed | set(expected)
    return len(listed & set(expected)) / len(every) if every else 1.0


def _proof(label: Label[InfeasibilityInput], findings: Findings) -> None:
    """Check the least attainable value, the verdict, and that the conflict set is the unique smallest one.

    A portfolio that satisfies all limits but one shows that every conflict set contains that one; a refutation of those
    limits alone shows that they conflict.
    """
    recheck = Recheck(label, findings)
    task_input, output = recheck.task_input, label.truth.expected_output
    problem, named = problem_from(task_input), task_input["limit_to_relax"]
    limit, value = definitions.sector_of(named), definitions.printed(task_input, named)
    solve = cache(partial(least_attainable, problem, limit))
    stored, feasible = label.certificate.get("least_attainable"), output["feasible"]
    least = stored["objective"] if stored else solve().value
    weights = recheck.stored(stored) if stored else solve().weights
    recheck.close(output["least_attainable"], least, "least attainable value", 1e-8)
    recheck.close(definitions.level(task_input, named, recheck.covariance, weights), least, "its value", 1e-8)
    _expect_kept(recheck, [definitions.family(named)], weights, "the portfolio of the least attainable value")
    recheck.expect((least <= value) is feasible, "the least attainable value contradicts the verdict")
    conflict = output["conflicting_limits"]
    if feasible or not stored:
        found = [] if feasible else list(feasibility.conflicting_limits(problem, limit))
        recheck.expect(conflict == found, f"{conflict} are stated to be in conflict, {found} are")
    if label.built:
        changed = f"a tolerance of {conflicts.AMBIGUITY} on every limit changes its verdict"
        recheck.expect((conflicts.verdict_edge(problem, limit, feasible=feasible) <= value) is feasible, changed)
        size = f"{len(conflict)} limits are in conflict in a {label.episode.difficulty} mandate"
        recheck.expect(feasible or len(conflict) in conflicts.SIZES[label.episode.difficulty], size)
    findings.least("least_distance_from_limit", abs(least / value - 1))
    if stored:
        recheck.certificate(problem, aim_at(limit), stored, label.truth.proof, solve, unique=False)
        below = margin(
            definitions.moved(task_input, named, output["least_attainable"] * (1 - _BELOW)), label.certificate["floor"]
        )
        recheck.expect(below > 0, f"its multipliers leave a margin of {below:.1e}: a smaller value is not refuted")
        _examine_conflict(recheck, conflict)


def _examine_conflict(recheck: Recheck, conflict: list[str]) -> None:
    """Check the witness of a feasible mandate, or the ray and the waivers of an infeasible one."""
    certificate, findings = recheck.label.certificate, recheck.findings
    if recheck.label.truth.expected_output["feasible"]:
        witness = recheck.stored(certificate["least_attainable"])
        _expect_kept(recheck, [], witness, "its witness")
        findings.add("witnesses")
        return
    farkas = certificate["farkas"]
    stated = recheck.label.truth.proof["farkas_margin"]
    recheck.expect(stated == farkas["margin"], "the truth's margin is not the certificate's")
    remaining = [name for name in definitions.WAIVABLE if name not in conflict]
    alone = definitions.waive_limits(recheck.task_input, remaining)
    found = margin(alone, farkas["ray"])
    shown = found > 0 and found >= stated - _SAME_MARGIN
    recheck.expect(shown, f"its ray leaves a margin of {found:.1e}, it states {stated:.1e}: the conflict is not shown")
    findings.least("least_farkas_margin", found)
    findings.add("refuted")
    waivers = certificate["waivers"]
    recheck.expect(set(waivers) == set(conflict), "it has no waiver of each limit in conflict")
    for name, weights in waivers.items():
        _expect_kept(recheck, [name], np.array(weights, dtype=float), f"the portfolio without {name}")


def _expect_kept(recheck: Recheck, without: list[str], weights: rederive.Floats, what: str) -> None:
    over = rederive.excesses(definitions.waive_limits(recheck.task_input, without), recheck.covariance, weights)
    name, excess = max(over.items(), key=lambda limit: limit[1])
    recheck.expect(excess <= ACCEPTED_VIOLATION, f"{what} breaks {name} by {excess:.1e}")


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    """Return the turnover forced by restricted names and the cap, a lower bound of the least turnover."""
    limits, current = data["constraints"], data["current_portfolio"]
    caps = dict.fromkeys(limits["restricted_names"], 0.0)
    needed = math.fsum(max(0.0, weight - caps.get(name, limits["max_weight"])) for name, weight in current.items())
    return {"feasible": needed <= limits["max_turnover"], "conflicting_limits": [], "least_attainable": needed}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_infeas",
    input=InfeasibilityInput,
    answer=InfeasibilityDetection,
    definitions=_definitions,
    template_of=lambda episode, _: str(episode.input["limit_to_relax"]),
    build=_build,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(method=METHOD, parameters={"ground_truth_source": "certified optimiser"}),
    baselines=Baselines(
        no_skill=Naive(("constraints", "current_portfolio"), _no_skill_baseline),
        trivial=Naive((), lambda data: {"feasible": True, "conflicting_limits": [], "least_attainable": 0.0}),
        heuristic="feasible, 90% of the limit",
    ),
    examples=Examples(
        graded=examples.graded_examples, exploits=examples.exploits, shortcuts=Shortcuts(examples.shortcuts)
    ),
    headline=False,
)
