"""Optima shown from gradients alone and refutations from their rays, and those that do not prove what they state."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import date
from typing import Any

import numpy as np
import pytest

from finskillbench.domains import subtask_named
from finskillbench.domains.checks.proofs import certificate_of, farkas_of, proof_of
from finskillbench.domains.examples import Label
from finskillbench.domains.portfolio.definitions import moved
from finskillbench.domains.portfolio.optimality import OptimalityCheck, _stack_limits, margin, possible_gain
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal, formulate_portfolio
from finskillbench.engines.portfolio.mandates.feasibility import least_attainable
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.findings import Findings

SIGMA = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.16]])
TICKERS = ["A", "B", "C"]
Json = dict[str, Any]
NAMES = ["A", "B", "C", "D"]
INPUT: Json = {
    "covariance_matrix": {"tickers": NAMES, "matrix": (np.diag([0.04, 0.09, 0.16, 0.09]) + 0.01).tolist()},
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
    "factor_exposures": {name: {"smb": beta} for name, beta in zip(NAMES, [1.0, -1.0, 0.5, 0.0], strict=True)},
    "benchmark_weights": dict.fromkeys(NAMES, 0.25),
    "current_portfolio": {"A": 0.9, "B": 0.1, "C": 0.0, "D": 0.0},
}


def test_the_minimum_variance_of_two_assets_cannot_be_bettered() -> None:
    """Variances 0.04 and 0.09 without correlation: weights 9/13 and 4/13 (Markowitz 1952)."""
    weights = np.array([9.0, 4.0]) / 13.0
    gradient = 2 * np.diag([0.04, 0.09]) @ weights
    limits = _stack_limits([(weights, -np.eye(2))], [np.ones((1, 2))])
    assert possible_gain(gradient, limits, 2.0) <= 1e-12


def test_a_point_that_can_be_bettered_is_given_no_proof() -> None:
    equal = np.array([0.5, 0.5])
    gradient = 2 * np.diag([0.04, 0.09]) @ equal
    limits = _stack_limits([(equal, -np.eye(2))], [np.ones((1, 2))])
    better = equal @ np.diag([0.04, 0.09]) @ equal - 0.04 * 0.09 / 0.13
    assert possible_gain(gradient, limits, 2.0) >= better


def _examined(change: Callable[[Json], None]) -> list[str]:
    """A label of minimum variance with a cap of 60 %, its certificate changed, and what is found of it."""
    limits = PortfolioLimits(max_weight=0.6)
    problem = PortfolioProblem(tuple(TICKERS), RiskModel.from_matrix(SIGMA), Objective.MIN_VARIANCE, limits)
    best = optimise(problem)
    stored = certificate_of(best)
    change(stored)
    task_input = {
        "objective": "min_variance",
        "constraints": {"long_only": True, "max_weight": 0.6},
        "covariance_matrix": {"tickers": TICKERS, "matrix": SIGMA.tolist()},
    }
    name = "unconstrained_optimization"
    episode = Episode("pc", "portfolio_construction", name, date(2025, 1, 31), "easy", task_input, Prompt("", ""))
    truth = Truth("pc", name, {"weights": dict(zip(TICKERS, stored["weights"], strict=True))}, {}, proof_of(best))
    findings = Findings()
    proof = subtask_named(name).proof
    assert proof is not None
    proof(Label(episode, task_input, truth, stored, built=False), findings)
    return [finding.message for finding in findings.found]


def test_a_certified_optimum_is_shown_again() -> None:
    assert _examined(lambda stored: None) == []


def test_weights_that_are_no_optimum_are_found() -> None:
    def shift(stored: Json) -> None:
        weights = np.array(stored["weights"]) + np.array([0.0, 0.01, -0.01])
        stored |= {"weights": weights.tolist(), "objective": float(weights @ SIGMA @ weights)}

    assert any("optimum: another portfolio may be better by" in message for message in _examined(shift))


def test_a_value_that_the_weights_do_not_have_is_found() -> None:
    messages = _examined(lambda stored: stored.update(objective=stored["objective"] * 0.99))
    assert any(message.startswith("objective of the weights is") for message in messages)


def test_an_optimum_under_a_limit_that_nobody_set_is_found() -> None:
    """Its own multipliers prove it in the engine's program; only limits that are written down again contradict it."""
    problem = PortfolioProblem(
        tuple(TICKERS), RiskModel.from_matrix(SIGMA), Objective.MIN_VARIANCE, PortfolioLimits(max_weight=0.5)
    )
    stated = {
        "objective": "min_variance",
        "constraints": {"long_only": True},
        "covariance_matrix": {"tickers": TICKERS, "matrix": SIGMA.tolist()},
    }
    assert OptimalityCheck(stated, optimise(problem).weights).gain() > 1e-3
    problem = PortfolioProblem(tuple(TICKERS), problem.risk, Objective.MIN_VARIANCE, PortfolioLimits())
    assert OptimalityCheck(stated, optimise(problem).weights).gain() <= 1e-12


def _limited(limits: Json) -> Json:
    return {**INPUT, "constraints": {**INPUT["constraints"], **limits}}


def _farkas(task_input: Json) -> Json:
    problem = problem_from(task_input)
    with pytest.raises(InfeasibleError) as caught:
        optimise(problem)
    return farkas_of(caught.value, formulate_portfolio(problem, PortfolioAim()).program)


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
    aim = (
        PortfolioAim(PortfolioGoal.TURNOVER)
        if limit == "max_turnover"
        else PortfolioAim(PortfolioGoal.LIMIT, limit=limit)
    )
    program = formulate_portfolio(problem, aim).program
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


def _shown(change: Callable[[Json, Json], None]) -> bool:
    """Whether the ray still refutes a mandate with its margin once its input or its certificate was changed."""
    task_input, farkas = deepcopy(INPUT), _farkas(INPUT)
    change(task_input, farkas)
    found = margin(task_input, farkas["ray"])
    return found > 0 and found >= farkas["margin"] - 1e-7


def test_a_stored_refutation_is_shown_again() -> None:
    assert _shown(lambda task_input, farkas: None)


def _wider(task_input: Json, farkas: Json) -> None:
    task_input["constraints"]["max_weight"] = 0.95


def _negated(task_input: Json, farkas: Json) -> None:
    farkas["ray"] = {name: [-value for value in values] for name, values in farkas["ray"].items()}


def _overstated(task_input: Json, farkas: Json) -> None:
    farkas["margin"] *= 3


def _without_turnover(task_input: Json, farkas: Json) -> None:
    farkas["ray"] |= {"buys": [0.0] * 4, "sells": [0.0] * 4}


@pytest.mark.parametrize("change", [_wider, _negated, _overstated, _without_turnover])
def test_a_ray_that_does_not_prove_what_it_states_is_found(change: Callable[[Json, Json], None]) -> None:
    assert not _shown(change)
