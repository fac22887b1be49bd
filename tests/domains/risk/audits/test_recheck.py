"""Certificates of remediations that are not what they state."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.editions import write_edition

from finskillbench.domains import domain
from finskillbench.domains.examination import Shared, Subject
from finskillbench.domains.risk.audits.recheck import least_turnover
from finskillbench.edition import load_edition
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.findings import Findings

INPUT: dict[str, Any] = {
    "portfolio": {
        "holdings": [{"symbol": "A", "weight": 0.8}, {"symbol": "B", "weight": 0.2}],
        "cash_weight": 0.0,
    },
    "mandate": {"constraints": [{"type": "long_only"}, {"type": "position_limit_max", "value": 0.6}]},
    "sector_mapping": {"A": "Energy", "B": "Technology"},
    "violations": ["position_limit_max"],
}
"""A fifth of the portfolio has to leave A, into B or into cash: 20 % of NAV one way."""


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ({"weights": [0.6, 0.4], "objective": 0.2}, []),
        ({"weights": [0.6, 0.2], "objective": 0.2}, []),
        ({"weights": [0.5, 0.5], "objective": 0.3}, ["least_turnover.weights"]),
        ({"weights": [0.6, 0.4], "objective": 0.19}, ["least_turnover.objective"]),
    ],
)
def test_only_the_cheapest_cure_is_certified(stored: dict[str, Any], found: list[str], tmp_path: Path) -> None:
    name = "risk_remediation"
    episode = Episode("rr", "risk_management", name, date(2025, 1, 31), "easy", INPUT, Prompt("", ""))
    truth = Truth("rr", name, {"trades": []}, {}, {"kind": "optimal"})
    certificate = {"least_turnover": stored | {"programs_solved": 1}}
    edition = load_edition(write_edition(tmp_path / "edition", [(episode, truth)], certificate))
    findings = Findings()
    least_turnover(Subject(Shared(edition), domain("risk_management")), findings)
    assert findings.figures["optima"] == 1
    assert [finding.field for finding in findings.found] == found
