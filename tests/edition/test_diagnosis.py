"""What can be built from whole collections: the real one, and parts of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.registry import DOMAINS
from tests.sampling import thorough

from finskillbench.edition.diagnosis import diagnose
from finskillbench.findings import CheckState

OURS = {domain.name for domain in DOMAINS}
pytestmark = pytest.mark.slow


@thorough
def test_the_real_collection_is_sound_and_carries_every_domain(realdata: Path) -> None:
    report = diagnose(realdata)
    assert report.clean
    assert {one.domain: len(one.subtasks) for one in report.prospects if one.domain in OURS} == {
        "portfolio_construction": 6,
        "risk_management": 4,
        "fundamental_analysis": 3,
    }
    market, _, filings, *_ = report.prospects
    assert market.size.startswith("30 names, ")
    assert filings.size.endswith(" reports")
    assert report.companies["AAPL"]["10-K"] > 10
    assert any(one.startswith("DELL.json.gz cannot be used: ") for one in report.unusable)
    assert "CTRA (Energy) has no statements; CVX takes its place." in report.notes


def test_rates_that_end_too_early_are_a_finding_of_the_panels(synthetic_raw: Path, tmp_path: Path) -> None:
    """Every file is sound; only all of them together tell that the last year has no rate."""
    for part in synthetic_raw.iterdir():
        if part.name not in ("fred", "companyfacts", "submissions", "xbrl"):
            (tmp_path / part.name).symlink_to(part)
    (tmp_path / "fred").mkdir()
    (tmp_path / "fred" / "DGS3MO.csv").write_text(
        "observation_date,DGS3MO\n" + "".join(f"201{year}-01-0{day},1.0\n" for year in (7, 8) for day in (2, 3, 4))
    )
    report = diagnose(tmp_path)
    (found,) = report.diagnosis.findings
    assert found.state is CheckState.FAIL
    assert found.where == "fred/DGS3MO.csv"
    assert found.message.startswith("ends on 2018-01-04")
    risk = next(one for one in report.prospects if one.domain == "risk_management")
    assert risk.subtasks == ()
    assert risk.reason.startswith("fred/DGS3MO.csv: ends on 2018-01-04")
