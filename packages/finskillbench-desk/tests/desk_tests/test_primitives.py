"""Scripts for desk cases return measures and proofs, never what could be handed in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

import pytest
from pydantic import Field

from finskillbench.domains.base import Answer
from finskillbench.findings import Findings
from finskillbench_desk.checks import check_primitives, find_complete_answers, objects_of
from finskillbench_desk.domain import DOMAIN, SKILLS

ANSWERS = [subtask.answer for subtask in DOMAIN.subtasks]


class Suspect(Answer):
    company: str
    probability: float


class Screened(Answer):
    assessments: list[Suspect] = Field(description="All.")


def test_no_script_writes_an_answer() -> None:
    findings = Findings()
    check_primitives(SKILLS, ANSWERS, findings)
    assert not findings.found
    assert findings.figures["scripts"] == 24


def test_objects_are_told_by_their_keys() -> None:
    assert objects_of(Screened) == {
        "Screened": frozenset({"assessments"}),
        "Suspect": frozenset({"company", "probability"}),
    }


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('def main(p):\n    return {"assessments": []}', "Screened"),
        ('def main(p):\n    return {"found": [{"company": c, "probability": 1, "odds": 2} for c in p]}', "Suspect"),
        ("def main(p):\n    return dict(company=1, probability=2)", "Suspect"),
        ('def main(p):\n    return {"companies": [], "probabilities": []}', None),
        ('def main(p):\n    return {"company": 1, "log_odds": 2}', None),
    ],
)
def test_a_finished_answer_is_seen(tmp_path: Path, source: str, name: str | None) -> None:
    script = tmp_path / "screen.py"
    script.write_text(source)
    assert next((found for _, found in find_complete_answers(script, objects_of(Screened))), None) == name


def test_fields_to_inject_are_fields_of_cases() -> None:
    fields = set().union(*(get_type_hints(subtask.input) for subtask in DOMAIN.subtasks if subtask.input))
    rows = [
        row
        for skill in SKILLS
        for row in re.findall(r"`scripts/(\w+)\.py` \| ([\w., ]+) \|$", (skill / "SKILL.md").read_text(), re.MULTILINE)
    ]
    listed = {script: names.split(", ") for script, names in rows if re.fullmatch(r"[\w.]+(, [\w.]+)*", names)}
    assert listed.keys() >= {"mandate_evidence", "run_rules", "signal_worth", "panel_regress", "statement_checks"}
    unknown = {script: set(names) - fields - {"none"} for script, names in listed.items()}
    assert not {script: names for script, names in unknown.items() if names}
