"""Certificates of remediations that are not what they state."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.editions import write_edition

from finskillbench.domains import domain
from finskillbench.domains.checks.examination import Shared, Subject
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


LEAST = {"weights": [0.6, 0.4], "objective": 0.2}


def _found(tmp_path: Path, task_input: dict[str, Any], certificate: dict[str, Any], *, complies: bool) -> list[str]:
    """The fields in which the recheck of one remediation finds something."""
    name = "risk_remediation"
    episode = Episode("rr", "risk_management", name, date(2025, 1, 31), "easy", task_input, Prompt("", ""))
    truth = Truth("rr", name, {"trades": [], "post_trade_compliant": complies}, {}, {"kind": "optimal"})
    edition = load_edition(write_edition(tmp_path / "edition", [(episode, truth)], certificate))
    findings = Findings()
    least_turnover(Subject(Shared(edition), domain("risk_management")), findings)
    assert findings.figures["least_turnover_bounded"] == 1
    return [str(finding.field) for finding in findings.found]


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (LEAST, []),
        ({"weights": [0.6, 0.2], "objective": 0.2}, []),
        ({"weights": [0.5, 0.5], "objective": 0.3}, ["least_turnover.weights"]),
        ({"weights": [0.65, 0.35], "objective": 0.15}, ["least_turnover.weights"]),
        ({"weights": [0.6, 0.4], "objective": 0.2 - 5e-6}, ["least_turnover.objective", "least_turnover.weights"]),
    ],
)
def test_only_the_cheapest_cure_is_certified(stored: dict[str, Any], found: list[str], tmp_path: Path) -> None:
    assert _found(tmp_path, INPUT, {"least_turnover": stored}, complies=True) == found


def _input(weights: dict[str, float], *limits: dict[str, Any], traded: float = 0.0) -> dict[str, Any]:
    return {
        "portfolio": {
            "holdings": [{"symbol": name, "weight": weight} for name, weight in weights.items()],
            "cash_weight": round(1 - sum(weights.values()), 12),
            "trades_this_month": {"A": traded, "B": -traded},
        },
        "mandate": {"constraints": list(limits)},
        "sector_mapping": dict.fromkeys("ABCD", "Energy"),
        "benchmark_weights": dict.fromkeys("ABCD", 0.25),
        "covariance_matrix": {
            "tickers": list("ABCD"),
            "matrix": [[0.04 * (i == j) for j in range(4)] for i in range(4)],
        },
        "violations": ["any"],
    }


LONG = {"type": "long_only", "value": True}
SMALL = {"A": 0.5, "B": 0.25, "C": 0.21, "D": 0.04}
SHORT = {"A": 0.9, "B": 0.3, "C": -0.2}


@pytest.mark.parametrize(
    ("weights", "limits", "after", "objective"),
    [
        # D is sold or filled up to 6 %: 2 % of NAV is less than 4 %.
        (SMALL, [LONG, {"type": "position_limit_min", "value": 0.06}], [0.48, 0.25, 0.21, 0.06], 0.02),
        (SMALL, [LONG, {"type": "name_count", "min": None, "max": 3}], [0.5, 0.25, 0.210001, 0.000999], 0.039001),
        # Of 1.4 gross, 0.1 is bought back and 0.1 sold.
        (SHORT, [{"type": "gross_exposure_max", "value": 1.2}], [0.8, 0.3, -0.1, 0.0], 0.1),
        # Equal weights but for x: 0.04 (0.25 - x)^2 4/3 = 0.02^2, x = 0.25 + sqrt(0.0075).
        (
            {"A": 0.4, "B": 0.2, "C": 0.2, "D": 0.2},
            [LONG, {"type": "tracking_error_max", "value": 0.02}],
            [0.25 + 0.0075**0.5, *[0.25 - 0.0025**0.5 / 3**0.5] * 3],
            0.15 - 0.0075**0.5,
        ),
    ],
)
def test_names_shorts_and_curved_limits_are_bounded_too(
    weights: dict[str, float], limits: list[dict[str, Any]], after: list[float], objective: float, tmp_path: Path
) -> None:
    task_input = _input(weights, *limits)
    stored = {"weights": after, "objective": objective}
    assert _found(tmp_path / "right", task_input, {"least_turnover": stored}, complies=True) == []
    dearer = {"weights": [after[0] - 1e-3, *after[1:]], "objective": objective + 1e-3}
    assert "least_turnover.weights" in _found(tmp_path / "dear", task_input, {"least_turnover": dearer}, complies=True)
    assert _found(tmp_path / "false", task_input, {"least_turnover": stored}, complies=False) == [
        "post_trade_compliant"
    ]


@pytest.mark.parametrize(
    ("excess", "complies", "found"),
    [
        (0.1 / 0.6, False, []),
        (0.1 / 0.6 + 1e-4, False, ["least_excess.weights"]),
        (0.1 / 0.6 - 1e-4, False, ["least_excess.weights"]),
        (0.1 / 0.6, True, ["post_trade_compliant"]),
    ],
)
def test_what_is_out_of_reach_comes_as_near_as_the_turnover_left_allows(
    excess: float, complies: bool, found: list[str], tmp_path: Path
) -> None:
    """0.05 of 0.15 is traded already: A falls from 0.8 to 0.7, beyond 0.6 by a sixth of it."""
    cap, month = {"type": "position_limit_max", "value": 0.6}, {"type": "turnover_max_monthly", "value": 0.15}
    task_input = _input({"A": 0.8, "B": 0.2}, LONG, cap, month, traded=0.05)
    certificate = {
        "least_turnover": {"weights": [0.6, 0.4, 0.0, 0.0], "objective": 0.2},
        "least_excess": {"weights": [0.7, 0.3, 0.0, 0.0], "objective": excess},
    }
    assert _found(tmp_path, task_input, certificate, complies=complies) == found
