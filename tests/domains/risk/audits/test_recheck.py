"""Certificates of remediations that are not what they state."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.editions import write_edition

from finskillbench.domains import domain
from finskillbench.domains.checks.examination import Shared, Subject
from finskillbench.domains.risk.checks.objects import check_least_cost
from finskillbench.edition import load_edition
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.findings import Findings

INPUT: dict[str, Any] = {
    "portfolio": {"holdings": [{"symbol": "A", "weight": 0.8}, {"symbol": "B", "weight": 0.2}], "cash_weight": 0.0},
    "mandate": {"constraints": [{"type": "long_only"}, {"type": "position_limit_max", "value": 0.7}]},
    "sector_mapping": {"A": "Energy", "B": "Technology"},
    "violations": ["position_limit_max"],
    "trading_terms": {"cost_bps": {"A": 100, "B": 50}, "minimum_trade": 0.01, "headroom": {"position_limit_max": 0.1}},
}
"""A fifth of the portfolio has to leave A: 20 basis points of NAV where it stays in cash."""


LEAST = {"weights": [0.6, 0.2], "objective": 0.2}


def _found(tmp_path: Path, task_input: dict[str, Any], certificate: dict[str, Any], *, complies: bool) -> list[str]:
    """The fields in which the recheck of one remediation finds something."""
    name = "risk_remediation"
    episode = Episode("rr", "risk_management", name, date(2025, 1, 31), "easy", task_input, Prompt("", ""))
    truth = Truth("rr", name, {"trades": [], "post_trade_compliant": complies}, {}, {"kind": "optimal"})
    edition = load_edition(write_edition(tmp_path / "edition", [(episode, truth)], certificate))
    findings = Findings()
    check_least_cost(Subject(Shared(edition), domain("risk_management")), findings)
    assert all(findings.figures[f"{stage}_bounded"] == 1 for stage in certificate)
    return [str(finding.field) for finding in findings.found]


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (LEAST, []),
        ({"weights": [0.6, 0.4], "objective": 0.3}, ["least_cost.weights"]),
        ({"weights": [0.65, 0.2], "objective": 0.15}, ["least_cost.weights"]),
        ({"weights": [0.6, 0.2], "objective": 0.2 - 2e-5}, ["least_cost.objective", "least_cost.weights"]),
    ],
)
def test_only_the_cheapest_cure_is_certified(stored: dict[str, Any], found: list[str], tmp_path: Path) -> None:
    assert _found(tmp_path, INPUT, {"least_cost": stored}, complies=True) == found


def _input(
    weights: dict[str, float], *limits: dict[str, Any], traded: float = 0.0, ticket: float = 0.0
) -> dict[str, Any]:
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
        "trading_terms": {"cost_bps": dict.fromkeys("ABCD", 100), "minimum_trade": ticket, "headroom": {}},
    }


LONG = {"type": "long_only", "value": True}
SMALL = {"A": 0.5, "B": 0.25, "C": 0.21, "D": 0.04}
SHORT = {"A": 0.9, "B": 0.3, "C": -0.2}


@pytest.mark.parametrize(
    ("weights", "limits", "after", "objective"),
    [
        # D is sold, or filled up to 6 % by a sale of A: 4 % of NAV are traded either way.
        (SMALL, [LONG, {"type": "position_limit_min", "value": 0.06}], [0.48, 0.25, 0.21, 0.06], 0.04),
        (SMALL, [LONG, {"type": "name_count", "min": None, "max": 3}], [0.5, 0.25, 0.21, 0.000999], 0.039001),
        # Of 1.4 gross 0.2 is sold or bought back.
        (SHORT, [{"type": "gross_exposure_max", "value": 1.2}], [0.7, 0.3, -0.2, 0.0], 0.2),
        # A falls by x into cash: 0.04 ((0.15 - x)^2 + 0.0075) = 0.02^2.
        (
            {"A": 0.4, "B": 0.2, "C": 0.2, "D": 0.2},
            [LONG, {"type": "tracking_error_max", "value": 0.02}],
            [0.3, 0.2, 0.2, 0.2],
            0.1,
        ),
    ],
)
def test_names_shorts_and_curved_limits_are_bounded_too(
    weights: dict[str, float], limits: list[dict[str, Any]], after: list[float], objective: float, tmp_path: Path
) -> None:
    task_input = _input(weights, *limits)
    stored = {"weights": after, "objective": objective}
    assert _found(tmp_path / "right", task_input, {"least_cost": stored}, complies=True) == []
    dearer = {"weights": [after[0] - 1e-3, *after[1:]], "objective": objective + 1e-3}
    assert "least_cost.weights" in _found(tmp_path / "dear", task_input, {"least_cost": dearer}, complies=True)
    assert _found(tmp_path / "false", task_input, {"least_cost": stored}, complies=False) == ["least_excess"]


def test_a_ticket_makes_a_cure_dearer(tmp_path: Path) -> None:
    """Of the 3 % that A is over the cap all have to be sold by a ticket of 5 %; D, of 4 %, may be closed in full."""
    cap, cash = {"type": "position_limit_max", "value": 0.47}, {"type": "cash_max", "value": 0.05}
    right = {"least_cost": {"weights": [0.45, 0.25, 0.21, 0.04], "objective": 0.05}}
    assert _found(tmp_path / "right", _input(SMALL, LONG, cap, cash, ticket=0.05), right, complies=True) == []
    low = {"least_cost": {"weights": [0.47, 0.25, 0.21, 0.04], "objective": 0.03}}
    assert "least_cost.weights" in _found(
        tmp_path / "low", _input(SMALL, LONG, cap, cash, ticket=0.05), low, complies=True
    )


@pytest.mark.parametrize(
    ("excess", "complies", "found"),
    [
        (0.1 / 0.6, False, []),
        (0.1 / 0.6 + 1e-4, False, ["least_excess.weights"]),
        (0.1 / 0.6 - 1e-4, False, ["least_excess.weights"]),
        (0.1 / 0.6, True, ["least_cost"]),
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
        "least_excess": {"weights": [0.7, 0.2, 0.0, 0.0], "objective": excess + 0.1},
    }
    assert _found(tmp_path, task_input, certificate, complies=complies) == found
