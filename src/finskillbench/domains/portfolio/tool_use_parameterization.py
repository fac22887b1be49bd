"""Tool-use parameterisation: a mandate in words becomes one call of a documented optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import msgspec
from pydantic import Field, JsonValue

from finskillbench.domains.base import Answer, Label, Naive, Subtask
from finskillbench.domains.building import BuildContext, Task, read_catalog, read_catalog_text
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio.definitions import SKILL
from finskillbench.domains.portfolio.inputs import ToolUseInput
from finskillbench.domains.portfolio.objects import PortfolioObjects
from finskillbench.domains.portfolio.optimizer_call import agreement, effective_parameters, fill, render
from finskillbench.engines.portfolio.mandate_text import read_mandate
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.measures import clip, relative_error, share
from finskillbench.scoring.values import json_equal, mapping, number, parameter

NAME = "tool_use_parameterization"
METHOD = "parameter_match"
TRIVIAL_CALL = {"objective": "max_sharpe", "constraints": {"long_only": True}}
"""The call that needs no reading: the zero of `certified`."""


class OptimizerCall(Answer):
    """One call of the optimiser."""

    objective: Literal["max_sharpe", "min_variance", "max_return", "risk_parity"] = Field(
        description="The objective that the mandate asks for."
    )
    risk_aversion: float | None = Field(
        None, description="Only if the mandate states a risk aversion; a positive number."
    )
    constraints: dict[str, JsonValue] = Field(
        description="Argument name of the documented API to its value, in the types and units of tool_documentation "
        "(weights and limits as fractions: 0.05 is 5 %); exactly the constraints that the mandate implies."
    )


class ToolUseParameterization(Answer):
    """Answer: the call that meets the mandate."""

    optimizer_call: OptimizerCall = Field(description="The optimiser call, by the API in tool_documentation.")


class AuthoredMandate(TypedDict):
    """A text with drawn numbers, `{name:style}`, the numbers to draw, and the call that the text implies."""

    id: str
    difficulty: str
    text: str
    draw: dict[str, list[int | float]]
    call: dict[str, Any]


def build(context: BuildContext, objects: PortfolioObjects) -> list[Task]:
    """Two draws of numbers for each authored mandate, 40 taken by difficulty; the call follows from the text alone."""
    mandates = mandate_texts()
    tasks = [_task(context, objects, mandate, draw) for draw in range(2) for mandate in mandates]
    count, rng = objects.settings["episodes_per_subtask"], context.generator(NAME, "draw")
    return stratified(tasks, lambda task: task.episode.difficulty, count, rng)


def mandate_texts() -> list[AuthoredMandate]:
    """The authored mandates that ship with the benchmark."""
    return msgspec.convert(read_catalog(__package__, "tool_use.json")["mandates"], list[AuthoredMandate])


def _task(context: BuildContext, objects: PortfolioObjects, mandate: AuthoredMandate, draw: int) -> Task:
    rng = context.generator(NAME, mandate["id"])
    # Both draws come from one stream, so that the second can avoid the first one's numbers.
    orders: dict[str, list[int]] = {
        name: rng.permutation(len(values)).tolist() for name, values in mandate["draw"].items()
    }
    drawn = {name: mandate["draw"][name][order[draw % len(order)]] for name, order in orders.items()}
    months = objects.month_ends
    month = months[int(rng.integers(len(months))) - draw]
    text, call = render(mandate["text"], drawn), fill(mandate["call"], drawn)
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{mandate['id']}"
    sectors = sorted(set(month.sectors))
    task_input: ToolUseInput = {
        "scenario_description": text,
        "tool_documentation": read_catalog_text(__package__, "optimizer_api.md"),
        "sectors": sectors,
        "universe_size": len(month.tickers),
    }
    prompt = Prompt(
        f"Translate this mandate into one call of optimize_portfolio as of {month.as_of}: {text} The API is in "
        "the task data under tool_documentation. State exactly what the mandate asks for: every limit it names, no "
        "other.",
        "Submit a JSON object with optimizer_call: objective, risk_aversion if the mandate states one, and "
        "constraints, by the names and units of the API; set long_only explicitly.",
    )
    parameters = effective_parameters(call, sectors, len(month.tickers))
    return Task(
        Episode(
            task_id,
            SKILL,
            NAME,
            month.as_of,
            mandate["difficulty"],
            task_input,
            prompt,
            {"scenario_type": mandate["id"], "parameters": len(parameters)},
        ),
        Truth(
            task_id,
            NAME,
            {"optimizer_call": call},
            {"method": METHOD, "required_parameters": sorted(call), "ground_truth_source": "authored"},
            {"kind": "authored", "template": mandate["id"], "drawn": drawn},
        ),
        {"kind": "authored", "template": mandate["id"], "drawn": drawn, "effective_parameters": parameters},
    )


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """parameter_match: matching leaves over leaves of the union of both JSON trees.

    Numbers match if |p - e| / max(|e|, 1e-6) is under `relative_tolerance`, default 0.2; anything else must be equal.
    A leaf against a subtree is one mismatch, and so is a key that one side lacks, however large its subtree; two empty
    objects are one match. The walk starts at the top level of the answer.
    """
    del task_input
    tolerance = parameter(truth.verification, "relative_tolerance", 0.2)
    matches, leaves = _match(answer, truth.expected_output, tolerance)
    return Score(share(matches, leaves), {"matches": matches, "leaves": leaves})


def _match(predicted: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float) -> tuple[int, int]:
    matches = leaves = 0
    pending: list[tuple[object, object]] = [(predicted, expected)]
    while pending:
        pair = pending.pop()
        left, right = map(mapping, pair)
        if not all(isinstance(side, Mapping) for side in pair):
            leaves += 1
            matches += _leaf_matches(*pair, tolerance)
        elif not left and not right:
            leaves += 1
            matches += 1
        else:
            for key in left.keys() | right.keys():
                if key in left and key in right:
                    pending.append((left[key], right[key]))
                else:
                    leaves += 1
    return matches, leaves


def _leaf_matches(predicted: object, expected: object, tolerance: float) -> bool:
    p, e = number(predicted), number(expected)
    if p is not None and e is not None:
        return relative_error(p, e, 1e-6) < tolerance
    return json_equal(predicted, expected)


def certified(answer: JsonObject, truth: Truth, task_input: ToolUseInput) -> Score:
    """Agreement of the parameters that change the feasible set or the objective, both ways, above the trivial call's.

    Numbers must be equal within rounding. A parameter at its default, or implied by another, does not count; one that
    is missing or added does.
    """
    sectors, size = _universe(task_input)
    wanted = effective_parameters(mapping(truth.expected_output["optimizer_call"]), sectors, size)
    given = effective_parameters(mapping(answer.get("optimizer_call")), sectors, size)
    floor = agreement(effective_parameters(TRIVIAL_CALL, sectors, size), wanted)
    raw = agreement(given, wanted)
    details = {
        "agreement": raw,
        "missing": sorted(wanted.keys() - given.keys()),
        "added": sorted(given.keys() - wanted.keys()),
    }
    return Score(clip((raw - floor) / (1.0 - floor)), details)


def _universe(task_input: JsonObject) -> tuple[list[str], int]:
    """The sectors and the number of names that a call is read for."""
    return task_input["sectors"], task_input["universe_size"]


def proof(label: Label[ToolUseInput], findings: Findings) -> None:
    """The call has only parameters that matter, and is what the text says to a reader that never saw the call."""
    where, call = label.truth.task_id, label.truth.expected_output["optimizer_call"]
    sectors, size = _universe(label.task_input)
    wanted = effective_parameters(call, sectors, size)
    findings.expect(call["objective"] in set(Objective), where, f"objective {call['objective']} is unknown")
    for name in sorted(set(call["constraints"]) - {"long_only"}):
        rest = {key: value for key, value in call["constraints"].items() if key != name}
        less = effective_parameters({**call, "constraints": rest}, sectors, size)
        findings.expect(less != wanted, where, f"{name} changes nothing")
    reading = read_mandate(label.task_input["scenario_description"], sectors)
    findings.expect(not reading.unread, where, f"the text states something no parameter takes: {reading.unread}")
    read = effective_parameters(reading.call(), sectors, size)
    differ = sorted(name for name in wanted.keys() | read.keys() if wanted.get(name) != read.get(name))
    findings.expect(agreement(read, wanted) > 1 - 1e-9, where, f"the text and the call differ on {', '.join(differ)}")
    trivial = agreement(effective_parameters(TRIVIAL_CALL, sectors, size), wanted)
    findings.expect(trivial < 1, where, "the call that needs no reading is right")
    if label.certificate:
        stored = label.certificate
        same = stored["effective_parameters"] == read
        findings.expect(same, where, "its parameters are not those that the text states")
        for name in ("template", "drawn"):
            same = label.truth.proof[name] == stored[name]
            findings.expect(same, where, f"the truth's {name} is not the certificate's")


def by_hand(data: Mapping[str, Any]) -> JsonObject:
    """The objective by its most telling word; no limit is read."""
    words = data["scenario_description"].lower()
    cues = (("risk aversion", "max_sharpe"), ("inverse-variance", "risk_parity"), ("expected return", "max_return"))
    objective = next((name for cue, name in cues if cue in words), "min_variance")
    return {"optimizer_call": {"objective": objective, "constraints": {"long_only": True}}}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_tool",
    method=METHOD,
    answer=ToolUseParameterization,
    input=ToolUseInput,
    definitions={},  # its texts say everything themselves
    cluster=lambda episode: str(episode.metadata.get("scenario_type", episode.as_of_date)),  # one text, many numbers
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
    proof=proof,
    by_hand=Naive(("scenario_description",), by_hand),
    trivial=Naive((), lambda data: {"optimizer_call": TRIVIAL_CALL}),
)
