"""The published episodes: their own labels score 1 under the published scorers, and the known exploits work there."""

import json
from pathlib import Path
from typing import Any

import pytest

from finskillbench.domains import domain_of, subtask_named
from finskillbench.episode import Profile, Status, Submission, Truth
from finskillbench.runs.verdicts import judge

ABOVE_ONE = {
    # Two factor tilts each: `paper` pays the repeat the full relevance of the type while the ideal has it once.
    "rm_ri_portfolio_concentrated_2023_24_rebound_000": 1.1076,
    "rm_ri_portfolio_factor_tilted_2023_24_rebound_000": 1.1704,
}


@pytest.fixture(scope="module")
def published(release_sample: Path) -> dict[str, dict[str, Any]]:
    """Every published episode of the sample by task id."""
    files = sorted(release_sample.glob("data/*/episodes/**/*.json"))
    episodes = [json.loads(file.read_text()) for file in files]
    assert len(episodes) == 22
    return {episode["task_id"]: episode for episode in episodes}


def _truth(episode: dict[str, Any]) -> Truth:
    return Truth(episode["task_id"], episode["sub_task"], episode["expected_output"], episode["verification"])


def _scores(episode: dict[str, Any], answer: object) -> dict[Profile, float]:
    submission = Submission(episode["task_id"], json.dumps(answer))
    verdict = judge(submission, _truth(episode), episode["input"])
    assert verdict.status is Status.SCORED
    return dict(verdict.scores)


def test_every_published_label_is_worth_one(published: dict[str, dict[str, Any]]) -> None:
    for task_id, episode in published.items():
        scores = _scores(episode, episode["expected_output"])
        assert scores[Profile.PAPER] == pytest.approx(ABOVE_ONE.get(task_id, 1.0), abs=5e-5), task_id
        assert scores[Profile.STRICT] == pytest.approx(1.0, abs=1e-9), task_id


def test_published_methods_are_those_of_the_registry(published: dict[str, dict[str, Any]]) -> None:
    assert {subtask_named(episode["sub_task"]).verification.method for episode in published.values()} == {
        episode["verification"]["method"] for episode in published.values()
    }
    for episode in published.values():
        assert subtask_named(episode["sub_task"]).verification.method == episode["verification"]["method"]
        assert domain_of(episode["sub_task"]).name == episode["skill"]


def test_what_an_empty_object_earns(published: dict[str, dict[str, Any]]) -> None:
    """Row 12 of the defects: 0.43 where no flag is expected, since what the answer omits drops out of the mean."""
    paid = {task_id: _scores(episode, {}) for task_id, episode in published.items()}
    for profile in (Profile.PAPER, Profile.STRICT):
        assert {task_id: scores[profile] for task_id, scores in paid.items() if scores[profile]} == {
            "fa_eq_AAPL_2022-09-24": 0.4286
        }


def test_everything_fails_earns_four_tenths_and_more(published: dict[str, dict[str, Any]]) -> None:
    for episode in published.values():
        if episode["sub_task"] == "constraint_monitoring":
            rows = [{"type": row["type"], "status": "FAIL"} for row in episode["expected_output"]["constraints"]]
            paid = _scores(episode, {"overall_compliant": False, "constraints": rows})[Profile.PAPER]
            failing = episode["expected_output"]["violations_count"]
            assert paid == pytest.approx(0.4 + 0.6 * failing / len(rows))


def test_nan_weights_are_no_submission(published: dict[str, dict[str, Any]]) -> None:
    episode = published["pc_uncon_2025-01-31_easy_max_sharpe"]
    text = '{"weights": {"AIG": NaN}}'
    verdict = judge(Submission(episode["task_id"], text), _truth(episode), episode["input"])
    assert verdict.status is Status.INVALID_SUBMISSION
    assert set(verdict.scores.values()) == {0.0}
