"""`certified` on the risk and the fundamental subtasks, against answers that know less than they claim."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from tests.domains.risk import attacks as risk_attacks
from tests.domains.shared.attacks import FLOOR, Json, right_answer, sample, scored

from finskillbench.domains import fundamental
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Submission, Verdict
from finskillbench.runs.verdicts import judge

Table = dict[str, dict[str, list[float]]]
ATTACKS: dict[str, Callable[[Any], Mapping[str, Json]]] = {
    **risk_attacks.ATTACKS,
    **{subtask.name: subtask.examples.exploits for subtask in fundamental.DOMAIN.subtasks if subtask.examples.exploits},
}
NOTHING = ("empty object", "nulls")


def judged(edition: Edition, episode: Episode, text: str) -> Verdict:
    """The verdict on an answer that is sent as text, as an agent sends it: NaN never reaches a scorer."""
    submission = Submission(episode.task_id, text, "submitted")
    return judge(submission, edition.truth(episode.task_id), task_input=edition.full_input(episode))


@pytest.fixture(scope="module")
def table(edition: Edition) -> Table:
    """`certified` scores by subtask and attack over the sample."""
    found: Table = defaultdict(lambda: defaultdict(list))
    for sub_task, attacks in ATTACKS.items():
        episodes = sample(edition, sub_task)
        for i, episode in enumerate(episodes):
            answers = dict(attacks(edition.full_input(episode)))
            for step in (1, 7, 13):
                other = episodes[(i + step) % len(episodes)]
                answers[f"truth of the episode {step} further"] = right_answer(edition, other)
            for name, answer in answers.items():
                verdict = judged(edition, episode, json.dumps(answer))
                found[sub_task][name].append(verdict.scores[Profile.CERTIFIED])
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
def test_no_score_leaves_the_unit_interval(table: Table, sub_task: str) -> None:
    for name, scores in table[sub_task].items():
        assert min(scores) >= 0.0, name
        assert max(scores) <= 1.0, name


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_the_truth_of_one_episode_submitted_everywhere_stays_at_the_floor(edition: Edition, sub_task: str) -> None:
    """Ten episodes' right answers, each over all the episodes of the sample whose truth is another one."""
    episodes = sample(edition, sub_task)
    truths: dict[str, Json] = {episode.task_id: right_answer(edition, episode) for episode in episodes}
    for source in episodes[:: len(episodes) // 10]:
        answer = truths[source.task_id]
        others = [episode for episode in episodes if truths[episode.task_id] != answer]
        assert np.mean([scored(edition, episode, answer).value for episode in others]) <= FLOOR, source.task_id


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("sub_task", ATTACKS)
def test_numbers_outside_json_are_invalid_submissions(edition: Edition, sub_task: str, number: str) -> None:
    fields = ("estimated_pnl_pct", "total_turnover", "beneish_m_score", "revenue_delta")
    stated = ", ".join(f'"{field}": {number}' for field in fields)
    text = f'{{{stated}, "metrics": {{"revenue": {number}}}, "constraints": [], "trades": []}}'
    verdict = judged(edition, edition.episodes([sub_task])[0], text)
    assert str(verdict.status) == "invalid_submission"
    assert set(verdict.scores.values()) == {0.0}
