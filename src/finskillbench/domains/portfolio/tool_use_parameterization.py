"""Tool-use parameterisation: translate a written mandate into one call of a documented optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, JsonValue

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, read_catalog_text
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.portfolio.definitions import SKILL
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.examples import tool_use as examples
from finskillbench.domains.portfolio.inputs import ToolUseInput
from finskillbench.domains.portfolio.mandate_texts import PLANS, MandateSentences, MandateUniverse, compose
from finskillbench.domains.portfolio.objects import PortfolioObjects
from finskillbench.domains.portfolio.tool_use import MISTAKE, count_mistakes, effective_parameters, merit
from finskillbench.domains.portfolio.user_catalogs import sentences_for
from finskillbench.engines.portfolio.mandates.text import read_mandate
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth, lowest_raw
from finskillbench.errors import InternalError
from finskillbench.findings import Findings
from finskillbench.scoring import values

NAME = "tool_use_parameterization"
METHOD = "parameter_match"
_ATTEMPTS = 50
TRIVIAL_CALL = {"objective": "max_sharpe", "constraints": {"long_only": True}}
"""Call that needs no reading of the mandate; scores 0 under `certified`."""


class OptimizerCall(Answer):
    """One call of the optimiser."""

    objective: Literal["max_sharpe", "min_variance", "max_return", "risk_parity"] = Field(
        description="The mandate's objective; max_sharpe is mean-variance utility, risk_parity "
        "regularised inverse variance."
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


def _build(context: BuildContext, objects: PortfolioObjects) -> list[BuiltTask]:
    """Build 40 mandates with distinct templates; objectives and difficulties alternate, the rest is drawn."""
    vocabulary, count = sentences_for(context.catalog), objects.settings["episodes_per_subtask"]
    order = context.generator(NAME, "order").permutation(count).tolist()
    templates: set[str] = set()
    return [_task(context, objects, vocabulary, place, index, templates) for place, index in enumerate(order)]


def _task(
    context: BuildContext,
    objects: PortfolioObjects,
    vocabulary: MandateSentences,
    place: int,
    index: int,
    templates: set[str],
) -> BuiltTask:
    month = objects.month_ends[place % len(objects.month_ends)]
    universe = MandateUniverse(tuple(sorted(set(month.sectors))), len(month.tickers), month.benchmark_sectors)
    objective = tuple(Objective)[index % len(Objective)]
    difficulty = tuple(PLANS)[index // len(Objective) % len(PLANS)]
    for attempt in range(_ATTEMPTS):
        rng = context.generator(NAME, index, attempt)
        mandate = compose(objective, difficulty, universe, vocabulary, rng)
        if mandate.template not in templates and not _idle(mandate.call, universe.sectors, universe.size):
            break
    else:
        raise InternalError(f"no new template in {_ATTEMPTS} draws of {difficulty} mandates for {objective}")
    templates.add(mandate.template)
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{place:02d}"
    task_input: ToolUseInput = {
        "scenario_description": mandate.text,
        "tool_documentation": read_catalog_text(__package__, "optimizer_api.md"),
        "sectors": list(universe.sectors),
        "universe_size": universe.size,
    }
    prompt = Prompt(
        f"Translate this mandate into one call of optimize_portfolio as of {month.as_of}: {mandate.text} The API is in "
        "the task data under tool_documentation. State exactly what the mandate requires: every limit it sets, no "
        "other, in the units of the API.",
        "Submit a JSON object with optimizer_call: objective, risk_aversion if the mandate states one, and "
        "constraints, by the names and units of the API; set long_only explicitly.",
    )
    parameters = effective_parameters(mandate.call, universe.sectors, universe.size)
    origin = {"kind": "composed", "template": mandate.template}
    return BuiltTask(
        Episode(task_id, SKILL, NAME, month.as_of, difficulty, task_input, prompt),
        Truth(task_id, NAME, {"optimizer_call": mandate.call}, {"required_parameters": sorted(mandate.call)}, origin),
        {**origin, "effective_parameters": parameters},
    )


def _idle(call: Mapping[str, Any], sectors: Sequence[str], size: int) -> list[str]:
    """Return the constraints that can be removed without changing the call's effect."""
    limits = call["constraints"]
    wanted = effective_parameters(call, sectors, size)
    return [
        name
        for name in sorted(set(limits) - {"long_only"})
        if effective_parameters(
            {**call, "constraints": {key: value for key, value in limits.items() if key != name}}, sectors, size
        )
        == wanted
    ]


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """parameter_match: matching leaves over leaves of the union of both JSON trees.

    Numbers match if |p - e| / max(|e|, 1e-6) < `relative_tolerance` (default 0.2); other values must be equal. A leaf
    against a subtree, or a key absent on one side, is one mismatch; two empty objects are one match.
    """
    del task_input
    tolerance = values.parameter(truth.verification, "relative_tolerance", 0.2, positive=False)
    matches, leaves = _match(answer, truth.expected_output, tolerance)
    return Score(values.share(matches, leaves), {"matches": matches, "leaves": leaves})


def _match(predicted: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float) -> tuple[int, int]:
    matches = leaves = 0
    pending: list[tuple[object, object]] = [(predicted, expected)]
    while pending:
        pair = pending.pop()
        left, right = map(values.as_object, pair)
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
    p, e = values.as_number(predicted), values.as_number(expected)
    if p is not None and e is not None:
        return values.relative_error(p, e, 1e-6) < tolerance
    return values.json_equal(predicted, expected)


def _certified(answer: JsonObject, truth: Truth, task_input: ToolUseInput) -> Score:
    """Halve the marks for each wrong, missing or added limit, rescaled so that the trivial call earns 0.

    Numbers must agree within rounding. Default or implied parameters do not count. A wrong objective costs marks by
    `ANOTHER_OBJECTIVE`.
    """
    sectors, size = _universe(task_input)
    wanted = effective_parameters(values.as_object(truth.expected_output["optimizer_call"]), sectors, size)
    submitted = effective_parameters(values.as_object(answer.get("optimizer_call")), sectors, size)
    floor = MISTAKE ** count_mistakes(effective_parameters(TRIVIAL_CALL, sectors, size), wanted)
    raw = merit(submitted, wanted)
    details = {
        "merit": raw,
        "missing": sorted(wanted.keys() - submitted.keys()),
        "added": sorted(submitted.keys() - wanted.keys()),
    }
    unlimited = (raw - floor) / (1.0 - floor) if floor < 1.0 else raw
    value = values.clip(unlimited)
    called = "objective" in values.as_object(answer.get("optimizer_call"))
    return Score(value, details, value or lowest_raw(unlimited if called else None))


def _universe(task_input: JsonObject) -> tuple[list[str], int]:
    return task_input["sectors"], task_input["universe_size"]


def _proof(label: Label[ToolUseInput], findings: Findings) -> None:
    """Check that every parameter matters and that an independent reading of the text yields the call."""
    where, call = label.truth.task_id, label.truth.expected_output["optimizer_call"]
    stated = label.truth.verification.get("required_parameters")
    findings.expect(stated == sorted(call), where, f"required_parameters are {stated}, not those of the call")
    sectors, size = _universe(label.task_input)
    wanted = effective_parameters(call, sectors, size)
    findings.expect(call["objective"] in set(Objective), where, f"objective {call['objective']} is unknown")
    for name in _idle(call, sectors, size):
        findings.fail(where, f"{name} changes nothing")
    reading = read_mandate(label.task_input["scenario_description"], sectors)
    findings.expect(not reading.unread, where, f"the text states limits without a parameter: {reading.unread}")
    read = effective_parameters(reading.call(), sectors, size)
    differ = sorted(name for name in wanted.keys() | read.keys() if wanted.get(name) != read.get(name))
    findings.expect(merit(read, wanted) > 1 - 1e-9, where, f"the text and the call differ on {', '.join(differ)}")
    trivial = merit(effective_parameters(TRIVIAL_CALL, sectors, size), wanted)
    findings.expect(trivial < 1, where, "the call that needs no reading is right")
    if label.certificate:
        stored = label.certificate
        same = stored["effective_parameters"] == read
        findings.expect(same, where, "its parameters are not those that the text states")
        same = label.truth.proof["template"] == stored["template"]
        findings.expect(same, where, "the truth's template is not the certificate's")


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    text = data["scenario_description"].lower()
    cues = (("risk aversion", "max_sharpe"), ("inverse-variance", "risk_parity"), ("expected return", "max_return"))
    objective = next((name for cue, name in cues if cue in text), "min_variance")
    return {"optimizer_call": {"objective": objective, "constraints": {"long_only": True}}}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_tool",
    input=ToolUseInput,
    answer=ToolUseParameterization,
    definitions={},  # the texts contain all definitions
    template_of=lambda episode, _: episode.input["scenario_description"].partition(".")[0],
    # Releases have one text with many numbers; here every mandate has its own template.
    cluster=lambda episode: str(episode.metadata.get("scenario_type", episode.task_id)),
    build=_build,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD, parameters={"ground_truth_source": "composed by grammar"}, proved=("required_parameters",)
    ),
    baselines=Baselines(
        no_skill=Naive(("scenario_description",), _no_skill_baseline),
        trivial=Naive((), lambda data: {"optimizer_call": TRIVIAL_CALL}),
        heuristic="every parameter",
    ),
    examples=Examples(
        graded=examples.graded_examples, exploits=exploits.tool_use_exploits, shortcuts=Shortcuts(examples.shortcuts)
    ),
)
