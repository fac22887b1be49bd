"""`certified` on the risk subtasks over whole editions, against answers that know less than they claim."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.subtasks.attacks import scored
from tests.subtasks.risk_attacks import ATTACKS

from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Submission
from finskillbench.runs.verdicts import judge

Json = dict[str, Any]
Table = dict[str, dict[str, list[float]]]
FLOOR = 0.25
NOTHING = ("empty object", "nulls")


def _right(edition: Edition, episode: Episode) -> Json:
    return copy.deepcopy(dict(edition.truth(episode.task_id).expected_output))


def _submitted(edition: Edition, episode: Episode, answer: Json) -> float:
    """`certified` of an answer that is sent as text, as an agent sends it: NaN never reaches a scorer."""
    submission = Submission(episode.task_id, json.dumps(answer), "submitted")
    verdict = judge(submission, edition.truth(episode.task_id), task_input=edition.full_input(episode))
    return verdict.scores[Profile.CERTIFIED]


@pytest.fixture(scope="module")
def table(edition: Edition) -> Table:
    """`certified` scores by subtask and attack over all the episodes."""
    found: Table = defaultdict(lambda: defaultdict(list))
    for sub_task, attacks in ATTACKS.items():
        episodes = edition.episodes([sub_task])
        assert len(episodes) == 40
        for i, episode in enumerate(episodes):
            answers = attacks(edition.full_input(episode))
            for step in (1, 7, 20):
                answers[f"truth of the episode {step} further"] = _right(edition, episodes[(i + step) % len(episodes)])
            for name, answer in answers.items():
                found[sub_task][name].append(_submitted(edition, episode, answer))
    return found


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_every_attack_stays_at_the_floor(table: Table, sub_task: str) -> None:
    means = {name: float(np.mean(scores)) for name, scores in table[sub_task].items()}
    print(f"\n{sub_task:<52}{'mean':>8}{'most':>8}")
    for name, mean in sorted(means.items(), key=lambda row: -row[1]):
        print(f"  {name:<50}{mean:>8.3f}{max(table[sub_task][name]):>8.3f}")
    assert {name: mean for name, mean in means.items() if mean > FLOOR} == {}


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_nothing_earns_nothing(table: Table, sub_task: str) -> None:
    for name in NOTHING:
        assert max(table[sub_task][name]) == 0.0, name


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_the_most_common_truth_submitted_everywhere_stays_at_the_floor(edition: Edition, sub_task: str) -> None:
    """Each episode's right answer over all the episodes whose truth is another one."""
    episodes = edition.episodes([sub_task])
    for source in episodes[::5]:
        answer = _right(edition, source)
        others = [episode for episode in episodes if _right(edition, episode) != answer]
        assert np.mean([scored(edition, episode, answer).value for episode in others]) <= FLOOR, source.task_id


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_the_right_answer_scores_one_in_every_profile(edition: Edition, sub_task: str) -> None:
    """`paper`'s ranked list pays over one for repeated types, as published."""
    for episode in edition.episodes([sub_task]):
        for profile in Profile:
            value = scored(edition, episode, _right(edition, episode), profile).value
            if sub_task == "risk_identification" and profile is Profile.PAPER:
                assert value >= 1.0 - 1e-9, episode.task_id
            else:
                assert value == pytest.approx(1.0, abs=1e-9), (episode.task_id, profile)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("sub_task", ATTACKS)
def test_numbers_outside_json_are_invalid_submissions(edition: Edition, sub_task: str, number: str) -> None:
    episode = edition.episodes([sub_task])[0]
    text = f'{{"estimated_pnl_pct": {number}, "total_turnover": {number}, "constraints": [], "trades": []}}'
    verdict = judge(
        Submission(episode.task_id, text, "submitted"),
        edition.truth(episode.task_id),
        task_input=edition.full_input(episode),
    )
    assert str(verdict.status) == "invalid_submission"
    assert set(verdict.scores.values()) == {0.0}


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_no_score_leaves_the_unit_interval(table: Table, sub_task: str) -> None:
    for name, scores in table[sub_task].items():
        assert min(scores) >= 0.0, name
        assert max(scores) <= 1.0, name


def test_a_report_padded_with_every_type_earns_no_more(edition: Edition) -> None:
    for episode in edition.episodes(["constraint_monitoring"]):
        answer = _right(edition, episode)
        rows = answer["constraints"]
        flipped = [{**row, "status": "PASS" if row["status"] == "FAIL" else "FAIL"} for row in rows]
        for padded in (rows + flipped, flipped + rows):
            assert scored(edition, episode, answer | {"constraints": padded}).value < 1.0, episode.task_id


@pytest.mark.parametrize(
    "invented",
    [{"violation_magnitude": -123.0}, {"limit": 99.0}, {"worst_symbol": "NOBODY"}, {"worst_sector": "NOWHERE"}],
)
def test_a_report_with_invented_limits_excesses_or_names_earns_nothing(edition: Edition, invented: Json) -> None:
    for episode in edition.episodes(["constraint_monitoring"]):
        answer = _right(edition, episode)
        answer["constraints"] = [row | invented for row in answer["constraints"]]
        assert scored(edition, episode, answer).value == 0.0, episode.task_id


def test_leaving_small_contributions_out_never_pays(edition: Edition) -> None:
    for episode in edition.episodes(["stress_testing"]):
        answer = _right(edition, episode)
        for rows in answer["attribution"].values():
            rows.remove(min(rows, key=lambda row: abs(row["contribution_pct"])))
        assert scored(edition, episode, answer).value < 1.0, episode.task_id


def test_ranks_that_are_no_places_earn_less(edition: Edition) -> None:
    for episode in edition.episodes(["risk_identification"]):
        rows = _right(edition, episode)["top_risk_exposures"]
        same = [row | {"rank": 1} for row in rows]
        assert scored(edition, episode, {"top_risk_exposures": same}).value <= 0.8, episode.task_id
        guessed = [row | {"magnitude": row["magnitude"] * 1.0275} for row in rows]
        assert scored(edition, episode, {"top_risk_exposures": guessed}).value <= 0.51, episode.task_id


def test_exposures_repeated_or_padded_earn_no_more(edition: Edition) -> None:
    for episode in edition.episodes(["risk_identification"]):
        rows = _right(edition, episode)["top_risk_exposures"]
        whole = scored(edition, episode, {"top_risk_exposures": rows}).value
        first = scored(edition, episode, {"top_risk_exposures": rows[:1]}).value
        repeated = scored(edition, episode, {"top_risk_exposures": rows[:1] * 5}).value
        assert first < whole
        assert repeated <= first + 1e-9, episode.task_id


def test_a_pnl_without_attributions_that_add_up_is_no_full_answer(edition: Edition) -> None:
    for episode in edition.episodes(["stress_testing"]):
        answer = _right(edition, episode)
        bare = {"estimated_pnl_pct": answer["estimated_pnl_pct"]}
        assert scored(edition, episode, bare).value <= 0.75, episode.task_id
        doubled = copy.deepcopy(answer)
        for rows in doubled["attribution"].values():
            for row in rows:
                row["contribution_pct"] *= 2
        assert scored(edition, episode, doubled).value <= 0.75, episode.task_id


def test_the_word_of_the_agent_is_not_taken(edition: Edition) -> None:
    """Right trades with a wrong verdict, and a right verdict without trades."""
    for episode in edition.episodes(["risk_remediation"]):
        answer = _right(edition, episode)
        lie = answer | {"post_trade_compliant": not answer["post_trade_compliant"]}
        assert scored(edition, episode, lie).value < 1.0, episode.task_id
        assert scored(edition, episode, answer | {"trades": []}).value < 1.0, episode.task_id
        cheaper = answer | {"total_turnover": answer["total_turnover"] / 2}
        assert scored(edition, episode, cheaper).value < 1.0, episode.task_id
