"""Validation of risk management: each planted defect fails its own check and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.domains.risk.defects import CHECKS, DEFECTS, OUTPUT, RISK, Row, at, of_kind
from tests.edition.conftest import Workshop
from tests.sampling import THOROUGH, sampled

from finskillbench.arrays import FACTORS
from finskillbench.domains import domain
from finskillbench.domains.risk import rederive
from finskillbench.domains.risk.objects.recipes import TYPES
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.risk import exposures, mandate, monitor
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE
from finskillbench.findings import CheckState


@pytest.fixture(scope="session")
def edition(synthetic_edition: Edition) -> Edition:
    """What is planted is planted in copies of the synthetic edition."""
    return synthetic_edition


def failed(report: CheckReport) -> set[tuple[str, str]]:
    return {(check.domain, check.name) for check in report.checks if check.state is CheckState.FAIL}


def told(report: CheckReport) -> list[tuple[str, str, str]]:
    return [(c.name, f.where, f.message) for c in report.checks for f in c.findings if f.state is CheckState.FAIL]


def test_a_built_edition_passes_every_check(synthetic_report: CheckReport) -> None:
    checks = {check.name: check for check in synthetic_report.checks if check.domain == RISK}
    assert list(checks) == list(CHECKS[RISK])
    assert told(synthetic_report) == []
    assert {check.state for check in checks.values()} <= {CheckState.PASS, CheckState.WARN}
    figures = {name: check.figures for name, check in checks.items()}
    names = ("constraint_monitoring", "risk_identification", "stress_testing", "risk_remediation")
    assert {figures[name]["labels"] for name in names} == {40}
    assert figures["risk_remediation"]["mended"] + figures["risk_remediation"]["beyond_mending"] == 40
    assert figures["mandates"]["mandates"] >= 10
    assert figures["dates"]["dates"] >= 20
    assert len(figures["dates"]["regimes"]) == 5
    assert set(figures["planted_risks"]) >= set(TYPES)
    assert figures["point_in_time"]["greatest_beta_difference"] <= 1e-9


def test_the_second_arithmetic_knows_what_the_engines_know() -> None:
    """It shares no code with them, so that its constants are written twice."""
    assert rederive.FACTORS == FACTORS
    assert {kind.value: least for kind, least in exposures.MATERIAL.items()} == rederive.MATERIAL
    assert exposures.LEAST_HHI == rederive.LEAST_HHI
    assert rederive.LISTED == exposures.LIST_LENGTH
    assert (rederive.DAYS, rederive.PARTICIPATION) == (exposures.HORIZON, exposures.PARTICIPATION)
    assert (rederive.NO_WEIGHT, rederive.HOLDING) == (COMPLIANCE_TOLERANCE, HOLDING_THRESHOLD)
    assert (rederive.COMPLIANCE_TOLERANCE, rederive.LEAST_SCALE) == (COMPLIANCE_TOLERANCE, monitor.LEAST_SCALE)
    assert rederive.HARD_LIMITS == monitor.HARD_KINDS


FIRST = {check: name for name, (check, _) in reversed(DEFECTS.items())}
WHOLE = {*FIRST.values()} if THOROUGH else {next(iter(DEFECTS))}
"""Defects of which the other domains are looked at too: the first of each check, or of one."""


@pytest.mark.parametrize("name", sampled(DEFECTS, 3))
def test_a_planted_defect_fails_its_check_alone(name: str, workshop: Workshop) -> None:
    check, plant = DEFECTS[name]
    plant(workshop)
    report = workshop.validated(*(() if name in WHOLE else (RISK,)))
    assert failed(report) == {(RISK, check)}, told(report)


def test_every_check_has_its_defect() -> None:
    assert {check for check, _ in DEFECTS.values()} == set(CHECKS[RISK])


def _messages(workshop: Workshop, check: str) -> list[str]:
    report = workshop.validated(RISK)
    return [message for name, _, message in told(report) if name == check]


def test_a_replay_of_what_is_still_to_come(whole: Any) -> None:
    """Its market is then of another date too, so that more than one check sees it."""

    def back(row: Row) -> None:
        row["as_of_date"] = "2018-10-31"

    at("episodes", "stress_testing", back, of_kind("historical_replay"))(whole)
    assert any("replays up to" in message for message in _messages(whole, "dates"))


def test_a_mandate_that_nobody_can_keep(workshop: Workshop) -> None:
    def tighten(row: Row) -> None:
        row["input"]["mandate"]["constraints"] = [
            {"type": "hhi_max", "value": 0.001, "definition": mandate.DEFINITIONS[mandate.ConstraintKind.HHI_MAX]},
            {"type": "cash_max", "value": 0.0, "definition": mandate.DEFINITIONS[mandate.ConstraintKind.CASH_MAX]},
        ]

    at("episodes", "constraint_monitoring", tighten)(workshop)
    assert any("exclude each other" in message for message in _messages(workshop, "mandates"))


def test_a_replay_that_the_panels_do_not_show(whole: Any) -> None:
    path = whole.folder / "panels" / "factors.parquet"
    table = pl.read_parquet(path)
    table.with_columns(pl.col("smb") + np.float64(1e-4)).write_parquet(path)
    assert any("the shock to smb" in message for message in _messages(whole, "scenarios"))


def test_a_wider_spread_that_pays(workshop: Workshop) -> None:
    def widen(row: Row) -> None:
        row["input"]["stress_scenario"]["market_shocks"]["credit_spread_change_bp"] = 400.0
        row["input"]["stress_scenario"]["sector_sensitivities"] = dict.fromkeys(
            row["input"]["stress_scenario"]["sector_sensitivities"], 0.01
        )

    at("episodes", "stress_testing", widen, of_kind("hypothetical"))(workshop)
    assert any("where spreads widen" in message for message in _messages(workshop, "scenarios"))


def test_malformed_labels_are_findings(workshop: Workshop) -> None:
    sub_tasks = ("constraint_monitoring", "risk_identification", "stress_testing")
    for sub_task in sub_tasks:
        workshop.edit("truth", sub_task, lambda row: row[OUTPUT].clear())
    places = {workshop.rows("truth", sub_task)[0]["task_id"] for sub_task in sub_tasks}
    assert {finding[1] for finding in told(workshop.validated())} == places


def test_malformed_inputs_are_findings(workshop: Workshop) -> None:
    for sub_task in ("constraint_monitoring", "risk_identification", "stress_testing", "risk_remediation"):
        workshop.edit("episodes", sub_task, lambda row: row["input"].clear())
    report = workshop.validated(RISK)
    assert {name for domain, name in failed(report) if domain == RISK} >= {"portfolios", "stress_testing"}


def test_an_edition_without_the_domain_skips_its_checks(workshop: Workshop) -> None:
    for sub_task in (subtask.name for subtask in domain(RISK).subtasks):
        for part in ("episodes", "truth", "certificates"):
            (workshop.folder / part / f"{sub_task}.jsonl").unlink()
        workshop.edit_json("manifest.json", lambda m, name=sub_task: m["counts"].pop(name))
    report = workshop.validated()
    skipped = [check for check in report.checks if check.state is CheckState.SKIP]
    assert [(check.domain, check.name) for check in skipped] == [(RISK, name) for name in CHECKS[RISK]]
    assert {check.reason for check in skipped} == {"the edition has no episodes of risk management"}
