"""Cases whose law is not disclosed: score, proof, traps, programs, and what the input keeps back."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from desk_tests.forensic_screen.playing import full_input, play, undisclosed

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.examples import Label
from finskillbench.episode import Disclosure
from finskillbench.findings import Findings
from finskillbench_desk.forensic_screen import procedures
from finskillbench_desk.forensic_screen.difficulty import KIND_NAMES, ParsedAssessments, score_parts, stored_posterior
from finskillbench_desk.forensic_screen.examples import exploits, graded_examples
from finskillbench_desk.forensic_screen.law_world import CORRECTIONS
from finskillbench_desk.forensic_screen.laws import STRUCTURES
from finskillbench_desk.forensic_screen.subtask import certified, proof

CASES: list[tuple[str, Disclosure, int]] = [("growing_signature", "described", 2), ("size_opposed", "data", 3)]


def _label(made: BuiltTask) -> Label[Any]:
    return Label(made.episode, full_input(made), made.truth, made.certificate)


def _messages(label: Label[Any]) -> list[str]:
    findings = Findings()
    proof(label, findings)
    return [finding.message for finding in findings.found]


@pytest.mark.parametrize(("structure", "level", "seed"), CASES)
def test_the_truth_earns_everything_nothing_earns_nothing_and_the_graded_fall(
    structure: str, level: Disclosure, seed: int
) -> None:
    made = undisclosed(structure, level, seed)
    label = _label(made)
    scores = [certified(each.answer, made.truth, label.task_input).value for each in graded_examples(label)]
    for each, score in zip(graded_examples(label), scores, strict=True):
        assert each.least - 1e-9 <= score <= each.most + 1e-9, each.name
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert certified({}, made.truth, label.task_input).value == 0.0


@pytest.mark.parametrize(("structure", "level", "seed"), CASES)
def test_hindsight_earns_no_more_than_one(structure: str, level: Disclosure, seed: int) -> None:
    """Truth holds no outcome, so redraws cannot move a score, and an oracle's certainties cannot be expected."""
    verification = undisclosed(structure, level, seed).truth.verification
    assert set(verification) == {"base_rate", "posterior", "traps", "law"}
    companies, posterior = stored_posterior(verification)
    rng = np.random.default_rng(seed)
    chances = np.column_stack([posterior, 1.0 - posterior.sum(axis=1)])
    for _ in range(100):
        drawn = (rng.random((len(companies), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
        managed = drawn < len(KIND_NAMES)
        oracle = ParsedAssessments(managed.astype(float), np.where(managed, drawn, 0))
        earned = score_parts(oracle, posterior, verification["base_rate"])
        assert earned["probabilities"] < 1.0
        assert earned["kinds"] <= 1.0


@pytest.mark.parametrize(("structure", "level", "seed"), CASES)
def test_the_input_names_neither_structure_nor_parameter(structure: str, level: Disclosure, seed: int) -> None:
    made = undisclosed(structure, level, seed)
    assert made.episode.task_id.endswith(f"_{level}")
    assert "model" not in made.episode.input
    documents = made.episode.input["documents"]
    assert set(documents) == ({"memo", "data_notes"} if level == "described" else {"data_notes"})
    text = json.dumps([made.episode.input, made.episode.metadata, made.episode.prompt.task_description])
    law = made.truth.verification["law"]
    assert not [word for word in (*STRUCTURES, "damping", "signature", "persistence", "freedom") if word in text]
    rates = {f"{value:g}" for value in (*law["rates"], law["shock"], law["model"]["freedom"]) if value}
    assert not [rate for rate in rates if f" {rate} " in text]
    cells = {row for table in made.tables.values() for row in table.columns}
    assert not cells & {"start", "true_kind", "managed", "law"}


DEFECTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "strength": lambda stored: stored["law"]["signature"][0].__setitem__(0, 9.0),
    "form": lambda stored: stored["law"].update(form="year_end"),
    "persistence": lambda stored: stored["law"]["model"]["persistence"].__setitem__(1, 0.5),
    "rates": lambda stored: stored["law"]["rates"].__setitem__(2, 0.5),
    "zero": lambda stored: stored.update(base_rate=stored["base_rate"] * 1.01),
    "posterior": lambda stored: next(iter(stored["posterior"].values())).__setitem__(0, 0.25),
    "trap": lambda stored: stored["traps"].pop(),
}


def test_a_sound_case_is_sound() -> None:
    assert _messages(_label(undisclosed(*CASES[0]))) == []


@pytest.mark.parametrize("name", DEFECTS)
def test_a_tampered_truth_is_noticed(name: str) -> None:
    label = _label(undisclosed(*CASES[0]))
    stored = cast("dict[str, Any]", deepcopy(label.truth.verification))
    DEFECTS[name](stored)
    assert _messages(replace(label, truth=replace(label.truth, verification=stored)))


def test_a_posterior_that_was_swapped_together_with_the_answer_is_noticed() -> None:
    """The two companies are none of those that are rederived."""
    label = _label(undisclosed(*CASES[0]))
    stored, answer = deepcopy(label.truth.verification), deepcopy(label.truth.expected_output)
    one, other = (row["company"] for row in answer["assessments"][1:3])
    rows, entries = stored["posterior"], answer["assessments"]
    rows[one], rows[other] = rows[other], rows[one]
    entries[1], entries[2] = {**entries[2], "company": one}, {**entries[1], "company": other}
    truth = replace(label.truth, verification=stored, expected_output=answer)
    assert [message for message in _messages(replace(label, truth=truth)) if "that of its law" in message]


def test_another_answer_and_a_lost_proof_are_noticed() -> None:
    label = _label(undisclosed(*CASES[0]))
    other = deepcopy(label.truth.expected_output)
    other["assessments"][0]["probability"] += 1e-5
    assert _messages(replace(label, truth=replace(label.truth, expected_output=other)))
    assert _messages(replace(label, truth=replace(label.truth, proof={})))


@pytest.mark.parametrize(("structure", "level", "seed"), CASES)
def test_programs_run_at_every_level_and_earn_little(structure: str, level: Disclosure, seed: int) -> None:
    made = undisclosed(structure, level, seed)
    fields = full_input(made)
    for name in ("reference", "textbook", "trapped"):
        answer = play(made, getattr(procedures, name))
        assert len(answer["assessments"]) == len(fields["companies"]["company"])
        score = certified(answer, made.truth, fields)
        assert score.value <= 0.4
        verdicts = list(score.details["traps"].values())
        assert name != "textbook" or score.value <= 0.2
        assert name != "trapped" or verdicts.count("fallen") > len(verdicts) / 2
    mechanical = exploits(fields)["mechanical use of the scripts"]
    assert mechanical == play(made, procedures.reference)


@pytest.mark.parametrize(("structure", "level", "seed"), CASES)
def test_corrections_are_traps_at_companies_that_are_innocent(structure: str, level: Disclosure, seed: int) -> None:
    made = undisclosed(structure, level, seed)
    companies, posterior = stored_posterior(made.truth.verification)
    managed = dict(zip(companies, posterior.sum(axis=1), strict=True))
    traps = made.truth.verification["traps"]
    assert len(traps) >= 4
    assert {trap["kind"] for trap in traps} <= set(CORRECTIONS)
    assert all(managed[trap["where"]] < 0.5 < trap["probabilities"][trap["where"]] for trap in traps)
    verdicts = certified(made.truth.expected_output, made.truth, full_input(made)).details["traps"]
    assert set(verdicts.values()) == {"avoided"}


@pytest.mark.slow
@pytest.mark.parametrize("structure", [*STRUCTURES][::3])
def test_a_structure_builds_and_is_proved(structure: str) -> None:
    """The others are proved in the edition of a thorough run."""
    assert _messages(_label(undisclosed(structure, "data", 11))) == []
