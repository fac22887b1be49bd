"""Answers made to examine the score: a ladder from right to wrong, and recipes that do without the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import number
from finskillbench_desk.forensic_screen.dials import FLOOR, KIND_NAMES
from finskillbench_desk.forensic_screen.merit import WEIGHTS, single_kind, stored_posterior

_ROUNDED = 0.97
"""What probabilities to two decimals earn at least."""


def answer_of(companies: Sequence[str], probabilities: Floats, kinds: Integers) -> dict[str, Any]:
    """An answer of all companies."""
    return {
        "assessments": [
            {"company": company, "probability": float(probability), "kind": KIND_NAMES[int(kind)]}
            for company, probability, kind in zip(companies, probabilities, kinds, strict=True)
        ]
    }


def ladder(label: Label[Any]) -> list[GradedExample]:
    """From the posterior over rounding and timidity to one answer for all."""
    companies, posterior = stored_posterior(label.truth.verification)
    rate = number(label.truth.verification.get("base_rate")) or 0.0
    managed, kinds = posterior.sum(axis=1), posterior.argmax(axis=1)
    nothing = np.full(len(companies), rate)
    one_kind = np.full(len(companies), single_kind(posterior))
    half = shrunk(managed, rate, 0.5)
    return [
        GradedExample("the posterior", answer_of(companies, managed, kinds), 1.0, 1.0),
        GradedExample("to two decimals", answer_of(companies, managed.round(2), kinds), _ROUNDED, 1.0),
        GradedExample("half of the evidence", answer_of(companies, half, kinds), 0.5, 0.98),
        GradedExample(
            "half of the evidence, one kind", answer_of(companies, half, one_kind), 0.2, WEIGHTS["probabilities"]
        ),
        GradedExample("kinds alone", answer_of(companies, nothing, kinds), WEIGHTS["kinds"], WEIGHTS["kinds"]),
        GradedExample("base rate and one kind", answer_of(companies, nothing, one_kind), 0.0, 0.0),
    ]


def shrunk(probabilities: Floats, base_rate: float, weight: float) -> Floats:
    """Probabilities whose evidence, in log odds beyond the base rate, is multiplied by a weight."""
    clipped = np.clip(probabilities, FLOOR * 1e-6, 1.0 - FLOOR * 1e-6)
    prior = np.log(base_rate) - np.log1p(-base_rate)
    evidence = np.log(clipped) - np.log1p(-clipped) - prior
    return 1.0 / (1.0 + np.exp(-(prior + weight * evidence)))


def exploits(task_input: Mapping[str, Any]) -> dict[str, JsonObject]:
    """Recipes: one number for all, kinds by the memo's shares, and suspicion by what stands in events and versions."""
    companies: list[str] = task_input["companies"]["company"]
    shares = np.array([kind["share"] for kind in task_input["model"]["kinds"]])
    largest = np.full(len(companies), int(shares.argmax()))
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
        return answer_of(companies, listed, largest)

    return {
        "even odds": answer_of(companies, np.full(len(companies), 0.5), largest),
        "nobody": answer_of(companies, np.zeros(len(companies)), largest),
        "one in ten, the kind of largest share": answer_of(companies, np.full(len(companies), 0.1), largest),
        "whoever has an event": suspected(events),
        "whoever restated": suspected(restated),
    }
