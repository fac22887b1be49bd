"""Every portfolio label of whole editions against an independent solver, and what that solver's answers score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.domains.portfolio import oracle
from tests.domains.shared.attacks import scored
from tests.oracles.ceilings import published_ceiling
from tests.sampling import sampled

from finskillbench.domains import by_name
from finskillbench.domains.portfolio import second
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # cvxpy on its retries
OPTIMISED = ("unconstrained_optimization", "constrained_optimization", "rebalancing", "black_litterman")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def solved(edition: Edition) -> dict[str, tuple[Episode, Json, Json]]:
    """By task id: the episode, its resolved input and the oracle's solution."""
    solve = {
        "unconstrained_optimization": oracle.solve,
        "constrained_optimization": oracle.solve,
        "rebalancing": oracle.rebalance,
        "black_litterman": oracle.black_litterman,
        "infeasibility_detection": oracle.feasibility,
    }
    found = {}
    for episode in (one for name in solve for one in sampled(edition.episodes([name]), 4)):
        task_input = _dense(edition.full_input(episode))
        found[episode.task_id] = (episode, task_input, solve[episode.sub_task](task_input))
    return found


def _dense(task_input: Json) -> Json:
    tickers, matrix = second.covariance(task_input)
    return {**task_input, "covariance_matrix": {"tickers": tickers, "matrix": matrix.tolist()}}


def _of(solved: dict[str, tuple[Episode, Json, Json]], sub_task: str) -> list[tuple[Episode, Json, Json]]:
    chosen = [row for row in solved.values() if row[0].sub_task == sub_task]
    assert len(chosen) == len(sampled(range(40), 4))
    return chosen


def _labelled(edition: Edition, episode: Episode) -> Json:
    expected = edition.truth(episode.task_id).expected_output
    return next(expected[key] for key in ("weights", "new_weights", "optimal_weights") if key in expected)


@pytest.mark.parametrize("sub_task", OPTIMISED)
def test_objectives_agree_to_a_millionth(edition: Edition, solved: Any, sub_task: str) -> None:
    for episode, _, solution in _of(solved, sub_task):
        truth = edition.truth(episode.task_id)
        proof = truth.proof["stage_1"] if sub_task == "rebalancing" else truth.proof
        assert proof["objective"] == pytest.approx(solution["objective"], rel=1e-6), episode.task_id


@pytest.mark.parametrize("sub_task", OPTIMISED)
def test_weights_agree_because_each_optimum_is_proved_unique(edition: Edition, solved: Any, sub_task: str) -> None:
    for episode, _, solution in _of(solved, sub_task):
        truth, labelled = edition.truth(episode.task_id), _labelled(edition, episode)
        assert truth.proof["unique"], episode.task_id
        distance = np.linalg.norm([solution["weights"][ticker] - weight for ticker, weight in labelled.items()])
        assert distance < 1e-4, episode.task_id


def test_rebalancing_costs_the_least(edition: Edition, solved: Any) -> None:
    for episode, task_input, solution in _of(solved, "rebalancing"):
        truth = edition.truth(episode.task_id)
        expected = truth.expected_output
        assert truth.verification["least_cost_bps"] == pytest.approx(solution["cost"], rel=1e-5), episode.task_id
        moved = {t: w - task_input["current_portfolio"][t] for t, w in expected["new_weights"].items()}
        assert expected["turnover"] == pytest.approx(sum(map(abs, moved.values())) / 2, abs=1e-9)
        for ticker, change in moved.items():
            assert expected["trade_list"].get(ticker, 0.0) == pytest.approx(change, abs=1.1e-5), episode.task_id


def test_verdicts_conflicts_and_least_values_agree(edition: Edition, solved: Any) -> None:
    """Of an infeasible mandate exactly one smallest set of limits is in conflict, by solving every set."""
    for episode, _, solution in _of(solved, "infeasibility_detection"):
        expected = edition.truth(episode.task_id).expected_output
        assert expected["feasible"] is bool(solution["feasible"]), episode.task_id
        assert expected["least_attainable"] == pytest.approx(solution["least_attainable"], rel=1e-6), episode.task_id
        assert expected["conflicting_limits"] == solution["conflicting_limits"], episode.task_id
        assert len(solution["conflicts"]) == (not expected["feasible"]), episode.task_id


def test_the_right_answer_scores_one_or_what_the_published_scorer_allows(edition: Edition) -> None:
    for episode in sampled(edition.episodes(), 3):
        answer = dict(edition.truth(episode.task_id).expected_output)
        for profile in by_name(episode.sub_task).scorers:
            value = scored(edition, episode, answer, profile).value
            most = 1.0 if profile is Profile.CERTIFIED else published_ceiling(episode.sub_task, answer)
            # The published scorer of ranked lists is not clipped: repeated types lift even the right list over 1.
            published = profile is Profile.PAPER and episode.sub_task == "risk_identification"
            assert (min(value, 1.0) if published else value) == pytest.approx(most, abs=1e-9), episode.task_id


@pytest.mark.parametrize("digits", [4, 6])
def test_the_oracle_keeps_its_marks_when_it_rounds(edition: Edition, solved: Any, digits: int) -> None:
    for episode, task_input, solution in solved.values():
        answer = _rounded(_answer(episode, task_input, solution, edition), digits)
        # Half a basis point is a quarter of what an active beta of 0.01 may be off at the most.
        small = episode.sub_task == "infeasibility_detection"
        floor = (0.75 if small else 0.97) if digits == 4 else 0.99
        assert scored(edition, episode, answer).value >= floor, episode.task_id
        assert scored(edition, episode, answer, Profile.PAPER).value >= 0.97, episode.task_id


def _answer(episode: Episode, task_input: Json, solution: Json, edition: Edition) -> Json:
    if episode.sub_task == "infeasibility_detection":
        return {name: solution[name] for name in ("feasible", "conflicting_limits", "least_attainable")}
    if episode.sub_task == "rebalancing":
        return {"trade_list": solution["trades"], "new_weights": solution["weights"], "turnover": solution["turnover"]}
    if episode.sub_task == "black_litterman":
        return {"posterior_returns": solution["posterior_returns"], "optimal_weights": solution["weights"]}
    expected = edition.truth(episode.task_id).expected_output
    flags = dict.fromkeys(expected.get("constraint_satisfaction", {}), True)
    return {"weights": solution["weights"], "constraint_satisfaction": flags}


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item, digits) for key, item in value.items()}
    return round(float(value), digits) if isinstance(value, float) else value
