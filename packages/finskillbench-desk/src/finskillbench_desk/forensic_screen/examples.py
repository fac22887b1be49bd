"""Answers of known quality: from the posterior down to nothing, answers without analysis, and mechanical recipes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.interactive import Procedure, ProcedureCall
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import as_number
from finskillbench_desk.engines.screening.checks import statement_checks
from finskillbench_desk.engines.screening.task import calibrate, case_effects, ratio_innovations, signature_match
from finskillbench_desk.forensic_screen import procedures
from finskillbench_desk.forensic_screen.difficulty import FLOOR, KIND_NAMES, WEIGHTS, single_kind, stored_posterior

_ROUNDED = 0.97
"""Least score of probabilities rounded to two decimals."""


def assessments_of(companies: Sequence[str], probabilities: Floats, kinds: Integers) -> dict[str, Any]:
    return {
        "assessments": [
            {"company": company, "probability": float(probability), "kind": KIND_NAMES[int(kind)]}
            for company, probability, kind in zip(companies, probabilities, kinds, strict=True)
        ]
    }


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Grade answers from the posterior through rounding and shrinkage to one answer for all."""
    companies, posterior = stored_posterior(label.truth.verification)
    rate = as_number(label.truth.verification.get("base_rate")) or 0.0
    managed, kinds = posterior.sum(axis=1), posterior.argmax(axis=1)
    nothing = np.full(len(companies), rate)
    one_kind = np.full(len(companies), single_kind(posterior))
    half = shrunk(managed, rate, 0.5)
    return [
        GradedExample("the posterior", assessments_of(companies, managed, kinds), 1.0, 1.0),
        GradedExample("to two decimals", assessments_of(companies, managed.round(2), kinds), _ROUNDED, 1.0),
        GradedExample("half of the evidence", assessments_of(companies, half, kinds), 0.5, 0.98),
        GradedExample(
            "half of the evidence, one kind", assessments_of(companies, half, one_kind), 0.2, WEIGHTS["probabilities"]
        ),
        GradedExample("kinds alone", assessments_of(companies, nothing, kinds), WEIGHTS["kinds"], WEIGHTS["kinds"]),
        GradedExample("base rate and one kind", assessments_of(companies, nothing, one_kind), 0.0, 0.0),
    ]


def shrunk(probabilities: Floats, base_rate: float, weight: float) -> Floats:
    """Multiply the evidence, in log odds beyond the base rate, by a weight."""
    clipped = np.clip(probabilities, FLOOR * 1e-6, 1.0 - FLOOR * 1e-6)
    prior = np.log(base_rate) - np.log1p(-base_rate)
    evidence = np.log(clipped) - np.log1p(-clipped) - prior
    return 1.0 / (1.0 + np.exp(-(prior + weight * evidence)))


def exploits(task_input: Mapping[str, Any]) -> dict[str, JsonObject]:
    """Return answers without analysis: one number for all, or suspicion by events and restatements.

    If the law is not disclosed, mechanical use of the scripts is another one.
    """
    companies: list[str] = task_input["companies"]["company"]
    disclosed = "model" in task_input
    if disclosed:
        shares = {kind["name"]: kind["share"] for kind in task_input["model"]["kinds"]}
    else:
        shares = Counter(kind for kind in task_input["archive"]["kind"] if kind in KIND_NAMES)
    largest = np.full(len(companies), int(np.argmax([shares.get(name, 0) for name in KIND_NAMES])))
    events: set[str] = set(task_input["events"]["company"])
    restated = {
        company
        for company, version in zip(
            task_input["statements"]["company"], task_input["statements"]["version"], strict=True
        )
        if version > 1
    }

    def suspected(names: set[str]) -> JsonObject:
        listed = np.array([0.3 if company in names else 0.08 for company in companies])
        return assessments_of(companies, listed, largest)

    mechanical = {} if disclosed else {"mechanical use of the scripts": play(procedures.reference, task_input)}
    return mechanical | {
        "even odds": assessments_of(companies, np.full(len(companies), 0.5), largest),
        "zero for all": assessments_of(companies, np.zeros(len(companies)), largest),
        "one in ten, the kind of largest share": assessments_of(companies, np.full(len(companies), 0.1), largest),
        "companies with an event": suspected(events),
        "companies with a restatement": suspected(restated),
    }


_SCRIPTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "statement_checks": statement_checks,
    "case_effects": case_effects,
    "ratio_innovations": ratio_innovations,
    "signature_match": signature_match,
    "calibrate": calibrate,
}


def play(procedure: Procedure, task_input: Mapping[str, Any]) -> JsonObject:
    """Return the answer of a procedure that works on a full input without the harness."""
    playing = procedure()
    calls = next(playing)
    while True:
        results = [json.loads(json.dumps(_result(each, task_input), allow_nan=False)) for each in calls]
        try:
            calls = playing.send(results)
        except StopIteration as done:
            return done.value


def _result(planned: ProcedureCall, task_input: Mapping[str, Any]) -> dict[str, Any]:
    arguments = planned.arguments
    match planned.tool:
        case "get_task_data":
            value: Any = task_input
            for key in arguments["field"].split("."):
                value = value[key]
            return {"value": dict(value)}
        case "read_table":
            return dict(task_input[arguments["table"]].page(rows=arguments["rows"]))
        case "run_skill_script":
            injected = {name: dict(task_input[name]) for name in arguments["inject_task_fields"]}
            return {
                "output": _SCRIPTS[PurePath(arguments["script_path"]).stem]({**arguments["input_data"], **injected})
            }
        case _:
            return {}
