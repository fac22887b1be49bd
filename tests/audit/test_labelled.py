"""Published labels held against their inputs by plain arithmetic: a defect in one of three episodes of each kind."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.editions import write_edition

from finskillbench.arrays import FACTORS
from finskillbench.domains import domain, subtask_named
from finskillbench.domains.checks.examination import Shared, Subject
from finskillbench.edition import load_edition
from finskillbench.edition.checks.labels import defects
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.findings import Findings

Json = dict[str, Any]

PORTFOLIO = (
    "constrained_optimization",
    {
        "expected_returns": {"A": 0.06, "B": 0.09, "C": 0.11},
        "risk_free_rate": 0.04,
        "constraints": {"long_only": True, "max_weight": 0.5, "sector_limits": {"Energy": 0.3}, "max_turnover": 0.2},
        "sector_mapping": {"A": "Energy", "B": "Technology", "C": "Utilities"},
        "current_portfolio": {"A": 0.4, "B": 0.3, "C": 0.3},
        "conventions": {"units": "annualised decimals"},
    },
    {"weights": {"A": 0.3, "B": 0.4, "C": 0.3}},
)
CALL = (
    "tool_use_parameterization",
    {"scenario_description": "Long-only, at most 5% a name, tracking error of at most 300 basis points."},
    {"optimizer_call": {"objective": "min_variance", "constraints": {"max_weight": 0.05, "max_tracking_error": 0.03}}},
)
REMEDIATION = (
    "risk_remediation",
    {
        "mandate": {
            "constraints": [
                {"type": "position_limit_max", "value": 0.5},
                {"type": "hhi_max", "value": 0.4},
                {"type": "turnover_max_monthly", "value": 0.2},
            ]
        },
        "sector_mapping": {"A": "Energy", "B": "Technology", "C": "Utilities"},
    },
    {"total_turnover": 0.15, "post_trade_compliant": True},
)
STRESS = (
    "stress_testing",
    {
        "stress_scenario": {
            "name": "Oil falls by half",
            "factor_shocks": dict.fromkeys(FACTORS, 0.0),
            "sector_sensitivities": {"Energy": -0.1},
        },
        "portfolio": {"holdings": [{"symbol": "A", "weight": 0.5}], "cash_weight": 0.5},
        "sector_mapping": {"A": "Energy"},
        "factor_exposures": {"A": dict.fromkeys(FACTORS, 1.0)},
    },
    {
        "estimated_pnl_pct": -0.05,
        "attribution": {"by_sector": [{"sector": "Energy", "contribution_pct": -0.05}], "by_factor": []},
    },
)


def _set(path: str, value: Any) -> Callable[[Json, Json], None]:
    """Puts a value at a path of the input or, behind "label.", of the label."""

    def change(task_input: Json, label: Json) -> None:
        part: Any = label if path.startswith("label.") else task_input
        *keys, last = path.removeprefix("label.").split(".")
        for key in keys:
            part = part[int(key)] if key.isdigit() else part[key]
        part[last] = value

    return change


def found(tmp_path: Path, skill: str, check: str, kind: tuple[str, Json, Json], change: Any) -> set[str]:
    tasks: list[tuple[Episode, Truth]] = []
    for place in range(3):
        name, task_input, label = deepcopy(kind)
        if place == 1 and change is not None:
            change(task_input, label)
        episode = Episode(f"e{place}", skill, name, date(2025, 1, 31), "easy", task_input, Prompt("", ""))
        tasks.append((episode, Truth(f"e{place}", name, label, {}, {"kind": "rederived"})))
    edition = load_edition(write_edition(tmp_path / "edition", tasks, source="release"))
    findings = Findings()
    domain(skill).audits[check](Subject(Shared(edition), domain(skill)), findings)
    return {finding.where for finding in findings.found}


PLANTED = [
    ("portfolio_construction", "feasible", PORTFOLIO, _set("label.weights", {"A": 0.3, "B": 0.5001, "C": 0.1999})),
    ("portfolio_construction", "feasible", PORTFOLIO, _set("label.weights", {"A": 0.31, "B": 0.39, "C": 0.3})),
    ("portfolio_construction", "feasible", PORTFOLIO, _set("label.weights", {"A": 0.1, "B": 0.4, "C": 0.49})),
    ("portfolio_construction", "feasible", PORTFOLIO, _set("constraints.max_turnover", 0.09)),
    ("portfolio_construction", "units", PORTFOLIO, _set("expected_returns", {"A": 0.0004, "B": 0.0003, "C": 0.0005})),
    ("portfolio_construction", "units", PORTFOLIO, _set("conventions", {})),
    ("portfolio_construction", "spec_agrees", CALL, _set("label.optimizer_call.constraints.max_weight", 0.06)),
    ("risk_management", "certified", REMEDIATION, _set("label.total_turnover", 0.25)),
    ("risk_management", "certified", REMEDIATION, _set("mandate.constraints.0.value", 0.3)),
    ("risk_management", "certified", REMEDIATION, _set("mandate.constraints.1.value", 0.3)),
    ("risk_management", "taxonomy", STRESS, _set("stress_scenario.sector_sensitivities", {"Financials": -0.1})),
    ("risk_management", "economics", STRESS, _set("label.estimated_pnl_pct", -0.06)),
]


@pytest.mark.parametrize(("skill", "check", "kind", "change"), PLANTED)
def test_a_planted_defect_is_found_where_it_is(
    skill: str, check: str, kind: tuple[str, Json, Json], change: Any, tmp_path: Path
) -> None:
    assert found(tmp_path, skill, check, kind, change) == {"e1"}


@pytest.mark.parametrize(("skill", "check", "kind"), sorted({(*each[:2], each[2][0]) for each in PLANTED}))
def test_nothing_is_found_in_what_is_in_order(skill: str, check: str, kind: str, tmp_path: Path) -> None:
    sound = next(each for each in (PORTFOLIO, CALL, REMEDIATION, STRESS) if each[0] == kind)
    assert found(tmp_path, skill, check, sound, None) == set()


@pytest.mark.parametrize(("sensitivity", "found"), [(-0.1, False), (0.1, True)])
def test_a_loss_that_its_scenario_does_not_give_is_found(sensitivity: float, found: bool) -> None:
    """The derivation from the holdings contradicts it: no other check need know the sign."""
    kind: Any = deepcopy(STRESS)
    name, task_input, label = kind
    task_input["stress_scenario"]["sector_sensitivities"]["Energy"] = sensitivity
    by_factor = {**dict.fromkeys(FACTORS, 0.0), "sector_sensitivity": -0.05}
    label["attribution"]["by_factor"] = [{"factor": one, "contribution_pct": part} for one, part in by_factor.items()]
    truth = Truth("e", name, label, {"method": subtask_named(name).verification.method})
    assert any("estimated_pnl_pct" in message for message in defects(subtask_named(name), truth, task_input)) is found
