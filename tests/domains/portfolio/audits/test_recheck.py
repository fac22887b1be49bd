"""An optimum shown from gradients alone, and certificates that are not what they state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from tests.editions import write_edition

from finskillbench.domains import domain
from finskillbench.domains.checks.examination import Shared, Subject
from finskillbench.domains.checks.stationarity import possible_gain, stacked
from finskillbench.domains.portfolio.audits.recheck import certified
from finskillbench.edition import load_edition
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.findings import Findings

SIGMA = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.16]])
TICKERS = ["A", "B", "C"]


def test_the_minimum_variance_of_two_assets_cannot_be_bettered() -> None:
    """Variances 0.04 and 0.09 without correlation: weights 9/13 and 4/13 (Markowitz 1952)."""
    weights = np.array([9.0, 4.0]) / 13.0
    gradient = 2 * np.diag([0.04, 0.09]) @ weights
    limits = stacked([(weights, -np.eye(2))], [np.ones((1, 2))])
    assert possible_gain(gradient, limits, 2.0) <= 1e-12


def test_a_point_that_can_be_bettered_is_given_no_proof() -> None:
    equal = np.array([0.5, 0.5])
    gradient = 2 * np.diag([0.04, 0.09]) @ equal
    limits = stacked([(equal, -np.eye(2))], [np.ones((1, 2))])
    better = equal @ np.diag([0.04, 0.09]) @ equal - 0.04 * 0.09 / 0.13
    assert possible_gain(gradient, limits, 2.0) >= better


def _examined(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> list[tuple[str, str]]:
    """A label of minimum variance with a cap of 60 %, its certificate changed, and what is found of it."""
    limits = Limits(max_weight=0.6)
    problem = PortfolioProblem(tuple(TICKERS), RiskModel.from_matrix(SIGMA), Objective.MIN_VARIANCE, limits)
    best = optimise(problem)
    stored: dict[str, Any] = {"weights": best.weights.tolist(), "objective": best.value, "programs_solved": 1}
    change(stored)
    task_input = {
        "objective": "min_variance",
        "constraints": {"long_only": True, "max_weight": 0.6},
        "covariance_matrix": {"tickers": TICKERS, "matrix": SIGMA.tolist()},
    }
    name = "unconstrained_optimization"
    episode = Episode("pc", "portfolio_construction", name, date(2025, 1, 31), "easy", task_input, Prompt("", ""))
    truth = Truth("pc", name, {"weights": dict(zip(TICKERS, stored["weights"], strict=True))}, {}, {"kind": "optimal"})
    write_edition(tmp_path / "edition", [(episode, truth)], stored)
    findings = Findings()
    certified(Subject(Shared(load_edition(tmp_path / "edition")), domain("portfolio_construction")), findings)
    assert findings.figures["optima"] == 1
    return [(finding.where, finding.field) for finding in findings.found]


def test_a_certified_optimum_is_shown_again(tmp_path: Path) -> None:
    assert _examined(tmp_path, lambda stored: None) == []


def test_weights_that_are_no_optimum_are_found(tmp_path: Path) -> None:
    def moved(stored: dict[str, Any]) -> None:
        weights = np.array(stored["weights"]) + np.array([0.0, 0.01, -0.01])
        stored |= {"weights": weights.tolist(), "objective": float(weights @ SIGMA @ weights)}

    assert _examined(tmp_path, moved) == [("pc", "optimum.weights")]


def test_a_value_that_the_weights_do_not_have_is_found(tmp_path: Path) -> None:
    assert _examined(tmp_path, lambda stored: stored.update(objective=stored["objective"] * 0.99)) == [
        ("pc", "optimum.objective")
    ]
