"""Validation of a whole edition: what is built passes, what is withheld is skipped, what is malformed is named."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import orjson
from tests.edition.examined import validated
from tests.registry import DOMAINS, SUBTASKS

from finskillbench.edition import load_edition
from finskillbench.edition.checks.catalog import CheckReport, checks_of
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.findings import CheckState, Findings

PORTFOLIO = "portfolio_construction"
CHECKS = {domain.name: checks_of(domain) for domain in DOMAINS}


def failed(report: CheckReport) -> set[tuple[str, str]]:
    return {(check.domain, check.name) for check in report.checks if check.state is CheckState.FAIL}


def test_a_built_edition_passes_every_check(synthetic_report: CheckReport) -> None:
    report = synthetic_report
    expected = [(domain, name) for domain, checks in CHECKS.items() for name in checks]
    assert [(check.domain, check.name) for check in report.checks] == [*expected, ("edition", "labels")]
    assert [(f.where, f.message) for check in report.checks for f in check.findings if f.state is CheckState.FAIL] == []
    assert report.counts[CheckState.SKIP] == 0
    assert report.passed
    assert orjson.loads(orjson.dumps(report.to_json())) == report.to_json()  # no NumPy scalar among the figures


def test_extremes_are_plain_numbers_whatever_was_measured() -> None:
    findings = Findings()
    for value in (np.float64(2.0), 3.0):
        findings.least("least", value)
        findings.widest("widest", value)
    assert findings.figures == {"least": 2.0, "widest": 3.0}
    assert {type(value) for value in findings.figures.values()} == {float}


def test_without_truth_its_checks_are_skipped(workshop: Any) -> None:
    for part in ("truth", "certificates"):
        shutil.rmtree(workshop.folder / part)
    report = validate_edition(load_edition(workshop.folder))
    skipped = {check.name: check.reason for check in report.checks if check.state is CheckState.SKIP}
    assert set(skipped) == {*(subtask.name for subtask in SUBTASKS), "labels"}
    assert report.passed


def test_a_malformed_label_is_a_finding(workshop: Any) -> None:
    """It ends no check: the progress names each of them."""
    workshop.edit("truth", "unconstrained_optimization", lambda row: row["expected_output"].clear())
    steps: list[str] = []
    report = validated(workshop.reload(), progress=lambda stage, done, total: steps.append(stage))
    assert failed(report) == {(PORTFOLIO, "unconstrained_optimization")}
    finding = next(f for check in report.checks for f in check.findings if f.state is CheckState.FAIL)
    assert finding.where == workshop.rows("truth", "unconstrained_optimization")[0]["task_id"]
    assert finding.message == "malformed: KeyError: 'weights'"
    assert steps == [
        "starting",
        *(f"checking {domain.replace('_', ' ')}: {name}" for domain, checks in CHECKS.items() for name in checks),
    ]
