"""What the scorers reward: cheats, floors, the ceiling, and the order of a ladder of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import cast

from finskillbench.audit.battery import MALFORMED, cheats, fabricated, vandalised
from finskillbench.audit.seen import NOP, REFERENCE, TRIVIAL, Seen, parsed
from finskillbench.domains import by_name
from finskillbench.domains.base import Answer
from finskillbench.episode import JsonObject, Profile
from finskillbench.findings import Findings
from finskillbench.harness.conditions import Condition
from finskillbench.harness.programs.program import Textbook, Trapped

FLOOR = 0.02
"""Largest mean certified score of an answer that needs no thought."""
CHEAT = 0.10
"""Largest mean certified score of an answer made from the schema alone."""
RECIPE = 0.25
"""Largest mean certified score of a fixed recipe that reads a task's numbers: those that a subtask brings."""
_RECIPE = "recipe: "
_SKILLED = f"{REFERENCE} with skills"
_BY_PROCEDURE = {"textbook": Textbook.name, "trapped": Trapped.name}
_BOUNDS = {Textbook.name: 0.2, Trapped.name: 0.3}
"""Largest mean certified scores of what goes wrong in a way that professionals know."""
FULL = 0.999
_ROUNDING = 1e-9

Scored = dict[str, dict[str, float]]
"""Profile and name, or name alone, to the scores by task id."""


def exploits(seen: Seen, findings: Findings) -> None:
    """Cheating answers: from the answer schema, from the truth by vandalism, and those that the subtask brings."""
    if seen.subtask is None:
        return
    # What a subtask brings reads the fields of our inputs, which those of the release are not.
    make = seen.subtask.examples.exploits if seen.bench.shared.built else None
    brought: Mapping[str, JsonObject] = {} if make is None else make(seen.full_input)
    profiles = [
        profile for profile in seen.subtask.scorers if profile is not Profile.CERTIFIED or seen.label.truth.proof
    ]
    found = cast("Scored", findings.figures.setdefault("scores", {}))
    recipes = ((name, parsed(answer)) for name, answer in brought.items())
    for kind, answers in (("", _cheats(seen.subtask.answer)), (_RECIPE, recipes)):
        for name, answer in answers:
            for profile, score in seen.scores(answer, profiles).items():
                _refuse_outside(seen, findings, score, name, profile)
                found.setdefault(f"{profile}: {kind}{name}", {})[seen.task_id] = score
    truth = seen.label.truth.expected_output
    for name, text in vandalised(truth):
        spoiled = parsed(text)
        for profile in profiles if name in MALFORMED else {*profiles} & {Profile.CERTIFIED}:
            score = seen.score_parsed(spoiled, profile)
            findings.expect(score == 0, seen.task_id, f"{name} scores {score:.3f} under {profile}")
    invented = fabricated(truth)
    if invented is not None and Profile.CERTIFIED in profiles:
        score = seen.score(invented, Profile.CERTIFIED)
        findings.expect(score < FULL, seen.task_id, f"the truth with values invented for its nulls scores {score:.3f}")


@cache
def _cheats(answer: type[Answer]) -> tuple[tuple[str, JsonObject | None], ...]:
    """Names and submissions of the answers that need nothing but the schema, parsed once for all episodes."""
    return tuple((name, parsed(text)) for name, text in cheats(answer))


def _refuse_outside(seen: Seen, findings: Findings, score: float, name: str, profile: Profile) -> None:
    """A score lies in [0, 1]; ranked lists may lift the paper's above."""
    most = math.inf if profile is Profile.PAPER else 1.0
    findings.expect(0 <= score <= most, seen.task_id, f"{name} scores {score} under {profile}")


def best_cheat(sub_task: str, findings: Findings) -> None:
    """The best cheat of each profile; none may pay in `certified`, or in `paper` where no label carries a proof."""
    scores = cast("Scored", findings.figures.pop("scores", {}))
    judged = _judged(scores)
    best: dict[str, tuple[float, str]] = {}
    for key, by_task in scores.items():
        profile, _, name = key.partition(": ")
        mean = math.fsum(by_task.values()) / len(by_task)
        best[profile] = max(best.get(profile, (-1.0, "")), (mean, name))
        if profile == judged and mean > (RECIPE if name.startswith(_RECIPE) else CHEAT):
            worst = max(by_task, key=by_task.__getitem__)
            findings.fail(worst, f"{sub_task}: the cheat {name!r} earns {mean:.3f} on average", f"{profile}")
    findings.figures["best"] = {
        sub_task: {profile: {"cheat": name, "mean": mean} for profile, (mean, name) in best.items()}
    }


def _judged(scores: Mapping[str, object]) -> str:
    certified = any(key.startswith(f"{Profile.CERTIFIED}: ") for key in scores)
    return Profile.CERTIFIED if certified else Profile.PAPER


def floor_and_ceiling(seen: Seen, findings: Findings) -> None:
    """The truth and the reference program score 1, what needs no thought scores next to nothing."""
    if seen.subtask is None or not seen.label.truth.proof:
        return
    truth = seen.score(seen.label.truth.expected_output)
    findings.expect(truth >= FULL, seen.task_id, f"the truth itself scores {truth:.3f}")
    reference = seen.earned(REFERENCE, Condition.CURATED)
    found = cast("Scored", findings.figures.setdefault("scores", {}))
    if seen.subtask.baselines.ceiling is None:
        findings.expect(reference >= FULL, seen.task_id, f"the reference program with skills scores {reference:.3f}")
    else:
        found.setdefault(_SKILLED, {})[seen.task_id] = reference
    for program in (TRIVIAL, NOP):
        found.setdefault(program, {})[seen.task_id] = seen.earned(program)
    interactive = seen.subtask.interactive
    for procedure, program in _BY_PROCEDURE.items():
        if interactive is not None and procedure in interactive.procedures:
            found.setdefault(program, {})[seen.task_id] = seen.earned(program, Condition.CURATED)
    found.setdefault(f"{REFERENCE} without a skill", {})[seen.task_id] = seen.earned(REFERENCE)


def floors(sub_task: str, findings: Findings) -> None:
    """On average trivial and nop stay at the floor, procedures that go wrong below their bounds, and the reference
    program reaches the ceiling where that is not full marks."""
    scores = cast("Scored", findings.figures.pop("scores", {}))
    means = {name: math.fsum(by_task.values()) / len(by_task) for name, by_task in scores.items()}
    for name, most in {TRIVIAL: FLOOR, NOP: FLOOR, **_BOUNDS}.items():
        if means.get(name, 0.0) > most:
            by_task = scores[name]
            worst = max(by_task, key=by_task.__getitem__)
            findings.fail(worst, f"{sub_task}: {name} scores {means[name]:.3f} on average, at most {most} is allowed")
    least = by_name(sub_task).baselines.ceiling
    if least is not None and (reached := means.get(_SKILLED, 0.0)) < least:
        findings.fail(sub_task, f"the reference program with skills reaches {reached:.3f} on average, not {least}")
    findings.figures["means"] = {sub_task: means}


def ordering(seen: Seen, findings: Findings) -> None:
    """The scores of a ladder of answers do not rise along it, and each lies in its band."""
    if seen.subtask is None or not seen.label.truth.proof:
        return
    if seen.subtask.examples.graded is None:
        findings.figures.setdefault("no_ladder", {})[seen.episode.sub_task] = 1
        return
    above, last = math.inf, ""
    for rung in seen.subtask.examples.graded(seen.label):
        score = seen.score(rung.answer, Profile.CERTIFIED)
        inside = rung.least - _ROUNDING <= score <= rung.most + _ROUNDING
        message = f"scores {score:.3f}, its band is {rung.least:.3f} to {rung.most:.3f}"
        if not inside:
            findings.fail(seen.task_id, message, rung.name)
        elif score > above + _ROUNDING:
            findings.fail(seen.task_id, f"scores {score:.3f}, the better answer {last!r} {above:.3f}", rung.name)
        findings.add("rungs")
        above, last = score, rung.name


def ladders(sub_task: str, findings: Findings) -> None:
    """A subtask of ours has a ladder."""
    if findings.figures.pop("no_ladder", {}):
        findings.warn(sub_task, "has no ladder of answers, so that nothing says in which order its scores fall")
