"""Tool-use parameterisation: a mandate in words becomes one call of a documented optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue

from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, Task, catalog_text, load_catalog
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio.optimizer_call import agreement, effective_parameters, fill, render
from finskillbench.domains.portfolio.tiers import SKILL
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.measures import clip, relative_error, share
from finskillbench.scoring.values import json_equal, mapping, number

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


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """parameter_match: matching leaves over leaves of the union of both JSON trees.

    Numbers match if |p - e| / max(|e|, 1e-6) < 0.2; anything else must be equal; a leaf against a subtree is one
    mismatch; two empty objects are one match. The walk starts at the top level of the answer.
    """
    del task_input
    matches, leaves = _match(answer, truth.expected_output)
    return Score(share(matches, leaves), {"matches": matches, "leaves": leaves})


def _match(predicted: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[int, int]:
    matches = leaves = 0
    pending: list[tuple[Any, Any]] = [(predicted, expected)]
    while pending:
        left, right = pending.pop()
        if not (isinstance(left, Mapping) and isinstance(right, Mapping)):
            leaves += 1
            matches += _leaf_matches(left, right)
        elif not left and not right:
            leaves += 1
            matches += 1
        else:
            for key in left.keys() | right.keys():
                if key in left and key in right:
                    pending.append((left[key], right[key]))
                else:
                    leaves += _count_leaves(left[key] if key in left else right[key])
    return matches, leaves


def _leaf_matches(predicted: object, expected: object) -> bool:
    p, e = number(predicted), number(expected)
    if p is not None and e is not None:
        return relative_error(p, e, 1e-6) < 0.2
    return json_equal(predicted, expected)


def _count_leaves(tree: object) -> int:
    """Leaves of a tree that one side lacks; an empty object counts as one, like the match it would have been."""
    leaves = 0
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping) and node:
            pending.extend(node.values())
        else:
            leaves += 1
    return leaves


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Agreement of the parameters that change the feasible set or the objective, both ways, above the trivial call's.

    Numbers must be equal within rounding. A parameter at its default, or implied by another, does not count; one that
    is missing or added does.
    """
    sectors, size = task_input["sectors"], task_input["universe_size"]
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


def build(context: BuildContext, objects: object) -> list[Task]:
    """Two draws of numbers for each authored mandate, 40 kept by difficulty; the call follows from the text alone."""
    mandates = load_catalog("tool_use.json")["mandates"]
    tasks = [_task(context, mandate, draw) for draw in range(2) for mandate in mandates]
    rng = context.generator(NAME, "draw")
    return stratified(tasks, lambda task: task.episode.difficulty, context.catalog["episodes_per_subtask"], rng)


def _task(context: BuildContext, mandate: Mapping[str, Any], draw: int) -> Task:
    rng = context.generator(NAME, mandate["id"])
    # Both draws come from one stream, so that the second can avoid the first one's numbers.
    orders = {name: rng.permutation(len(values)) for name, values in mandate["draw"].items()}
    drawn = {name: mandate["draw"][name][order[draw % len(order)]] for name, order in orders.items()}
    month = context.month_ends[int(rng.integers(len(context.month_ends))) - draw]
    text, call = render(mandate["text"], drawn), fill(mandate["call"], drawn)
    task_id = f"{SUBTASK.prefix}_{month.as_of}_{mandate['id']}"
    sectors = sorted(set(month.sectors))
    task_input = {
        "scenario_description": text,
        "tool_documentation": catalog_text("optimizer_api.md"),
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


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_tool",
    method=METHOD,
    answer=ToolUseParameterization,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
)
