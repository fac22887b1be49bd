"""The defects of the published release, each found by the check that is named for it.

`KNOWN` is the table: row of the list of defects, check, episode, what is said. The sample does not hold everything:

- row 4, that the daily and annual arrays make one "max_sharpe" worse than another, needs the covariance files;
- row 6, that `query_xbrl` returns every period, is of the published tool, and ours is asked in every edition;
- row 9, that 30 names cannot keep an HHI of 0.03, and row 10, that eight scenarios share one table, are of definitions
  that no episode of the sample uses;
- row 11, that flags were raised at 5 % where the prompt says 10 %: both labels of the sample lie beyond either, so that
  it is planted below;
- row 13 is of the published runs, which have no spread.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from tests.editions import one_process

from finskillbench.edition import load_edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.checks.engine import audit_edition
from finskillbench.edition.release import import_published_release

Found = dict[str, dict[str, set[str]]]
"""Check to episode to what is said of it."""


@pytest.fixture(scope="module")
def report(release_sample: Path, realdata: Path, tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    out = tmp_path_factory.mktemp("release") / "edition"
    import_published_release(release_sample, out)
    with one_process():
        return audit_edition(load_edition(out), raw_dir=realdata)


@pytest.fixture(scope="module")
def found(report: CheckReport) -> Found:
    told: Found = defaultdict(lambda: defaultdict(set))
    for check in report.checks:
        for finding in check.findings:
            told[check.name][finding.where].add(f"{finding.field}: {finding.message}")
    return told


CONCENTRATED = "portfolio_concentrated_2023_24_rebound_000"
TILTED = "portfolio_factor_tilted_2023_24_rebound_000"


MAX_RETURN = "pc_con_2025-01-31_medium_max_return"
COVID = f"rm_st_{TILTED}_stress_covid_2020"
HALF = "fa_norm_AAPL_2024-03-30"
KNOWN = [
    (1, "solvable", MAX_RETURN, "expected_returns: the answer depends on it"),
    (1, "solvable", MAX_RETURN, "benchmark_weights: the answer depends on it, but it is empty"),
    (1, "solvable", "pc_bl_2025-01-31_v0", "market_cap_weights: the answer depends on it, but it is empty"),
    (2, "feasible", MAX_RETURN, "min_names: the label exceeds it by 2"),
    (2, "feasible", MAX_RETURN, "max_weight: the label exceeds it by 3.9e-08"),
    (3, "taxonomy", MAX_RETURN, "Financials"),
    (3, "taxonomy", f"rm_st_{CONCENTRATED}_stress_rates_down_100", "Consumer Staples"),
    (4, "units", "pc_uncon_2025-01-31_easy_max_sharpe", "at most 0.0073 with an annual risk-free rate of 0.045"),
    (5, "leak", "pc_bl_2025-01-31_v0", "analyst_views[*].posterior_return"),
    (5, "leak", "fa_dd_AAPL_2017-04-01_to_2017-07-01", "contains 7488000000, which is revenue_delta"),
    (5, "leak", f"rm_ri_{CONCENTRATED}", "metadata.planted_risks"),
    (6, "point_in_time", f"rm_ri_{CONCENTRATED}", "as_of_date: 2024-01-01 is no trading day"),
    (
        7,
        "rederived",
        HALF,
        "operating_cash_flow: 62585000000 is NetCashProvidedByUsedInOperatingActivities from 2023-10-01",
    ),
    (
        7,
        "rederived",
        HALF,
        "ebitda less operating_income: 5684000000 is DepreciationDepletionAndAmortization from 2023-10",
    ),
    (7, "rederived", "fa_eq_AAPL_2022-09-24", "form_type: is 10-Q; the filings for 2022-09-24 are 10-K"),
    (8, "unique", f"rm_ri_{CONCENTRATED}", "names one of 4 equal largest holdings"),
    (9, "certified", f"rm_cm_{CONCENTRATED}_mandate_balanced_01", "19 names of at most 5.0% cannot be fully invested"),
    (9, "certified", f"rm_rr_{CONCENTRATED}_mandate_aggressive_growth", "is 0.2500, above the limit of"),
    (10, "economics", COVID, "credit gains +0.0911 although credit_spread_widening_bp"),
    (11, "spec_agrees", "fa_eq_AAPL_2022-09-24", "the prompt alone describes the task"),
    (11, "spec_agrees", "pc_tool_2025-04-30_index_tracker", "the text states 0.05 2 times, the call once"),
]


@pytest.mark.parametrize(("row", "check", "task_id", "said"), KNOWN)
def test_a_known_defect_is_found(row: int, check: str, task_id: str, said: str, found: Found) -> None:
    assert task_id in found[check], row
    assert any(said in told for told in found[check][task_id]), row


def test_what_was_filed_of_the_quarter_is_no_finding(found: Found) -> None:
    """Of the same label: revenue, income and EPS are of the quarter; of the other companies nothing is wrong here."""
    told = {task_id: said for task_id, said in found["rederived"].items() if any("metrics." in one for one in said)}
    assert told.keys() == {HALF}
    assert {one.split(": ")[0] for one in told[HALF] if "metrics." in one} == {
        "metrics.operating_cash_flow",
        "metrics.ebitda less operating_income",
    }


@pytest.mark.parametrize(("ratio", "flags", "wrong"), [(0.07, ["high_accruals"], 1), (0.12, [], 1), (0.07, [], 0)])
def test_flags_raised_at_another_threshold_than_the_prompt_s_are_found(
    ratio: float, flags: list[str], wrong: int, release_sample: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "release"
    shutil.copytree(release_sample, copy)
    (file,) = copy.glob("data/*/episodes/layer_a/earnings_quality/*AAPL*.json")
    row = json.loads(file.read_text())
    row["expected_output"] |= {"accruals_ratio": ratio, "flags": flags}
    file.write_text(json.dumps(row))
    import_published_release(copy, tmp_path / "edition")
    report = audit_edition(load_edition(tmp_path / "edition"), ["spec_agrees"])
    told = [(one.where, one.field) for check in report.checks for one in check.findings if one.field == "flags"]
    assert told == [("fa_eq_AAPL_2022-09-24", "flags")] * wrong


def test_recipes_for_our_inputs_are_not_played_on_the_release_s(report: CheckReport) -> None:
    """Cheats made from the answer alone are, so that every finding names what one of them earns."""
    (cheats,) = (check for check in report.checks if check.name == "exploits")
    assert all("earns" in one.message or "scores" in one.message for one in cheats.findings)
    assert {one.where.split("_")[0] for one in cheats.findings} == {"pc", "rm", "fa"}


@pytest.mark.parametrize("cheat", ["constraint_monitoring", "earnings_quality", "risk_identification"])
def test_cheats_pay_under_the_published_scorers(cheat: str, found: Found) -> None:
    assert any(cheat in told for said in found["exploits"].values() for told in said)


def test_no_label_of_the_release_is_proved(report: CheckReport) -> None:
    (unproved,) = (check for check in report.checks if (check.name, check.domain) == ("certified", "all"))
    assert len({finding.where for finding in unproved.findings}) == report.episodes == 22
    assert not report.passed
