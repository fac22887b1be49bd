"""What the scorers reward: cheats, shortcuts, floors, the ceiling, and the order of a ladder of answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import Any, cast

import orjson

from finskillbench.domains import by_name
from finskillbench.domains.base import Answer
from finskillbench.edition.checks.agent_view import NOP, REFERENCE, TRIVIAL, Seen, parsed
from finskillbench.edition.parts import LEVELS
from finskillbench.episode import JsonObject, Profile
from finskillbench.findings import Findings
from finskillbench.harness.conditions import Condition
from finskillbench.harness.programs.program import Textbook, Trapped
from finskillbench.scoring.values import is_object

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


_NAME = "AAA"
_MAX_DEPTH = 8
MALFORMED = ("the truth with NaN for every number", "the truth with every key twice", "the truth in a list")
"""Vandalised truths that are no submission under any profile."""


def cheats(answer: type[Answer]) -> Iterator[tuple[str, str]]:
    """Name and text of every answer that needs nothing but the answer schema."""
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
    """Name and text of the truth spoiled: none may score in `certified`, and those of `MALFORMED` nowhere."""
    text = _text(truth)
    if _FILLED in (nan := _numbers_replaced(text, _FILLED)):
        yield MALFORMED[0], nan.replace(_FILLED, "NaN")
    yield MALFORMED[1], text[:-1] + "," + text[1:] if len(text) > 2 else text
    yield MALFORMED[2], f"[{text}]"
    yield "the truth inside another object", _text({"answer": truth})


def fabricated(truth: object) -> object | None:
    """The truth with a value wherever it is null; None where nothing is null."""
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
    """JSON text with `word` for every number."""

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
"""Number, truth value and length of lists of a constant answer."""


def _instance(node: Mapping[str, Any], defs: Mapping[str, Any], fill: tuple[float, bool, int], depth: int = 0) -> Any:
    """A value of a JSON schema: its first alternative, filled with constants."""
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
"""Shortcuts that a subtask registers at least."""
RISE = 0.03
"""By how much the mean over all shortcuts may rise from one tier to the next, as sampling of a dozen episodes does."""

Means = Mapping[str, Mapping[str, float]]
"""Name of a shortcut to tier to mean certified score."""


def shortcuts(seen: Seen, findings: Findings) -> None:
    """Score every shortcut of an episode's subtask under `certified`."""
    subtask = seen.subtask
    if (
        subtask is None
        or subtask.examples.shortcuts is None
        or not seen.bench.shared.built
        or not seen.label.truth.proof
    ):
        return
    found = cast("dict[str, dict[str, list[float]]]", findings.figures.setdefault("scores", {}))
    for name, answer in subtask.examples.shortcuts.answers(seen.full_input).items():
        score = seen.score(answer, Profile.CERTIFIED)
        found.setdefault(name, {}).setdefault(seen.episode.difficulty, []).append(score)


def bounds(sub_task: str, findings: Findings) -> None:
    """Hold each mean below the bound of its tier, and the mean over all shortcuts in the order of the tiers."""
    scores = cast("dict[str, dict[str, list[float]]]", findings.figures.pop("scores", {}))
    stated = by_name(sub_task).examples.shortcuts if scores else None
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
            message = f"earns {mean:.3f} on the mean of {tier} episodes; at most {most} is allowed"
            findings.expect(mean <= most, sub_task, message, name)
    overall = [(tier, fmean(each[tier] for each in means.values() if tier in each)) for tier in _tiers(means)]
    for (below, easier), (tier, harder) in pairwise(overall):
        message = f"all shortcuts earn {harder:.3f} on the mean of {tier} episodes, {easier:.3f} of {below} ones"
        findings.expect(harder <= easier + RISE, sub_task, message, "order of tiers")


def _tiers(means: Means) -> list[str]:
    return [tier for tier in LEVELS if any(tier in by_tier for by_tier in means.values())]
