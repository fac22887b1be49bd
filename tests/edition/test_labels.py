"""Labels that no check looks at, and inputs of another type than their subtask's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest

from finskillbench.domains import by_name, domain, domains
from finskillbench.edition import Edition, validation
from finskillbench.edition.validation import State, checks_of, validate_edition
from finskillbench.edition.validation.labels import every_label_touched
from finskillbench.errors import InputError, InternalError
from finskillbench.findings import Findings


def test_a_label_that_no_check_looks_at_fails_the_edition(slim: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    known = next(one for one in domains() if "risk_identification" in {each.name for each in one.subtasks})
    silent = tuple(
        replace(one, second=None, proof=lambda label, findings: None) if one.name == "risk_identification" else one
        for one in known.subtasks
    )
    registry = tuple(replace(one, subtasks=silent, checks={}) if one is known else one for one in domains())
    monkeypatch.setattr(validation, "domains", lambda: registry)
    check = validate_edition(slim).checks[-1]
    assert (check.domain, check.name, check.state) == ("edition", "labels", State.FAIL)
    named = {finding.where for finding in check.findings}
    assert {episode.task_id for episode in slim.episodes(["risk_identification"])} <= named
    assert not named & {episode.task_id for episode in slim.episodes(["stress_testing", "normalization"])}


def test_a_subtask_that_no_domain_knows_is_unchecked(slim: Edition) -> None:
    findings = Findings()
    every_label_touched(slim, set(), True, findings)
    assert {finding.where for finding in findings.found} == {episode.task_id for episode in slim.episodes()}


def test_an_input_of_another_type_is_named(workshop: Any) -> None:
    workshop.edit("episodes", "stress_testing", lambda row: row["input"]["portfolio"].update(total_nav="much"), index=1)
    task_id = workshop.rows("episodes", "stress_testing")[1]["task_id"]
    report = workshop.validated("risk_management")
    found = [f for check in report.checks if check.name == "stress_testing" for f in check.findings]
    assert [finding.where for finding in found] == [task_id]
    assert "portfolio.total_nav" in found[0].message


def test_definitions_are_checked_in_an_edition_without_truth(workshop: Any) -> None:
    workshop.edit("episodes", "stress_testing", lambda row: row["input"]["conventions"].update(units="thousands"))
    task_id = workshop.rows("episodes", "stress_testing")[0]["task_id"]
    for part in ("truth", "certificates"):
        shutil.rmtree(workshop.folder / part)
    report = workshop.validated("risk_management")
    found = [(check.name, f.where, f.message) for check in report.checks for f in check.findings]
    assert found == [("stress_testing", task_id, "conventions: units is not defined as the engine computes it")]


def test_a_check_that_is_called_like_a_subtask_is_refused() -> None:
    known = domain("risk_management")
    taken = replace(known, checks={**known.checks, "stress_testing": lambda subject, findings: None})
    with pytest.raises(InputError, match=r"domain risk_management: its check stress_testing .* rename the check"):
        checks_of(taken)


def test_a_subtask_without_a_second_derivation_or_a_proof_is_refused() -> None:
    with pytest.raises(InternalError, match=r"subtask stress_testing has neither `second` nor `proof`.*; give it"):
        replace(by_name("stress_testing"), second=None, proof=None)
