"""The defects of the published release, each found by the check that is named for it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from finskillbench.audit import AuditReport, audit_edition
from finskillbench.edition import load_edition
from finskillbench.edition.release import import_release

Found = dict[str, dict[str, set[str]]]
"""Check to episode to what is said of it."""


@pytest.fixture(scope="module")
def report(release_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    out = tmp_path_factory.mktemp("release") / "edition"
    import_release(release_sample, out)
    return audit_edition(load_edition(out))


@pytest.fixture(scope="module")
def found(report: AuditReport) -> Found:
    told: Found = defaultdict(lambda: defaultdict(set))
    for check in report.checks:
        for finding in check.findings:
            told[check.name][finding.where].add(f"{finding.field}: {finding.message}")
    return told


CONCENTRATED = "portfolio_concentrated_2023_24_rebound_000"
TILTED = "portfolio_factor_tilted_2023_24_rebound_000"


@pytest.mark.parametrize(
    ("check", "task_id", "said"),
    [
        (
            "solvable",
            "pc_con_2025-01-31_medium_max_return",
            "expected_returns: the answer depends on it",
        ),
        ("solvable", "pc_bl_2025-01-31_v0", "market_cap_weights: the answer depends on it and it is empty"),
        ("feasible", "pc_con_2025-01-31_medium_max_return", "min_names: the label exceeds it by 2"),
        ("feasible", "pc_con_2025-01-31_medium_max_return", "max_weight: the label exceeds it by 3.9e-08"),
        ("taxonomy", "pc_con_2025-01-31_medium_max_return", "Financials"),
        ("taxonomy", f"rm_st_{CONCENTRATED}_stress_rates_down_100", "Consumer Staples"),
        (
            "units",
            "pc_uncon_2025-01-31_easy_max_sharpe",
            "at most 0.0073 beside an annual risk-free rate of 0.045",
        ),
        ("leak", "pc_bl_2025-01-31_v0", "analyst_views[*].posterior_return"),
        ("leak", "fa_dd_AAPL_2017-04-01_to_2017-07-01", "says 7488000000, which is revenue_delta"),
        ("leak", f"rm_ri_{CONCENTRATED}", "metadata.planted_risks"),
        ("point_in_time", f"rm_ri_{CONCENTRATED}", "as_of_date: 2024-01-01 is no trading day"),
        ("rederived", "fa_norm_AAPL_2024-03-30", ""),
        ("unique", f"rm_ri_{CONCENTRATED}", "names one of 4 equal largest holdings"),
        ("certified", f"rm_cm_{CONCENTRATED}_mandate_balanced_01", "19 names of at most 5.0% cannot be fully invested"),
        (
            "certified",
            f"rm_rr_{CONCENTRATED}_mandate_aggressive_growth",
            "is 0.2500 and said to comply",
        ),
        ("economics", f"rm_st_{TILTED}_stress_covid_2020", "credit brings +0.0911 although credit_spread_widening_bp"),
        ("spec_agrees", "fa_eq_AAPL_2022-09-24", "the prompt's words are all there is"),
        ("spec_agrees", "pc_tool_2025-04-30_index_tracker", "the words state 500, the call does not"),
    ],
)
def test_a_known_defect_is_found(check: str, task_id: str, said: str, found: Found) -> None:
    assert task_id in found[check]
    assert any(said in told for told in found[check][task_id])


@pytest.mark.parametrize("cheat", ["constraint_monitoring", "earnings_quality", "risk_identification"])
def test_cheats_pay_under_the_published_scorers(cheat: str, found: Found) -> None:
    assert any(cheat in told for said in found["exploits"].values() for told in said)


def test_no_label_of_the_release_is_proved(report: AuditReport) -> None:
    (unproved,) = (check for check in report.checks if (check.name, check.domain) == ("certified", "all"))
    assert len({finding.where for finding in unproved.findings}) == report.episodes == 22
    assert not report.clean
