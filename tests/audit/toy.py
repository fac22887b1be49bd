"""A domain of one subtask, small enough that every check of the audit can be tried on it in milliseconds.

A book of two holdings is to be valued: their quantities times their prices, and which of them is worth more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Domain, Naive, Subtask, Verification
from finskillbench.domains.examples import Examples, GradedExample, Label
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number, clip

DOMAIN, SUBTASK = "bookkeeping", "valuation"
DAY = date(2025, 1, 31)
SKILL_TEXT = """\
---
name: bookkeeping
description: Values a book of holdings. Use it where quantities and prices are given.
---
| task | script | inject_task_fields | submit |
|---|---|---|---|
| valuation | scripts/value.py | quantities, prices | value, largest |
"""
SCRIPT = '''\
"""Values a book."""


def main(payload: dict) -> dict:
    values = {name: payload["quantities"][name] * payload["prices"][name] for name in payload["quantities"]}
    return {"value": sum(values.values()), "largest": max(values, key=values.get)}
'''


class BookInput(TypedDict):
    """What the agent is given."""

    quantities: dict[str, float]
    prices: dict[str, float]


class Book(Answer):
    """What it must return."""

    value: float = Field(description="USD.")
    largest: str = Field(description="The holding that is worth more.")


def second(task_input: Mapping[str, Any]) -> JsonObject:
    """The value and the larger holding."""
    worth = {name: count * task_input["prices"][name] for name, count in task_input["quantities"].items()}
    return {"value": sum(worth.values()), "largest": max(worth, key=lambda name: worth[name])}


def scored(answer: JsonObject, truth: Truth, task_input: Any) -> Score:
    """Half for the value, half for the name, the name only beside a value."""
    del task_input
    value = as_number(answer.get("value"))
    if value is None:
        return Score(0.0)
    wanted = truth.expected_output["value"]
    near = clip(1 - abs(value - wanted) / (0.05 * abs(wanted)))
    named = answer.get("largest") == truth.expected_output["largest"]
    return Score(0.5 * near + 0.5 * named if near else 0.0)


def ladder(label: Label) -> list[GradedExample]:
    """The truth, the wrong name, twice the value."""
    truth = label.truth.expected_output
    return [
        GradedExample("the truth", truth, 1.0, 1.0),
        GradedExample("wrong name", {**truth, "largest": "nobody"}, 0.5, 0.5),
        GradedExample("twice the value", {**truth, "value": 2 * truth["value"]}, 0.0, 0.1),
    ]


EXAMPLES = Examples(graded=ladder, exploits=lambda task_input: {"a million": {"value": 1e6, "largest": "A"}})


def valuation(**changes: Any) -> Subtask:
    """The subtask, with other parts where a test needs them."""
    subtask = Subtask(
        name=SUBTASK,
        prefix="bk_val",
        input=BookInput,
        answer=Book,
        definitions={},
        rederive=second,
        scorers={Profile.PAPER: scored, Profile.STRICT: scored, Profile.CERTIFIED: scored},
        verification=Verification(method="valuation"),
        baselines=Baselines(trivial=Naive((), lambda data: {"value": 0.0, "largest": ""})),
        examples=EXAMPLES,
    )
    return replace(subtask, **changes)


def bookkeeping(folder: Path, subtask: Subtask, **changes: Any) -> Domain:
    """The domain, with its skill package written to a folder."""
    package = folder / "bookkeeping"
    (package / "scripts").mkdir(parents=True, exist_ok=True)
    (package / "SKILL.md").write_text(SKILL_TEXT)
    (package / "scripts" / "value.py").write_text(SCRIPT)
    domain = Domain(
        name=DOMAIN, skills=(package,), subtasks=(subtask,), prepare=lambda context: None, checks={"books": _fine}
    )
    return replace(domain, **changes)


def _fine(subject: object, findings: Findings) -> None:
    del subject
    findings.expect(True, "books", "is in order")


def tasks(count: int = 6) -> list[tuple[Episode, Truth]]:
    """Episodes with their truths, no two alike."""
    made: list[tuple[Episode, Truth]] = []
    for i in range(count):
        task_input = {
            "quantities": {"A": 101.0 + 37 * i, "B": 250.0 - 31 * i},
            "prices": {"A": 12.34 + 3.1 * i, "B": 45.67 - 1.7 * i},
            "conventions": {},
        }
        prompt = Prompt(f"Value the book of day {i}.", "Respond with one JSON object.")
        episode = Episode(f"bk_val_{i}", DOMAIN, SUBTASK, DAY, "easy", task_input, prompt, {})
        proof = {"kind": "rederived", "difference": 0.0, "tolerance": 1e-9, "numbers": 2, "second": "by hand"}
        made.append((episode, Truth(episode.task_id, SUBTASK, second(task_input), {"method": "valuation"}, proof)))
    return made
