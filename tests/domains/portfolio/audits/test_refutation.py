"""Refutations shown again from their rays without solvers, and rays that do not prove what they state."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.editions import write_edition

from finskillbench.domains import domain
from finskillbench.domains.checks.examination import Shared, Subject
from finskillbench.domains.checks.proofs import farkas_of
from finskillbench.domains.portfolio.audits.recheck import certified
from finskillbench.domains.portfolio.audits.refutation import margin
from finskillbench.domains.portfolio.definitions import WAIVABLE, moved
from finskillbench.edition import load_edition
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.formulation import Aim, Goal, formulate
from finskillbench.engines.portfolio.mandates.feasibility import least_attainable
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.findings import Findings

Json = dict[str, Any]
TICKERS = ["A", "B", "C", "D"]
INPUT: Json = {
    "covariance_matrix": {"tickers": TICKERS, "matrix": (np.diag([0.04, 0.09, 0.16, 0.09]) + 0.01).tolist()},
    "constraints": {
        "long_only": True,
        "max_weight": 0.5,
        "sector_limits": {"Energy": 0.7, "Utilities": 0.6},
        "max_turnover": 0.2,
        "max_tracking_error": 0.05,
        "factor_neutrality": True,
        "neutral_factors": ["smb"],
        "neutrality_tolerance": 0.2,
    },
    "sector_mapping": {"A": "Energy", "B": "Energy", "C": "Utilities", "D": "Utilities"},
    "factor_exposures": {name: {"smb": beta} for name, beta in zip(TICKERS, [1.0, -1.0, 0.5, 0.0], strict=True)},
    "benchmark_weights": dict.fromkeys(TICKERS, 0.25),
    "current_portfolio": {"A": 0.9, "B": 0.1, "C": 0.0, "D": 0.0},
}


def _limited(limits: Json) -> Json:
    return {**INPUT, "constraints": {**INPUT["constraints"], **limits}}


def _farkas(task_input: Json) -> Json:
    problem = problem_from(task_input)
    with pytest.raises(InfeasibleError) as caught:
        optimise(problem)
    return farkas_of(caught.value, formulate(problem, Aim()).program)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_turnover": 0.3},
        {"max_tracking_error": None},
        {"max_weight": 0.3, "sector_limits": None, "factor_neutrality": False, "neutral_factors": []},
    ],
)
def test_a_ray_of_any_set_of_limits_shows_again_that_they_contradict_each_other(limits: Json) -> None:
    task_input = _limited(limits)
    farkas = _farkas(task_input)
    assert margin(task_input, farkas["ray"]) >= farkas["margin"] - 1e-9 > 0


def test_two_caps_that_hold_less_than_the_portfolio_are_refuted_by_the_budget_and_the_caps() -> None:
    """Four names at 20 % hold 80 %: a margin of 0.2 with all weights 1."""
    limits = {"max_weight": 0.2, "max_tracking_error": None, "factor_neutrality": False, "max_turnover": 1.0}
    assert margin(_limited(limits), {"fully_invested": [-1.0], "upper_bound": [1.0] * 4}) == pytest.approx(0.2)
    limits["max_weight"] = 0.25
    assert margin(_limited(limits), {"fully_invested": [-1.0], "upper_bound": [1.0] * 4}) == pytest.approx(0.0)


@pytest.mark.parametrize("limit", ["max_turnover", "max_tracking_error", "factor_neutrality", "max_weight", "Energy"])
def test_multipliers_of_a_least_value_refute_every_smaller_one_and_no_larger_one(limit: str) -> None:
    task_input = _limited({"restricted_names": ["D"], "max_turnover": 0.5, "max_tracking_error": 0.12})
    problem = problem_from(task_input)
    least = least_attainable(problem, limit)
    aim = Aim(Goal.TURNOVER) if limit == "max_turnover" else Aim(Goal.LIMIT, limit=limit)
    program = formulate(problem, aim).program
    ray = {block.label: least.multipliers[block.rows].tolist() for block in program.blocks}
    named = "sector_limits.Energy" if limit == "Energy" else limit
    assert margin(moved(task_input, named, least.value * (1 - 1e-6)), ray) > 0
    assert margin(moved(task_input, named, least.value * (1 + 1e-6)), ray) < 0


def test_no_ray_refutes_a_mandate_that_can_be_kept() -> None:
    least = least_attainable(problem_from(INPUT), "max_turnover").value
    kept = _limited({"max_turnover": least + 1e-6})
    rng = np.random.default_rng(1)
    ray = _farkas(_limited({"max_turnover": least - 1e-3}))["ray"]
    for _ in range(200):
        moved = {name: [value + rng.normal(scale=0.02) for value in values] for name, values in ray.items()}
        assert margin(kept, moved) <= 0
    assert margin(kept, ray) <= 0


def _examined(tmp_path: Path, change: Callable[[Json, Json], None]) -> list[tuple[str, str]]:
    """What is found of a refuted mandate once its input or its certificate was changed."""
    task_input, farkas = deepcopy(INPUT), _farkas(INPUT)
    change(task_input, farkas)
    name = "infeasibility_detection"
    episode = Episode("pc", "portfolio_construction", name, date(2025, 1, 31), "hard", task_input, Prompt("", ""))
    task_input["limit_to_relax"] = "max_turnover"
    value = least_attainable(problem_from(INPUT), "max_turnover").value
    output = {"feasible": False, "conflicting_limits": list(WAIVABLE), "least_attainable": value}
    truth = Truth("pc", name, output, {}, {"kind": "infeasible"})
    write_edition(tmp_path / "edition", [(episode, truth)], {"farkas": farkas})
    findings = Findings()
    certified(Subject(Shared(load_edition(tmp_path / "edition")), domain("portfolio_construction")), findings)
    assert findings.figures["refutations"] == 1
    return [(finding.where, finding.field) for finding in findings.found]


def test_a_stored_refutation_is_shown_again(tmp_path: Path) -> None:
    assert _examined(tmp_path, lambda task_input, farkas: None) == []


def _wider(task_input: Json, farkas: Json) -> None:
    task_input["constraints"]["max_weight"] = 0.95


def _negated(task_input: Json, farkas: Json) -> None:
    farkas["ray"] = {name: [-value for value in values] for name, values in farkas["ray"].items()}


def _overstated(task_input: Json, farkas: Json) -> None:
    farkas["margin"] *= 3


def _without_turnover(task_input: Json, farkas: Json) -> None:
    farkas["ray"] |= {"buys": [0.0] * 4, "sells": [0.0] * 4}


@pytest.mark.parametrize("change", [_wider, _negated, _overstated, _without_turnover])
def test_a_ray_that_does_not_prove_what_it_states_is_found(
    tmp_path: Path, change: Callable[[Json, Json], None]
) -> None:
    assert _examined(tmp_path, change) == [("pc", "farkas.ray")]
