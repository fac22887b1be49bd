"""Check the scorers: cheats, shortcuts, floors, the ceiling, and the order of graded examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import Any, cast

import orjson

from finskillbench.domains import subtask_named
from finskillbench.domains.base import Answer
from finskillbench.edition.checks.agent_view import NOP, REFERENCE, TRIVIAL, EpisodeView, parse_answer
from finskillbench.edition.parts import LEVELS
from finskillbench.episode import JsonObject, Profile
from finskillbench.findings import Findings
from finskillbench.harness.conditions import Condition
from finskillbench.harness.programs.program import Textbook, Trapped
from finskillbench.scoring.values import is_object

FLOOR = 0.02
"""Largest mean certified score of an answer made without reasoning."""
CHEAT = 0.10
"""Largest mean certified score of an answer made from the schema alone."""
RECIPE = 0.25
"""Largest mean certified score of a subtask's fixed recipe that reads the task's numbers."""
_RECIPE = "recipe: "
_SKILLED = f"{REFERENCE} with skills"
_BY_PROCEDURE = {"textbook": Textbook.name, "trapped": Trapped.name}
_BOUNDS = {Textbook.name: 0.2, Trapped.name: 0.3}
"""Largest mean certified scores of well-known professional mistakes."""
FULL = 0.999
_ROUNDING = 1e-9

Scored = dict[str, dict[str, float]]
"""Profile and name, or name alone, to the scores by task id."""


def check_exploits(view: EpisodeView, findings: Findings) -> None:
    """Score cheating answers: from the answer schema, from the spoiled truth, and the subtask's own recipes."""
    if view.subtask is None:
        return
    # Recipes read our input fields, which release inputs lack.
    make = view.subtask.examples.exploits if view.context.shared.built else None
    exploits: Mapping[str, JsonObject] = {} if make is None else make(view.full_input)
    proved = view.label.truth.proof
    profiles = [profile for profile in view.subtask.scorers if profile is not Profile.CERTIFIED or proved]
    found = cast("Scored", findings.figures.setdefault("scores", {}))
    recipes = ((name, parse_answer(answer)) for name, answer in exploits.items())
    for kind, answers in (("", _cheats(view.subtask.answer)), (_RECIPE, recipes)):
        for name, answer in answers:
            for profile, score in view.scores(answer, profiles).items():
                _refuse_outside(view, findings, score, name, profile)
                found.setdefault(f"{profile}: {kind}{name}", {})[view.task_id] = score
    truth = view.label.truth.expected_output
    for name, text in vandalised(truth):
        spoiled = parse_answer(text)
        for profile in profiles if name in MALFORMED else {*profiles} & {Profile.CERTIFIED}:
            score = view.score_parsed(spoiled, profile)
            findings.expect(score == 0, view.task_id, f"{name} scores {score:.3f} under {profile}")
    invented = fabricated(truth)
    if invented is not None and Profile.CERTIFIED in profiles:
        score = view.score(invented, Profile.CERTIFIED)
        findings.expect(score < FULL, view.task_id, f"the truth with values invented for its nulls scores {score:.3f}")


@cache
def _cheats(answer: type[Answer]) -> tuple[tuple[str, JsonObject | None], ...]:
    return tuple((name, parse_answer(text)) for name, text in cheats(answer))


def _refuse_outside(view: EpisodeView, findings: Findings, score: float, name: str, profile: Profile) -> None:
    """Check that a score is in [0, 1]; under `paper`, ranked lists may exceed 1."""
    most = math.inf if profile is Profile.PAPER else 1.0
    findings.expect(0 <= score <= most, view.task_id, f"{name} scores {score} under {profile}")


def conclude_exploits(sub_task: str, findings: Findings) -> None:
    """Find the best cheat of each profile; fail if it pays under `certified`, or under `paper` without proofs."""
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


def check_floor_and_ceiling(view: EpisodeView, findings: Findings) -> None:
    """Check that the truth and the reference program score 1; collect scores of idle programs."""
    if view.subtask is None or not view.label.truth.proof:
        return
    truth = view.score(view.label.truth.expected_output)
    findings.expect(truth >= FULL, view.task_id, f"the truth itself scores {truth:.3f}")
    reference = view.earned(REFERENCE, Condition.CURATED)
    found = cast("Scored", findings.figures.setdefault("scores", {}))
    if view.subtask.baselines.ceiling is None:
        findings.expect(reference >= FULL, view.task_id, f"the reference program with skills scores {reference:.3f}")
    elif view.label.truth.verification.get("law") is None:  # a program need not find an undisclosed law
        found.setdefault(_SKILLED, {})[view.task_id] = reference
    for program in (TRIVIAL, NOP):
        found.setdefault(program, {})[view.task_id] = view.earned(program)
    interactive = view.subtask.interactive
    for procedure, program in _BY_PROCEDURE.items():
        if interactive is not None and procedure in interactive.procedures:
            found.setdefault(program, {})[view.task_id] = view.earned(program, Condition.CURATED)
    found.setdefault(f"{REFERENCE} without a skill", {})[view.task_id] = view.earned(REFERENCE)


def conclude_floor_and_ceiling(sub_task: str, findings: Findings) -> None:
    """Check means: trivial and nop at the floor, flawed procedures below their bounds, the reference at its ceiling."""
    scores = cast("Scored", findings.figures.pop("scores", {}))
    means = {name: math.fsum(by_task.values()) / len(by_task) for name, by_task in scores.items()}
    for name, most in {TRIVIAL: FLOOR, NOP: FLOOR, **_BOUNDS}.items():
        if means.get(name, 0.0) > most:
            by_task = scores[name]
            worst = max(by_task, key=by_task.__getitem__)
            findings.fail(worst, f"{sub_task}: {name} scores {means[name]:.3f} on average, at most {most} is allowed")
    least = subtask_named(sub_task).baselines.ceiling
    if least is not None and (reached := means.get(_SKILLED, least)) < least:
        findings.fail(sub_task, f"the reference program with skills reaches {reached:.3f} on average, not {least}")
    findings.figures["means"] = {sub_task: means}


def check_ordering(view: EpisodeView, findings: Findings) -> None:
    """Check that scores of graded examples do not rise along the list, and that each is in its band."""
    if view.subtask is None or not view.label.truth.proof:
        return
    if view.subtask.examples.graded is None:
        findings.figures.setdefault("no_ladder", {})[view.episode.sub_task] = 1
        return
    above, last = math.inf, ""
    for example in view.subtask.examples.graded(view.label):
        score = view.score(example.answer, Profile.CERTIFIED)
        inside = example.least - _ROUNDING <= score <= example.most + _ROUNDING
        message = f"scores {score:.3f}, its band is {example.least:.3f} to {example.most:.3f}"
        if not inside:
            findings.fail(view.task_id, message, example.name)
        elif score > above + _ROUNDING:
            findings.fail(view.task_id, f"scores {score:.3f}, the better answer {last!r} {above:.3f}", example.name)
        findings.add("graded examples")
        above, last = score, example.name


def conclude_ordering(sub_task: str, findings: Findings) -> None:
    """Warn if a subtask has no graded examples."""
    if findings.figures.pop("no_ladder", {}):
        findings.warn(sub_task, "has no graded examples, so the order of its scores is not checked")


_NAME = "AAA"
_MAX_DEPTH = 8
MALFORMED = ("the truth with NaN for every number", "the truth with every key twice", "the truth in a list")
"""Spoiled truths that are invalid under every profile."""


def cheats(answer: type[Answer]) -> Iterator[tuple[str, str]]:
    """Yield name and text of every answer that needs only the answer schema."""
    yield "empty object", "{}"
    yield "nulls", _text(dict.fromkeys(answer.model_fields))
    schema = answer.model_json_schema()
    for name, fill in _FILLS.items():
        yield name, _text(_instance(schema, schema.get("$defs", {}), fill))
    ones = _text(_instance(schema, schema.get("$defs", {}), _FILLS["ones everywhere"]))
    yield "NaN everywhere", _numbers_replaced(ones, "NaN")
    yield "Infinity everywhere", _numbers_replaced(ones, "Infinity")
    yield "numbers as text", _numbers_replaced(ones, '"1"')
    yield "overflowing numbers", _numbers_replaced(ones, "1e999")


def vandalised(truth: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of spoiled truths: none may score under `certified`, nor `MALFORMED` under any profile."""
    text = _text(truth)
    if _FILLED in (nan := _numbers_replaced(text, _FILLED)):
        yield MALFORMED[0], nan.replace(_FILLED, "NaN")
    yield MALFORMED[1], text[:-1] + "," + text[1:] if len(text) > 2 else text
    yield MALFORMED[2], f"[{text}]"
    yield "the truth inside another object", _text({"answer": truth})


def fabricated(truth: object) -> object | None:
    """Return the truth with every null replaced by a value; None if there is no null."""
    filled = _filled(truth)
    return filled if filled != truth else None


_FILLED = "@number@"


def _text(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _filled(value: object) -> object:
    if value is None:
        return 0.1
    if is_object(value):
        return {key: _filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in cast("list[object]", value)]
    return value


def _numbers_replaced(text: str, word: str) -> str:
    def replaced(value: object) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _FILLED
        if is_object(value):
            return {key: replaced(item) for key, item in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in cast("list[object]", value)]
        return value

    return _text(replaced(orjson.loads(text))).replace(f'"{_FILLED}"', word)


_FILLS: Mapping[str, tuple[float, bool, int]] = {
    "zeros everywhere": (0.0, False, 1),
    "ones everywhere": (1.0, True, 1),
    "everything false": (0.05, False, 3),
    "everything true": (0.05, True, 3),
    "large numbers": (1e12, True, 1),
}
"""Number, truth value and list length of a constant answer."""


def _instance(node: Mapping[str, Any], defs: Mapping[str, Any], fill: tuple[float, bool, int], depth: int = 0) -> Any:
    """Return a value for a JSON schema: its first alternative, filled with constants."""
    if depth > _MAX_DEPTH:
        return None
    if "$ref" in node:
        return _instance(defs[node["$ref"].rsplit("/", 1)[-1]], defs, fill, depth + 1)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return node["enum"][0 if fill[1] else -1]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            return _instance(node[key][0], defs, fill, depth + 1)
    match node.get("type"):
        case "object":
            made = {name: _instance(part, defs, fill, depth + 1) for name, part in node.get("properties", {}).items()}
            extra = node.get("additionalProperties")
            return made or ({_NAME: _instance(extra, defs, fill, depth + 1)} if is_object(extra) else {})
        case "array":
            return [_instance(node.get("items", {}), defs, fill, depth + 1)] * fill[2]
        case "number":
            return fill[0]
        case "integer":
            return int(fill[0])
        case "boolean":
            return fill[1]
        case "string":
            return _NAME
        case _:
            return None


SHORTCUTS = "shortcuts"
FEWEST = 6
"""Minimum number of shortcuts per subtask."""
RISE = 0.03
"""Allowed rise of the mean over all shortcuts between tiers: sampling noise of a dozen episodes."""

Means = Mapping[str, Mapping[str, float]]
"""Name of a shortcut to tier to mean certified score."""


def check_shortcuts(view: EpisodeView, findings: Findings) -> None:
    """Score every shortcut of an episode's subtask under `certified`."""
    subtask = view.subtask
    if (
        subtask is None
        or subtask.examples.shortcuts is None
        or not view.context.shared.built
        or not view.label.truth.proof
    ):
        return
    found = cast("dict[str, dict[str, list[float]]]", findings.figures.setdefault("scores", {}))
    for name, answer in subtask.examples.shortcuts.answers(view.full_input).items():
        score = view.score(answer, Profile.CERTIFIED)
        found.setdefault(name, {}).setdefault(view.episode.difficulty, []).append(score)


def conclude_shortcuts(sub_task: str, findings: Findings) -> None:
    """Check each mean against the bound of its tier, and the mean over all shortcuts in the order of the tiers."""
    scores = cast("dict[str, dict[str, list[float]]]", findings.figures.pop("scores", {}))
    stated = subtask_named(sub_task).examples.shortcuts if scores else None
    if stated is None:
        return
    means: Means = {
        name: {tier: fmean(by_tier[tier]) for tier in LEVELS if tier in by_tier} for name, by_tier in scores.items()
    }
    findings.figures["means"] = {sub_task: means}
    findings.expect(len(means) >= FEWEST, sub_task, f"registers {len(means)} shortcuts; at least {FEWEST} are required")
    for name, by_tier in means.items():
        for tier, mean in by_tier.items():
            most = stated.bound(tier)
            message = f"earns {mean:.3f} on average in {tier} episodes; at most {most} is allowed"
            findings.expect(mean <= most, sub_task, message, name)
    overall = [(tier, fmean(each[tier] for each in means.values() if tier in each)) for tier in _tiers(means)]
    for (below, easier), (tier, harder) in pairwise(overall):
        message = f"all shortcuts earn {harder:.3f} on average in {tier} episodes, {easier:.3f} in {below} ones"
        findings.expect(harder <= easier + RISE, sub_task, message, "order of tiers")


def _tiers(means: Means) -> list[str]:
    return [tier for tier in LEVELS if any(tier in by_tier for by_tier in means.values())]
