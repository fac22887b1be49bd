"""Validation of fundamental analysis: what cannot be read is a finding and no traceback."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from tests.domains.fundamental.test_checks import (
    CHECKS,
    DIFFERENCE,
    FUNDAMENTAL,
    OUTPUT,
    SUBTASKS,
    at,
    clear,
    defects_of,
    failed,
    in_panel,
    is_of,
    of_input,
    setting,
    without_the_domain,
)
from tests.sampling import sampled

from finskillbench.domains.fundamental.checks.rows import parse_operands
from finskillbench.findings import CheckState


def test_malformed_labels_are_findings(workshop: Any) -> None:
    for sub_task in SUBTASKS:
        workshop.edit("truth", sub_task, clear(OUTPUT))
    report = workshop.validated()
    places = {(sub_task, workshop.rows("truth", sub_task)[0]["task_id"]) for sub_task in SUBTASKS}
    assert {finding[:2] for finding in defects_of(report)} == places


def test_malformed_inputs_are_findings(workshop: Any) -> None:
    for sub_task in SUBTASKS:
        workshop.edit("episodes", sub_task, clear("input"))
    report = workshop.validated(FUNDAMENTAL)
    assert {name for domain, name in failed(report) if domain == FUNDAMENTAL} >= {"forms", "point_in_time", *SUBTASKS}


@pytest.mark.parametrize("value", sampled(["yesterday", None, 7], 2))
def test_a_date_that_is_none_is_a_finding(value: Any, workshop: Any) -> None:
    at("episodes", "normalization", of_input(period_end=value))(workshop)
    report = workshop.validated(FUNDAMENTAL)
    assert {name for domain, name in failed(report) if domain == FUNDAMENTAL} >= {"forms", "normalization"}


@pytest.mark.parametrize("name", ["facts", "filings", "segments"])
def test_a_panel_of_other_columns_is_a_finding(name: str, workshop: Any) -> None:
    path = workshop.folder / "panels" / f"{name}.parquet"
    pl.read_parquet(path).drop("filed").write_parquet(path)
    report = workshop.validated(FUNDAMENTAL)
    assert (FUNDAMENTAL, "point_in_time") in failed(report)


def test_what_is_filed_before_its_period_ended(workshop: Any) -> None:
    """Its filing then has another day too, so that more than one check sees it."""
    in_panel("facts", is_of("revenue", derived=False), lambda row: row.update(filed=row["start"]))(workshop)
    report = workshop.validated(FUNDAMENTAL)
    assert any(
        "filed before its period ended" in message for name, _, message in defects_of(report) if name == "point_in_time"
    )


def test_a_report_that_nobody_filed_that_day(workshop: Any) -> None:
    at("episodes", "normalization", lambda row: row.update(as_of_date="2026-06-01"))(workshop)
    report = workshop.validated(FUNDAMENTAL)
    assert any(
        "was filed on 2026-06-01" in message for name, _, message in defects_of(report) if name == "point_in_time"
    )


def test_parents_that_cannot_be_read(workshop: Any) -> None:
    in_panel("facts", DIFFERENCE, setting(parents="from somewhere"))(workshop)
    report = workshop.validated(FUNDAMENTAL)
    assert any("cannot be read" in message for _, _, message in defects_of(report))
    with pytest.raises(ValueError, match="cannot be read"):
        parse_operands("")


def test_an_editionwithout_the_domain_skips_its_checks(workshop: Any) -> None:
    for sub_task in SUBTASKS:
        for part in ("episodes", "truth", "certificates"):
            (workshop.folder / part / f"{sub_task}.jsonl").unlink()
    workshop.edit_json("manifest.json", without_the_domain)
    report = workshop.validated()
    skipped = [check for check in report.checks if check.state is CheckState.SKIP]
    assert [(check.domain, check.name) for check in skipped] == [(FUNDAMENTAL, name) for name in CHECKS[FUNDAMENTAL]]
    assert {check.reason for check in skipped} == {"the edition has no episodes of fundamental analysis"}
